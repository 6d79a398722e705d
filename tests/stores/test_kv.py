"""Values by key: what one end writes, the other reads, until its time is up."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import UsageError
from dragoman.stores import LeaseLost, MemoryStore
from tests.stores.clock import FakeClock
from tests.stores.conftest import Opened


async def test_what_was_put_is_there(ends: Opened) -> None:
    async with ends() as (here, there, _):
        version = await here.kv("a").put("key", b"value")
        entry = await there.kv("a").get("key")
        assert (entry.key, entry.value, entry.version, entry.expires) == ("key", b"value", version, None)


async def test_what_was_never_put_is_not_there(ends: Opened) -> None:
    async with ends() as (here, _, _):
        assert await here.kv("a").get("key") is None
        assert await here.kv("a").delete("key") is False
        assert await here.kv("a").scan() == []


async def test_spaces_share_nothing(ends: Opened) -> None:
    async with ends() as (here, there, _):
        await here.kv("a").put("key", b"of a")
        assert await there.kv("b").get("key") is None
        await there.kv("b").put("key", b"of b")
        await there.kv("b").delete("key")
        assert (await here.kv("a").get("key")).value == b"of a"
        assert [entry.value for entry in await here.kv("a").scan()] == [b"of a"]


@pytest.mark.parametrize("value", [b"", b"\0", bytes(range(256)), b"x" * 3_000_000], ids=len)
async def test_any_bytes_come_back(ends: Opened, value: bytes) -> None:
    async with ends() as (here, there, _):
        await here.kv("a").put("key", value)
        assert (await there.kv("a").get("key")).value == value


@pytest.mark.parametrize("key", ["a b", "é", "a\0b", "𝄞", "'; DROP TABLE kv", "%_*", "\uffff", "x" * 1024])
async def test_any_text_is_a_key(ends: Opened, key: str) -> None:
    async with ends() as (here, there, _):
        await here.kv(key).put(key, b"1")
        assert (await there.kv(key).get(key)).key == key
        assert [entry.key for entry in await there.kv(key).scan(key)] == [key]


async def test_a_value_goes_when_its_time_is_up(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.kv("a").put("key", b"1", ttl=10)
        clock.pass_(9.5)
        assert (await there.kv("a").get("key")).expires == clock.time + 0.5
        clock.pass_(0.5)
        assert await there.kv("a").get("key") is None
        assert await there.kv("a").scan() == []
        assert await here.kv("a").delete("key") is False


async def test_each_write_sets_the_lifetime_anew(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.kv("a").put("key", b"1", ttl=10)
        await there.kv("a").put("key", b"2")
        clock.pass_(1000)
        assert (await here.kv("a").get("key")).value == b"2"


async def test_what_expired_makes_room(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        assert await here.kv("a").put_if_absent("key", b"1", ttl=10) is not None
        assert await there.kv("a").put_if_absent("key", b"2") is None
        clock.pass_(10)
        assert await there.kv("a").put_if_absent("key", b"2") is not None
        assert (await here.kv("a").get("key")).value == b"2"


async def test_compare_and_set_wants_the_version_there(ends: Opened) -> None:
    async with ends() as (here, there, _):
        first = await here.kv("a").put("key", b"1")
        second = await there.kv("a").compare_and_set("key", b"2", version=first)
        assert second > first
        assert await here.kv("a").compare_and_set("key", b"3", version=first) is None
        assert (await there.kv("a").get("key")).value == b"2"
        assert await here.kv("a").compare_and_set("nothing", b"3", version=first) is None


async def test_a_version_never_comes_back(ends: Opened) -> None:
    """Else a writer that slept through a delete and a new value would overwrite that one."""
    async with ends() as (here, there, _):
        old = await here.kv("a").put("key", b"1")
        assert await there.kv("a").delete("key") is True
        await there.kv("a").put("key", b"2")
        assert await here.kv("a").compare_and_set("key", b"3", version=old) is None
        assert await here.kv("a").delete("key", version=old) is False
        assert (await there.kv("a").get("key")).value == b"2"


async def test_delete_of_a_version(ends: Opened) -> None:
    async with ends() as (here, there, _):
        version = await here.kv("a").put("key", b"1")
        assert await there.kv("a").delete("key", version=version) is True
        assert await here.kv("a").get("key") is None


async def test_one_of_many_wins(ends: Opened) -> None:
    async with ends() as (here, there, _):
        outcomes = await asyncio.gather(
            *(store.kv("a").put_if_absent("key", b"%d" % i) for i in range(20) for store in (here, there))
        )
        assert sum(outcome is not None for outcome in outcomes) == 1


async def test_counting_together_loses_nothing(ends: Opened) -> None:
    async with ends() as (here, there, _):
        await here.kv("a").put("count", b"0")

        async def add(store: object) -> None:
            kv = store.kv("a")  # type: ignore[attr-defined]  # either end
            while True:
                entry = await kv.get("count")
                value = b"%d" % (int(entry.value) + 1)
                if await kv.compare_and_set("count", value, version=entry.version) is not None:
                    return

        await asyncio.gather(*(add(store) for _ in range(10) for store in (here, there)))
        assert (await here.kv("a").get("count")).value == b"20"


async def test_scan_goes_by_prefix_in_order_and_in_pages(ends: Opened) -> None:
    async with ends() as (here, there, _):
        for key in ("b/2", "a/1", "b/10", "b", "c", "b/1", "b0"):
            await here.kv("a").put(key, key.encode())
        found = await there.kv("a").scan("b/")
        assert [(entry.key, entry.value) for entry in found] == [
            ("b/1", b"b/1"),
            ("b/10", b"b/10"),
            ("b/2", b"b/2"),
        ]
        page = await there.kv("a").scan("b/", limit=2)
        assert [entry.key for entry in page] == ["b/1", "b/10"]
        page = await there.kv("a").scan("b/", after=page[-1].key, limit=2)
        assert [entry.key for entry in page] == ["b/2"]
        assert len(await there.kv("a").scan()) == 7


@pytest.mark.parametrize("last", ["\ud7ff", "\uffff", "\U0010ffff", "\x7f", "ÿ"])
async def test_scan_at_the_edges_of_unicode(ends: Opened, last: str) -> None:
    async with ends() as (here, there, _):
        for key in (f"a{last}", f"a{last}{last}", f"a{last}z", "b", "\U0010ffff", "\ue000"):
            await here.kv("a").put(key, b"")
        found = [entry.key for entry in await there.kv("a").scan(f"a{last}")]
        assert found == sorted([f"a{last}", f"a{last}{last}", f"a{last}z"])


async def test_a_fenced_write_needs_the_lease(ends: Opened) -> None:
    async with ends() as (here, there, clock):
        await here.queue("jobs").put("1", b"")
        late = await here.queue("jobs").claim("late", lease=10)
        assert await here.kv("a").put("result", b"late", fence=late) is not None
        clock.pass_(10)
        job = await there.queue("jobs").claim("other", lease=10)
        kv = here.kv("a")
        for write in (
            kv.put("result", b"x", fence=late),
            kv.put_if_absent("new", b"x", fence=late),
            kv.compare_and_set("result", b"x", version=1, fence=late),
            kv.delete("result", fence=late),
        ):
            with pytest.raises(LeaseLost, match="'late' lost its lease on a job of 'jobs'"):
                await write
        assert await there.kv("a").put("result", b"other", fence=job) is not None
        assert (await here.kv("a").get("result")).value == b"other"
        assert await here.kv("a").get("new") is None


async def test_a_fence_falls_with_its_job(ends: Opened) -> None:
    async with ends() as (here, there, _):
        await here.queue("jobs").put("1", b"")
        job = await here.queue("jobs").claim("w", lease=10)
        await there.queue("jobs").remove("1")
        await there.queue("jobs").put("1", b"again")
        await there.queue("jobs").claim("other", lease=10)
        with pytest.raises(LeaseLost):
            await here.kv("a").put("result", b"", fence=job)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda store: store.kv(""), "a space has 0 characters; expected 1 to 1024"),
        (lambda store: store.kv(3), "a space is a int; expected text"),
        (lambda store: store.kv("a").get("x" * 1025), "a key has 1025 characters; expected 1 to 1024"),
        (lambda store: store.kv("a").get("\ud800"), "a key holds half of a surrogate pair"),
        (lambda store: store.kv("a").put("k", "v"), "a value is a str; expected bytes"),
        (lambda store: store.kv("a").put("k", b"", ttl=0), "ttl is 0; expected a number of seconds above 0"),
        (lambda store: store.kv("a").put("k", b"", ttl=float("nan")), "ttl is nan"),
        (lambda store: store.kv("a").compare_and_set("k", b"", version=0), "version is 0"),
        (
            lambda store: store.kv("a").compare_and_set("k", b"", version=2**63),
            "version is 9223372036854775808",
        ),
        (lambda store: store.kv("a").scan(limit=0), "limit is 0; expected a whole number from 1 on"),
    ],
)
async def test_wrong_arguments_are_named(call: object, text: str) -> None:
    store = MemoryStore()
    with pytest.raises(UsageError, match=text):
        await call(store)  # type: ignore[operator]  # a function of the table


async def test_what_expired_takes_no_memory() -> None:
    clock = FakeClock()
    async with MemoryStore(clock=clock) as store:
        for i in range(1000):
            await store.kv("a").put("same", b"%d" % i, ttl=3600)
            await store.kv("a").put(f"{i}", b"", ttl=1)
        assert len(store._core._expiries) <= 2 * 1001 + 64
        clock.pass_(1)
        await store.kv("a").get("same")
        assert len(store._core._values["a"]) == 1
        clock.pass_(3600)
        await store.kv("a").get("same")
        assert not store._core._values
