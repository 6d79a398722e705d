"""What servers over HTTP, and what stands before them, do wrong: each within a bound."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from dragoman import Client
from dragoman.errors import ClosedError, ConnectError, DeadlineError, HttpError, LocalError, PeerFault
from dragoman.jsonrpc.message import encode_notification, encode_result
from tests.drivers.wire import descriptors, until
from tests.http_client.server import Asked, Server, serving

NEW, OLD = "2026-07-28", "2025-11-25"
BOUND = 20.0  # seconds, on a machine that is busy with something else
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [NEW],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}
INITIALIZED = {
    "protocolVersion": OLD,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "broken", "version": "1"},
}
TOOLS = [{"name": "safe", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]

Step = Callable[[Asked], Awaitable[None]]


def content(text: str = "well") -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}]}


def answer(asked: Asked, text: str = "well") -> bytes:
    return encode_result(asked.id, content(text))


def greets(call: Step) -> Step:
    """A server of both ways to begin, whose calls are the test's."""

    async def serve(asked: Asked) -> None:
        method = asked.message.get("method") if asked.body else None
        if asked.method != "POST":
            await asked.reply(405, kind=None)
        elif method == "server/discover":
            await asked.result(DISCOVERED)
        elif method == "initialize":
            await asked.result(INITIALIZED, extra="Mcp-Session-Id: s\r\n")
        elif method == "tools/list":
            more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            await asked.result({"tools": TOOLS, **more})
        elif "id" not in asked.message:
            await asked.accept()
        else:
            await call(asked)

    return serve


@asynccontextmanager
async def connected(call: Step, **options: Any) -> AsyncIterator[tuple[Client, Server]]:
    async with asyncio.timeout(BOUND), serving(greets(call)) as server:
        async with Client(server.url, **{"protocol": NEW, **options}) as client:
            yield client, server


BOTH = pytest.mark.parametrize("protocol", [NEW, OLD])


@BOTH
async def test_an_event_stream_cut_at_every_byte(protocol: str) -> None:
    cut = 0
    length = 1000

    async def call(asked: Asked) -> None:
        nonlocal length
        stream = (
            b"\xef\xbb\xbf: hello\r\nevent: message\r\ndata: " + answer(asked, "서\u2028울") + b"\r\n\r\n"
        )
        length = len(stream)
        await asked.stream()
        await asked.send(stream[:cut])
        await asyncio.sleep(0)
        await asked.send(stream[cut:])
        await asked.end()

    async with connected(call, protocol=protocol) as (client, _):
        for cut in range(1, 1000):  # the server reads it
            if cut >= length:
                break
            assert (await client.call_tool("t")).text == "서\u2028울"
    assert length < 1000


