"""The primitives in SQL, on one connection, inside transactions that `sqlite_thread` begins and ends."""

from __future__ import annotations

import sqlite3
from typing import Any

from .base import Clock, Entry, Job, Message, Record
from .core import ABSENT, At, lease_lost, successor
from .sealed import Seals

PURGE_EVERY = 10.0  # seconds
BUS_KEEPS = 60.0  # seconds that a message waits for processes that are slow to fetch it
PURGE_AT_ONCE = 1000  # rows, so that nobody waits long for a purge


class SqliteCore:
    """See `core.Core`. `bus_rung` and `queue_rung` say that there is something for listeners.

    What somebody else put into the file may be of another type than ours: hence the casts.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Clock, *, seals: Seals) -> None:
        self.clock = clock
        self.bus_rung = False
        self.queue_rung = False
        self._sql = connection.execute
        self._seals = seals
        self._next_purge = 0.0

    def _one(self, sql: str, *values: Any) -> Any:
        """The first row, and the statement done with."""
        rows = self._sql(sql, values).fetchall()
        return rows[0] if rows else None

    # --- values ---------------------------------------------------------------------------------------

    def kv_get(self, at: At) -> Entry | None:
        row = self._one(
            "SELECT key, CAST(value AS BLOB), id, expires FROM kv"
            " WHERE space = ? AND key = ? AND (expires IS NULL OR expires > ?)",
            *at,
            self.clock(),
        )
        return None if row is None else self._entry(at[0], row)

    def _entry(self, space: str, row: tuple[str, bytes, int, float | None]) -> Entry:
        key, value, version, expires = row
        return Entry(key, self._seals.open(value, "kv", space, key), version, expires)

    def _version(self, at: At) -> int:
        row = self._one(
            "SELECT id FROM kv WHERE space = ? AND key = ? AND (expires IS NULL OR expires > ?)",
            *at,
            self.clock(),
        )
        return ABSENT if row is None else row[0]

    def kv_put(
        self, at: At, value: bytes, *, ttl: float | None, version: int | None, fence: Job | None
    ) -> int | None:
        self._check(fence)
        if version is not None and version != self._version(at):
            return None
        # Replacing deletes and inserts: the new row has an id that no row had before, its version.
        return self._sql(
            "INSERT OR REPLACE INTO kv (space, key, value, expires) VALUES (?, ?, ?, ?)",
            (*at, self._seals.seal(value, "kv", *at), None if ttl is None else self.clock() + ttl),
        ).lastrowid

    def kv_delete(self, at: At, *, version: int | None, fence: Job | None) -> bool:
        self._check(fence)
        there = self._version(at)
        if there == ABSENT or (version is not None and version != there):
            return False
        self._sql("DELETE FROM kv WHERE id = ?", (there,))
        return True

    def kv_scan(self, at: At, *, after: str, limit: int) -> list[Entry]:
        space, prefix = at
        end = successor(prefix)
        rows = self._sql(
            "SELECT key, CAST(value AS BLOB), id, expires FROM kv"
            " WHERE space = ? AND key >= ? AND key <> ? AND key < ?"
            " AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT ?",
            # To SQLite, each text is less than each blob.
            (space, max(prefix, after), after, b"" if end is None else end, self.clock(), limit),
        ).fetchall()
        return [self._entry(space, row) for row in rows]

    # --- log ------------------------------------------------------------------------------------------

    def log_append(self, at: At, data: bytes, *, fence: Job | None) -> int:
        self._check(fence)
        id_ = self._last_id("log") + 1
        self._sql(
            "INSERT INTO log (id, space, topic, at, data) VALUES (?, ?, ?, ?, ?)",
            (id_, *at, self.clock(), self._seals.seal(data, "log", *at, id_)),
        )
        return id_

    def log_read(self, at: At, *, after: int, limit: int) -> list[Record]:
        rows = self._sql(
            "SELECT id, CAST(data AS BLOB), at FROM log"
            " WHERE space = ? AND topic = ? AND id > ? ORDER BY id LIMIT ?",
            (*at, after, limit),
        ).fetchall()
        return [Record(id_, self._seals.open(data, "log", *at, id_), time) for id_, data, time in rows]

    def log_last(self, at: At) -> int:
        last: int
        (last,) = self._one("SELECT coalesce(max(id), 0) FROM log WHERE space = ? AND topic = ?", *at)
        return last

    def log_topics(self, space: str) -> list[str]:
        rows = self._sql("SELECT DISTINCT topic FROM log WHERE space = ?", (space,)).fetchall()
        return [topic for (topic,) in rows]

    def log_trim(self, at: At, *, before: int | None, older: float | None, keep: int | None) -> int:
        first = before or 0
        if keep is not None:
            row = self._one(
                "SELECT id FROM log WHERE space = ? AND topic = ? ORDER BY id DESC LIMIT 1 OFFSET ?",
                *at,
                keep,
            )
            first = max(first, 0 if row is None else row[0] + 1)
        return self._sql(
            "DELETE FROM log WHERE space = ? AND topic = ? AND (id < ? OR at < ?)",
            (*at, first, older),  # nothing is less than NULL
        ).rowcount

    # --- bus ------------------------------------------------------------------------------------------

    def bus_publish(self, at: At, data: bytes) -> None:
        self._sql(
            "INSERT INTO bus (space, topic, at, data) VALUES (?, ?, ?, ?)",
            (*at, self.clock(), self._seals.seal(data, "bus", *at)),
        )
        self.bus_rung = True

    def bus_last(self) -> int:
        """The id of the last message that anybody published."""
        return self._last_id("bus")

    def bus_after(self, id_: int, limit: int) -> list[tuple[int, str, str, bytes]]:
        """The messages behind this one: id, space, topic, and the data still sealed."""
        return self._sql(
            "SELECT id, space, topic, CAST(data AS BLOB) FROM bus WHERE id > ? ORDER BY id LIMIT ?",
            (id_, limit),
        ).fetchall()

    def bus_open(self, at: At, data: bytes) -> Message:
        """The message of such a row."""
        return Message(at[1], self._seals.open(data, "bus", *at))

    # --- queue ----------------------------------------------------------------------------------------

    def queue_put(self, at: At, payload: bytes, *, due: float | None) -> bool:
        added = self._sql(
            "INSERT INTO queue (space, job, payload, due) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*at, self._seals.seal(payload, "queue", *at), self.clock() if due is None else due),
        ).rowcount
        self.queue_rung = self.queue_rung or bool(added)
        return bool(added)

    def queue_due(self, space: str) -> float | None:
        due: float | None
        (due,) = self._one("SELECT min(due) FROM queue WHERE space = ?", space)
        return due

    def queue_claim(self, at: At, *, lease: float) -> Job | None:
        space, worker = at
        now = self.clock()
        row = self._one(
            "SELECT id, job, CAST(payload AS BLOB), attempts FROM queue WHERE space = ? AND due <= ?"
            " ORDER BY due, id LIMIT 1",
            space,
            now,
        )
        if row is None:
            return None
        id_, job, payload, attempts = row
        (token,) = self._one("UPDATE meta SET value = value + 1 WHERE name = 'token' RETURNING value")
        self._sql(
            "UPDATE queue SET due = ?, worker = ?, token = ?, attempts = ? WHERE id = ?",
            (now + lease, worker, token, attempts + 1, id_),
        )
        # After the claim, so that a payload that does not open is not in everybody's way.
        opened = self._seals.open(payload, "queue", space, job)
        return Job(space, job, opened, worker, token, attempts + 1, lease)

    def queue_renew(self, job: Job) -> bool:
        return self._own(job, "UPDATE queue SET due = ?", self.clock() + job.lease)

    def queue_ack(self, job: Job) -> bool:
        return self._own(job, "DELETE FROM queue")

    def queue_release(self, job: Job, *, due: float | None) -> bool:
        released = self._own(job, "UPDATE queue SET token = 0, due = ?", self.clock() if due is None else due)
        self.queue_rung = self.queue_rung or released
        return released

    def queue_remove(self, at: At) -> bool:
        return bool(self._sql("DELETE FROM queue WHERE space = ? AND job = ?", at).rowcount)

    def queue_size(self, space: str) -> int:
        size: int
        (size,) = self._one("SELECT count(*) FROM queue WHERE space = ?", space)
        return size

    def _own(self, job: Job, change: str, *values: float) -> bool:
        """Change a job if this claim is still its last one."""
        sql = f"{change} WHERE space = ? AND job = ? AND token = ?"
        return bool(self._sql(sql, (*values, job.space, job.id, job.token)).rowcount)

    def _check(self, fence: Job | None) -> None:
        if fence is not None:
            sql = "SELECT 1 FROM queue WHERE space = ? AND job = ? AND token = ?"
            if self._one(sql, fence.space, fence.id, fence.token) is None:
                raise lease_lost(fence)

    # --- upkeep ---------------------------------------------------------------------------------------

    def _last_id(self, table: str) -> int:
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = ?", table)
        return 0 if row is None else row[0]

    def purge(self) -> None:
        """Remove what nobody can see any more, now and then."""
        now = self.clock()
        if now < self._next_purge:
            return
        self._next_purge = now + PURGE_EVERY
        for table, column, limit in (("kv", "expires", now), ("bus", "at", now - BUS_KEEPS)):
            done = self._sql(
                f"DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE {column} <= ? LIMIT ?)",  # noqa: S608  # our own names
                (limit, PURGE_AT_ONCE),
            ).rowcount
            if done == PURGE_AT_ONCE:
                self._next_purge = now
