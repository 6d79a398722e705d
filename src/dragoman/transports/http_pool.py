"""Connections of an HTTP client: made, kept for the next request, limited, closed.

The one implementation of `http_base.HttpClient`, on asyncio and a C parser. It follows no redirect,
keeps no cookie, decodes no content coding and retries nothing that may have had an effect.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import select
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from time import monotonic
from typing import Final

from dragoman.errors import ClosedError, ConnectError, LocalError, UsageError
from dragoman.transports.http_base import Address, HttpOptions, HttpRequest
from dragoman.transports.http_proxy import choose_proxy, connect_request, place, refused
from dragoman.transports.http_wire import Connection, WireReply

_BREAK: Final = re.compile(r"[\r\n\0]")
_TIMEOUT: Final = re.compile(r"timeout=(\d{1,6})")
_MAX_KEPT: Final = 60.0
_REFUSED: Final = f"[Errno {errno.ECONNREFUSED}]"

_Origin = tuple[str, str, int]


class Pool:
    """An HTTP/1.1 client with connections that it keeps."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options
        self._idle: dict[_Origin, list[Connection]] = {}
        self._origins: dict[Connection, _Origin] = {}
        self._queue: deque[asyncio.Future[None]] = deque()
        self._connecting: set[asyncio.Task[Connection]] = set()
        self._routes: dict[_Origin, Address | None] = {}
        self._busy = 0
        self._closed = False
        self._context: ssl.SSLContext | None = None

    # Sending ---------------------------------------------------------------------------------------

    async def send(self, request: HttpRequest) -> WireReply:
        """Send, and await the head of the reply; see `http_base.HttpClient.send`."""
        head = self._head(request)
        while True:
            connection = await self._take(request)
            kept = connection.used > 0
            request.sent = True
            reply = connection.request(head, request.body)
            try:
                await reply.head()
            except ClosedError:
                # The server may have closed a kept connection while the request was on its way to it.
                again = kept and not reply.received and request.repeatable and not self._closed
                if not again:
                    raise
            except BaseException:
                reply.abort()
                raise
            else:
                return reply

    def _head(self, request: HttpRequest) -> bytes:
        address = request.address
        proxy = self._proxy(address)
        target = address.target
        headers = list(request.headers)
        if proxy is not None and address.scheme == "http":  # a plain proxy is told where to
            target = f"http://{address.authority}{target}"
            if proxy.credentials:
                headers.append(("Proxy-Authorization", proxy.credentials))
        if request.body or request.method == "POST":
            headers.append(("Content-Length", str(len(request.body))))
        lines = [f"{request.method} {target} HTTP/1.1", f"Host: {address.authority}"]
        for name, value in headers:
            if _BREAK.search(value):
                raise UsageError(f"header {name}: its value holds a line break")
            lines.append(f"{name}: {value}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    # Taking and giving back ------------------------------------------------------------------------

    async def _take(self, request: HttpRequest) -> Connection:
        if self._closed:
            raise _closed()
        if not request.urgent:
            while self._busy >= self._options.max_connections:
                await self._queued()
        origin = request.address.origin
        self._busy += 1
        connection = self._kept(origin)
        if connection is not None:
            return connection
        try:
            connection = await self._connect(request.address)
        except BaseException:
            self._give_up()
            raise
        self._origins[connection] = origin
        if self._ended():
            connection.abort()
            raise _closed()
        return connection

    def _ended(self) -> bool:
        return self._closed  # asked anew after each await: another task may have closed the pool

    def _kept(self, origin: _Origin) -> Connection | None:
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()  # the one used last: the others may grow old and go
            if connection.usable and not _stale(connection):
                return connection
            self._origins.pop(connection, None)
            connection.abort()
        return None

    async def _queued(self) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                self._next()  # our turn had come: it is somebody else's now
            raise
        if self._closed:
            raise _closed()

    def _keep(self, promise: str | None) -> float:
        """Seconds for which a connection is kept, by the server's `Keep-Alive` header if it sent one."""
        if promise is not None and (found := _TIMEOUT.search(promise)):
            return min(max(int(found[1]) - 1.0, 0.0), _MAX_KEPT)  # a second less, for the way
        return self._options.keep_alive

    def _give_up(self) -> None:
        self._busy -= 1
        self._next()

    def _next(self) -> None:
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    def _freed(self, connection: Connection) -> None:
        """A reply is complete, or the connection is gone."""
        origin = self._origins.get(connection)
        if origin is None:
            return
        kept = self._idle.setdefault(origin, [])
        if connection in kept:  # it was not in use: the server closed it
            kept.remove(connection)
            del self._origins[connection]
            return
        if connection.open and not self._closed:
            connection.expires = monotonic() + self._keep(connection.promise)
            kept.append(connection)
        else:
            del self._origins[connection]
        self._give_up()

    # Connecting ------------------------------------------------------------------------------------

    async def _connect(self, address: Address) -> Connection:
        task = asyncio.get_running_loop().create_task(self._within(address))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        try:
            return await task
        except asyncio.CancelledError:
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().abort()  # it came about in the very turn in which nobody wanted it any more
            current = asyncio.current_task()
            if self._closed and (current is None or not current.cancelling()):
                raise _closed() from None
            raise

    async def _within(self, address: Address) -> Connection:
        limit = self._options.connect_timeout
        via = self._proxy(address)
        try:
            async with asyncio.timeout(limit):
                return await self._open(address, via)
        except OSError as exc:  # of which running out of time and the errors of TLS and names are kinds
            raise unreachable(place(address, via), exc, limit=limit) from exc

    async def _open(self, address: Address, via: Address | None) -> Connection:
        loop = asyncio.get_running_loop()
        first = via or address
        context = self._tls() if first.scheme == "https" else None
        connection = Connection(
            self._freed
        )  # before there is a socket: without a parser there is no use for one
        await loop.create_connection(lambda: connection, first.host, first.port, ssl=context)
        if via is None or address.scheme == "http":
            return connection
        try:
            return await self._tunnel(connection, address, via=via)
        except BaseException:
            connection.abort()
            raise

    async def _tunnel(self, connection: Connection, address: Address, *, via: Address) -> Connection:
        """TLS with the server through a proxy that only passes bytes on."""
        reply = connection.request(connect_request(address, via), b"")
        try:
            await reply.head()
        except LocalError as exc:
            raise ConnectError(f"the proxy {via.shown}: {exc.message}", stage="connect") from None
        if reply.status != 200:
            raise refused(address, via, status=reply.status)
        inner = Connection(self._freed)
        transport = connection.detach()
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, inner, self._tls(), server_hostname=address.host
            )
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise ConnectionResetError("the connection was closed while TLS was set up")
        inner.connection_made(secured)
        return inner

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = tls_context(self._options)
        return self._context

    def _proxy(self, address: Address) -> Address | None:
        origin = address.origin
        if origin not in self._routes:
            self._routes[origin] = choose_proxy(address, self._options, environ=os.environ)
        return self._routes[origin]

    # Ending ----------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close every connection; what is under way ends with ClosedError."""
        self._closed = True
        for task in list(self._connecting):
            task.cancel()
        for connection in list(self._origins):
            connection.abort(_closed())
        while self._queue:
            self._next()
        await asyncio.sleep(0)  # the transports let go of their sockets in the next turn of the loop

    def facts(self) -> Mapping[str, object]:
        """How many connections there are, and how many of them are in use."""
        return {"connections": len(self._origins), "busy": self._busy}


