"""Both engines do the same, whatever is asked of them in whatever order."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.protocol.sealing import Keys
from dragoman.stores import Job, LeaseLost, MemoryStore
from dragoman.stores.core import successor
from dragoman.stores.sqlite import SQLiteStore
from tests.stores.clock import FakeClock

SPACES = st.sampled_from(["a", "b"])
NAMES = st.sampled_from(["x", "xy", "x\uffff", "é", "y"])
BYTES = st.binary(max_size=3)
SMALL = st.integers(1, 12)
TTLS = st.none() | st.sampled_from([1.0, 5.0, 30.0])
CLAIMS = st.integers(0, 5)  # which of the claims so far, from the last

STEPS = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([0.5, 1.0, 4.0, 20.0])),
    st.tuples(st.just("get"), SPACES, NAMES),
    st.tuples(st.just("put"), SPACES, NAMES, BYTES, TTLS),
    st.tuples(st.just("put_if_absent"), SPACES, NAMES, BYTES, TTLS),
    st.tuples(st.just("compare_and_set"), SPACES, NAMES, BYTES, SMALL, TTLS),
    st.tuples(st.just("delete"), SPACES, NAMES, st.none() | SMALL),
    st.tuples(st.just("scan"), SPACES, st.just("") | NAMES, st.just("") | NAMES, SMALL),
    st.tuples(st.just("fenced"), SPACES, NAMES, BYTES, CLAIMS),
    st.tuples(st.just("append"), SPACES, NAMES, BYTES),
    st.tuples(st.just("read"), SPACES, NAMES, st.integers(0, 12), SMALL),
    st.tuples(st.just("last"), SPACES, NAMES),
    st.tuples(
        st.just("trim"), SPACES, st.none() | NAMES, st.none() | SMALL, TTLS, st.none() | st.integers(0, 3)
    ),
    st.tuples(st.just("queue"), SPACES, NAMES, BYTES, st.none() | st.sampled_from([0.0, 3.0])),
    st.tuples(st.just("claim"), SPACES, st.sampled_from([1.0, 10.0])),
    st.tuples(st.sampled_from(["heartbeat", "ack", "release"]), CLAIMS),
    st.tuples(st.just("remove"), SPACES, NAMES),
    st.tuples(st.just("size"), SPACES),
)


class Run:
    """One store, and the claims that it has given."""

    def __init__(self, store: Any, clock: FakeClock) -> None:
        self.store = store
        self.clock = clock
        self.claims: list[Job] = []

    def claimed(self, back: int) -> Job | None:
        return self.claims[-1 - back] if back < len(self.claims) else None

    async def step(self, name: str, *given: Any) -> Any:
        try:
            return await getattr(self, name, self.plain)(*given) if name != "pass" else None
        except LeaseLost:
            return "lost"

    async def plain(self, *_: Any) -> Any:
        raise AssertionError

    async def get(self, space: str, key: str) -> Any:
        return await self.store.kv(space).get(key)

    async def put(self, space: str, key: str, value: bytes, ttl: float | None) -> Any:
        return await self.store.kv(space).put(key, value, ttl=ttl)

    async def put_if_absent(self, space: str, key: str, value: bytes, ttl: float | None) -> Any:
        return await self.store.kv(space).put_if_absent(key, value, ttl=ttl)

    async def compare_and_set(
        self, space: str, key: str, value: bytes, version: int, ttl: float | None
    ) -> Any:
        return await self.store.kv(space).compare_and_set(key, value, version=version, ttl=ttl)

    async def delete(self, space: str, key: str, version: int | None) -> Any:
        return await self.store.kv(space).delete(key, version=version)

    async def scan(self, space: str, prefix: str, after: str, limit: int) -> Any:
        return await self.store.kv(space).scan(prefix, after=after, limit=limit)

    async def fenced(self, space: str, key: str, value: bytes, back: int) -> Any:
        job = self.claimed(back)
        return await self.store.kv(space).put(key, value, fence=job)

    async def append(self, space: str, topic: str, data: bytes) -> Any:
        return await self.store.log(space).append(topic, data)

    async def read(self, space: str, topic: str, after: int, limit: int) -> Any:
        return await self.store.log(space).read(topic, after=after, limit=limit)

    async def last(self, space: str, topic: str) -> Any:
        return await self.store.log(space).last(topic)

    async def trim(
        self, space: str, topic: str | None, before: int | None, age: float | None, keep: int | None
    ) -> Any:
        if before is age is keep is None:
            return None
        return await self.store.log(space).trim(topic, before=before, max_age=age, keep=keep)

    async def queue(self, space: str, id_: str, payload: bytes, ahead: float | None) -> Any:
        not_before = None if ahead is None else self.clock() + ahead
        return await self.store.queue(space).put(id_, payload, not_before=not_before)

    async def claim(self, space: str, lease: float) -> Any:
        job = await self.store.queue(space).claim("w", lease=lease)
        if job is not None:
            assert all(job.token > former.token for former in self.claims)
            self.claims.append(job)
        return job

    async def heartbeat(self, back: int) -> Any:
        job = self.claimed(back)
        return job and await self.store.queue(job.space).heartbeat(job)

    async def ack(self, back: int) -> Any:
        job = self.claimed(back)
        return job and await self.store.queue(job.space).ack(job)

    async def release(self, back: int) -> Any:
        job = self.claimed(back)
        return job and await self.store.queue(job.space).release(job)

    async def remove(self, space: str, id_: str) -> Any:
        return await self.store.queue(space).remove(id_)

    async def size(self, space: str) -> Any:
        return await self.store.queue(space).size()


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=40), st.booleans())
def test_memory_and_sqlite_agree_on_every_outcome(steps: list[tuple[Any, ...]], sealed: bool) -> None:
    async def compare() -> None:
        clock = FakeClock()
        keys = Keys("the secret of these tests") if sealed else None
        with tempfile.TemporaryDirectory() as folder:
            file = SQLiteStore(Path(folder) / "s.db", clock=clock, keys=keys, durability="process")
            async with MemoryStore(clock=clock) as memory, file:
                one, two = Run(memory, clock), Run(file, clock)
                for name, *given in steps:
                    if name == "pass":
                        clock.pass_(given[0])
                    assert await one.step(name, *given) == await two.step(name, *given), (name, given)

    asyncio.run(compare())


@given(st.text(max_size=3), st.text(max_size=3))
def test_the_successor_ends_a_prefix(prefix: str, rest: str) -> None:
    end = successor(prefix)
    assert end is None or prefix + rest < end
    assert end is None or end.encode()


@given(st.text(max_size=3), st.text(min_size=1, max_size=4))
def test_nothing_else_lies_between_a_prefix_and_its_successor(prefix: str, other: str) -> None:
    end = successor(prefix)
    if other >= prefix and (end is None or other < end):
        assert other.startswith(prefix)