@BOTH
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_byte_by_byte(protocol: str, stream: bool) -> None:
    async def call(asked: Asked) -> None:
        if stream:
            await asked.stream()
            for byte in b"data: " + answer(asked) + b"\n\n":
                await asked.send(bytes([byte]))
        else:
            body = answer(asked)
            await asked.raw(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            await asked.trickle(body)

    async with connected(call, protocol=protocol) as (client, _):
        assert (await client.call_tool("t")).text == "well"


@BOTH
async def test_an_answer_that_never_ends_runs_into_the_limit_of_the_call(protocol: str) -> None:
    async def call(asked: Asked) -> None:
        await asked.stream()
        await asked.send(b"data: {")
        await asked.gone()

    async with connected(call, protocol=protocol) as (client, _):
        with pytest.raises(DeadlineError):
            await client.call_tool("t", idle_timeout=0.3)


@BOTH
@pytest.mark.parametrize("stream", [False, True])
async def test_a_byte_now_and_then_is_no_sign_of_life(protocol: str, stream: bool) -> None:
    async def call(asked: Asked) -> None:
        body = answer(asked)
        if stream:
            await asked.stream()
        else:
            kind = b"Content-Type: application/json"
            await asked.raw(b"HTTP/1.1 200 OK\r\n%b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)))
        for byte in b"data: " + body if stream else body:
            await (asked.send if stream else asked.raw)(bytes([byte]))
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.gone(), 0.1)
                return

    async with connected(call, protocol=protocol) as (client, _):
        with pytest.raises(DeadlineError) as caught:
            await client.call_tool("t", idle_timeout=0.5)
    assert caught.value.stage == "idle"


@BOTH
@pytest.mark.parametrize("stream", [False, True])
async def test_100_mb_on_one_line_are_not_kept(protocol: str, stream: bool) -> None:
    async def call(asked: Asked) -> None:
        if asked.message["params"]["name"] == "t":
            await asked.result(content())
            return
        head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":"' % asked.id
        kind = b"text/event-stream" if stream else b"application/json"
        await asked.raw(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n" % kind)
        with suppress(ConnectionError):
            await asked.send((b"data: " if stream else b"") + head)
            for _ in range(100):
                await asked.send(b"x" * 1_000_000)
            await asked.end()

    async with connected(call, protocol=protocol) as (client, _):
        tracemalloc.start()
        try:
            with pytest.raises(PeerFault, match="longer than"):
                await client.call_tool("long")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 160 * 1024 * 1024
        assert (await client.call_tool("t")).text == "well"


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 502, 504])
async def test_a_status_without_an_answer(protocol: str, status: int) -> None:
    async def call(asked: Asked) -> None:
        if status == 404 and protocol == OLD:
            await asked.reply(410, b"gone", kind="text/plain")
        else:
            await asked.reply(status, b"no", kind="text/plain")

    async with connected(call, protocol=protocol) as (client, server):
        with pytest.raises(HttpError) as caught:
            await client.call_tool("t")
        assert len([asked for asked in server.asked if b"tools/call" in asked.body]) == 1
    assert caught.value.status in (status, 410)


@BOTH
@pytest.mark.parametrize(
    ("status", "body", "extra"),
    [
        (200, b"<!DOCTYPE html><p>Log in", ""),
        (302, b"", "Location: https://example.com/login?next=secret\r\n"),
        (307, b"", "Location: /mcp/\r\n"),
    ],
)
async def test_a_page_or_a_redirect_is_no_answer(protocol: str, status: int, body: bytes, extra: str) -> None:
    async def call(asked: Asked) -> None:
        await asked.reply(status, body, kind="text/html", extra=extra)

    async with connected(call, protocol=protocol) as (client, server):
        with pytest.raises(HttpError) as caught:
            await client.call_tool("t")
        assert len([asked for asked in server.asked if b"tools/call" in asked.body]) == 1
    assert caught.value.hint
    assert "secret" not in str(caught.value)


@BOTH
@pytest.mark.parametrize("how", ["before", "in the head", "in the body", "in the stream", "reset"])
async def test_a_connection_that_breaks_ends_the_call_at_once(protocol: str, how: str) -> None:
    async def call(asked: Asked) -> None:
        if how == "in the head":
            await asked.raw(b"HTTP/1.1 200 OK\r\nConte")
        elif how == "in the body":
            await asked.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
        elif how == "in the stream":
            await asked.stream()
            await asked.event(encode_notification("notifications/progress", {"progressToken": 1}))
        asked.reset() if how == "reset" else asked.drop()

    async with connected(call, protocol=protocol) as (client, server):
        with pytest.raises(ClosedError):
            await client.call_tool("t")
        assert len([asked for asked in server.asked if b"tools/call" in asked.body]) == 1


@BOTH
async def test_the_answer_to_something_else(protocol: str) -> None:
    async def call(asked: Asked) -> None:
        await asked.reply(200, encode_result(asked.id + 1, content()))

    async with connected(call, protocol=protocol) as (client, _):
        with pytest.raises(PeerFault, match="it is for the id"):
            await client.call_tool("t")


