"""Progress as its client is told: rising, not too often, and the last report always."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from dragoman import Context, Server, UsageError
from tests.server.pair import Pair

REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


def reports(pair: Pair) -> list[Any]:
    return [f["params"] for f in pair.frames if f.get("method") == "notifications/progress"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", [0, 7, "t"])
async def test_a_flood_is_thinned_out_and_the_last_report_comes_before_the_answer(
    revision: str, token: Any
) -> None:
    server = Server("s", progress_rate=5)

    @server.tool
    async def flood(ctx: Context) -> None:
        for step in range(1, 1001):
            await ctx.report_progress(step, 1000)

    async with Pair(server, revision) as pair:
        answer = await pair.ask("tools/call", {"name": "flood"}, progressToken=token)
        told = reports(pair)
        assert [report["progress"] for report in told] == [1, 2, 3, 4, 5, 1000]
        assert {report["progressToken"] for report in told} == {token}
        assert pair.frames[-1] == answer


async def test_a_report_that_waits_is_sent_when_its_time_has_come() -> None:
    server = Server("s", progress_rate=1)
    seen = asyncio.Event()

    @server.tool
    async def stalls(ctx: Context) -> None:
        for step in range(1, 5):
            await ctx.report_progress(step)
        await seen.wait()

    async with Pair(server) as pair:
        id_ = pair.send("tools/call", {"name": "stalls"}, progressToken="t")
        await pair.said(2)  # the first at once, the last a second later, while the tool stands still
        assert [report["progress"] for report in reports(pair)] == [1, 4]
        seen.set()
        await pair.answer(id_)
        assert len(reports(pair)) == 2


@pytest.mark.parametrize("revision", REVISIONS)
async def test_reports_from_threads_rise_too(revision: str) -> None:
    server = Server("s", progress_rate=50)

    @server.tool
    def work(ctx: Context) -> None:
        def tell() -> None:
            for step in range(200):
                ctx.report_progress(step)

        threads = [threading.Thread(target=tell) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    async with Pair(server, revision) as pair:
        await pair.ask("tools/call", {"name": "work"}, progressToken=1)
        told = [report["progress"] for report in reports(pair)]
    assert told == sorted(set(told))
    assert told[-1] == 199


async def test_few_reports_are_all_sent_and_one_that_does_not_rise_is_not() -> None:
    server = Server("s")

    @server.tool
    async def work(ctx: Context) -> None:
        for step in (0, 1, 1, 0.5, 2):
            await ctx.report_progress(step, message=f"step {step}")

    async with Pair(server) as pair:
        await pair.ask("tools/call", {"name": "work"}, progressToken=1)
        assert [report["message"] for report in reports(pair)] == ["step 0", "step 1", "step 2"]


async def test_nothing_is_sent_that_was_not_asked_for() -> None:
    server = Server("s")

    @server.tool
    async def work(ctx: Context) -> None:
        await ctx.report_progress(1)

    async with Pair(server) as pair:
        await pair.ask("tools/call", {"name": "work"})
        assert reports(pair) == []


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_that_makes_no_sense_is_refused(rate: float) -> None:
    with pytest.raises(UsageError, match="progress_rate: expected a number above 0"):
        Server("s", progress_rate=rate)
