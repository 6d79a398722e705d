"""The primitives as their users see them: arguments checked, waiting done, over any engine."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from dragoman.errors import UsageError

from .base import Clock, Entry, Job, Record
from .core import ABSENT, Engine
from .listeners import Inbox, Waiter

if TYPE_CHECKING:
    from .base import KV, Bus, Log, Queue

NAME: Final = 1024  # characters


def name(text: str, what: str) -> str:
    """Checked: something that can stand for a space, a key, a topic, a job or a worker."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all typed
        raise UsageError(f"{what} is a {type(text).__name__}; expected text")
    if not 0 < len(text) <= NAME:
        raise UsageError(f"{what} has {len(text)} characters; expected 1 to {NAME}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{what} holds half of a surrogate pair; expected text") from None
    return text


def blob(value: bytes, what: str) -> bytes:
    """Checked: bytes."""
    if not isinstance(value, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all typed
        raise UsageError(f"{what} is a {type(value).__name__}; expected bytes")
    return value


def seconds(value: float, what: str) -> float:
    """Checked: a length of time that is not nothing."""
    if not (value > 0 and math.isfinite(value)):
        raise UsageError(f"{what} is {value!r}; expected a number of seconds above 0")
    return value


def moment(value: float | None) -> float | None:
    """Checked: a time on the store's clock, or now."""
    if value is not None and not math.isfinite(value):
        raise UsageError(f"not_before is {value!r}; expected a time on the store's clock, in seconds")
    return value


def count(value: int, what: str, *, least: int = 1) -> int:
    """Checked: a whole number, not too small, and one that every engine can hold."""
    if not least <= value < 2**63:
        raise UsageError(f"{what} is {value!r}; expected a whole number from {least} on")
    return value


class _Face:
    __slots__ = ("_engine", "_space")

    def __init__(self, engine: Engine, space: str) -> None:
        self._engine = engine
        self._space = name(space, "a space")


class KVFace(_Face):
    """See `base.KV`."""

    __slots__ = ()

    async def get(self, key: str) -> Entry | None:
        at = self._space, name(key, "a key")
        return await self._engine.read(lambda core: core.kv_get(at))

    async def put(self, key: str, value: bytes, *, ttl: float | None = None, fence: Job | None = None) -> int:
        version = await self._write(key, value, ttl=ttl, version=None, fence=fence)
        assert version is not None  # nothing was asked of the value there
        return version

    async def put_if_absent(
        self, key: str, value: bytes, *, ttl: float | None = None, fence: Job | None = None
    ) -> int | None:
        return await self._write(key, value, ttl=ttl, version=ABSENT, fence=fence)

    async def compare_and_set(
        self, key: str, value: bytes, *, version: int, ttl: float | None = None, fence: Job | None = None
    ) -> int | None:
        return await self._write(key, value, ttl=ttl, version=count(version, "version"), fence=fence)

    async def _write(
        self, key: str, value: bytes, *, ttl: float | None, version: int | None, fence: Job | None
    ) -> int | None:
        at = self._space, name(key, "a key")
        value = blob(value, "a value")
        ttl = None if ttl is None else seconds(ttl, "ttl")
        return await self._engine.write(
            lambda core: core.kv_put(at, value, ttl=ttl, version=version, fence=fence)
        )

    async def delete(self, key: str, *, version: int | None = None, fence: Job | None = None) -> bool:
        at = self._space, name(key, "a key")
        version = None if version is None else count(version, "version")
        return await self._engine.write(lambda core: core.kv_delete(at, version=version, fence=fence))

    async def scan(self, prefix: str = "", *, after: str = "", limit: int = 100) -> list[Entry]:
        at = self._space, prefix and name(prefix, "a prefix")
        after = after and name(after, "a key")
        limit = count(limit, "limit")
        return await self._engine.read(lambda core: core.kv_scan(at, after=after, limit=limit))


class LogFace(_Face):
    """See `base.Log`."""

    __slots__ = ()

    async def append(self, topic: str, data: bytes, *, fence: Job | None = None) -> int:
        at = self._space, name(topic, "a topic")
        record = blob(data, "a record")
        return await self._engine.write(lambda core: core.log_append(at, record, fence=fence))

    async def read(self, topic: str, *, after: int = 0, limit: int = 100) -> list[Record]:
        at = self._space, name(topic, "a topic")
        after, limit = count(after, "after", least=0), count(limit, "limit")
        return await self._engine.read(lambda core: core.log_read(at, after=after, limit=limit))

    async def last(self, topic: str) -> int:
        at = self._space, name(topic, "a topic")
        return await self._engine.read(lambda core: core.log_last(at))

    async def trim(
        self,
        topic: str | None = None,
        *,
        before: int | None = None,
        max_age: float | None = None,
        keep: int | None = None,
    ) -> int:
        space = self._space
        topics = None if topic is None else [name(topic, "a topic")]
        before = None if before is None else count(before, "before", least=0)
        keep = None if keep is None else count(keep, "keep", least=0)
        older = None if max_age is None else self._engine.clock() - max_age
        if before is None and older is None and keep is None:
            raise UsageError("nothing says what to trim; give before=, max_age= or keep=")
        return await self._engine.write(
            lambda core: sum(
                core.log_trim((space, each), before=before, older=older, keep=keep)
                for each in (core.log_topics(space) if topics is None else topics)
            )
        )


class BusFace(_Face):
    """See `base.Bus`."""

    __slots__ = ()

    async def publish(self, topic: str, data: bytes) -> None:
        at = self._space, name(topic, "a topic")
        message = blob(data, "a message")
        await self._engine.write(lambda core: core.bus_publish(at, message), lasting=False)

    def subscribe(self, *topics: str, buffer: int = 1000) -> Inbox:
        wanted = frozenset(name(topic, "a topic") for topic in topics)
        return Inbox(self._engine, self._space, topics=wanted, buffer=count(buffer, "buffer"))


class QueueFace(_Face):
    """See `base.Queue`."""

    __slots__ = ()

    async def put(self, id: str, payload: bytes, *, not_before: float | None = None) -> bool:  # noqa: A002  # its name
        at = self._space, name(id, "a job's id")
        payload, due = blob(payload, "a payload"), moment(not_before)
        return await self._engine.write(lambda core: core.queue_put(at, payload, due=due))

    async def claim(self, worker: str, *, lease: float, wait: float = 0.0) -> Job | None:
        at = self._space, name(worker, "a worker")
        lease = seconds(lease, "lease")
        if wait <= 0:
            return await self._claim(at, lease)
        waiter = Waiter(self._space)
        waiter.attach()
        try:
            await self._engine.listen(waiter)
            return await self._wait(waiter, at, lease=lease, wait=wait)
        finally:
            self._engine.unlisten(waiter)

    async def _wait(self, waiter: Waiter, at: tuple[str, str], *, lease: float, wait: float) -> Job | None:
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        while True:
            # A look costs less than a claim, and there are many who look.
            due = await self._engine.read(lambda core: core.queue_due(self._space))
            ahead = math.inf if due is None else due - self._engine.clock()
            if ahead <= 0 and (job := await self._claim(at, lease)) is not None:
                return job
            left = end - loop.time()
            if left <= 0:
                return None
            # Who lost the race for a job looks again at once.
            await waiter.wait(max(0.0, min(left, ahead)))

    async def _claim(self, at: tuple[str, str], lease: float) -> Job | None:
        return await self._engine.write(
            lambda core: core.queue_claim(at, lease=lease),
            # Nobody will work on what nobody got: others need not wait for the lease to end.
            undo=lambda core, job: job and core.queue_release(job, due=None),
        )

    async def heartbeat(self, job: Job) -> bool:
        return await self._engine.write(lambda core: core.queue_renew(self._own(job)), lasting=False)

    async def ack(self, job: Job) -> bool:
        return await self._engine.write(lambda core: core.queue_ack(self._own(job)))

    async def release(self, job: Job, *, not_before: float | None = None) -> bool:
        due = moment(not_before)
        return await self._engine.write(
            lambda core: core.queue_release(self._own(job), due=due), lasting=False
        )

    async def remove(self, id: str) -> bool:  # noqa: A002  # its name
        at = self._space, name(id, "a job's id")
        return await self._engine.write(lambda core: core.queue_remove(at))

    async def size(self) -> int:
        return await self._engine.read(lambda core: core.queue_size(self._space))

    def _own(self, job: Job) -> Job:
        if job.space != self._space:
            raise UsageError(f"a job of the queue {job.space!r} was given to the queue {self._space!r}")
        return job


class Faces(ABC):
    """What every store has: the primitives by space, and an end."""

    clock: Clock

    @abstractmethod
    async def close(self) -> None:
        """See `base.Store.close`."""

    def kv(self: Engine, space: str) -> KV:
        """Values by key."""
        return KVFace(self, space)

    def log(self: Engine, space: str) -> Log:
        """Records by topic, kept."""
        return LogFace(self, space)

    def bus(self: Engine, space: str) -> Bus:
        """Messages by topic, to whoever listens."""
        return BusFace(self, space)

    def queue(self: Engine, space: str) -> Queue:
        """Jobs, leased."""
        return QueueFace(self, space)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
