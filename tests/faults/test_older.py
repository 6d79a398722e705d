"""Servers that have only the older transport, HTTP with SSE (2024-11-05), found as the last step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Client, Context, Server
from dragoman.client import opening
from dragoman.errors import ClosedError, HttpError, LocalError, NegotiationError, PeerFault
from dragoman.jsonrpc.message import encode_error, encode_notification, encode_request, encode_result
from dragoman.transports.base import Outgoing
from dragoman.transports.serve import serve
from dragoman.transports.sse_client import SseTransport
from tests.faults.test_http import BOUND, INITIALIZED, content
from tests.http_client.server import Asked, Ears, serving

OLDEST = "2024-11-05"


class Old:
    """A server of the older transport, by hand; `call` answers what is called, over the stream."""

    def __init__(self, endpoint: str = "/messages?session=1") -> None:
        self.endpoint = endpoint
        self.stream: Asked | None = None
        self.opened = 0
        self.posted: list[Any] = []

    async def __call__(self, asked: Asked) -> None:
        if asked.method == "GET":
            self.opened += 1
            self.stream = asked
            await asked.stream()
            await asked.event(self.endpoint.encode(), "event: endpoint\n")
            await asked.gone()
        elif asked.target.startswith("/mcp"):
            await asked.reply(405, b"no POST here", kind="text/plain")
        else:
            self.posted.append(asked.message)
            await asked.accept()
            await self.hear(asked.message)

    async def hear(self, message: Any) -> None:
        method = message.get("method")
        if method == "initialize":
            await self.say(encode_result(message["id"], {**INITIALIZED, "protocolVersion": OLDEST}))
        elif method == "tools/call":
            await self.call(message)
        elif "id" in message and method:
            await self.say(encode_error(message["id"], -32601, "Method not found"))

    async def call(self, message: Any) -> None:
        name = message["params"]["name"]
        assert self.stream is not None
        if name == "ends":
            self.stream.drop()
        elif name == "asks":
            await self.say(encode_request("s1", "ping", {}))
            await self.say(encode_result(message["id"], content(name)))
        elif name != "hangs":
            await self.say(encode_result(message["id"], content(name)))

    async def say(self, frame: bytes) -> None:
        assert self.stream is not None
        await self.stream.event(frame, "event: message\n")


async def test_an_old_server_is_found_and_known_the_next_time() -> None:
    old = Old()
    async with asyncio.timeout(BOUND), serving(old) as server:
        for _ in range(2):
            async with Client(server.url) as client:
                assert client.revision.version == OLDEST
                assert client.facts()["transport"] == "sse"
                results = await asyncio.gather(*(client.call_tool(f"t{n}") for n in range(10)))
                assert [result.text for result in results] == [f"t{n}" for n in range(10)]
    asked = [(asked.method, asked.target) for asked in server.asked]
    first = [("POST", "/mcp"), ("POST", "/mcp"), ("GET", "/mcp")]  # discover, initialize
    assert asked[:3] == first
    assert asked.count(("POST", "/mcp")) == 2


async def test_a_known_old_server_that_became_a_new_one_is_found_out_about() -> None:
    async with asyncio.timeout(BOUND):
        async with serving(Old()) as server:
            async with Client(server.url):
                pass
            port = server.port
        new = Server("new")
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving_new = asyncio.create_task(serve(new.asgi(), port=port, bound=bound.set_result))
        await bound
        async with Client(server.url) as client:
            assert client.revision.version == "2026-07-28"
        serving_new.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving_new


async def test_what_the_server_asks_and_what_is_given_up() -> None:
    old = Old()
    async with asyncio.timeout(BOUND), serving(old) as server, Client(server.url) as client:
        assert (await client.call_tool("asks")).text == "asks"
        hanging = asyncio.create_task(client.call_tool("hangs"))
        await server.find(lambda asked: b'"hangs"' in asked.body)
        hanging.cancel()
        await asyncio.wait({hanging})
        await server.find(lambda asked: b"notifications/cancelled" in asked.body)
        await server.find(lambda asked: b'"s1"' in asked.body)
    assert {"jsonrpc": "2.0", "id": "s1", "result": {}} in old.posted


async def test_a_stream_that_ended_is_opened_anew() -> None:
    old = Old()
    async with asyncio.timeout(BOUND), serving(old) as server, Client(server.url) as client:
        with pytest.raises(ClosedError):
            await client.call_tool("ends")
        assert (await client.call_tool("t")).text == "t"
    assert old.opened == 2


async def test_neither_way_is_told_as_the_first_was() -> None:
    async def serve(asked: Asked) -> None:
        await asked.reply(404, b"nothing", kind="text/plain")

    async with asyncio.timeout(BOUND), serving(serve) as server:
        with pytest.raises(HttpError, match="404"):
            await Client(server.url).connect()
    assert [asked.method for asked in server.asked] == ["POST", "POST", "GET"]


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_a_way_that_is_barred_says_nothing_of_the_transport(status: int) -> None:
    async def serve(asked: Asked) -> None:
        await asked.reply(status, b"no", kind="text/plain")

    async with asyncio.timeout(BOUND), serving(serve) as server:
        with pytest.raises(HttpError):
            await Client(server.url).connect()
    assert {asked.method for asked in server.asked} == {"POST"}


async def test_a_stateless_revision_is_never_spoken_over_it() -> None:
    async with asyncio.timeout(BOUND), serving(Old()) as server:
        with pytest.raises((HttpError, NegotiationError)):
            await Client(server.url, protocol="2026-07-28").connect()
    assert {asked.method for asked in server.asked} == {"POST"}


@pytest.mark.parametrize("endpoint", ["http://example.com/messages", "https://127.0.0.1/messages"])
async def test_a_server_sends_nobody_to_another_origin(endpoint: str) -> None:
    async with asyncio.timeout(BOUND), serving(Old(endpoint)) as server:
        with pytest.raises(PeerFault, match="another origin"):
            await Client({"type": "sse", "url": server.url}).connect()


async def test_a_configuration_may_say_so() -> None:
    async with asyncio.timeout(BOUND), serving(Old()) as server:
        async with Client({"type": "sse", "url": server.url, "headers": {"X-Key": "k"}}) as client:
            assert (await client.call_tool("t")).text == "t"
    assert server.asked[0].method == "GET"
    assert {asked.headers["x-key"] for asked in server.asked} == {"k"}


async def test_a_stream_that_is_none() -> None:
    async def page(asked: Asked) -> None:
        await asked.reply(200, b"<!DOCTYPE html>", kind="text/html")

    async def silent(asked: Asked) -> None:
        await asked.stream()
        await asked.event(b"{}", "event: hello\n")
        await asked.end()

    for step, fault in ((page, HttpError), (silent, PeerFault)):
        async with asyncio.timeout(BOUND), serving(step) as server:
            with pytest.raises(fault):
                await Client({"type": "sse", "url": server.url}).connect()


async def test_the_server_of_this_package() -> None:
    server = Server("both")

    @server.tool
    async def add(a: int, b: int, ctx: Context) -> int:
        await ctx.report_progress(1, 2)
        return a + b

    async with asyncio.timeout(BOUND), old_and_new(server) as url:
        seen: list[Any] = []
        async with Client({"type": "sse", "url": url}) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2}, progress=lambda *said: seen.append(said))
            assert result.text == "3"
            assert seen == [(1, 2, None)]


@asynccontextmanager
async def old_and_new(server: Server) -> AsyncIterator[str]:
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(server.asgi(sse_path="/sse"), port=0, bound=bound.set_result))
    try:
        yield f"http://127.0.0.1:{await bound}/sse"
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_the_transport_by_itself() -> None:
    old = Old()
    async with asyncio.timeout(BOUND), serving(old) as server:
        transport = SseTransport(server.url)
        ears = Ears()
        await transport.open(ears.hear, ears.answer)
        await old.say(b"{ no message")
        await old.say(encode_notification("notifications/tools/list_changed"))
        await ears.news.wait()
        assert transport.facts()["noise"] == 1
        frame = encode_request(7, "tools/call", {"name": "t"})
        assert (await transport.exchange(Outgoing(7, "tools/call", frame))).id == 7
        await transport.close()
        await transport.close()
        with pytest.raises(ClosedError):
            await transport.exchange(Outgoing(8, "tools/call", frame))


# What is kept of it all


def kept(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_what_a_server_spoke_is_kept_in_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "kept"
    async with asyncio.timeout(BOUND), serving(Old()) as server:
        for _ in range(2):
            async with Client(f"{server.url}?key=secret", cache_dir=folder) as client:
                assert client.revision.version == OLDEST
            opening.forget(None)  # another process begins
    assert [asked.target for asked in server.asked].count("/mcp?key=secret") == 4  # 2 POST, 2 GET
    [file] = kept(folder)
    assert file.read_text() == f"{OLDEST} http+sse\n"
    assert "secret" not in file.name


@pytest.mark.parametrize("held", ["", "nonsense", "2026-07-28 x", "1999-01-01", "\0" * 9999, "2026-07-28"])
async def test_what_is_kept_may_be_wrong(held: str, tmp_path: Path) -> None:
    async with asyncio.timeout(BOUND), serving(Old()) as server:
        async with Client(server.url, cache_dir=tmp_path):
            pass
        [file] = kept(tmp_path)
        file.write_text(held)
        opening.forget(None)
        async with Client(server.url, cache_dir=tmp_path) as client:
            assert client.revision.version == OLDEST
    assert file.read_text() == f"{OLDEST} http+sse\n"


async def test_a_directory_that_cannot_be_written_costs_no_connection(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with asyncio.timeout(BOUND), serving(Old()) as server:
        async with Client(server.url, cache_dir=tmp_path / "file") as client:
            assert client.revision.version == OLDEST


async def test_a_failed_connection_is_forgotten(tmp_path: Path) -> None:
    async with asyncio.timeout(BOUND), serving(Old()) as server:
        async with Client(server.url, cache_dir=tmp_path):
            pass
    with pytest.raises(LocalError):
        await Client(server.url, cache_dir=tmp_path, retry_for=0).connect()
    assert kept(tmp_path) == []
