"""A store in one SQLite file, for any number of processes of one machine. It survives whatever ends them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dragoman.errors import UsageError

from .base import Clock
from .core import Core
from .faces import Faces
from .listeners import Inbox, Waiter
from .sealed import Seals
from .sqlite_file import Durability, FileOptions, StoreFile
from .sqlite_thread import SqliteThread, Work

if TYPE_CHECKING:
    from dragoman.protocol.sealing import Keys

T = TypeVar("T")


class SQLiteStore(Faces):
    """The four primitives in the file `path`, which is created, readable by its owner alone, if need be.

    Nothing is opened before the first use, so that a store can be made before a process forks; after
    that, each process needs a store of its own. Any number of event loops may use one.

    With `keys`, values are encrypted in the file and bound to their place there; spaces, keys, topics
    and job ids are not. `durability="power"`: what was written is there after a loss of power too, a
    message on the bus, a heartbeat and a release excepted; `"process"`: after the end of all processes,
    however it comes, which costs less. `max_bytes` is a limit for the file, `busy_seconds` the time to
    wait for other processes, `clock` the time in seconds, for lifetimes, ages and leases.

    Every operation raises StoreError for what is wrong with the file, and UsageError for wrong arguments.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        keys: Keys | None = None,
        clock: Clock = time.time,
        durability: Durability = "power",
        busy_seconds: float = 5.0,
        max_bytes: int | None = None,
    ) -> None:
        text = os.fspath(path)
        if text == ":memory:" or not text:
            raise UsageError(f"{text!r} is no path of a file; use MemoryStore for a store in memory")
        if durability not in ("power", "process"):
            raise UsageError(f"durability is {durability!r}; expected 'power' or 'process'")
        options = FileOptions(busy_seconds=busy_seconds, max_bytes=max_bytes, durability=durability)
        # As it is now: a program that changes its directory still means this file.
        self.path = str(Path(text).absolute())
        self.clock = clock
        seals = Seals(keys, self.path)
        self._thread = SqliteThread(StoreFile(self.path, options, seals=seals), clock, seals=seals)

    def __repr__(self) -> str:
        return f"<SQLiteStore {self.path}{', closed' if self._thread.closed else ''}>"

    async def read(self, operation: Callable[[Core], T]) -> T:
        """See `core.Engine`."""
        value: T = await self._thread.run(Work(operation))
        return value

    async def write(
        self,
        operation: Callable[[Core], T],
        *,
        lasting: bool = True,
        undo: Callable[[Core, T], Any] | None = None,
    ) -> T:
        """See `core.Engine`."""
        value: T = await self._thread.run(Work(operation, writes=True, lasting=lasting, undo=undo))
        return value

    async def listen(self, listener: Inbox | Waiter) -> None:
        """See `core.Engine`."""
        await self._thread.run(Work(self._thread.listening(listener)))

    def unlisten(self, listener: Inbox | Waiter) -> None:
        """See `core.Engine`."""
        self._thread.forget(listener)

    async def close(self) -> None:
        """See `base.Store.close`. What was asked for before is done first."""
        await self._thread.close()
