"""A store in the memory of one process: gone with it, and for tests, stdio servers and single workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from dragoman.errors import ClosedError

from .base import Clock
from .core import Core
from .faces import Faces
from .listeners import Inbox, Waiter
from .memory_core import MemoryCore

T = TypeVar("T")


class MemoryStore(Faces):
    """The four primitives in memory. Any number of event loops may use it.

    `clock` gives the time in seconds, for lifetimes, ages and leases.
    """

    def __init__(self, *, clock: Clock = time.time) -> None:
        self.clock = clock
        self._core = MemoryCore(clock)
        self._lock = Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"<MemoryStore{', closed' if self._closed else ''}>"

    def _run(self, operation: Callable[[Core], T]) -> T:
        with self._lock:
            if self._closed:
                raise ClosedError("the store is closed")
            return operation(self._core)

    async def read(self, operation: Callable[[Core], T]) -> T:
        """See `core.Engine`."""
        return self._run(operation)

    async def write(
        self,
        operation: Callable[[Core], T],
        *,
        lasting: bool = True,  # nothing lasts here
        undo: Callable[[Core, T], Any] | None = None,  # who asked gets the outcome at once
    ) -> T:
        """See `core.Engine`."""
        return self._run(operation)

    async def listen(self, listener: Inbox | Waiter) -> None:
        """See `core.Engine`."""
        self._run(lambda _: self._core.listeners.add(listener))

    def unlisten(self, listener: Inbox | Waiter) -> None:
        """See `core.Engine`."""
        with self._lock:
            self._core.listeners.discard(listener)

    async def close(self) -> None:
        """See `base.Store.close`. What was stored is gone."""
        with self._lock:
            self._closed = True
            for listener in self._core.listeners:
                listener.end(ClosedError("the store is closed"))
            self._core = MemoryCore(self.clock)
