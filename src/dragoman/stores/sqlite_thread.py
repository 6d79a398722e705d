"""The one thread that touches a SQLite file: operations in batches, one transaction each, and the listeners.

Whoever asks waits on an event loop; any number of loops may ask. What the operations do is the core's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

from dragoman.errors import ClosedError, DragomanError, UsageError

from .base import Clock, StoreError
from .bell import Bell
from .listeners import Inbox, Waiter
from .sealed import Seals
from .sqlite_core import SqliteCore
from .sqlite_file import StoreFile, locked
from .sqlite_listeners import Listeners

logger: Final = logging.getLogger("dragoman.stores")

BATCH: Final = 256  # operations in one transaction
WAL_BYTES: Final = 4 * 1024 * 1024  # where the write-ahead log is brought into the file


class Work:
    """One operation, and the future of whoever asked for it; the flags as `core.Engine` has them."""

    __slots__ = ("error", "future", "lasting", "loop", "operation", "quiet", "undo", "value", "writes")

    def __init__(
        self,
        operation: Callable[[SqliteCore], Any],
        *,
        writes: bool = False,
        lasting: bool = False,
        undo: Callable[[SqliteCore, Any], Any] | None = None,
        quiet: bool = False,
    ) -> None:
        self.operation = operation
        self.writes = writes
        self.lasting = lasting
        self.undo = undo
        self.quiet = quiet  # nobody waits for the outcome
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.error: Exception | None = None

    def attempt(self, core: SqliteCore) -> None:
        """Run it. A fault of ours is its outcome; it changed nothing, or all that it was to change."""
        self.value = self.error = None
        try:
            self.value = self.operation(core)
        except DragomanError as error:
            self.error = error

    def settle(self) -> bool:
        """Hand over the outcome, on the loop that waits for it. False if nobody does any more."""
        if self.future.cancelled():
            return False
        if self.quiet:
            return True
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)
        return True


class SqliteThread:
    """Starts with the first operation and ends with `close`."""

    def __init__(self, file: StoreFile, clock: Clock, *, seals: Seals) -> None:
        self._file = file
        self._clock = clock
        self._seals = seals
        self._lock = Lock()  # around what follows
        self._waiting: deque[Work] = deque()
        self._leaving: list[Inbox | Waiter] = []
        self._nudged = False
        self._closed = False
        self._thread: Thread | None = None
        self._process = 0
        self._nudges = -1
        self._nudge = -1
        # Only the thread touches these.
        self._connection: sqlite3.Connection | None = None
        self._core: SqliteCore | None = None
        self._bell = Bell(f"{file.path}.bells")
        self._listeners = Listeners()
        self._checkpoint_at = WAL_BYTES
        self._blocked = False

    @property
    def closed(self) -> bool:
        """Whether it takes no more work."""
        return self._closed

    # --- from any thread ------------------------------------------------------------------------------

    async def run(self, work: Work) -> Any:
        """Its outcome. Raises StoreError, ClosedError, and what the operation raises."""
        self._submit(work)
        try:
            return await work.future
        except asyncio.CancelledError:
            if work.future.done() and not work.future.cancelled():
                self._take_back(work)  # it was done in the very moment when nobody wanted it any more
            raise

    def forget(self, listener: Inbox | Waiter) -> None:
        """Tell it no more."""
        with self._lock:
            if not self._closed:
                self._leaving.append(listener)
                self._wake()

    def _take_back(self, work: Work) -> None:
        undo, value = work.undo, work.value
        if undo is not None and work.error is None:
            with contextlib.suppress(ClosedError):
                self._submit(Work(lambda core: undo(core, value), writes=True, quiet=True))

    def _submit(self, work: Work) -> None:
        with self._lock:
            if self._closed:
                raise ClosedError(f"the store {self._file.path} is closed")
            if self._thread is None:
                self._start()
            elif self._process != os.getpid():
                raise UsageError(
                    f"{self._file.path}: this store was used before the process was forked, "
                    "and SQLite's locks do not survive that",
                    hint="open a store of its own in each process, or do not use it before the fork",
                )
            self._waiting.append(work)
            self._wake()

    def _start(self) -> None:
        self._process = os.getpid()
        self._nudges, self._nudge = os.pipe()
        os.set_blocking(self._nudges, False)
        # A daemon: a program that forgets to close its store still ends.
        self._thread = Thread(target=self._run, name="dragoman-store", daemon=True)
        self._thread.start()

    def _wake(self) -> None:
        if not self._nudged:
            self._nudged = True
            os.write(self._nudge, b"\0")

    async def close(self) -> None:
        """Do what was asked for, then end. Twice is fine."""
        with self._lock:
            first, self._closed = not self._closed, True
            if self._thread is None or self._process != os.getpid():
                return
            if first:  # after that the descriptors may be somebody else's
                self._wake()
        await asyncio.to_thread(self._thread.join)

    # --- in the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        closing = False
        while not closing:
            self._wait()
            with self._lock:
                self._nudged = False
                closing = self._closed
                works, self._waiting = self._waiting, deque()
                leaving, self._leaving = self._leaving, []
            for listener in leaving:
                self._listeners.remove(listener)
            while works:
                self._serve([works.popleft() for _ in range(min(BATCH, len(works)))])
            self._attend()
        self._listeners.end(ClosedError(f"the store {self._file.path} is closed"))
        self._bell.close()
        self._shut()
        with self._lock:
            os.close(self._nudges)
            os.close(self._nudge)

    def _wait(self) -> None:
        """Until there is work, the bell rings, or it is time to look."""
        poll = select.poll()
        poll.register(self._nudges, select.POLLIN)
        ear = self._bell.fileno()
        if ear is not None:
            poll.register(ear, select.POLLIN)
        for fd, _ in poll.poll(self._listeners.patience(hung=ear is not None)):
            if fd == self._nudges:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._nudges, 64)
            else:
                self._bell.hush()
                self._listeners.rung = True

    def _serve(self, batch: list[Work]) -> None:
        batch = [work for work in batch if not work.future.cancelled()]
        if batch:
            self._attempt(batch)
            self._settle(batch)

    def _attempt(self, batch: list[Work]) -> None:
        """Run all of them in one transaction, or, where that fails, each of them in its own."""
        error = self._transact(batch)
        end = time.monotonic() + self._file.options.busy_seconds
        while isinstance(error, sqlite3.Error) and locked(error) and time.monotonic() < end:
            # SQLite itself would sleep longer and longer, and be overtaken by all others meanwhile.
            time.sleep(0.0005)
            error = self._transact(batch)
        if error is None:
            if any(work.writes for work in batch):
                self._checkpoint()
        elif len(batch) == 1 or self._blocked:
            for work in batch:
                work.error = self._outcome(error)
        else:
            # One that cannot be written must not take the others along.
            for work in batch:
                self._attempt([work])

    def _outcome(self, error: Exception) -> Exception:
        return self._file.fault(error) if isinstance(error, sqlite3.Error) else error

    def _transact(self, batch: list[Work]) -> Exception | None:
        """What stood in the way, if anything did; then nothing was changed.

        `_blocked` tells whether it would be in the way of any other batch as well.
        """
        self._blocked = True
        writes = any(work.writes for work in batch)
        lasting = any(work.lasting for work in batch)
        try:
            core, connection = self._open()
            if writes:
                full = lasting and self._file.options.durability == "power"
                connection.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            self._blocked = False
            for work in batch:
                work.attempt(core)
            if writes:
                core.purge()
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to whoever asked
            self._roll_back()
            return error
        return None

    def _open(self) -> tuple[SqliteCore, sqlite3.Connection]:
        if self._connection is None or self._core is None:
            self._connection = self._file.open()
            self._core = SqliteCore(self._connection, self._clock, seals=self._seals)
        return self._core, self._connection

    def _roll_back(self) -> None:
        core, connection = self._core, self._connection
        if core is None or connection is None:
            return
        core.bus_rung = core.queue_rung = False
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._shut()  # opened anew for the next

    def _settle(self, batch: list[Work]) -> None:
        by_loop: dict[asyncio.AbstractEventLoop, list[Work]] = {}
        for work in batch:
            by_loop.setdefault(work.loop, []).append(work)
        for loop, works in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(self._hand_over, works)

    def _hand_over(self, works: list[Work]) -> None:
        for work in works:
            if not work.settle():
                self._take_back(work)

    def _shut(self) -> None:
        connection, self._connection, self._core = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _checkpoint(self) -> None:
        """Bring the write-ahead log into the file, when it is large, with all writers held off.

        That last is why SQLite does not do it by itself here: in versions before 3.51.3 a commit
        beside a checkpoint can, rarely, damage the file (sqlite.org/wal.html, "The WAL-Reset Bug").
        """
        connection = self._connection
        if connection is None:
            return
        try:
            size = Path(f"{self._file.path}-wal").stat().st_size
            if size < self._checkpoint_at:
                self._checkpoint_at = max(WAL_BYTES, min(self._checkpoint_at, size + WAL_BYTES))
                return
            with contextlib.closing(self._file.guard()) as guard:
                guard.execute("BEGIN IMMEDIATE")
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            # The next commit shortens the log, unless somebody still reads what is in it.
            self._checkpoint_at = size + WAL_BYTES
        except sqlite3.Error as error:
            # What was written is safe in the log.
            if not locked(error):
                logger.warning("%s: the write-ahead log stays for now: %s", self._file.path, error)
        except OSError:
            pass  # somebody else has just put it away

    # --- listeners ------------------------------------------------------------------------------------

    def listening(self, listener: Inbox | Waiter) -> Callable[[SqliteCore], None]:
        """The operation that adds a listener."""

        def add(core: SqliteCore) -> None:
            self._bell.hang()
            self._listeners.add(listener, core)

        return add

    def _attend(self) -> None:
        """Ring for others, and tell our own listeners."""
        core, connection = self._core, self._connection
        if core is None or connection is None:
            return
        if core.bus_rung or core.queue_rung:
            self._bell.ring()
        try:
            self._listeners.attend(core, connection)
        except StoreError as error:
            self._listeners.end(error)
        except sqlite3.Error as error:
            if not locked(error):  # or at the next look
                self._listeners.end(self._file.fault(error))
