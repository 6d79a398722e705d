"""A WebSocket server for tests, by hand: RFC 6455 read once more, apart from the client's reading of it."""

from __future__ import annotations

import asyncio
import json
import ssl
import struct
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import sha1
from typing import Any

from tests.faults.test_http import INITIALIZED, content


def frame(opcode: int, data: bytes, *, final: bool = True) -> bytes:
    """A frame as servers send it, without a mask."""
    first = bytes([opcode | (0x80 if final else 0)])
    if len(data) < 126:
        return first + bytes([len(data)]) + data
    if len(data) < 65536:
        return first + b"\x7e" + struct.pack("!H", len(data)) + data
    return first + b"\x7f" + struct.pack("!Q", len(data)) + data


class Socket:
    """One connection of the server's."""

    def __init__(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.target = head.split(" ")[1]
        self.headers = {
            name.lower(): value
            for name, value in (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
        }
        self.reader, self.writer = reader, writer
        self.controls: list[tuple[int, bytes]] = []

    async def receive(self) -> bytes | None:
        """The next message; None at the end."""
        message = b""
        while True:
            first, second = await self.reader.readexactly(2)
            assert second & 0x80, "clients mask"
            size = second & 0x7F
            if size == 126:
                [size] = struct.unpack("!H", await self.reader.readexactly(2))
            elif size == 127:
                [size] = struct.unpack("!Q", await self.reader.readexactly(8))
            mask = await self.reader.readexactly(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(await self.reader.readexactly(size)))
            if first & 0x0F >= 8:
                self.controls.append((first & 0x0F, data))
                if first & 0x0F == 8:
                    return None
                continue
            message += data
            if first & 0x80:
                return message

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def say(self, message: Any) -> None:
        await self.raw(frame(1, json.dumps(message, ensure_ascii=False).encode()))

    async def result(self, id_: object, result: Any) -> None:
        await self.say({"jsonrpc": "2.0", "id": id_, "result": result})


Call = Callable[[Socket, Any], Awaitable[None]]


class SocketServer:
    """A server of 2025-11-25 whose calls are the test's."""

    def __init__(self, call: Call, *, accept: Callable[[bytes], bytes] | None = None) -> None:
        self.call = call
        self.accept = accept
        self.sockets: list[Socket] = []
        self.heard: list[Any] = []
        self.port = 0
        self.scheme = "ws"
        self.ended = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/mcp"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            socket = Socket(head, reader, writer)
            self.sockets.append(socket)
            key = socket.headers["sec-websocket-key"].encode()
            token = b64encode(sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            answer += b"Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Accept: " + token + b"\r\n\r\n"
            await socket.raw(answer if self.accept is None else self.accept(token))
            while (message := await socket.receive()) is not None:
                await self.hear(socket, json.loads(message))
            await socket.raw(frame(8, b"\x03\xe8"))
        self.ended.set()
        writer.close()

    async def hear(self, socket: Socket, message: Any) -> None:
        self.heard.append(message)
        method, id_ = message.get("method"), message.get("id")
        if method == "initialize":
            await socket.result(id_, INITIALIZED)
        elif method == "tools/call":
            await self.call(socket, message)
        elif method and id_ is not None:
            error = {"code": -32601, "message": "Method not found"}
            await socket.say({"jsonrpc": "2.0", "id": id_, "error": error})


async def well(socket: Socket, message: Any) -> None:
    await socket.result(message["id"], content(message["params"]["name"]))


@asynccontextmanager
async def sockets(
    call: Call = well, *, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[SocketServer]:
    server = SocketServer(call, **options)
    server.scheme = "ws" if tls is None else "wss"
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for socket in server.sockets:
            socket.writer.transport.abort()
