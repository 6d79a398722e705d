"""A client belongs to the event loop in which it was connected, and says so where another one uses it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import Client, Server
from dragoman.errors import LocalError, UsageError
from tests.faults.test_http import greets
from tests.http_client.server import Asked, serving

SCRIPT = """
from dragoman import Server

server = Server("twice", version="1")


@server.tool
async def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "twice.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def loops() -> Iterator[tuple[asyncio.AbstractEventLoop, asyncio.AbstractEventLoop]]:
    pair = asyncio.new_event_loop(), asyncio.new_event_loop()
    yield pair
    for loop in pair:
        loop.close()


PROGRAM = """
import asyncio
from dragoman import Client, ClientGroup, UsageError

for one, name in ((Client("twice.py"), "add"), (ClientGroup({"twice": "twice.py"}), "mcp__twice__add")):

    async def connect():
        await one.connect()

    asyncio.run(connect())
    try:
        asyncio.run(one.call_tool(name, {"a": 1, "b": 2}))
    except UsageError as error:
        print(error.server, error.stage, error.message, error.hint, sep="|")
    asyncio.run(one.close())
    asyncio.run(one.close())
"""


def test_after_its_loop_has_ended_a_call_says_what_to_do_and_closing_is_no_error(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    for line in done.stdout.splitlines():
        server, stage, message, hint = line.split("|")
        assert (server, stage) == ("twice", "call")
        assert message == "the event loop in which it was connected is closed"
        assert "SyncClient" in hint
    assert len(done.stdout.splitlines()) == 2


def test_beside_its_own_loop_another_one_cannot_call_or_close_it(loops) -> None:
    first, second = loops
    server = Server("here", version="1")
    client = Client(server)
    first.run_until_complete(client.connect())
    for use in (client.list_tools, client.close):
        with pytest.raises(UsageError, match="is not this one"):
            second.run_until_complete(use())
    first.run_until_complete(client.close())


async def refused(asked: Asked) -> None:
    await asked.reply(500)


def test_over_http(loops) -> None:
    first, second = loops

    async def connect() -> Client:
        async with serving(greets(refused)) as server:
            client = Client(server.url)
            await client.connect()
            with pytest.raises(UsageError):
                await asyncio.to_thread(second.run_until_complete, client.ping())
            await client.close()
        return client

    client = first.run_until_complete(connect())
    with pytest.raises(LocalError, match="closed"):
        second.run_until_complete(client.ping())
