"""JSON-RPC 2.0, usable alone: messages, framing, one connection's state, a table of methods.

The names are loaded on first use, so that taking one of them does not pay for the others. Nothing
in here opens a socket or awaits anything; `dragoman.transports.stream` drives it over byte streams.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.jsonrpc.envelope import Limits
    from dragoman.jsonrpc.framing import ContentLength, Lines
    from dragoman.jsonrpc.message import decode
    from dragoman.jsonrpc.peer import Peer
    from dragoman.jsonrpc.service import Cancellation, Exchange, RpcError, Service

_HOMES = {
    "Cancellation": "service",
    "ContentLength": "framing",
    "Exchange": "service",
    "Limits": "envelope",
    "Lines": "framing",
    "Peer": "peer",
    "RpcError": "service",
    "Service": "service",
    "decode": "message",
}

__all__ = [
    "Cancellation",
    "ContentLength",
    "Exchange",
    "Limits",
    "Lines",
    "Peer",
    "RpcError",
    "Service",
    "decode",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)
