"""An HTTP app on a socket of its own: uvicorn, told to be quiet, quick and to stop in bounded time.

The only module that knows which ASGI server is used. It knows nothing of MCP.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.errors import ConnectError, UsageError

if TYPE_CHECKING:
    from types import FrameType

    from uvicorn import Config, Server

GRACE: float = 5.0  # seconds that requests in flight may take to finish once a signal has come
BACKLOG: int = 2048  # connections that wait to be accepted, as uvicorn has it


_BINDING = {  # what to try where an address cannot be had
    errno.EADDRINUSE: "another program listens there; choose another port, or 0 for any free one",
    errno.EADDRNOTAVAIL: "an address of this machine; 0.0.0.0 takes all of them",
    errno.EACCES: "a port from 1024 up: those below are for the system",
}


class Endpoint(Protocol):
    """An app that can be served: an ASGI callable that ends its open streams when told to."""

    @property
    def name(self) -> str:
        """Whose app it is, for the line on stderr."""
        ...

    @property
    def path(self) -> str:
        """Where its endpoint is."""
        ...

    def wind_down(self) -> None:
        """Let streams end that would otherwise stay open."""
        ...

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI connection."""
        ...


def run_http(
    app: Endpoint,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    bound: Callable[[int], None] | None = None,
    grace: float = GRACE,
) -> None:
    """Serve until SIGINT or SIGTERM, then stop within `grace` seconds.

    Port 0 takes a free one; `bound` is told which. One line on stderr says where the server is.

    Raises:
        ConnectError: the address cannot be bound.
        UsageError: a port that cannot be, or uvicorn is not installed.
    """
    server, listener = _prepare(app, host=host, port=port, grace=grace)
    gc.freeze()  # what is loaded stays: the collector need not look at it again with every thousand requests
    with listener, asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
        runner.run(_run(server, listener, app=app, bound=bound))


async def serve(
    app: Endpoint,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    bound: Callable[[int], None] | None = None,
    grace: float = GRACE,
) -> None:
    """As `run_http`, inside a running event loop; cancelling it stops the server too."""
    server, listener = _prepare(app, host=host, port=port, grace=grace)
    with listener:
        await _run(server, listener, app=app, bound=bound)


async def _run(
    server: Server, listener: socket.socket, *, app: Endpoint, bound: Callable[[int], None] | None
) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"dragoman: serving {app.name} at http://{shown}:{port}{app.path}", file=sys.stderr, flush=True)  # noqa: T201  # a person reads it
    if bound is not None:
        bound(port)
    serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise


def _prepare(app: Endpoint, *, host: str, port: int, grace: float) -> tuple[Server, socket.socket]:
    try:
        import uvicorn
    except ImportError as exc:
        raise UsageError(f"serving HTTP needs uvicorn, which cannot be imported ({exc})") from exc

    class Stopping(uvicorn.Server):
        """Ends open streams first: uvicorn waits for every response, and those never end by themselves."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # Not passed on once the server has stopped, as uvicorn would: stopping was what it asked for.
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.wind_down()
            await super().shutdown(sockets)

    listener = _bind(host, port)
    _warn(host)
    config: Config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        ws="none",
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    return Stopping(config), listener


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:  # the resolver would take it modulo 65536
        raise UsageError(f"port: expected a number from 0 to 65535, received {port}")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
    except OSError as exc:
        raise ConnectError(f"cannot listen on {host}:{port}: {exc.strerror}", stage="bind") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        # Before anybody is told of it: a connection from now on waits, and is not refused.
        listener.listen(BACKLOG)
    except OSError as exc:
        listener.close()
        hint = _BINDING.get(exc.errno or 0)
        raise ConnectError(
            f"cannot listen on {host}:{port}: {exc.strerror}", stage="bind", hint=hint
        ) from None
    listener.setblocking(False)
    return listener


def _warn(host: str) -> None:
    if host in ("localhost", "::1") or host.startswith("127."):
        return
    print(  # noqa: T201  # a person reads it
        f"dragoman: warning: {host} is not a loopback address: every machine that reaches it can call this "
        "server, and nothing here asks who is calling. It answers by its addresses and by the names in "
        "allowed_hosts (or DRAGOMAN_ALLOWED_HOSTS)",
        file=sys.stderr,
        flush=True,
    )
