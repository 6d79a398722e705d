"""A little HTTP server that says exactly what a test tells it to, byte by byte if need be."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from dragoman.jsonrpc.message import Notification, Request, encode_request, encode_result
from dragoman.revisions import BY_VERSION
from dragoman.revisions.base import Revision
from dragoman.transports.base import Outgoing
from dragoman.transports.http_client import HttpOptions, HttpTransport

STATELESS = BY_VERSION["2026-07-28"]
SESSIONS = BY_VERSION["2025-11-25"]


class Asked:
    """One request that the server received, and the ways to answer it."""

    def __init__(self, head: bytes, body: bytes, *, reader, writer, connection: int) -> None:
        line, *fields = head.decode("latin-1").split("\r\n")
        self.method, self.target, _ = line.split(" ")
        self.headers: dict[str, str] = {}
        for field in fields:
            if field:
                name, _, value = field.partition(":")
                assert name.lower() not in self.headers, f"{name} sent twice"
                self.headers[name.lower()] = value.strip()
        self.body = body
        self.connection = connection  # which of the server's connections, from 1
        self._reader = reader
        self.writer = writer

    @property
    def message(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> Any:
        return self.message["id"]

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def trickle(self, data: bytes) -> None:
        """Each byte by itself, each in a turn of the loop of its own."""
        for i in range(len(data)):
            await self.raw(data[i : i + 1])
            await asyncio.sleep(0)

    async def reply(
        self, status: int = 200, body: bytes = b"", *, kind: str | None = "application/json", extra: str = ""
    ) -> None:
        head = f"HTTP/1.1 {status} Status\r\nContent-Length: {len(body)}\r\n{extra}"
        if kind is not None:
            head += f"Content-Type: {kind}\r\n"
        await self.raw(head.encode() + b"\r\n" + body)

    async def result(self, result: Any = None, *, extra: str = "") -> None:
        await self.reply(200, encode_result(self.id, {} if result is None else result), extra=extra)

    async def accept(self) -> None:
        await self.reply(202, kind=None)

    async def stream(self, extra: str = "") -> None:
        """Begin an event stream."""
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n{extra}\r\n"
        )
        await self.raw(head.encode())

    async def send(self, data: bytes) -> None:
        """A piece of a stream, as one chunk."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, data: bytes, fields: str = "") -> None:
        await self.send(fields.encode() + b"data: " + data + b"\n\n")

    async def end(self) -> None:
        """The stream ends as it should; the connection stays."""
        await self.raw(b"0\r\n\r\n")

    def hang_up(self) -> None:
        self.writer.close()

    def drop(self) -> None:
        """Gone without the end that HTTP has."""
        self.writer.transport.abort()

    def reset(self) -> None:
        """A TCP reset, which may overtake what was sent before."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the client has closed the connection."""
        with suppress(ConnectionError):
            assert await self._reader.read(1) == b""


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until the condition holds."""
    while not condition():  # noqa: ASYNC110 - it is about the state of parts that have no event for it
        await asyncio.sleep(0)


Answer = Callable[[Asked], Awaitable[None]]


class Server:
    """Where it is, and what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0
        self.scheme = "http"
        self.faults: list[BaseException] = []
        self._arrival = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/mcp"

    async def arrived(self, count: int) -> Asked:
        """The `count`th request, when it has come."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: len(self.asked) >= count)
        return self.asked[count - 1]

    async def find(self, wanted: Callable[[Asked], bool]) -> Asked:
        """The first request that is wanted, when it has come."""
        async with self._arrival:
            await self._arrival.wait_for(lambda: any(map(wanted, self.asked)))
        return next(filter(wanted, self.asked))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        self.connections += 1
        number = self.connections
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(f[15:]) for f in head.lower().split(b"\r\n") if f.startswith(b"content-length:")), 0
                )
                body = await reader.readexactly(length)
                asked = Asked(head[:-4], body, reader=reader, writer=writer, connection=number)
                async with self._arrival:
                    self.asked.append(asked)
                    self._arrival.notify_all()
                await self._answer(asked)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except Exception as exc:
            self.faults.append(exc)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        assert not self.faults, self.faults


@asynccontextmanager
async def serving(answer: Answer, context: ssl.SSLContext | None = None):
    server = Server(answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context, limit=1 << 20)
    server.port = listening.sockets[0].getsockname()[1]
    server.scheme = "https" if context else "http"
    try:
        yield server
    finally:
        listening.close()
        await server.stop()


class Ears:
    """What a transport hands on, and an answer to requests of the server."""

    def __init__(self) -> None:
        self.heard: list[Notification] = []
        self.requests: list[Request] = []
        self.news = asyncio.Event()

    def hear(self, notification: Notification) -> None:
        self.heard.append(notification)
        self.news.set()

    async def answer(self, request: Request) -> bytes:
        self.requests.append(request)
        return encode_result(request.id, {"action": "decline"})

    @property
    def methods(self) -> list[str]:
        return [notification.method for notification in self.heard]


@asynccontextmanager
async def connected(url: str, ears: Ears | None = None, **options):
    """An open transport to `url`; `options` are those of HttpTransport or of HttpOptions."""
    own = {key: options.pop(key) for key in ("headers", "name", "connect_timeout") if key in options}
    transport = HttpTransport(url, options=HttpOptions(**options), **own)
    ears = ears or Ears()
    await transport.open(ears.hear, ears.answer)
    try:
        yield transport
    finally:
        await transport.close()


def call(id_=1, method="tools/call", revision: Revision = STATELESS, **more) -> Outgoing:
    params = {"name": more.get("subject", "t")}
    return Outgoing(id_, method, encode_request(id_, method, params), revision, **more)


def initialize() -> Outgoing:
    return Outgoing(0, "initialize", encode_request(0, "initialize", {}), handshake=True)


def progress(value: int) -> bytes:
    params = {"progressToken": 1, "progress": value}
    return json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode()
