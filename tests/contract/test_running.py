"""While a call runs: progress, logs, cancellation, in each revision's own way."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from dragoman import DeadlineError
from tests.contract.conftest import Stage
from tests.contract.room import SESSIONS, SINCE_2025_03, STATELESS, Room


async def test_progress_reaches_who_asked_for_it(room: Room) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    result = await room.client.call_tool("steps", progress=lambda *report: told.append(report))
    assert result.text == "done"
    words = ["step 1", "step 2", "step 3"] if room.revision in SINCE_2025_03 else [None] * 3
    assert told == [(number, 3, word) for number, word in enumerate(words, 1)]


async def test_progress_from_a_thread(room: Room) -> None:
    told: list[float] = []
    await room.client.call_tool("steps_in_thread", progress=lambda done, *_: told.append(done))
    assert told == [0, 0.5, 1]


@pytest.mark.parametrize("token", ["tok", 0])
async def test_progress_carries_the_token_of_its_request(room: Room, token: str | int) -> None:
    call = {"name": "steps", "arguments": {}, "_meta": {"progressToken": token}}
    await room.client.request("tools/call", call)
    assert [params["progressToken"] for params in room.received("notifications/progress")] == [token] * 3


async def test_nobody_is_told_of_progress_without_a_token(room: Room) -> None:
    await room.client.request("tools/call", {"name": "steps", "arguments": {}})
    assert room.received("notifications/progress") == []


async def test_logs_come_at_the_level_that_was_asked_for(room: Room) -> None:
    # The client asks for `info`: by `logging/setLevel` in a session, by `_meta` of each request elsewhere.
    await room.call("logs")
    await room.client.ping()
    assert room.logged == [("info", {"rows": 3}), ("warning", "low stock"), ("error", "gone")]
    assert room.received("notifications/message")[0]["logger"] == "shop"
    if room.revision == STATELESS:
        assert room.sent("tools/call")[0]["_meta"]["io.modelcontextprotocol/logLevel"] == "info"
    else:
        assert "_meta" not in room.sent("tools/call")[0] or "logLevel" not in str(room.sent("tools/call")[0])


async def test_logs_at_another_level(stage: Stage, revision: str, transport: str) -> None:
    async with Room.capable(stage.target(transport), revision, log_level="error") as room:
        await room.call("logs")
        await room.client.ping()
        assert room.logged == [("error", "gone")]
        assert len(room.sent("logging/setLevel")) == (revision in SESSIONS)
    room.check()


async def test_nobody_is_told_what_they_did_not_ask_for(stage: Stage, revision: str, transport: str) -> None:
    if transport == "stdio":
        transport = "memory"  # the same channel, without a process for it
    async with Room(stage.target(transport), revision) as room:
        await room.call("logs")
        await room.client.ping()
        # Until it hears of a level, a server decides; this one takes silence for an answer.
        assert room.received("notifications/message") == []
    room.check()


async def test_a_call_that_is_given_up_is_cancelled(room: Room, transport: str) -> None:
    key, began = uuid4().hex, asyncio.Event()
    work = asyncio.ensure_future(room.client.call_tool("wait", {"key": key}, progress=lambda *_: began.set()))
    await began.wait()
    work.cancel()
    assert (await room.call("noted", key=key, count=1)).structured in ({"result": ["cancelled"]}, None)
    # A response that is closed says it all, where the revision says so; elsewhere it is said in words.
    silent = transport == "http" and room.revision == STATELESS
    assert len(room.sent("notifications/cancelled")) == (not silent)


async def test_a_call_that_takes_too_long_is_cancelled_too(room: Room) -> None:
    key = uuid4().hex
    with pytest.raises(DeadlineError):
        await room.client.call_tool("wait", {"key": key}, timeout=0.2)
    assert "cancelled" in (await room.call("noted", key=key, count=1)).text


async def test_calls_run_side_by_side(room: Room) -> None:
    key, began = uuid4().hex, asyncio.Event()
    waiting = asyncio.ensure_future(
        room.client.call_tool("wait", {"key": key}, progress=lambda *_: began.set())
    )
    await began.wait()
    texts = await asyncio.gather(*(room.call("add", a=number, b=1) for number in range(20)))
    assert [result.text for result in texts] == [str(number + 1) for number in range(20)]
    waiting.cancel()
    await room.call("noted", key=key, count=1)
