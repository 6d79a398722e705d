"""Dependencies: values that a function supplies to a handler, beside what the client sent.

Resolved once a request, cleaned up after it. It is loaded by programs that use it, and refuses to
know tools, prompts and resources.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from inspect import isasyncgenfunction, isgeneratorfunction
from types import FunctionType
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.errors import UsageError
from dragoman.protocol.call import Call
from dragoman.schema.annotations import is_instance_type
from dragoman.schema.callables import MISSING, read_callable
from dragoman.schema.signature import Signature
from dragoman.server.context import Context
from dragoman.server.function import Invoke, invoker

log = logging.getLogger("dragoman.server")

Supplier: TypeAlias = Callable[..., Any]
Leave: TypeAlias = Callable[[BaseException | None], Awaitable[None]]
Kind: TypeAlias = Literal["value", "generator", "async generator"]
_CONTEXTS: Final = {"Context": Context}


class Dependency(msgspec.Struct, frozen=True):
    """What `Depends(...)` makes."""

    function: Supplier
    cache: bool
    inline: bool


def Depends(function: Supplier, *, cache: bool = True, inline: bool = False) -> Any:  # noqa: N802  # the field's name for it
    """A function that supplies a parameter.

    As in `orders: Annotated[Database, Depends(database)]`, or `orders: Database = Depends(database)`.
    `function` may be plain (it runs in a worker thread, with `inline` on the event loop), async, or
    a generator of either kind that yields the value once and cleans up after the call; a class
    too. Its own parameters are a `Context` and further dependencies. It is called once a request,
    however many want its value; with `cache=False`, once for each.

    Raises:
        UsageError: `function` cannot be called.
    """
    if not callable(function):
        raise UsageError(f"Depends: expected a function, received {function!r}")
    return Dependency(function, cache, inline)


class Injection:
    """Finds what a handler depends on, while `schema.signature.reflect` reads it."""

    def __init__(self) -> None:
        self._found: list[Dependency] = []

    def __call__(self, item: Any) -> bool:
        """Whether this annotation or default is a dependency."""
        found = _dependency(item)
        if found is not None:
            self._found.append(found)
        return found is not None

    def needs(self, signature: Signature) -> Needs | None:
        """What the handler of that signature needs; None for nothing.

        Raises:
            UsageError: a dependency that cannot be supplied.
        """
        if not self._found:
            return None
        pairs = tuple(zip(signature.injected, self._found, strict=True))
        return Needs(pairs, context=signature.context)


def _dependency(item: Any) -> Dependency | None:
    for part in (item, *getattr(item, "__metadata__", ())):
        if isinstance(part, Dependency):
            return part
    return None


class _Plan(msgspec.Struct, frozen=True):
    """How one supplier is called. A parameter without a dependency takes the context."""

    kind: Kind
    parameters: tuple[tuple[str, Dependency | None], ...]


def _plan(function: Supplier) -> _Plan:
    name = getattr(function, "__qualname__", None) or repr(function)
    parameters: list[tuple[str, Dependency | None]] = []
    target = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]  # only looked at
    if isinstance(function, type) and not isinstance(target, FunctionType):
        return _Plan("value", ())
    shape = read_callable(target, _CONTEXTS)
    for parameter in shape.parameters[1:] if isinstance(function, type) else shape.parameters:
        found = _dependency(parameter.annotation) or _dependency(parameter.default)
        if found is not None or is_instance_type(parameter.annotation, (Context,)):
            if parameter.by_position:
                raise UsageError(f"Depends({name}): {parameter.name} can only be given by position")
            parameters.append((parameter.name, found))
        elif parameter.default is MISSING:
            raise UsageError(
                f"Depends({name}): nothing supplies its parameter {parameter.name!r}",
                hint="give it a default, a Depends(...) of its own, or the type Context",
            )
    return _Plan(_kind(function), tuple(parameters))


def _kind(function: Supplier) -> Kind:
    called = getattr(function, "__call__", None)  # noqa: B004  # the method is what is looked at
    if isasyncgenfunction(function) or isasyncgenfunction(called):
        return "async generator"
    return "generator" if isgeneratorfunction(function) or isgeneratorfunction(called) else "value"


class Needs:
    """What one handler needs beside its arguments."""

    def __init__(self, pairs: tuple[tuple[str, Dependency], ...], *, context: str | None) -> None:
        self._pairs = pairs
        self._context = context
        self._plans: dict[Supplier, _Plan] = {}
        for _, dependency in pairs:
            self._check(dependency.function, ())

    def _check(self, function: Supplier, path: tuple[Supplier, ...]) -> None:
        if function in path:
            names = " -> ".join(getattr(each, "__name__", repr(each)) for each in (*path, function))
            raise UsageError(f"Depends: a dependency needs itself: {names}")
        for _, inner in self.plan(function).parameters:
            if inner is not None:
                self._check(inner.function, (*path, function))

    def plan(self, function: Supplier) -> _Plan:
        """How `function` is called; read once."""
        plan = self._plans.get(function)
        if plan is None:
            plan = self._plans[function] = _plan(function)
        return plan

    async def around(self, call: Call, arguments: dict[str, Any], *, invoke: Invoke) -> Any:
        """`invoke(arguments)` with everything supplied, and cleaned up after it.

        What a handler inside the same request needs too is shared with it, and cleaned up by the
        outermost one.
        """
        scope: _Scope | None = call.scope
        if scope is not None:
            return await self._supplied(scope, arguments, invoke=invoke)
        context = Context(call) if self._context is None else arguments[self._context]
        scope = call.scope = _Scope(call, context)
        outcome: BaseException | None = None
        value: Any = None
        try:
            value = await self._supplied(scope, arguments, invoke=invoke)
        except BaseException as exc:  # noqa: BLE001  # raised again, once everything is cleaned up
            outcome = exc
        finally:
            call.scope = None
        outcome = await scope.close(outcome)
        if outcome is not None:
            raise outcome
        return value

    async def _supplied(self, scope: _Scope, arguments: dict[str, Any], *, invoke: Invoke) -> Any:
        for name, dependency in self._pairs:
            arguments[name] = await scope.value(dependency, self.plan, path=())
        return await invoke(arguments)


class _Scope:
    """What was supplied in one request, and how to clean up."""

    def __init__(self, call: Call, context: Context) -> None:
        self._overrides: dict[Supplier, Supplier] = {} if call.home is None else call.home.overrides
        self._context = context
        self._values: dict[Supplier, Any] = {}
        self._leaves: list[Leave] = []

    async def value(
        self, dependency: Dependency, plan: Callable[[Supplier], _Plan], *, path: tuple[Supplier, ...]
    ) -> Any:
        """The value of a dependency."""
        function = dependency.function
        if function not in path:  # what replaces a function may itself depend on it
            function = self._overrides.get(function, function)
        if dependency.cache and function in self._values:
            return self._values[function]
        planned = plan(function)
        kind, parameters = planned.kind, planned.parameters
        arguments: dict[str, Any] = {}
        for name, inner in parameters:
            if inner is None:
                arguments[name] = self._context
            else:
                arguments[name] = await self.value(inner, plan, path=(*path, dependency.function))
        if kind == "value":
            value = await invoker(function, inline=dependency.inline)(arguments)
        elif kind == "generator":
            value = await self._enter(contextmanager(function)(**arguments), inline=dependency.inline)
        else:
            value = await self._enter_async(asynccontextmanager(function)(**arguments))
        if dependency.cache:
            self._values[function] = value
        return value

    async def _enter(self, held: Any, *, inline: bool) -> Any:
        value = await invoker(held.__enter__, inline=inline)({})

        async def leave(exc: BaseException | None) -> None:
            await invoker(partial(held.__exit__, *_told(exc)), inline=inline)({})

        self._leaves.append(leave)
        return value

    async def _enter_async(self, held: Any) -> Any:
        value = await held.__aenter__()

        async def leave(exc: BaseException | None) -> None:
            await held.__aexit__(*_told(exc))

        self._leaves.append(leave)
        return value

    async def close(self, outcome: BaseException | None) -> BaseException | None:
        """Clean up, last in first out; what the request ends with.

        A generator sees the exception that ended the call where it yielded. It may raise another
        one in its place, but cannot make the call succeed.
        """
        while self._leaves:
            leave = self._leaves.pop()
            try:
                await leave(outcome)
            except BaseException as exc:  # raised by whoever asked to close
                if exc is outcome:
                    continue
                if outcome is None or isinstance(outcome, Exception):
                    outcome = exc
                else:
                    log.error("a dependency failed to clean up", exc_info=exc)
        return outcome


def _told(exc: BaseException | None) -> tuple[Any, Any, Any]:
    return (None, None, None) if exc is None else (type(exc), exc, exc.__traceback__)
