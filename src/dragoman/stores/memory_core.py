"""The primitives on dictionaries. Not safe for threads, and never waiting: `memory` sees to both."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from .base import Clock, Entry, Job, Message, Record
from .core import ABSENT, At, lease_lost
from .listeners import Inbox, Waiter

SLACK = 64  # dead entries that a heap may hold in any case


@dataclass(slots=True)
class _Queued:
    """A job; `due` is when it can be claimed, the end of the lease where it is claimed."""

    payload: bytes
    due: float
    order: int
    worker: str = ""
    token: int = 0
    attempts: int = 0
    lease: float = 0.0


class MemoryCore:
    """See `core.Core`."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.listeners: set[Inbox | Waiter] = set()
        self._version = 0
        self._values: dict[str, dict[str, Entry]] = {}
        self._keys: dict[str, list[str]] = {}
        self._expiries: list[tuple[float, int, At]] = []
        self._record = 0
        self._logs: dict[str, dict[str, list[Record]]] = {}
        self._token = 0
        self._order = 0
        self._queues: dict[str, dict[str, _Queued]] = {}
        self._dues: dict[str, list[tuple[float, int, str]]] = {}

    # --- values ---------------------------------------------------------------------------------------

    def kv_get(self, at: At) -> Entry | None:
        self._expire()
        return self._values.get(at[0], {}).get(at[1])

    def kv_put(
        self, at: At, value: bytes, *, ttl: float | None, version: int | None, fence: Job | None
    ) -> int | None:
        self._expire()
        self._check(fence)
        space, key = at
        values = self._values.setdefault(space, {})
        there = values.get(key)
        if version is not None and version != (ABSENT if there is None else there.version):
            return None
        self._version += 1
        expires = None if ttl is None else self.clock() + ttl
        if there is None:
            insort(self._keys.setdefault(space, []), key)
        values[key] = Entry(key, value, self._version, expires)
        if expires is not None:
            heappush(self._expiries, (expires, self._version, at))
            self._tidy_expiries()
        return self._version

    def kv_delete(self, at: At, *, version: int | None, fence: Job | None) -> bool:
        self._expire()
        self._check(fence)
        there = self._values.get(at[0], {}).get(at[1])
        if there is None or (version is not None and version != there.version):
            return False
        self._drop(at)
        return True

    def kv_scan(self, at: At, *, after: str, limit: int) -> list[Entry]:
        self._expire()
        space, prefix = at
        keys, values = self._keys.get(space, []), self._values.get(space, {})
        found: list[Entry] = []
        for index in range(max(bisect_left(keys, prefix), bisect_right(keys, after)), len(keys)):
            if len(found) == limit or not keys[index].startswith(prefix):
                break
            found.append(values[keys[index]])
        return found

    def _drop(self, at: At) -> None:
        space, key = at
        del self._values[space][key]
        keys = self._keys[space]
        del keys[bisect_left(keys, key)]
        if not keys:
            del self._values[space], self._keys[space]

    def _expire(self) -> None:
        if self._expiries:
            now = self.clock()
            while self._expiries and self._expiries[0][0] <= now:
                _, version, at = heappop(self._expiries)
                if self._is(at, version):
                    self._drop(at)

    def _is(self, at: At, version: int) -> bool:
        there = self._values.get(at[0], {}).get(at[1])
        return there is not None and there.version == version

    def _tidy_expiries(self) -> None:
        # A value that is written again and again leaves its old expiries behind.
        if len(self._expiries) > 2 * sum(map(len, self._keys.values())) + SLACK:
            self._expiries = [entry for entry in self._expiries if self._is(entry[2], entry[1])]
            heapify(self._expiries)

    # --- log ------------------------------------------------------------------------------------------

    def log_append(self, at: At, data: bytes, *, fence: Job | None) -> int:
        self._check(fence)
        self._record += 1
        records = self._logs.setdefault(at[0], {}).setdefault(at[1], [])
        records.append(Record(self._record, data, self.clock()))
        return self._record

    def log_read(self, at: At, *, after: int, limit: int) -> list[Record]:
        records = self._logs.get(at[0], {}).get(at[1], [])
        start = bisect_right(records, after, key=_record_id)
        return records[start : start + limit]

    def log_last(self, at: At) -> int:
        records = self._logs.get(at[0], {}).get(at[1])
        return records[-1].id if records else 0

    def log_topics(self, space: str) -> list[str]:
        return list(self._logs.get(space, {}))

    def log_trim(self, at: At, *, before: int | None, older: float | None, keep: int | None) -> int:
        topics = self._logs.get(at[0], {})
        records = topics.get(at[1], [])
        first = 0 if before is None else bisect_left(records, before, key=_record_id)
        if keep is not None:
            first = max(first, len(records) - keep)
        kept = records[first:]
        if older is not None:
            kept = [record for record in kept if record.at >= older]
        if kept:
            topics[at[1]] = kept
        else:
            topics.pop(at[1], None)
        return len(records) - len(kept)

    # --- bus ------------------------------------------------------------------------------------------

    def bus_publish(self, at: At, data: bytes) -> None:
        space, topic = at
        for listener in self.listeners:
            if isinstance(listener, Inbox) and listener.wants(space, topic):
                listener.deliver([Message(topic, data)])

    # --- queue ----------------------------------------------------------------------------------------

    def queue_put(self, at: At, payload: bytes, *, due: float | None) -> bool:
        space, id_ = at
        jobs = self._queues.setdefault(space, {})
        if id_ in jobs:
            return False
        self._order += 1
        jobs[id_] = _Queued(payload, 0.0, self._order)
        self._set_due(at, self.clock() if due is None else due)
        self._wake(space)
        return True

    def queue_due(self, space: str) -> float | None:
        jobs, dues = self._queues.get(space, {}), self._dues.get(space, [])
        while dues:
            due, order, id_ = dues[0]
            job = jobs.get(id_)
            if job is not None and (job.due, job.order) == (due, order):
                return due
            heappop(dues)
        return None

    def queue_claim(self, at: At, *, lease: float) -> Job | None:
        space, worker = at
        due, now = self.queue_due(space), self.clock()
        if due is None or due > now:
            return None
        id_ = self._dues[space][0][2]
        job = self._queues[space][id_]
        self._token += 1
        job.worker, job.token, job.lease = worker, self._token, lease
        job.attempts += 1
        self._set_due((space, id_), now + lease)
        return Job(space, id_, job.payload, worker, job.token, job.attempts, lease)

    def queue_renew(self, job: Job) -> bool:
        if not self._holds(job):
            return False
        self._set_due((job.space, job.id), self.clock() + job.lease)
        return True

    def queue_ack(self, job: Job) -> bool:
        return self._holds(job) and self.queue_remove((job.space, job.id))

    def queue_release(self, job: Job, *, due: float | None) -> bool:
        if not self._holds(job):
            return False
        self._queues[job.space][job.id].token = 0
        self._set_due((job.space, job.id), self.clock() if due is None else due)
        self._wake(job.space)
        return True

    def queue_remove(self, at: At) -> bool:
        jobs = self._queues.get(at[0], {})
        if jobs.pop(at[1], None) is None:
            return False
        if not jobs:
            del self._queues[at[0]], self._dues[at[0]]
        return True

    def queue_size(self, space: str) -> int:
        return len(self._queues.get(space, {}))

    def _set_due(self, at: At, due: float) -> None:
        space, id_ = at
        jobs = self._queues[space]
        job = jobs[id_]
        job.due = due
        dues = self._dues.setdefault(space, [])
        heappush(dues, (due, job.order, id_))
        if len(dues) > 2 * len(jobs) + SLACK:  # heartbeats leave the old ends of leases behind
            dues[:] = [(job.due, job.order, id_) for id_, job in jobs.items()]
            heapify(dues)

    def _holds(self, job: Job) -> bool:
        there = self._queues.get(job.space, {}).get(job.id)
        return there is not None and there.token == job.token

    def _check(self, fence: Job | None) -> None:
        if fence is not None and not self._holds(fence):
            raise lease_lost(fence)

    def _wake(self, space: str) -> None:
        for listener in self.listeners:
            if isinstance(listener, Waiter) and listener.space == space:
                listener.wake()


def _record_id(record: Record) -> int:
    return record.id
