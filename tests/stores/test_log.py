"""Records by topic: in order, readable from anywhere, trimmed by id, by age and by number."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.errors import UsageError
from dragoman.stores import LeaseLost, MemoryStore
from tests.stores.conftest import Opened


async def data(log: Any, topic: str = "t", **how: Any) -> list[bytes]:
    return [record.data for record in await log.read(topic, **how)]


async def test_records_come_in_order_with_rising_ids(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        ids = []
        for i, store in enumerate((here, there, here, there)):
            clock.pass_(1)
            ids.append(await store.log("a").append("t", b"%d" % i))
        records = await there.log("a").read("t")
        assert [record.id for record in records] == ids == sorted(set(ids))
        assert [record.data for record in records] == [b"0", b"1", b"2", b"3"]
        assert [record.at for record in records] == [clock.time - 3 + i for i in range(4)]


async def test_reading_goes_on_behind_an_id(ends: Opened) -> None:
    async with ends() as (here, there, _):
        ids = [await here.log("a").append("t", b"%d" % i) for i in range(5)]
        assert await data(there.log("a"), after=ids[1], limit=2) == [b"2", b"3"]
        assert await data(there.log("a"), after=ids[4]) == []
        assert await data(there.log("a"), after=2**62) == []


async def test_topics_and_spaces_are_apart(ends: Opened) -> None:
    async with ends() as (here, there, _):
        await here.log("a").append("t", b"a t")
        await here.log("a").append("u", b"a u")
        await here.log("b").append("t", b"b t")
        assert await data(there.log("a"), "t") == [b"a t"]
        await there.log("a").trim("t", keep=0)
        assert await data(here.log("a"), "u") == [b"a u"]
        assert await data(here.log("b"), "t") == [b"b t"]


async def test_last_is_where_to_begin_with_what_comes(ends: Opened) -> None:
    async with ends() as (here, there, _):
        assert await there.log("a").last("t") == 0
        await here.log("a").append("t", b"old")
        last = await there.log("a").last("t")
        await here.log("a").append("u", b"elsewhere")
        await here.log("a").append("t", b"new")
        assert await data(there.log("a"), after=last) == [b"new"]


async def test_an_id_is_never_given_twice(ends: Opened) -> None:
    """Else a reader that remembers where it was would miss what comes after a trim."""
    async with ends() as (here, there, _):
        old = await here.log("a").append("t", b"old")
        assert await there.log("a").trim("t", keep=0) == 1
        assert await here.log("a").last("t") == 0
        assert await here.log("a").append("t", b"new") > old
        assert await data(there.log("a"), after=old) == [b"new"]


async def test_trim_by_id(ends: Opened) -> None:
    async with ends() as (here, there, _):
        ids = [await here.log("a").append("t", b"%d" % i) for i in range(4)]
        assert await there.log("a").trim("t", before=ids[2]) == 2
        assert await data(here.log("a")) == [b"2", b"3"]
        assert await there.log("a").trim("t", before=ids[2]) == 0


async def test_trim_by_age(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        for i in range(4):
            await here.log("a").append("t", b"%d" % i)
            clock.pass_(10)
        assert await there.log("a").trim("t", max_age=20) == 2  # 20 seconds are not more than 20
        assert await data(here.log("a")) == [b"2", b"3"]


async def test_trim_by_number(ends: Opened) -> None:
    async with ends() as (here, there, _):
        for i in range(4):
            await here.log("a").append("t", b"%d" % i)
        assert await there.log("a").trim("t", keep=9) == 0
        assert await there.log("a").trim("t", keep=1) == 3
        assert await data(here.log("a")) == [b"3"]


async def test_each_condition_of_a_trim_is_enough(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        ids = []
        for i in range(6):
            ids.append(await here.log("a").append("t", b"%d" % i))
            clock.pass_(10)
        assert await there.log("a").trim("t", before=ids[1], max_age=30, keep=5) == 3
        assert await data(here.log("a")) == [b"3", b"4", b"5"]


async def test_trim_of_all_topics(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        for topic in ("t", "u"):
            for i in range(3):
                await here.log("a").append(topic, b"%d" % i)
        await here.log("b").append("t", b"other space")
        assert await there.log("a").trim(keep=1) == 4
        assert [await data(here.log("a"), topic) for topic in ("t", "u")] == [[b"2"], [b"2"]]
        clock.pass_(1)
        assert await there.log("a").trim(max_age=0.5) == 2
        assert await data(here.log("b")) == [b"other space"]


async def test_appending_together_loses_nothing(ends: Opened) -> None:
    async with ends() as (here, there, _):
        ids = await asyncio.gather(
            *(store.log("a").append("t", b"%d" % i) for i in range(50) for store in (here, there))
        )
        records = await here.log("a").read("t", limit=1000)
        assert len(set(ids)) == len(records) == 100
        assert sorted(record.data for record in records) == sorted(b"%d" % (i // 2) for i in range(100))


async def test_a_late_worker_appends_nothing(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("jobs").put("1", b"")
        late = await here.queue("jobs").claim("late", lease=10)
        clock.pass_(10)
        await there.queue("jobs").claim("other", lease=10)
        with pytest.raises(LeaseLost):
            await here.log("a").append("t", b"", fence=late)
        assert await data(there.log("a")) == []


async def test_a_trim_that_says_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="give before=, max_age= or keep="):
        await MemoryStore().log("a").trim("t")
