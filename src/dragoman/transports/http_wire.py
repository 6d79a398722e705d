"""One HTTP/1.1 connection of a client: a request out, a reply in, one at a time.

Bytes and their limits only. It refuses to know where the connection leads and who waits for it next.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from dragoman.errors import ClosedError, LocalError, PeerFault, UsageError

if TYPE_CHECKING:
    from httptools import HttpResponseParser

MAX_HEAD: Final = 64 * 1024
_HIGH_WATER: Final = 1024 * 1024  # bytes of a body that wait for their reader before the socket has to
_JOIN: Final = 64 * 1024  # up to here one write costs less than two
_LINGER: Final = 1.0  # seconds for the end of a body that nobody wants, before the connection is closed
_CHUNK: Final = 64 * 1024
_PROBE_AFTER: Final = 60  # seconds of silence before the kernel asks whether the other end is still there


class WireReply:
    """The reply to one request, filled by its connection; see `http_base.Reply`."""

    __slots__ = (
        "_chunks",
        "_connection",
        "_discard",
        "_done",
        "_fault",
        "_loop",
        "_size",
        "_waiter",
        "headers",
        "reason",
        "received",
        "status",
    )

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.status = 0  # 0 until the head is there
        self.reason = ""
        self.headers: dict[str, str] = {}
        self.received = 0  # bytes of any kind
        self._connection = connection
        self._loop = loop
        self._chunks: list[bytes] = []
        self._size = 0
        self._done = False
        self._discard = False
        self._fault: LocalError | None = None
        self._waiter: asyncio.Future[None] | None = None

    # The reader's side -----------------------------------------------------------------------------

    async def head(self) -> None:
        """Wait until status and headers are there. Raises as `chunk`."""
        while not self.status:
            if self._fault is not None:
                raise self._fault
            await self._wait()

    async def chunk(self) -> bytes:
        """The next bytes of the body as they came; `b""` at its end."""
        while True:
            if self._chunks:
                return self._take()
            if self._done:
                return b""
            if self._fault is not None:
                raise self._fault
            await self._wait()

    async def read(self, limit: int) -> bytes:
        """The whole rest of the body, which may be `limit` bytes long."""
        parts: list[bytes] = []
        size = 0
        while data := await self.chunk():
            parts.append(data)
            size += len(data)
            if size > limit:
                self.abort()
                raise PeerFault(f"the answer is longer than {limit} bytes", stage="call")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def finish(self) -> None:
        """No more of the body is wanted; its end may still come within a moment."""
        if self._done or self._fault is not None:
            return
        self._discard = True
        self._take()
        self._loop.call_later(_LINGER, self.abort)

    def abort(self) -> None:
        """Close the connection at once, unless the body has ended."""
        if not self._done and self._fault is None:
            self.fail(ClosedError("the reply was given up", stage="call"))
            self._connection.abort()

    def _take(self) -> bytes:
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks.clear()
        if self._size > _HIGH_WATER:
            self._connection.resume()
        self._size = 0
        return data

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # The connection's side -------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """A piece of the body came."""
        if self._discard:
            return
        self._chunks.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER:
            self._connection.pause()

    def complete(self) -> None:
        """The body has ended as it should."""
        self._done = True

    def fail(self, fault: LocalError) -> None:
        """Nothing more will come."""
        if not self._done and self._fault is None:
            self._fault = fault
        self.wake()

    def wake(self) -> None:
        """Let the reader look again."""
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class Connection(asyncio.Protocol):
    """A connection, with the parser that reads from it. `freed` is called when it is free or gone."""

    __slots__ = (
        "_closing",
        "_freed",
        "_head_done",
        "_interim",
        "_loop",
        "_parser",
        "_paused",
        "_reply",
        "_stray",
        "_until_eof",
        "expires",
        "promise",
        "transport",
        "used",
    )

    def __init__(self, freed: Callable[[Connection], None]) -> None:
        self.transport: asyncio.Transport | None = None
        self.used = 0  # requests so far
        self.expires = float("inf")  # on the monotonic clock, while it is not in use
        self.promise: str | None = None  # what the last reply said about keeping the connection
        self._freed = freed
        self._loop = asyncio.get_running_loop()
        self._reply: WireReply | None = None
        self._closing = False
        self._paused = False
        self._until_eof = False
        self._interim = False
        self._head_done = False
        self._stray = False  # a reply began that nobody had asked for
        self._parser = _parser(self)

    # Asking ----------------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether another request can go out: free, open, and within its time."""
        transport = self.transport
        free = self._reply is None and not self._closing
        return free and transport is not None and not transport.is_closing() and monotonic() < self.expires

    @property
    def open(self) -> bool:
        """Whether it has not been closed."""
        return not self._closing

    def request(self, head: bytes, body: bytes) -> WireReply:
        """Send one request; the reply fills as its bytes come."""
        transport = self.transport
        if transport is None or self._reply is not None:
            raise UsageError("this connection is not free")
        self.used += 1
        self._until_eof = self._interim = self._head_done = False
        self._reply = reply = WireReply(self, self._loop)
        if len(body) < _JOIN:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return reply

    def abort(self, fault: LocalError | None = None) -> None:
        """Close at once, without sending what is still buffered; a reply under way ends with `fault`."""
        if self._closing:
            return
        self._closing = True
        if self.transport is not None:
            self.transport.abort()
        self._fail(fault or ClosedError("the connection was closed from this side", stage="call"))
        self._freed(self)

    def pause(self) -> None:
        """The reader is behind: let the socket wait."""
        if not self._paused and self.transport is not None and not self._closing:
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """The reader has caught up."""
        if self._paused and self.transport is not None:
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def detach(self) -> asyncio.Transport:
        """Give the transport away (a tunnel is through); nothing here touches it again."""
        if self.transport is None:
            raise UsageError("this connection is not open")
        transport, self.transport = self.transport, None
        self._closing = True
        self._reply = None
        return transport

    # What asyncio calls ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # no isinstance: other loops bring their own
        if hasattr(transport, "max_size"):
            # asyncio asks for four times as much, which the allocator takes from the system and gives
            # back with each answer: a quarter of the time of a call.
            transport.max_size = _CHUNK  # pyright: ignore[reportAttributeAccessIssue]  # asyncio's own
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if hasattr(socket, "TCP_KEEPIDLE"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_AFTER)

    def data_received(self, data: bytes) -> None:
        reply = self._reply
        if reply is None:  # said without being asked: what comes next could be taken for an answer
            self.abort()
            return
        reply.received += len(data)
        try:
            self._parser.feed_data(data)
        except Exception as exc:  # noqa: BLE001 - the parser's own errors are an optional package's classes
            self.abort(_fault(exc))
            return
        if self._stray:
            self.abort()
        if not self._head_done and reply.received > MAX_HEAD:
            self.abort(PeerFault(f"the head of the reply is longer than {MAX_HEAD} bytes", stage="call"))
        reply.wake()

    def eof_received(self) -> None:
        reply = self._reply
        if reply is not None and self._until_eof:
            reply.complete()
            self._reply = None
            reply.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._closing:
            return
        self._closing = True
        how = "was closed by the server" if exc is None else f"broke ({_said(exc)})"
        begun = self._reply is not None and self._reply.received
        when = "within the reply" if begun else "before anything came"
        self._fail(ClosedError(f"the connection {how} {when}", stage="call"))
        self._freed(self)

    def _fail(self, fault: LocalError) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            reply.fail(fault)

    # What the parser calls -------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._stray = self._reply is None

    def on_status(self, status: bytes) -> None:
        if self._reply is not None:
            self._reply.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._reply is None or self._head_done:  # a trailer says nothing that is needed
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers = self._reply.headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        reply = self._reply
        if reply is None:
            return
        status = self._parser.get_status_code()
        self._interim = 100 <= status < 200
        if self._interim:
            return
        self._head_done = True
        bodiless = status in (204, 304)
        sized = "content-length" in reply.headers or "chunked" in reply.headers.get("transfer-encoding", "")
        self._until_eof = not bodiless and not sized
        reply.status = status

    def on_body(self, body: bytes) -> None:
        if self._reply is not None:
            self._reply.feed(body)

    def on_message_complete(self) -> None:
        reply = self._reply
        if reply is None:
            return
        if self._interim:  # 100 Continue, 103 Early Hints: the reply itself is still to come
            reply.headers.clear()
            reply.reason = ""
            return
        reply.complete()
        self._reply = None
        self.promise = reply.headers.get("keep-alive")
        self.resume()
        if self._parser.should_keep_alive():
            self._freed(self)
        else:
            self.abort()


def _parser(connection: Connection) -> HttpResponseParser:
    try:
        from httptools import HttpResponseParser
    except ImportError:
        hint = "install the package httptools"
        raise UsageError("HTTP needs a parser that is not installed", hint=hint) from None
    return HttpResponseParser(connection)


def _fault(exc: Exception) -> PeerFault:
    name = type(exc).__name__
    if name == "HttpParserUpgrade":
        return PeerFault("the server changed to another protocol, unasked", stage="call")
    return PeerFault(f"what came back is not HTTP/1.1: {_said(exc)}", stage="call")


def _said(exc: Exception) -> str:
    """An exception in a few words, whatever bytes are in it."""
    text = " ".join(str(exc).split())[:120] or type(exc).__name__
    return text if text.isprintable() else ascii(text)