@BOTH
async def test_in_a_stream_other_answers_are_passed_over(protocol: str) -> None:
    async def call(asked: Asked) -> None:
        await asked.stream()
        await asked.event(encode_result(asked.id + 1, content("wrong")))
        await asked.event(encode_result(str(asked.id), content("text")))
        await asked.event(b"{not json")
        await asked.event(answer(asked))
        await asked.event(answer(asked, "twice"))
        await asked.end()

    async with connected(call, protocol=protocol) as (client, _):
        assert (await client.call_tool("t")).text == "well"
        assert (await client.call_tool("t")).text == "well"


@BOTH
async def test_a_flood_of_notifications(protocol: str) -> None:
    heard = 0

    def hear(method: str, params: Any) -> None:
        nonlocal heard
        heard += 1

    async def call(asked: Asked) -> None:
        await asked.stream()
        notice = b"data: " + encode_notification("notifications/message", {"level": "info", "data": 1})
        for _ in range(20):
            await asked.send((notice + b"\n\n") * 500)
        await asked.event(answer(asked))
        await asked.end()

    async with connected(call, protocol=protocol, notification_handler=hear) as (client, _):
        assert (await client.call_tool("t")).text == "well"
    assert heard == 10_000


@asynccontextmanager
async def buffering(port: int) -> AsyncIterator[int]:
    """A proxy that passes nothing of an answer on before it has all of it."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", port)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(f[15:]) for f in head.lower().split(b"\r\n") if f[:15] == b"content-length:"), 0)
        outer.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + await reader.readexactly(length))
        whole = await inner.readuntil(b"0\r\n\r\n") if b"tools/call" in head or length else b""
        writer.write(whole)
        await writer.drain()
        outer.close()
        writer.close()

    listening = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


async def test_a_proxy_that_holds_the_stream_back() -> None:
    async def call(asked: Asked) -> None:
        await asked.stream()
        body = DISCOVERED if asked.message["method"] == "server/discover" else content()
        for step in range(3):
            await asked.event(json.dumps({"jsonrpc": "2.0", "method": f"notifications/{step}"}).encode())
        await asked.event(encode_result(asked.id, body))
        await asked.end()

    async with asyncio.timeout(BOUND), serving(call) as server, buffering(server.port) as port:
        async with Client(f"http://127.0.0.1:{port}/mcp", protocol=NEW) as client:
            results = await asyncio.gather(*(client.call_tool("t") for _ in range(5)))
    assert [result.text for result in results] == ["well"] * 5


async def test_tls_that_fails_says_so() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with asyncio.timeout(BOUND), listening:
        with pytest.raises(ConnectError, match="TLS failed"):
            await Client(f"https://127.0.0.1:{port}/mcp").connect()


@BOTH
async def test_200_connections_leave_nothing(protocol: str) -> None:
    async def call(asked: Asked) -> None:
        await asked.result(content())

    async with asyncio.timeout(100), serving(greets(call)) as server:
        async with Client(server.url, protocol=protocol):  # what is kept for good is there now
            pass
        await asyncio.sleep(0)
        before = descriptors(), asyncio.all_tasks()
        for _ in range(25):
            await asyncio.gather(*(opened_and_closed(server.url, protocol) for _ in range(8)))
        await until(lambda: (descriptors(), asyncio.all_tasks()) == before)


async def opened_and_closed(url: str, protocol: str) -> None:
    async with Client(url, protocol=protocol) as client:
        assert (await client.call_tool("t")).text == "well"


@BOTH
async def test_nothing_is_left_of_a_broken_server(protocol: str) -> None:
    async def call(asked: Asked) -> None:
        await asked.stream()
        await asked.gone()

    before = asyncio.all_tasks()
    async with connected(call, protocol=protocol) as (client, _):
        with pytest.raises(LocalError):
            await client.call_tool("t", idle_timeout=0.1)
    await asyncio.sleep(0)
    assert {task for task in asyncio.all_tasks() if task not in before} == set()
