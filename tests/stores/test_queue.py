"""Jobs: one worker at a time, another one when that worker falls silent, and never two at once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from dragoman.errors import ClosedError, UsageError
from dragoman.stores import Job, MemoryStore
from tests.stores.conftest import Opened


async def test_a_job_is_claimed_once(ends: Opened) -> None:
    async with ends() as (here, there, _):
        assert await here.queue("q").put("1", b"work") is True
        job = await there.queue("q").claim("w", lease=30)
        assert (job.id, job.payload, job.worker, job.attempts, job.lease) == ("1", b"work", "w", 1, 30)
        assert await here.queue("q").claim("v", lease=30) is None
        assert await here.queue("q").size() == 1


async def test_a_job_that_is_done_is_gone(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("q").put("1", b"")
        job = await there.queue("q").claim("w", lease=30)
        assert await there.queue("q").ack(job) is True
        clock.pass_(1000)
        assert await here.queue("q").claim("v", lease=30) is None
        assert await here.queue("q").size() == 0
        assert await there.queue("q").ack(job) is False


async def test_an_id_is_put_once(ends: Opened) -> None:
    async with ends() as (here, there, _):
        assert await here.queue("q").put("1", b"first") is True
        assert await there.queue("q").put("1", b"second") is False
        assert await there.queue("r").put("1", b"another queue") is True
        assert (await there.queue("q").claim("w", lease=1)).payload == b"first"
        assert await there.queue("q").put("1", b"third") is False


async def test_jobs_come_in_the_order_in_which_they_fall_due(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        start = clock.time
        await here.queue("q").put("late", b"", not_before=start + 5)
        await here.queue("q").put("first", b"")
        await there.queue("q").put("second", b"")
        clock.pass_(1)
        await here.queue("q").put("third", b"")
        claimed = [await there.queue("q").claim("w", lease=100) for _ in range(4)]
        assert [job and job.id for job in claimed] == ["first", "second", "third", None]
        clock.pass_(4)
        assert (await there.queue("q").claim("w", lease=100)).id == "late"


async def test_a_lease_that_ran_out_can_be_claimed(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("q").put("1", b"work")
        first = await here.queue("q").claim("w", lease=30)
        clock.pass_(29)
        assert await there.queue("q").claim("v", lease=30) is None
        clock.pass_(1)
        second = await there.queue("q").claim("v", lease=30)
        assert (second.id, second.payload, second.attempts) == ("1", b"work", 2)
        assert second.token > first.token


async def test_a_heartbeat_keeps_the_lease(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("q").put("1", b"")
        job = await here.queue("q").claim("w", lease=30)
        for _ in range(5):
            clock.pass_(20)
            assert await here.queue("q").heartbeat(job) is True
        clock.pass_(29)
        assert await there.queue("q").claim("v", lease=30) is None


async def test_a_late_worker_is_refused(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("q").put("1", b"")
        late = await here.queue("q").claim("w", lease=30)
        clock.pass_(30)
        job = await there.queue("q").claim("w", lease=30)  # the same name does not help
        assert await here.queue("q").heartbeat(late) is False
        assert await here.queue("q").release(late) is False
        assert await here.queue("q").ack(late) is False
        assert await there.queue("q").ack(job) is True


async def test_a_late_worker_that_nobody_replaced_goes_on(ends: Opened) -> None:
    """Nobody else has begun: its work is as good as any."""
    async with ends() as (here, there, clock):
        await here.queue("q").put("1", b"")
        job = await here.queue("q").claim("w", lease=30)
        clock.pass_(1000)
        assert await here.queue("q").heartbeat(job) is True
        assert await there.queue("q").claim("v", lease=30) is None
        assert await here.queue("q").ack(job) is True


async def test_a_job_that_is_given_back_can_be_claimed(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("q").put("1", b"")
        job = await here.queue("q").claim("w", lease=30)
        assert await here.queue("q").release(job) is True
        assert await here.queue("q").heartbeat(job) is False
        again = await there.queue("q").claim("v", lease=30)
        assert again.attempts == 2
        assert await there.queue("q").release(again, not_before=clock.time + 60) is True
        clock.pass_(59)
        assert await here.queue("q").claim("w", lease=30) is None
        clock.pass_(1)
        assert (await here.queue("q").claim("w", lease=30)).attempts == 3


async def test_a_job_that_is_removed_is_lost_to_its_worker(ends: Opened) -> None:
    async with ends() as (here, there, _):
        await here.queue("q").put("1", b"")
        job = await here.queue("q").claim("w", lease=30)
        assert await there.queue("q").remove("1") is True
        assert await there.queue("q").remove("1") is False
        assert await here.queue("q").heartbeat(job) is False
        await there.queue("q").put("1", b"again")
        assert await here.queue("q").ack(job) is False
        assert await here.queue("q").size() == 1


async def test_many_workers_never_share_a_job(ends: Opened) -> None:
    async with ends() as (here, there, _):
        for i in range(60):
            await here.queue("q").put(f"{i}", b"")
        done: list[str] = []

        async def work(store: Any, worker: str) -> None:
            while (job := await store.queue("q").claim(worker, lease=30)) is not None:
                done.append(job.id)
                assert await store.queue("q").ack(job)

        await asyncio.gather(*(work(s, f"{n}") for n in range(4) for s in (here, there)))
        assert sorted(done, key=int) == [f"{i}" for i in range(60)]


async def test_a_worker_that_waits_is_woken_by_a_job(ends: Opened) -> None:
    async with ends() as (here, there, _):
        waiting = asyncio.ensure_future(there.queue("q").claim("w", lease=30, wait=30))
        assert await there.queue("q").size() == 0  # asked after: it is waiting by now, or will look later
        begin = time.monotonic()
        await here.queue("r").put("1", b"another queue")
        await here.queue("q").put("1", b"work")
        assert (await waiting).payload == b"work"
        assert time.monotonic() - begin < 10


async def test_a_worker_that_waits_is_woken_by_a_job_given_back(ends: Opened) -> None:
    async with ends() as (here, there, _):
        await here.queue("q").put("1", b"work")
        job = await here.queue("q").claim("w", lease=1000)
        waiting = asyncio.ensure_future(there.queue("q").claim("v", lease=30, wait=30))
        assert await there.queue("q").size() == 1
        await here.queue("q").release(job)
        assert (await waiting).attempts == 2


async def test_waiting_ends_without_a_job(ends: Opened) -> None:
    async with ends() as (here, _, _):
        assert await here.queue("q").claim("w", lease=30, wait=0.01) is None


async def test_waiting_ends_when_a_job_falls_due() -> None:
    async with MemoryStore() as store:
        await store.queue("q").put("1", b"", not_before=store.clock() + 0.05)
        job = await store.queue("q").claim("w", lease=0.05, wait=30)
        assert job is not None
        again = await store.queue("q").claim("w", lease=30, wait=30)
        assert again is not None
        assert (again.id, again.attempts) == ("1", 2)


async def test_many_wait_and_each_gets_a_job(ends: Opened) -> None:
    async with ends() as (here, there, _):
        waiting = [
            asyncio.ensure_future(store.queue("q").claim(f"{n}", lease=30, wait=30))
            for n in range(5)
            for store in (here, there)
        ]
        await there.queue("q").size()
        for i in range(10):
            await here.queue("q").put(f"{i}", b"")
        jobs = await asyncio.gather(*waiting)
        assert sorted(job.id for job in jobs) == [f"{i}" for i in range(10)]


async def test_who_waits_hears_of_the_end(ends: Opened) -> None:
    async with ends() as (here, _, _):
        waiting = asyncio.ensure_future(here.queue("q").claim("w", lease=30, wait=30))
        await here.queue("q").size()
        await here.close()
        with pytest.raises(ClosedError, match="the store"):
            await waiting
        with pytest.raises(ClosedError):
            await here.queue("q").size()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda queue: queue.put("", b""), "a job's id has 0 characters"),
        (lambda queue: queue.put("1", None), "a payload is a NoneType; expected bytes"),
        (lambda queue: queue.put("1", b"", not_before=float("inf")), "not_before is inf"),
        (lambda queue: queue.claim("", lease=1), "a worker has 0 characters"),
        (lambda queue: queue.claim("w", lease=0), "lease is 0; expected a number of seconds above 0"),
        (
            lambda queue: queue.ack(Job("r", "1", b"", "w", 1, 1, 1.0)),
            "of the queue 'r' was given to the queue 'q'",
        ),
    ],
)
async def test_wrong_arguments_are_named(call: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        await call(MemoryStore().queue("q"))


async def test_heartbeats_take_no_memory() -> None:
    async with MemoryStore() as store:
        await store.queue("q").put("1", b"")
        job = await store.queue("q").claim("w", lease=1000)
        assert job is not None
        for _ in range(1000):
            await store.queue("q").heartbeat(job)
        assert len(store._core._dues["q"]) <= 100
        await store.queue("q").ack(job)
        assert not store._core._dues
