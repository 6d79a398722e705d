"""A table of methods: functions of your own, served over JSON-RPC 2.0.

It finds the function, binds the parameters and turns what comes out into an answer. It refuses to
know where bytes come from, and never awaits: a function that does is awaited by whoever drives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, overload

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal, UsageError
from dragoman.jsonrpc.binding import Exchange, Signature
from dragoman.jsonrpc.envelope import DEFAULT, INTERNAL_ERROR, MESSAGES, METHOD_NOT_FOUND, Limits
from dragoman.jsonrpc.peer import NotificationReceived, Peer, Reply, RequestReceived

__all__ = ["Call", "Cancellation", "Exchange", "Fault", "RpcError", "Service"]

RpcError = Refusal
"""Raise it in a method: the caller gets this error, `RpcError(code, message, data)`."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol calls a request off: a notification, and which member of it is the id.

    `code` is the error that answers a request that was called off; None: it gets no answer.
    The Language Server Protocol has `Cancellation(method="$/cancelRequest", member="id", code=-32800)`.
    """

    method: str
    member: str = "id"
    code: int | None = None
    message: str = "Request cancelled"


class Fault(msgspec.Struct, frozen=True, gc=False):
    """The error object of an answer; `internal` where the cause is ours and stays with us."""

    code: int
    message: str
    data: Any = UNSET
    internal: bool = False


class Call(msgspec.Struct, frozen=True):
    """A function with its arguments, ready to run; `thread`: it blocks, keep it off the loop."""

    function: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    thread: bool = False

    def run(self) -> Any:
        """Call it. What comes back may be an awaitable: the value is what awaiting it gives."""
        return self.function(*self.args, **self.kwargs)


class _Method(msgspec.Struct, frozen=True):
    function: Callable[..., Any]
    signature: Signature
    thread: bool


Received: TypeAlias = RequestReceived | NotificationReceived


class Service:
    """Methods by name.

    `details=False` leaves out `error.data` in the answers that the service itself makes, so that
    they are to the letter those of the JSON-RPC 2.0 specification.
    """

    def __init__(self, *, limits: Limits = DEFAULT, details: bool = True) -> None:
        self.limits: Final = limits
        self.details: Final = details
        self._methods: dict[str, _Method] = {}

    @property
    def methods(self) -> tuple[str, ...]:
        """The names that are served, in the order of registration."""
        return tuple(self._methods)

    @overload
    def method(self, name: _Function, /) -> _Function: ...
    @overload
    def method(
        self, name: str | None = None, /, *, thread: bool = False
    ) -> Callable[[_Function], _Function]: ...

    def method(self, name: Any = None, /, *, thread: bool = False) -> Any:
        """Serve a function: `@service.method` under its own name, `@service.method("name")` under another.

        Parameters are bound by position or by name and converted to their annotations by msgspec; a
        parameter annotated `Exchange` gets the exchange. `thread=True` runs a blocking function in a
        worker thread. Raises UsageError for a name that is taken, a name that begins with `rpc.`
        (section 4.3 keeps those), and an annotation that cannot be decoded.
        """
        if callable(name):
            return self._add(name.__name__, name, thread=thread)

        def register(function: _Function) -> _Function:
            return self._add(name or function.__name__, function, thread=thread)

        return register

    def _add(self, name: str, function: _Function, *, thread: bool) -> _Function:
        if name.startswith("rpc."):
            raise UsageError(f"method {name!r}: names that begin with `rpc.` are reserved")
        if name in self._methods:
            raise UsageError(f"method {name!r}: there is one of that name already")
        if thread and inspect.iscoroutinefunction(function):
            raise UsageError(f"method {name!r}: an async function runs on the loop, not in a thread")
        self._methods[name] = _Method(function, Signature(function, name), thread)
        return function

    def bind(self, received: Received, exchange: Exchange | None = None) -> Call:
        """Find the function and its arguments. Raises Refusal: method not found, invalid params."""
        method = self._methods.get(received.method)
        if method is None:
            raise Refusal(METHOD_NOT_FOUND, MESSAGES[METHOD_NOT_FOUND], {"method": received.method})
        exchange = exchange or alone(received)
        args, kwargs = method.signature.bind(received.params, exchange)
        return Call(method.function, args, kwargs, method.thread)

    def call(self, received: Received, exchange: Exchange | None = None) -> Any:
        """Bind and run at once; what comes back may be an awaitable."""
        return self.bind(received, exchange).run()

    def fault(self, error: BaseException, *, bound: bool = True) -> Fault:
        """The answer to an exception: a Refusal's own words, and nothing about any other.

        `bound` is false when it was `bind` that raised, and `details` decides about the data.
        """
        if not isinstance(error, Refusal):
            return Fault(INTERNAL_ERROR, MESSAGES[INTERNAL_ERROR], internal=True)
        if not bound and not self.details:
            return Fault(error.code, MESSAGES[error.code])
        return Fault(error.code, error.message, error.data)

    def dispatch(self, frame: bytes) -> bytes:
        """Answer one frame at once; `b""` where nothing is owed. For services that never wait.

        Raises UsageError when a method returns an awaitable: that takes a driver with an event loop.
        """
        peer = Peer(self.limits, details=self.details)
        answer = b""
        for event in peer.receive(frame):
            if isinstance(event, Reply):
                answer = event.frame
            elif isinstance(event, RequestReceived):
                answer = self._answer(peer, event) or answer
            elif isinstance(event, NotificationReceived):
                self._attempt(event)
        return answer

    def _answer(self, peer: Peer, request: RequestReceived) -> bytes:
        outcome = self._attempt(request)
        if not isinstance(outcome, Fault):
            try:
                return peer.respond(request.id, outcome)
            except Exception as error:  # noqa: BLE001 - a value that is no JSON, by whatever way it fails
                outcome = self.fault(error)
        return peer.refuse(request.id, outcome.code, outcome.message, outcome.data)

    def _attempt(self, received: Received) -> Any:
        try:
            call = self.bind(received)
        except Refusal as error:
            return self.fault(error, bound=False)
        try:
            value = call.run()
        except Exception as error:  # noqa: BLE001 - whatever a method raises is an answer
            return self.fault(error)
        if inspect.isawaitable(value):
            if inspect.iscoroutine(value):
                value.close()
            raise UsageError(f"method {received.method!r} is asynchronous: serve it with a driver")
        return value


def alone(received: Received) -> Exchange:
    """An exchange over a transport that carries the answer and nothing else."""

    def notify(method: str, params: Any) -> bool:
        return False

    def request(method: str, params: Any) -> NoReturn:
        raise UsageError(f"the caller cannot be asked for {method!r}: this transport carries answers only")

    return Exchange(
        received.id if isinstance(received, RequestReceived) else None,
        received.method,
        notify=notify,
        request=request,
    )
