"""Listening with real parts at the other end: programs that are killed, sockets that are cut."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Change, Client, ClosedError, Server
from dragoman.client import opening
from tests.client.test_http import served

NEW, OLD = "2026-07-28", "2025-11-25"
BOTH = pytest.mark.parametrize("protocol", [NEW, OLD])

PROGRAM = """
from dragoman import Server

server = Server("changing", ttl_ms=3_600_000)


@server.resource("notes://one")
def one() -> str:
    return "one"


@server.tool
def grow() -> str:
    server.tool(lambda: 1, name="grown")
    return "grown"


@server.tool
def touch() -> str:
    server.notify_resource_updated("notes://one")
    return "touched"
"""


@pytest.fixture(autouse=True)
def no_verdicts() -> Any:
    opening.forget(None)
    yield
    opening.forget(None)


async def soon(work: Any) -> Any:
    return await asyncio.wait_for(work, 20)


@BOTH
async def test_a_killed_program_is_started_again_and_listened_to(protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    async with Client([sys.executable, "-m", "dragoman", "run", str(file)], protocol=protocol) as client:
        async with client.listen(tools=True, resources=["notes://one"]) as changes:
            await client.call_tool("grow")
            assert await soon(changes.next()) == Change("tools")
            assert "grown" in {tool.name for tool in await client.list_tools()}
            first = client.facts()["pid"]
            os.kill(first, signal.SIGKILL)
            assert await soon(changes.next()) == Change("tools", missed=True)
            assert await soon(changes.next()) == Change("resource", "notes://one", missed=True)
            assert client.facts()["pid"] != first
            # Nobody asked for anything meanwhile, and what was kept is known to be stale.
            assert "grown" not in {tool.name for tool in await client.list_tools()}
            await client.call_tool("touch")
            assert await soon(changes.next()) == Change("resource", "notes://one")


async def test_a_program_that_may_not_be_started_again_ends_it_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.client.listeners._FIRST_PAUSE", 0.001)
    file = tmp_path / "server.py"
    file.write_text(PROGRAM)
    command = [sys.executable, "-m", "dragoman", "run", str(file)]
    async with Client(command, max_restarts=0) as client, client.listen(tools=True) as changes:
        os.kill(client.facts()["pid"], signal.SIGKILL)
        with pytest.raises(ClosedError, match="the server ended") as caught:
            await soon(changes.next())
    assert caught.value.exit_status == -signal.SIGKILL


def changing() -> Server:
    server = Server("changing", ttl_ms=3_600_000)

    @server.resource("notes://one")
    def one() -> str:
        return "one"

    @server.tool
    def grow() -> str:
        server.tool(lambda: 1, name="grown")
        return "grown"

    @server.tool
    def touch() -> str:
        server.notify_resource_updated("notes://one")
        return "touched"

    return server


@BOTH
async def test_changes_over_http(protocol: str) -> None:
    async with served(changing()) as url, Client(url, protocol=protocol) as client:
        async with client.listen(tools=True, resources=["notes://one"]) as changes:
            await client.call_tool("grow")
            assert await soon(changes.next()) == Change("tools")
            await client.call_tool("touch")
            assert await soon(changes.next()) == Change("resource", "notes://one")
            assert "grown" in {tool.name for tool in await client.list_tools()}


class Wire:
    """A way to a port that can be cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: set[asyncio.StreamWriter] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {writer, back}
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            self._open -= {writer, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[tuple[str, Wire]]:
    port = int(url.rpartition(":")[2].partition("/")[0])
    wire = Wire(port)
    server = await asyncio.start_server(wire.carry, "127.0.0.1", 0)
    try:
        yield url.replace(str(port), str(server.sockets[0].getsockname()[1])), wire
    finally:
        server.close()
        wire.cut()
        await server.wait_closed()


async def test_a_cut_stream_is_opened_again_and_says_that_something_may_be_missing() -> None:
    server = changing()
    async with served(server) as direct, wired(direct) as (url, wire), Client(url, protocol=NEW) as client:
        async with client.listen(tools=True) as changes:
            await client.list_tools()
            wire.cut()
            server.tool(lambda: 1, name="unheard")
            assert await soon(changes.next()) == Change("tools", missed=True)
            assert "unheard" in {tool.name for tool in await client.list_tools()}
            server.tool(lambda: 1, name="heard")
            assert await soon(changes.next()) == Change("tools")


async def test_a_server_that_stops_in_good_order_ends_it() -> None:
    async with served(changing()) as url:
        client = await Client(url, protocol=NEW).connect()
        changes = await client.listen(tools=True).established()
        reading = asyncio.create_task(changes.next())
        await asyncio.sleep(0)
    try:
        assert await soon(reading) is None
    finally:
        await client.close()


async def test_leaving_tells_an_http_server() -> None:
    server = changing()
    async with served(server) as url, Client(url, protocol=NEW) as client:
        async with client.listen(tools=True):
            (held,) = server.kernel.hub.subscriptions
        await soon(asyncio.wait({held.ended}))
