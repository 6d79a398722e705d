"""What a store is: four primitives, their records and their faults. No engine, no encoding, no meaning.

Each primitive is asked for with a *space*, a name that keeps its users apart: two spaces share nothing.
Spaces, keys, topics and job ids are text of 1 to 1024 characters and are never encrypted; values are
bytes. Times are seconds, those that stand for a moment on the store's `clock`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Protocol, Self

import msgspec

from dragoman.errors import LocalError

Clock = Callable[[], float]


class StoreError(LocalError):
    """The store could not do it: the message names the file, the hint says what to do about it."""


class LeaseLost(StoreError):
    """A write was fenced by a job that somebody else claimed since, or that is gone. Nothing was written."""


class Entry(msgspec.Struct, frozen=True):
    """One value of a `KV`. `version` rises with every write and never comes back, also after a delete."""

    key: str
    value: bytes
    version: int
    expires: float | None = None


class Record(msgspec.Struct, frozen=True):
    """One record of a `Log`. `id` rises, with gaps; `at` is when it was appended."""

    id: int
    data: bytes
    at: float


class Message(msgspec.Struct, frozen=True):
    """One message of a `Bus`."""

    topic: str
    data: bytes


class Job(msgspec.Struct, frozen=True):
    """One claim on a job of a `Queue`.

    `token` is greater than that of every claim before it, in the whole store: whoever takes writes
    from workers and remembers the greatest can refuse the late ones. `attempts` counts the claims
    of this job, this one included; `lease` is the time in seconds that a heartbeat buys.
    """

    space: str
    id: str
    payload: bytes
    worker: str
    token: int
    attempts: int
    lease: float


class KV(Protocol):
    """Values by key, with a lifetime and a version.

    `ttl` is a lifetime in seconds, counted anew by each write; without it a value stays. `fence`
    makes a write happen only while that claim is the job's last one, else LeaseLost is raised.
    """

    async def get(self, key: str) -> Entry | None:
        """The value, or None if there is none or its time is up."""
        ...

    async def put(self, key: str, value: bytes, *, ttl: float | None = None, fence: Job | None = None) -> int:
        """Write, whatever is there. Gives the new version."""
        ...

    async def put_if_absent(
        self, key: str, value: bytes, *, ttl: float | None = None, fence: Job | None = None
    ) -> int | None:
        """Write if there is no value. Gives the new version, or None if there was one."""
        ...

    async def compare_and_set(
        self, key: str, value: bytes, *, version: int, ttl: float | None = None, fence: Job | None = None
    ) -> int | None:
        """Write if the value there has this version. Gives the new one, or None if it has another."""
        ...

    async def delete(self, key: str, *, version: int | None = None, fence: Job | None = None) -> bool:
        """Remove the value, if `version` is None or its version. Gives whether there was such a value."""
        ...

    async def scan(self, prefix: str = "", *, after: str = "", limit: int = 100) -> list[Entry]:
        """At most `limit` values whose keys begin with `prefix`, in order of code points, behind `after`."""
        ...


class Log(Protocol):
    """Records by topic, in the order in which they were appended, kept until they are trimmed."""

    async def append(self, topic: str, data: bytes, *, fence: Job | None = None) -> int:
        """Add a record. Gives its id, greater than every id given before in this store. Raises LeaseLost."""
        ...

    async def read(self, topic: str, *, after: int = 0, limit: int = 100) -> list[Record]:
        """The first `limit` records whose id is greater than `after`."""
        ...

    async def last(self, topic: str) -> int:
        """The id of the last record, 0 if there is none: where to read from in order to see what comes."""
        ...

    async def trim(
        self,
        topic: str | None = None,
        *,
        before: int | None = None,
        max_age: float | None = None,
        keep: int | None = None,
    ) -> int:
        """Remove records of a topic, or of all topics of the space: those whose id is less than `before`,
        those older than `max_age` seconds, and all but the last `keep` of each topic. Gives their number.
        """
        ...


class Subscription(Protocol):
    """Messages as they come: `async with bus.subscribe("a") as messages: async for message in messages`.

    Begins inside the `async with`: whatever is published after that arrives. `lost` counts messages
    that were thrown away, the oldest first, because the reader was slow.
    """

    lost: int

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def __aiter__(self) -> AsyncIterator[Message]: ...

    async def __anext__(self) -> Message: ...


class Bus(Protocol):
    """Messages to whoever listens now, at most once each, in one order for all listeners."""

    async def publish(self, topic: str, data: bytes) -> None:
        """Hand it to every subscription on this topic, in all processes that share the store."""
        ...

    def subscribe(self, *topics: str, buffer: int = 1000) -> Subscription:
        """Listen to these topics, or to all of the space if none is named; `buffer` messages may wait."""
        ...


class Queue(Protocol):
    """Jobs that are each done by one worker at a time, and by another one if that worker falls silent."""

    async def put(self, id: str, payload: bytes, *, not_before: float | None = None) -> bool:  # noqa: A002  # its name
        """Add a job that can be claimed from `not_before` on. False if there is one of this id."""
        ...

    async def claim(self, worker: str, *, lease: float, wait: float = 0.0) -> Job | None:
        """Take the job that has been due longest, for `lease` seconds; wait for one up to `wait` seconds.

        `worker` is a name for people. A job whose lease ran out can be claimed like a new one.
        """
        ...

    async def heartbeat(self, job: Job) -> bool:
        """Begin the lease anew. False if it is lost: another worker has the job, or it is gone."""
        ...

    async def ack(self, job: Job) -> bool:
        """The job is done: remove it. False if the lease is lost."""
        ...

    async def release(self, job: Job, *, not_before: float | None = None) -> bool:
        """Give the job back, to be claimed from `not_before` on. False if the lease is lost."""
        ...

    async def remove(self, id: str) -> bool:  # noqa: A002  # its name
        """Remove a job, claimed or not. False if there is none of this id."""
        ...

    async def size(self) -> int:
        """How many jobs there are, claimed ones included."""
        ...


class Store(Protocol):
    """The four primitives, each by space. Use it as a context manager, or close it."""

    clock: Clock

    def kv(self, space: str) -> KV: ...

    def log(self, space: str) -> Log: ...

    def bus(self, space: str) -> Bus: ...

    def queue(self, space: str) -> Queue: ...

    async def close(self) -> None:
        """End it: subscriptions end, what is called afterwards raises ClosedError. Twice is fine."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
