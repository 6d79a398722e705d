"""What carries messages. The drivers of `dragoman.jsonrpc` alone have their names here, loaded on first use.

Those of MCP are behind `Server.run`, `Server.asgi` and `Client`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.transports.fds import serve_stdio
    from dragoman.transports.post import HttpService
    from dragoman.transports.runner import Options
    from dragoman.transports.stream import StreamPeer, connect_stream, serve_stream

_HOMES: Final = {
    "HttpService": "dragoman.transports.post",
    "Options": "dragoman.transports.runner",
    "StreamPeer": "dragoman.transports.stream",
    "connect_stream": "dragoman.transports.stream",
    "serve_stdio": "dragoman.transports.fds",
    "serve_stream": "dragoman.transports.stream",
}

__all__ = ["HttpService", "Options", "StreamPeer", "connect_stream", "serve_stdio", "serve_stream"]


def __getattr__(name: str) -> Any:
    """Load the module that has `name` and keep the value, so that this runs once a name."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dragoman.transports' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
