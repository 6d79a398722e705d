"""Those who listen to one SQLite file in this process. Used by its thread alone, between transactions."""

from __future__ import annotations

import sqlite3
from typing import Final

from dragoman.errors import DragomanError

from .base import Message
from .listeners import Inbox, Waiter
from .sqlite_core import SqliteCore

LOOK_MS: Final = 40  # milliseconds between two looks at the file where no bell can be hung
GLANCE_MS: Final = 500  # the same, where one hangs: others may be unable to ring it
AT_ONCE: Final = 500  # messages


class Listeners:
    """Who listens, and how far they have been told. `rung`: somebody else says that there is something."""

    def __init__(self) -> None:
        self.rung = False
        self._inboxes: set[Inbox] = set()
        self._waiters: set[Waiter] = set()
        self._told = 0
        self._seen: int | None = None

    def patience(self, *, hung: bool) -> int | None:
        """How long to wait without looking, in milliseconds; None for ever."""
        if not self._inboxes and not self._waiters:
            return None
        return GLANCE_MS if hung else LOOK_MS

    def add(self, listener: Inbox | Waiter, core: SqliteCore) -> None:
        """From now on."""
        if isinstance(listener, Waiter):
            self._waiters.add(listener)
            return
        listener.start = core.bus_last()
        if not self._inboxes:
            self._told = listener.start
        self._inboxes.add(listener)

    def remove(self, listener: Inbox | Waiter) -> None:
        """Tell it no more."""
        if isinstance(listener, Waiter):
            self._waiters.discard(listener)
        else:
            self._inboxes.discard(listener)

    def end(self, error: DragomanError) -> None:
        """Nothing comes any more, because of `error`."""
        for inbox in self._inboxes:
            inbox.end(error)
        for waiter in self._waiters:
            waiter.end(error)
        self._inboxes.clear()
        self._waiters.clear()

    def attend(self, core: SqliteCore, connection: sqlite3.Connection) -> None:
        """Tell what has happened since the last time, here or in other processes."""
        elsewhere = self.rung or self._changed(connection)
        bus, queue = core.bus_rung or elsewhere, core.queue_rung or elsewhere
        self.rung = core.bus_rung = core.queue_rung = False
        if bus and self._inboxes:
            self._deliver(core)
        if queue:
            for waiter in self._waiters:
                waiter.wake()

    def _changed(self, connection: sqlite3.Connection) -> bool:
        """Whether another connection has changed the file since the last time."""
        if not self._inboxes and not self._waiters:
            return False
        seen, (self._seen,) = self._seen, connection.execute("PRAGMA data_version").fetchone()
        return seen != self._seen

    def _deliver(self, core: SqliteCore) -> None:
        while rows := core.bus_after(self._told, AT_ONCE):
            boxes: dict[Inbox, list[Message]] = {}
            for id_, space, topic, data in rows:
                wanting = [
                    inbox for inbox in self._inboxes if id_ > inbox.start and inbox.wants(space, topic)
                ]
                if wanting:
                    message = core.bus_open((space, topic), data)
                    for inbox in wanting:
                        boxes.setdefault(inbox, []).append(message)
            self._told = rows[-1][0]
            for inbox, messages in boxes.items():
                inbox.deliver(messages)
