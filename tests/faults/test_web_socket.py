"""WebSocket: what RFC 6455 asks of a client, and what a server may do wrong over it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Client
from dragoman.client.options import ClientOptions
from dragoman.errors import ClosedError, ConnectError, HttpError, LocalError, PeerFault, UsageError
from dragoman.jsonrpc.framing import TooLong
from dragoman.transports.http_base import HttpOptions
from dragoman.transports.ws_client import WebSocketTransport
from dragoman.transports.ws_frames import CLOSE, PING, PONG, TEXT, Frame, Frames, encode
from tests.faults.sockets import Socket, frame, sockets, well
from tests.faults.test_http import BOUND, content
from tests.needs import peer_python

# Frames, by the examples of RFC 6455, 5.7


def test_a_masked_text() -> None:
    assert encode(TEXT, b"Hello", mask=b"\x37\xfa\x21\x3d").hex() == "818537fa213d7f9f4d5158"


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 70001])
def test_every_length(size: int) -> None:
    mask, payload = b"\x01\x02\x03\x04", b"\xab" * size
    data = encode(TEXT, payload, mask=mask)
    head = {0: 2, 1: 4, 2: 10}[(size > 125) + (size > 65535)]
    assert len(data) == head + 4 + size
    unmasked = bytes([data[0], data[1] & 0x7F]) + data[2:head] + payload
    assert list(Frames(1 << 20).feed(unmasked)) == [Frame(TEXT, payload)]
    assert bytes(b ^ mask[i % 4] for i, b in enumerate(data[head + 4 :])) == payload


WHOLE = (
    bytes.fromhex("810548656c6c6f")  # Hello
    + bytes.fromhex("010348656c")  # Hel, to be continued
    + bytes.fromhex("890548656c6c6f")  # a ping in between
    + bytes.fromhex("80026c6f")  # lo
    + bytes.fromhex("8100")
)
EVENTS = [Frame(TEXT, b"Hello"), Frame(PING, b"Hello"), Frame(TEXT, b"Hello"), Frame(TEXT, b"")]


@pytest.mark.parametrize("cut", range(len(WHOLE) + 1))
def test_cut_anywhere(cut: int) -> None:
    frames = Frames(100)
    assert [*frames.feed(WHOLE[:cut]), *frames.feed(WHOLE[cut:])] == EVENTS


def test_a_message_beyond_the_limit_is_told_once_and_the_next_one_is_read() -> None:
    frames = Frames(10)
    data = frame(1, b"0123456", final=False) + frame(0, b"789ab", final=False) + frame(0, b"cdef")
    events = [event for byte in data + frame(1, b"well") for event in frames.feed(bytes([byte]))]
    [long, well] = events
    assert isinstance(long, TooLong)
    assert (long.size, long.head[:7]) == (16, b"0123456")
    assert well == Frame(TEXT, b"well")


@pytest.mark.parametrize(
    "wrong",
    [
        frame(0, b"nothing to continue"),
        frame(1, b"a", final=False) + frame(1, b"b"),
        frame(9, b"x" * 126),
        frame(9, b"x", final=False),
        frame(3, b"x"),
        frame(0xB, b"x"),
        bytes([0xC1, 0]),  # a reserved bit
        bytes([0x81, 0x80]) + b"mask",
    ],
)
def test_what_breaks_the_protocol(wrong: bytes) -> None:
    with pytest.raises(PeerFault, match="WebSocket"):
        list(Frames(1000).feed(wrong))


# The client


async def test_calls_both_ways() -> None:
    async def call(socket: Socket, message: Any) -> None:
        if message["params"]["name"] == "asks":
            await socket.say({"jsonrpc": "2.0", "id": "s1", "method": "ping"})
        await well(socket, message)

    async with asyncio.timeout(BOUND), sockets(call) as server:
        async with Client(server.url + "?key=secret", headers={"X-Key": "k"}) as client:
            assert client.revision.version == "2025-11-25"
            names = [f"서울\u2028 {n}" for n in range(50)]
            results = await asyncio.gather(*(client.call_tool(name) for name in names))
            assert [result.text for result in results] == names
            large = "x" * 300_000
            await client.call_tool("t", {"text": large})
            await client.call_tool("asks")
            assert "secret" not in str(client.facts())
        await server.ended.wait()
    [socket] = server.sockets
    assert socket.target == "/mcp?key=secret"
    assert socket.headers["x-key"] == "k"
    assert socket.headers["sec-websocket-protocol"] == "mcp"
    assert socket.controls == [(CLOSE, b"\x03\xe8")]
    assert {"jsonrpc": "2.0", "id": "s1", "result": {}} in server.heard


async def test_pieces_pings_and_single_bytes() -> None:
    async def call(socket: Socket, message: Any) -> None:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": content("well")}
        data = json.dumps(answer).encode()
        whole = frame(1, data[:9], final=False) + frame(9, b"there?") + frame(0, data[9:])
        for byte in whole:
            await socket.raw(bytes([byte]))
            await asyncio.sleep(0)

    async with asyncio.timeout(BOUND), sockets(call) as server:
        async with Client({"type": "ws", "url": server.url}) as client:
            assert (await client.call_tool("t")).text == "well"
        await server.ended.wait()
    assert (PONG, b"there?") in server.sockets[0].controls


@pytest.mark.parametrize(
    ("last", "says"),
    [
        (b"", "closed the connection"),
        (frame(8, b"\x03\xf3no more"), r"code 1011: 'no more'"),
        (frame(8, b""), "closed the connection"),
        (frame(3, b"x"), "opcode 3"),
        (frame(1, b"{")[:-1], "closed the connection"),
    ],
)
async def test_an_end_in_the_middle_of_a_call(last: bytes, says: str) -> None:
    async def call(socket: Socket, message: Any) -> None:
        if message["params"]["name"] == "t":
            await well(socket, message)
        else:
            await socket.raw(last)
            socket.writer.close()

    async with asyncio.timeout(BOUND), sockets(call) as server:
        async with Client(server.url) as client:
            with pytest.raises(ClosedError, match=says):
                await client.call_tool("ends")
            assert (await client.call_tool("t")).text == "t"  # over a new connection
    assert len(server.sockets) == 2


async def test_an_answer_that_cannot_be_read_fails_one_call() -> None:
    async def call(socket: Socket, message: Any) -> None:
        if message["params"]["name"] == "long":
            await socket.result(message["id"], content("x" * 20_000))
        elif message["params"]["name"] == "bad":
            text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": content("w@ll")})
            await socket.raw(frame(1, text.encode().replace(b"@", b"\xff")))
        else:
            await well(socket, message)

    async with asyncio.timeout(BOUND), sockets(call) as server:
        async with Client(server.url, http=HttpOptions(max_body=10_000)) as client:
            for name in ("long", "bad"):
                with pytest.raises(PeerFault):
                    await client.call_tool(name)
            assert (await client.call_tool("t")).text == "t"
    assert len(server.sockets) == 1


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n\r\n", HttpError, "401"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", HttpError, "404"),
        (b"HTTP/1.1 301 Moved\r\nLocation: https://example.com/?key=secret\r\n\r\n", HttpError, "301"),
        (b"HTTP/1.1 200 OK\r\n\r\n", HttpError, "200"),
        (b"hello there\r\n\r\n", PeerFault, "no answer to a WebSocket handshake"),
        (b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n\r\n", PeerFault, "not for this"),
    ],
)
async def test_a_handshake_that_fails(answer: bytes, kind: type[LocalError], says: str) -> None:
    async with asyncio.timeout(BOUND), sockets(accept=lambda _: answer) as server:
        with pytest.raises(kind, match=says) as caught:
            await Client(server.url).connect()
    assert "secret" not in str(caught.value)


async def test_what_was_not_offered_is_not_taken() -> None:
    def accept(token: bytes) -> bytes:
        head = b"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + token
        return head + b"\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"

    async with asyncio.timeout(BOUND), sockets(accept=accept) as server:
        with pytest.raises(PeerFault, match="not offered"):
            await Client(server.url).connect()


async def test_nobody_there(unused_port: int) -> None:
    async with asyncio.timeout(BOUND):
        with pytest.raises(ConnectError, match="refused"):
            await Client(f"ws://127.0.0.1:{unused_port}/mcp", retry_for=0.1).connect()


async def test_nothing_is_left() -> None:
    before = asyncio.all_tasks()
    async with asyncio.timeout(BOUND), sockets() as server:
        for _ in range(20):
            async with Client(server.url) as client:
                await client.call_tool("t")
        for socket in server.sockets:
            socket.writer.transport.abort()
        await server.ended.wait()
    await asyncio.sleep(0)
    assert {task for task in asyncio.all_tasks() if not task.done()} - before == set()


@pytest.mark.parametrize("url", ["http://example.com", "ws://", "wss://exa mple"])
def test_what_is_no_such_url(url: str) -> None:
    with pytest.raises(UsageError):
        WebSocketTransport(url)


def test_a_program_has_no_connections_to_set() -> None:
    assert ClientOptions(http=HttpOptions()).http == HttpOptions()
    with pytest.raises(UsageError, match="http"):
        Client(["cat"], http=HttpOptions())


async def test_with_the_library_that_others_use() -> None:
    python = peer_python("fastmcp4")
    script = str(Path(__file__).with_name("library.py"))
    server = await asyncio.create_subprocess_exec(python, script, stdout=asyncio.subprocess.PIPE)
    try:
        assert server.stdout is not None
        async with asyncio.timeout(60):
            port = int(await server.stdout.readline())
            async with Client(f"ws://127.0.0.1:{port}/mcp") as client:
                for size in (0, 1, 200, 70_000, 1_000_000):
                    text = "서" * size
                    assert (await client.call_tool("echo", {"text": text})).text == text
    finally:
        server.kill()
        await server.wait()
