"""Messages to whoever listens: in one order, at most once, across stores and processes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from dragoman.errors import UsageError
from dragoman.stores import MemoryStore, Message
from tests.drivers.wire import until
from tests.stores.conftest import Opened


async def take(messages: Any, count: int) -> list[tuple[str, bytes]]:
    taken = []
    for _ in range(count):
        message = await asyncio.wait_for(anext(messages), 10)
        taken.append((message.topic, message.data))
    return taken


async def test_what_is_published_arrives_at_both_ends(ends: Opened) -> None:
    async with (
        ends() as (here, there, _),
        here.bus("a").subscribe("t") as mine,
        there.bus("a").subscribe("t") as yours,
    ):
        await here.bus("a").publish("t", b"1")
        await there.bus("a").publish("t", b"2")
        assert await take(mine, 2) == await take(yours, 2) == [("t", b"1"), ("t", b"2")]


async def test_only_topics_of_the_subscription_arrive(ends: Opened) -> None:
    async with ends() as (here, there, _), there.bus("a").subscribe("t", "u") as messages:
        for space, topic in (("a", "x"), ("b", "t"), ("a", "t"), ("a", "tt"), ("a", "u")):
            await here.bus(space).publish(topic, f"{space} {topic}".encode())
        assert await take(messages, 2) == [("t", b"a t"), ("u", b"a u")]


async def test_without_topics_the_whole_space_arrives(ends: Opened) -> None:
    async with ends() as (here, there, _), there.bus("a").subscribe() as messages:
        await here.bus("b").publish("t", b"other space")
        await here.bus("a").publish("t", b"1")
        await here.bus("a").publish("u", b"2")
        assert await take(messages, 2) == [("t", b"1"), ("u", b"2")]


async def test_what_was_before_does_not_arrive(ends: Opened) -> None:
    async with ends() as (here, there, _), there.bus("a").subscribe("u"):
        await here.bus("a").publish("t", b"before")
        async with there.bus("a").subscribe("t") as messages:
            await here.bus("a").publish("t", b"after")
            assert await take(messages, 1) == [("t", b"after")]


async def test_all_see_the_same_order(ends: Opened) -> None:
    async with (
        ends() as (here, there, _),
        here.bus("a").subscribe() as mine,
        there.bus("a").subscribe() as yours,
    ):
        await asyncio.gather(
            *(store.bus("a").publish("t", b"%d" % i) for i in range(50) for store in (here, there))
        )
        seen = await take(mine, 100)
        assert seen == await take(yours, 100)
        assert sorted(seen) == sorted(("t", b"%d" % (i // 2)) for i in range(100))


async def test_a_message_wakes_the_other_end_soon(ends: Opened) -> None:
    """Within 50 ms, as a rule: the best of ten, since the machine may be busy."""
    async with ends() as (here, there, _), there.bus("a").subscribe("t") as messages:
        waits = []
        for _ in range(10):
            begin = time.perf_counter()
            await here.bus("a").publish("t", b"")
            await take(messages, 1)
            waits.append(time.perf_counter() - begin)
        assert min(waits) < 0.05


async def test_a_slow_reader_loses_the_oldest_and_can_tell(ends: Opened) -> None:
    async with ends() as (here, _, _), here.bus("a").subscribe("t", buffer=3) as messages:
        for i in range(10):
            await here.bus("a").publish("t", b"%d" % i)
        await until(lambda: messages.lost == 7)
        assert await take(messages, 3) == [("t", b"7"), ("t", b"8"), ("t", b"9")]


async def test_nothing_arrives_after_the_end(ends: Opened) -> None:
    async with ends() as (here, there, _):
        async with here.bus("a").subscribe("t") as messages:
            pass
        await there.bus("a").publish("t", b"")
        assert [message async for message in messages] == []


async def test_closing_the_store_ends_what_listens(ends: Opened) -> None:
    async with ends() as (here, _, _), here.bus("a").subscribe("t") as messages:
        await here.bus("a").publish("t", b"last")
        reading = asyncio.ensure_future(_all(messages))
        await here.close()
        assert [message.data for message in await asyncio.wait_for(reading, 10)] in ([b"last"], [])


async def _all(messages: Any) -> list[Message]:
    return [message async for message in messages]


async def test_a_subscription_begins_with_async_with() -> None:
    messages = MemoryStore().bus("a").subscribe("t")
    with pytest.raises(UsageError, match="begins with `async with`"):
        await anext(aiter(messages))
    async with messages:
        pass
    with pytest.raises(UsageError, match="subscribe again"):
        await messages.__aenter__()


async def test_a_reader_that_is_cancelled_misses_nothing(ends: Opened) -> None:
    async with ends() as (here, _, _), here.bus("a").subscribe("t") as messages:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(messages), 0.01)
        await here.bus("a").publish("t", b"1")
        assert await take(messages, 1) == [("t", b"1")]