def _closed() -> ClosedError:
    return ClosedError("the connection was closed from this side", stage="call")


def _stale(connection: Connection) -> bool:
    """Whether an unused connection has something to read: its end, of which the loop has not heard yet."""
    sock = connection.transport.get_extra_info("socket") if connection.transport is not None else None
    if sock is None:
        return False
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def tls_context(options: HttpOptions) -> ssl.SSLContext:
    """How TLS is spoken. Raises UsageError for a file that cannot be used."""
    if isinstance(options.verify, ssl.SSLContext):
        return options.verify
    cafile = options.verify if isinstance(options.verify, str) else None
    try:
        context = ssl.create_default_context(cafile=cafile)
    except (OSError, ssl.SSLError) as exc:
        raise UsageError(f"verify: {cafile}: {exc.strerror or exc}") from None
    if options.verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.cert is not None:
        paths = (options.cert, None) if isinstance(options.cert, str) else options.cert
        try:
            context.load_cert_chain(*paths)
        except (OSError, ssl.SSLError) as exc:
            raise UsageError(f"cert: {paths[0]}: {exc.strerror or exc}") from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def unreachable(where: str, fault: OSError, *, limit: float) -> ConnectError:
    """The error for a connection to `where` that did not come about within `limit` seconds."""
    if isinstance(fault, TimeoutError):
        text, hint = f"no connection to {where} within {limit:g} s", None
    else:
        reason, hint = _reason(fault)
        text = f"no connection to {where}: {reason}"
    error = ConnectError(text, stage="connect", hint=hint)
    error.undelivered = True
    # The server may be there in a moment, but no name, no certificate and no setting becomes another one.
    error.passing = not isinstance(fault, socket.gaierror | ssl.SSLError)
    return error


def _reason(exc: OSError) -> tuple[str, str | None]:
    """Why no connection came about, in words, and what to try."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        hint = "verify=PATH of a file with the certificate authority that signed it"
        return f"its certificate is not accepted ({exc.verify_message})", hint
    if isinstance(exc, ssl.SSLError):
        return f"TLS failed ({exc.reason or exc})", "is this the port that speaks TLS?"
    if isinstance(exc, socket.gaierror):
        return f"the name was not found ({exc.strerror})", "the spelling of the host, and the network"
    # The loop tries each address of a name, and puts several refusals into one plain OSError.
    if isinstance(exc, ConnectionRefusedError) or _REFUSED in str(exc):
        return "connection refused", "is the server running, and on this port?"
    return exc.strerror or str(exc) or type(exc).__name__, None
