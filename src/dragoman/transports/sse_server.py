"""The transport that Streamable HTTP replaced (2024-11-05, "HTTP with SSE"), for clients that have no other.

One GET opens a stream and is told where to POST; whatever is posted there is answered on the stream.
A connection lives in one process, and so does everything that is posted to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from secrets import token_urlsafe
from typing import Final

from dragoman.jsonrpc.message import Limits
from dragoman.protocol.call import Kernel
from dragoman.protocol.head import Say, check_post, fault, not_allowed
from dragoman.protocol.sse import encode_event
from dragoman.transports.asgi_exchange import CLOSING, Exchange, Stopped
from dragoman.transports.connection import ServerConnection

PARAMETER: Final = b"session"
READ = Callable[[], Awaitable[bytes | Say | None]]


class SseConnection:
    """One client: its stream, and the conversation over it."""

    def __init__(self, exchange: Exchange, kernel: Kernel, *, limits: Limits) -> None:
        self.exchange = exchange
        self.talk = ServerConnection(kernel, self._send, limits=limits, congested=lambda: exchange.congested)
        self.talk.link.principal = exchange.principal

    def _send(self, frame: bytes) -> None:
        if not self.exchange.broken:
            self.exchange.write(encode_event(frame, event="message"))


class SseServer:
    """The two endpoints: `stream_path` for the GET, and `message_path` beside it for the POSTs.

    At most `most` clients are connected at once.
    """

    def __init__(self, kernel: Kernel, path: str, *, limits: Limits, most: int) -> None:
        self._kernel = kernel
        self._limits = limits
        self._most = most
        self.stream_path = "/" + path.strip("/")
        self.message_path = self.stream_path.rpartition("/")[0] + "/messages"
        self.connections: dict[str, SseConnection] = {}

    def serves(self, path: str) -> bool:
        """Whether a path is one of the two."""
        return path in (self.stream_path, self.message_path)

    async def serve(self, exchange: Exchange, path: str, *, root: str, query: bytes, read: READ) -> None:
        """Serve one request to either endpoint; `read` gives its body."""
        verb = exchange.head.verb
        if path == self.stream_path:
            if verb == "GET":
                await self._stream(exchange, root)
            else:
                # What tells clients that they have the old transport before them (2025-11-25,
                # Streamable HTTP: Backwards Compatibility).
                await exchange.say(not_allowed(verb, "GET, OPTIONS"))
        elif verb == "POST":
            await exchange.say(await self._message(exchange, query, read=read))
        else:
            await exchange.say(not_allowed(verb, "POST, OPTIONS"))

    async def _stream(self, exchange: Exchange, root: str) -> None:
        if len(self.connections) >= self._most:
            text = f"No room for another connection (at most {self._most})"
            await exchange.say(fault(503, text, headers=((b"retry-after", b"30"),)))
            return
        key = token_urlsafe(24)
        connection = self.connections[key] = SseConnection(exchange, self._kernel, limits=self._limits)
        where = f"{root}{self.message_path}?{PARAMETER.decode()}={key}"
        exchange.write(encode_event(where.encode(), event="endpoint"))
        try:
            await exchange.listen()
        except Stopped:
            if not exchange.broken:
                await exchange.end_stream()
        finally:
            exchange.broken = True
            del self.connections[key]
            await connection.talk.cancel()

    async def _message(self, exchange: Exchange, query: bytes, *, read: READ) -> Say:
        connection = self.connections.get(_key(query))
        # To somebody else it is as if it were not there.
        if connection is None or connection.talk.link.principal != exchange.principal:
            return fault(
                404, "No such connection: open the stream first, and post to where its first event says"
            )
        refused = check_post(exchange.head, self._limits.max_bytes)
        if refused is not None and refused.status != 406:  # the answer is not in the response
            return refused
        if connection.talk.full:
            return fault(503, "Too many requests in flight", headers=((b"retry-after", b"1"),))
        body = await read()
        if isinstance(body, bytes):
            connection.talk.receive(body)
            return Say(202)
        return Say(202) if body is None else body

    def wind_down(self) -> None:
        """End all streams."""
        for connection in list(self.connections.values()):
            connection.exchange.stop(CLOSING)


def _key(query: bytes) -> str:
    for part in query.split(b"&"):
        name, _, value = part.partition(b"=")
        if name == PARAMETER:
            return value.decode("latin-1")
    return ""
