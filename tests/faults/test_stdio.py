"""What servers over stdio do wrong, each within a bound: nothing hangs, and nothing is left."""

from __future__ import annotations

import asyncio
import logging
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dragoman import Client, ClientGroup
from dragoman.client.member import Retry
from dragoman.errors import ClosedError, DeadlineError, LocalError, PeerFault
from tests.drivers.wire import children, descriptors, gone

BROKEN = Path(__file__).with_name("broken.py")
BOUND = 20.0  # seconds, on a machine that is busy with something else


def broken(*words: str, **options: Any) -> Client:
    return Client([sys.executable, str(BROKEN), *words], name="broken", protocol="2025-11-25", **options)


@pytest.mark.parametrize(
    "name",
    "well dies_after banner long_line crlf mark floods wrong_id twice text_id byte_by_byte".split(),
)
async def test_the_answer_comes_through_all_the_same(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        assert (await client.call_tool(name)).text == "well"


async def test_line_separators_of_unicode_are_text() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        assert (await client.call_tool("separators")).text == "a\u2028b\u2029c\x85d"


async def test_answers_out_of_order() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        names = ["held 1", "held 2", "held 3"]
        results = await asyncio.gather(*(client.call_tool(name) for name in names))
    assert [result.text for result in results] == names


async def test_a_line_of_100_mb_is_not_kept() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        tracemalloc.start()  # what this process holds, whatever other tests have left in it
        try:
            await client.call_tool("long_line")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 80 * 1024 * 1024


@pytest.mark.parametrize(("name", "status"), [("dies_before", 3), ("dies_during", 4)])
async def test_death_ends_the_call_at_once_and_says_how(name: str, status: int) -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        with pytest.raises(ClosedError) as caught:
            await client.call_tool(name)
    error = caught.value
    assert (error.server, error.stage, error.exit_status) == ("broken", "call", status)
    assert error.stderr_tail == (("out of luck",) if status == 3 else ())


async def test_stdout_closed_ends_the_call_at_once() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        with pytest.raises(ClosedError, match="closed its standard output"):
            await client.call_tool("closes_stdout")


async def test_one_bad_byte_fails_one_call() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        with pytest.raises(PeerFault, match="UTF-8"):
            await client.call_tool("bad_byte")
        assert (await client.call_tool("well")).text == "well"


async def test_half_a_line_runs_into_the_limit_of_the_call() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        with pytest.raises(DeadlineError) as caught:
            await client.call_tool("half_a_line", idle_timeout=0.3)
    assert caught.value.stage == "idle"


async def test_a_byte_now_and_then_is_no_sign_of_life() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        with pytest.raises(DeadlineError) as caught:
            await client.call_tool("trickles", idle_timeout=0.5)
    assert caught.value.stage == "idle"


async def test_a_server_that_hangs_for_good_is_replaced_and_only_one_is_left() -> None:
    group = ClientGroup(
        {"broken": [sys.executable, str(BROKEN)]}, idle_timeout=1.0, retry=Retry(first=0.01, most=0.02)
    )
    before = children()
    async with asyncio.timeout(BOUND), group:
        first = (await group.call_tool("mcp__broken__pid")).text
        usual = len(children() - before)  # the server, and what ends it if this process is killed
        with pytest.raises(DeadlineError):
            await group.call_tool("mcp__broken__hangs")
        second = await again(group)
        assert second != first
        assert gone(int(first))
        assert len(children() - before) == usual
    assert gone(int(second))


async def again(group: ClientGroup) -> str:
    """What a call says once the server is back."""
    while True:
        try:
            return (await group.call_tool("mcp__broken__pid")).text
        except LocalError:
            await asyncio.sleep(0.01)


async def test_a_server_that_is_slow_once_is_not_taken_for_dead() -> None:
    async with asyncio.timeout(BOUND), ClientGroup({"broken": [sys.executable, str(BROKEN)]}) as group:
        first = (await group.call_tool("mcp__broken__pid")).text
        client = group["broken"]
        with pytest.raises(DeadlineError):  # a call's own limit, far below what the server is given
            await client.call_tool("slow", idle_timeout=0.1)
        group.servers["broken"].suspect(DeadlineError("silent", stage="idle"))
        assert (await group.call_tool("mcp__broken__pid")).text == first


async def test_a_server_that_stops_reading_runs_into_the_limit_of_the_call() -> None:
    async with asyncio.timeout(BOUND), broken() as client:
        await client.call_tool("stops_reading")
        with pytest.raises(DeadlineError):
            await client.call_tool("well", {"text": "x" * 10_000_000}, idle_timeout=0.3)


@pytest.mark.parametrize("name", ["dies_before", "closes_stdout", "half_a_line", "stops_reading"])
async def test_nothing_is_left_of_a_broken_server(name: str) -> None:
    before = children(), descriptors(), asyncio.all_tasks()
    client = broken()
    async with asyncio.timeout(BOUND), client:
        pid = client.facts()["pid"]
        try:
            await client.call_tool(name, idle_timeout=0.3)
        except LocalError as exc:
            logging.getLogger(__name__).info("%s", exc)
    assert gone(pid)
    assert (children(), descriptors(), asyncio.all_tasks()) == before


async def test_200_starts_and_stops_leave_nothing() -> None:
    async with asyncio.timeout(100):
        async with broken():  # what is kept for good is there now
            pass
        before = children(), descriptors(), asyncio.all_tasks()
        for _ in range(25):
            await asyncio.gather(*(started() for _ in range(8)))
    assert (children(), descriptors(), asyncio.all_tasks()) == before


async def started() -> None:
    async with broken() as client:
        assert (await client.call_tool("well")).text == "well"
