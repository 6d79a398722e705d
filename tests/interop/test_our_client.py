"""Our client against servers of others: found out, listed, called, refused, watched, cancelled, left."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.client import opening
from dragoman.errors import LocalError
from dragoman.model import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    LoggingMessageParams,
    TextContent,
)
from tests import needs
from tests.interop.playing import ended, outcome, reached
from tests.interop.processes import marked
from tests.interop.roster import (
    ASKING_ROWS,
    EVERYTHING_ASKS,
    NEWEST,
    OLDER,
    OLDER_ROWS,
    REFUSED_ROWS,
    SERVER_ROWS,
    ServerRow,
    Transport,
)

LIMIT = 60.0


@pytest.fixture(autouse=True)
def no_verdicts() -> Iterator[None]:
    opening.forget(None)
    yield
    opening.forget(None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hello.txt").write_text("안녕하세요\n", encoding="utf-8")
    subprocess.run([needs.program("git"), "init", "-q", tmp_path], check=True)
    return tmp_path


@pytest.mark.parametrize("row", SERVER_ROWS, ids=lambda row: row.id)
async def test_a_server(row: ServerRow, folder: Path) -> None:
    async with asyncio.timeout(LIMIT):
        async with reached(row.peer, row.transport, folder) as connected:
            async with connected.client(row.protocol) as client:
                found = await outcome(client, connected, folder)
            left = marked(connected.mark) if row.transport == "stdio" else []
        found["end"] = ended(client, connected)
    assert ServerRow(row.peer, row.transport, row.protocol, **found) == row
    assert left == []
    assert connected.wire.check() == []
    assert client.facts().get("noise", 0) == 0


@pytest.mark.parametrize(("peer", "transport", "fault"), REFUSED_ROWS)
async def test_a_server_that_does_not_speak_the_only_revision_asked_for(
    peer: str, transport: Transport, fault: str, folder: Path
) -> None:
    async with asyncio.timeout(LIMIT), reached(peer, transport, folder) as connected:
        with pytest.raises(LocalError) as caught:
            await connected.client(NEWEST).connect()
        assert type(caught.value).__name__ == fault
        assert "protocol='auto'" in str(caught.value)
        assert connected.wire.check() == []


@pytest.mark.parametrize("revision", OLDER)
@pytest.mark.parametrize(("peer", "transport"), OLDER_ROWS)
async def test_an_older_revision(peer: str, transport: Transport, revision: str, folder: Path) -> None:
    async with asyncio.timeout(LIMIT), reached(peer, transport, folder) as connected:
        plan = connected.peer.plan
        async with connected.client(revision) as client:
            assert client.revision.version == revision
            assert len(await client.list_tools()) == plan.tools
            assert plan.text in (await client.call_tool(*plan.good)).text
        assert connected.wire.check() == []


@pytest.mark.parametrize(
    ("peer", "openings"),
    [
        ("everything", ["server/discover", "initialize", "initialize"]),
        ("mcp2", ["server/discover", "server/discover"]),
    ],
)
async def test_what_a_server_speaks_is_found_out_once(peer: str, openings: list[str], folder: Path) -> None:
    async with asyncio.timeout(LIMIT), reached(peer, "http", folder) as connected:
        for _ in range(2):
            async with connected.client("auto") as client:
                await client.list_tools()
        sent = [frame["method"] for way, frame in connected.wire.frames if way == "to_server"]
        assert [method for method in sent if method in ("server/discover", "initialize")] == openings
        assert connected.wire.check() == []


async def test_many_calls_at_once_to_one_server(folder: Path) -> None:
    async with asyncio.timeout(LIMIT), reached("mcp2", "http", folder) as connected:
        async with connected.client("auto") as client:
            results = await asyncio.gather(
                *(client.call_tool("add", {"a": number, "b": 1}) for number in range(40))
            )
        assert [result.text for result in results] == [str(number + 1) for number in range(40)]
        assert connected.wire.check() == []


def person(asked: ElicitParams) -> dict[str, str | int | bool]:
    assert asked.message
    return {"name": "Ann", "check": True, "day": "saturday", "people": 4}


def model(asked: CreateMessageParams) -> CreateMessageResult:
    assert asked.messages
    return CreateMessageResult(role="assistant", model="none", content=TextContent(text="a model's word"))


HANDLERS = {"elicitation_handler": person, "sampling_handler": model, "roots": ["file:///srv/project"]}


@pytest.mark.parametrize(("peer", "transport", "protocol"), ASKING_ROWS)
async def test_what_a_function_asks_during_a_call(
    peer: str, transport: Transport, protocol: str, folder: Path
) -> None:
    async with asyncio.timeout(LIMIT), reached(peer, transport, folder) as connected:
        async with connected.client(protocol, **HANDLERS) as client:
            result = await client.call_tool("book")
        assert result.text == "saturday, 4, a model's word, file:///srv/project"
        assert connected.wire.check() == []
        rounds = len(connected.wire.sent("tools/call"))
        assert rounds > 1 if protocol == NEWEST else rounds == 1


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("what", EVERYTHING_ASKS)
async def test_what_the_everything_server_asks(what: str, transport: Transport, folder: Path) -> None:
    (tool, arguments), words = EVERYTHING_ASKS[what]
    async with asyncio.timeout(LIMIT), reached("everything", transport, folder) as connected:
        async with connected.client("auto", **HANDLERS) as client:
            await client.list_tools()
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.text
            assert words in result.text
        assert connected.wire.check() == []


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_log_entries_of_a_server(transport: Transport, folder: Path) -> None:
    heard: asyncio.Queue[LoggingMessageParams] = asyncio.Queue()
    async with asyncio.timeout(LIMIT), reached("everything", transport, folder) as connected:
        async with connected.client("auto", log_handler=heard.put_nowait, log_level="debug") as client:
            await client.call_tool("toggle-simulated-logging")
            entry = await heard.get()
            assert entry.level
            assert entry.data
        assert connected.wire.check() == []
