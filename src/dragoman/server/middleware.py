"""Middleware: functions around the kernel's handling of a call, folded once.

The typed seam. A middleware sees an admitted `Call` and the neutral result; it may answer itself,
refuse, or change what passes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from dragoman.model import Result
from dragoman.protocol.call import Call

Handler: TypeAlias = Callable[[Call], Awaitable[Result]]
Middleware: TypeAlias = Callable[[Call, Handler], Awaitable[Result]]


def fold(layers: Sequence[Middleware], innermost: Handler) -> Handler:
    """One handler out of all layers; the first layer is the outermost."""
    handler = innermost
    for layer in reversed(layers):
        handler = _around(layer, handler)
    return handler


def _around(layer: Middleware, inner: Handler) -> Handler:
    def handle(call: Call) -> Awaitable[Result]:
        return layer(call, inner)

    return handle


def only(method: str, layer: Middleware) -> Middleware:
    """`layer` for calls of one method; every other call passes it by."""

    async def handle(call: Call, inner: Handler) -> Result:
        return await (layer(call, inner) if call.method.name == method else inner(call))

    return handle
