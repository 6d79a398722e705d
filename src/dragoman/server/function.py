"""A handler's function: called on the loop or in a thread, with the arguments that a client sent.

What tools, prompts, resources and completions have in common. It refuses to know what comes of the
value.
"""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from types import TracebackType
from typing import Any, TypeVar

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import astuple

from dragoman.errors import Refusal
from dragoman.schema.errors import ArgumentError, Fault
from dragoman.schema.signature import Signature
from dragoman.transports.threads import THREADS

_OURS = __file__.removesuffix("server/function.py")  # this package's folder

Function = Callable[..., Any]
Invoke = Callable[[dict[str, Any]], Awaitable[Any]]
Begin = Callable[[bytes | Raw | UnsetType], Awaitable[Any]]
T = TypeVar("T")


def tell(exc: BaseException) -> str:
    """The exception's own message; its kind where it has none, or the message says little alone."""
    kind = type(exc).__name__
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001  # the author's own `__str__`, which may fail as the function did
        text = ""
    # A file's name may hold half a surrogate pair, which no message can carry.
    text = text.encode("utf-8", "backslashreplace").decode()
    if not text:
        return kind
    return text if isinstance(exc, Exception) and not isinstance(exc, LookupError) else f"{kind}: {text}"


def raised(exc: BaseException) -> tuple[type[BaseException], BaseException, TracebackType | None]:
    """`exc_info` for the log: the traceback from the author's own code on, without how we got there."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    return type(exc), exc, trace or exc.__traceback__


def refusal(exc: ArgumentError) -> Refusal:
    """-32602 for arguments that do not fit, with `data: {field, expected, received}`."""
    first = exc.faults[0]
    data = {"field": first.field, "expected": first.expected, "received": first.received}
    if len(exc.faults) > 1:
        data["faults"] = [_fault(fault) for fault in exc.faults]  # type: ignore[assignment]  # a list beside the strings
    return Refusal(-32602, str(exc), data)


def _fault(fault: Fault) -> dict[str, str]:
    return {"field": fault.field, "expected": fault.expected, "received": fault.received}


def invoker(function: Function, *, inline: bool = False) -> Invoke:
    """How `function` is called: awaited, in a worker thread, or (`inline`) on the event loop."""
    if iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004  # the method is what is looked at
        return lambda arguments: function(**arguments)
    return partial(_call_inline if inline else _call_in_thread, function)


def beginner(signature: Signature) -> Begin | None:
    """What reads the arguments of a coroutine function and calls it, both at once; None where more is needed.

    It gives what `invoker(signature.function)(signature.decode(arguments))` gives, and costs less.
    """
    if not (signature.in_order and iscoroutinefunction(signature.function)):
        return None
    function: Callable[..., Awaitable[Any]] = signature.function
    typed, decode = signature.typed, signature.decode

    def begin(arguments: bytes | Raw | UnsetType) -> Awaitable[Any]:
        try:
            values = astuple(typed(b"{}" if arguments is UNSET else arguments))
        except Exception:  # noqa: BLE001  # `decode` says what it is, or reads it all the same
            return function(**decode(b"{}" if arguments is UNSET else arguments))
        return function(*values)

    return begin


async def _call_inline(function: Function, arguments: dict[str, Any]) -> Any:
    value = function(**arguments)
    return await value if isawaitable(value) else value


async def _call_in_thread(function: Function, arguments: dict[str, Any]) -> Any:
    value = await in_thread(partial(function, **arguments))
    return await value if isawaitable(value) else value


async def in_thread(work: Callable[[], T]) -> T:
    """What `work()` gives, done in a worker thread: a slow one stalls neither the loop nor a ping."""
    context = contextvars.copy_context()
    return await THREADS.run(partial(context.run, work))
