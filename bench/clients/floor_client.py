"""The floor of a client: asyncio, a table of futures, typed msgspec decode.

Over HTTP it is one connection that httptools reads.
"""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import httptools
import msgspec
from measure import measure, target

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "floor", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ADD = {"name": "add", "arguments": {"a": 3, "b": 4}}
HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
    b"Mcp-Method: tools/call\r\nMcp-Name: add\r\nContent-Length: %d\r\n\r\n%s"
)


class Text(msgspec.Struct, tag_field="type", tag="text"):
    text: str


class Result(msgspec.Struct, rename="camel"):
    content: list[Text] = []
    structured_content: dict | None = None
    is_error: bool = False
    result_type: str = "complete"


class Reply(msgspec.Struct):
    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw()
    error: dict | None = None


encode = msgspec.json.Encoder().encode
read_reply = msgspec.json.Decoder(Reply).decode
read_result = msgspec.json.Decoder(Result).decode


def request(number: int) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {**ADD, "_meta": META}})


class Pipes(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.rest = b""
        self.pending: dict[int, asyncio.Future] = {}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            reply = read_reply(line)
            self.pending.pop(reply.id).set_result(reply)


async def over_stdio(command: list[str]) -> None:
    loop = asyncio.get_running_loop()
    pipes = Pipes()
    transport, _ = await loop.subprocess_exec(lambda: pipes, *command, stderr=None)
    writer = transport.get_pipe_transport(0)
    number = 0

    async def call() -> None:
        nonlocal number
        number += 1
        future = pipes.pending[number] = loop.create_future()
        writer.write(request(number) + b"\n")
        reply = await future
        assert read_result(reply.result).structured_content["result"] == 7

    await measure(call)
    transport.close()


class Connection(asyncio.Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport

    def begin(self, future: asyncio.Future) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.future = future
        self.body: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self.body.append(data)

    def on_message_complete(self) -> None:
        self.future.set_result(b"".join(self.body))


async def over_http(url: str) -> None:
    loop = asyncio.get_running_loop()
    where = urlsplit(url)
    _, connection = await loop.create_connection(Connection, where.hostname, where.port)
    number = 0

    async def call() -> None:
        nonlocal number
        number += 1
        frame = request(number)
        future = loop.create_future()
        connection.begin(future)
        connection.transport.write(HEAD % (where.hostname.encode(), where.port, len(frame), frame))
        reply = read_reply(await future)
        assert read_result(reply.result).structured_content["result"] == 7

    await measure(call)


transport, place = target()
asyncio.run(over_stdio(json.loads(place)) if transport == "stdio" else over_http(place))
