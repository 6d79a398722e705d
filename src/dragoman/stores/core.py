"""What an engine does: the primitives as plain functions, each of them whole or not at all.

No waiting and no checking of arguments: `faces` does both, once for all engines. `At` is a space and
a name in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .base import Clock, Entry, Job, LeaseLost, Record
from .listeners import Inbox, Waiter

At = tuple[str, str]
T = TypeVar("T")
ABSENT = 0  # the version of what is not there


class Core(Protocol):
    """The primitives. Those that take a fence raise LeaseLost before they change anything."""

    clock: Clock

    def kv_get(self, at: At) -> Entry | None: ...

    def kv_put(
        self, at: At, value: bytes, *, ttl: float | None, version: int | None, fence: Job | None
    ) -> int | None:
        """Write if `version` is None or that of the value there, ABSENT for none. Gives the new version."""
        ...

    def kv_delete(self, at: At, *, version: int | None, fence: Job | None) -> bool: ...

    def kv_scan(self, at: At, *, after: str, limit: int) -> list[Entry]: ...

    def log_append(self, at: At, data: bytes, *, fence: Job | None) -> int: ...

    def log_read(self, at: At, *, after: int, limit: int) -> list[Record]: ...

    def log_last(self, at: At) -> int: ...

    def log_topics(self, space: str) -> list[str]: ...

    def log_trim(self, at: At, *, before: int | None, older: float | None, keep: int | None) -> int: ...

    def bus_publish(self, at: At, data: bytes) -> None: ...

    def queue_put(self, at: At, payload: bytes, *, due: float | None) -> bool: ...

    def queue_due(self, space: str) -> float | None:
        """When the next job can be claimed; None if there is none."""
        ...

    def queue_claim(self, at: At, *, lease: float) -> Job | None:
        """`at` is the space and the worker."""
        ...

    def queue_renew(self, job: Job) -> bool: ...

    def queue_ack(self, job: Job) -> bool: ...

    def queue_release(self, job: Job, *, due: float | None) -> bool: ...

    def queue_remove(self, at: At) -> bool: ...

    def queue_size(self, space: str) -> int: ...


class Engine(Protocol):
    """What runs operations on a core, and tells listeners what happened."""

    clock: Clock

    async def read(self, operation: Callable[[Core], T]) -> T:
        """Run an operation that changes nothing."""
        ...

    async def write(
        self,
        operation: Callable[[Core], T],
        *,
        lasting: bool = True,
        undo: Callable[[Core, T], Any] | None = None,
    ) -> T:
        """Run an operation that changes something, whole or not at all.

        A change that is not `lasting` may be undone by a loss of power. `undo` is run when it was
        done but nobody waits for the outcome any more.
        """
        ...

    async def listen(self, listener: Inbox | Waiter) -> None:
        """From when this returns, the listener is told what happens."""
        ...

    def unlisten(self, listener: Inbox | Waiter) -> None: ...


def lease_lost(job: Job) -> LeaseLost:
    """The fault of a write that comes too late."""
    return LeaseLost(
        f"{job.worker!r} lost its lease on a job of {job.space!r} (token {job.token}); nothing was written",
        hint="stop working on this job; send heartbeats more often, or claim it with a longer lease",
    )


def successor(prefix: str) -> str | None:
    """The least text that is greater than every text beginning with `prefix`; None if there is none."""
    while prefix:
        code = ord(prefix[-1])
        if code < 0x10FFFF:
            # The code points of surrogates stand in no text.
            return prefix[:-1] + chr(0xE000 if code == 0xD7FF else code + 1)
        prefix = prefix[:-1]
    return None
