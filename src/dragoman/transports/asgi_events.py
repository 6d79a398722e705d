"""The events of sessions' streams, kept for clients that come back after a broken connection.

In memory, and bounded: by the number of events of a stream, by the bytes of a session and of all,
and by age. It knows no request; a connection is whatever can carry an event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from secrets import token_urlsafe
from time import monotonic, time
from typing import Final, Protocol

from dragoman.protocol.sessions import event_id
from dragoman.protocol.sse import encode_event

OWN: Final = "own"  # the stream of a session for what belongs to no request
SESSIONS: Final = 16  # that may keep as many bytes as one may, before the oldest events of all go
SLACK: Final = 64  # events that may stand in the common order though they were let go


def priming(stream: str, number: int) -> bytes:
    """An event without data: its id is where the client goes on from (2025-11-25, "Sending Messages")."""
    return encode_event(b"", id=event_id(stream, number))


class Outlet(Protocol):
    """The connection that carries a stream at the moment."""

    def carry(self, data: bytes) -> None:
        """Send an encoded event. Never blocks."""
        ...

    def complete(self, data: bytes) -> None:
        """Send the last events, if any, and end the connection: the stream is over."""
        ...

    def displaced(self) -> None:
        """End the connection: another one carries the stream from now on."""
        ...


class EventStream:
    """One stream: the events that are kept, and the connection that carries it, if there is one.

    `last` is the number of its newest event, `heard` that of the newest one that a connection took,
    `left` when there was a connection last. `copy` is told of each event, with its number, and of
    the end, with the number 0, where others keep the stream too.
    """

    __slots__ = ("copy", "done", "heard", "id", "kept", "last", "left", "limit", "outlet", "shelf", "size")

    def __init__(self, shelf: Shelf, id_: str, *, limit: int, last: int = 0) -> None:
        self.id = id_
        self.shelf = shelf
        self.limit = limit
        self.kept: deque[tuple[int, bytes]] = deque()
        self.size = 0
        self.last = last
        self.heard = last
        self.done = False
        self.outlet: Outlet | None = None
        self.left = monotonic()
        self.copy: Callable[[int, bytes], None] | None = None

    def append(self, frame: bytes) -> None:
        """Add one message, and send it if there is a connection."""
        data = self.keep(frame)
        if self.outlet is not None:
            self.heard = self.last
            self.outlet.carry(data)

    def keep(self, frame: bytes) -> bytes:
        """Add one message without sending it. The encoded event."""
        self.last += 1
        data = encode_event(frame, id=event_id(self.id, self.last))
        self.shelf.log.add(self, data)
        if self.copy is not None:
            self.copy(self.last, data)
        return data

    def priming(self) -> bytes:
        """An event without data that tells the client where to go on from."""
        return priming(self.id, self.heard)

    def since(self, number: int) -> bytes:
        """The events after this one that are still there, and a comment in place of those that are not."""
        first = self.kept[0][0] if self.kept else self.last + 1
        lost = max(0, first - number - 1)
        note = b": events before this one are no longer kept\n\n" if lost and self.kept else b""
        skipped = max(0, number + 1 - first)
        return note + b"".join([data for _, data in islice(self.kept, skipped, None)])

    def attach(self, outlet: Outlet) -> None:
        """A connection carries the stream from now on; the one that did before ends."""
        self.displace()
        self.outlet = outlet

    def displace(self) -> None:
        """The connection that carries the stream ends, if there is one."""
        outlet = self.outlet
        if outlet is not None:
            self.detach(outlet)
            outlet.displaced()

    def detach(self, outlet: Outlet) -> None:
        """That connection no longer carries it."""
        if self.outlet is outlet:
            self.outlet = None
            self.left = monotonic()

    def finish(self, data: bytes = b"") -> None:
        """The stream is over; `data` are its last events, which no connection has carried yet."""
        self.done = True
        if self.copy is not None:
            self.copy(0, b"")
        outlet, self.outlet = self.outlet, None
        if outlet is not None:
            outlet.complete(data)
        if not self.kept:
            self.shelf.drop(self)

    def keeps(self, number: int) -> bool:
        """Whether this event is still there."""
        return bool(self.kept) and self.kept[0][0] <= number


class Shelf:
    """The streams of one session by id; `size` counts their bytes, of all and of each."""

    __slots__ = ("log", "size", "streams")

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.size = 0
        self.streams: dict[str, EventStream] = {}

    def open(self) -> EventStream:
        """Begin a stream."""
        stream = EventStream(self, token_urlsafe(6), limit=self.log.max_events)
        self.streams[stream.id] = stream
        return stream

    def open_own(self, limit: int) -> EventStream:
        """Begin the stream for what belongs to no request.

        Its numbers go on from the time: those that a client had of it from another process, or before
        this one started, are less.
        """
        stream = self.streams[OWN] = EventStream(self, OWN, limit=limit, last=int(time() * 1000))
        return stream

    def make_room(self, size: int) -> None:
        """Let whole streams that are over go, the oldest first, until there is room for `size` bytes."""
        for stream in [stream for stream in self.streams.values() if stream.done]:
            if self.size + size <= self.log.max_bytes:
                return
            self.drop(stream)

    def drop(self, stream: EventStream) -> None:
        """Forget a stream."""
        self.streams.pop(stream.id, None)
        self.size -= stream.size
        self.log.size -= stream.size
        self.log.count -= len(stream.kept)
        stream.kept.clear()
        stream.size = 0

    def clear(self) -> None:
        """Forget all streams: the session is over."""
        for stream in list(self.streams.values()):
            self.drop(stream)


class EventLog:
    """The bounds that all streams of an app share: `max_events` for each stream, `max_bytes` for each
    session, sixteen times that in all, and `max_age` in seconds.
    """

    def __init__(self, *, max_events: int, max_bytes: int, max_age: float) -> None:
        self.max_events = max_events
        self.max_bytes = max_bytes
        self.max_age = max_age
        self.size = 0
        self.count = 0
        self._order: deque[tuple[float, EventStream, int]] = deque()  # the events of all, oldest first

    def add(self, stream: EventStream, data: bytes) -> None:
        """Keep the stream's newest event, and let go what is beyond the bounds."""
        shelf, size = stream.shelf, len(data)
        if shelf.size + size > self.max_bytes:
            shelf.make_room(size)
        stream.kept.append((stream.last, data))
        stream.size += size
        shelf.size += size
        self.size += size
        self.count += 1
        now = monotonic()
        self._order.append((now, stream, stream.last))
        # The newest stays, whatever its size: it may be the answer that somebody waits for.
        while len(stream.kept) > 1 and (len(stream.kept) > stream.limit or shelf.size > self.max_bytes):
            self._let_go(stream)
        self.trim(now)
        if len(self._order) > 2 * self.count + SLACK:  # most of them were let go out of their turn
            self._order = deque(entry for entry in self._order if entry[1].keeps(entry[2]))

    def trim(self, now: float) -> None:
        """Let go what is too old, or too much in all."""
        order, oldest, most = self._order, now - self.max_age, self.max_bytes * SESSIONS
        while order and (order[0][0] < oldest or self.size > most):
            _, stream, number = order.popleft()
            if stream.kept and stream.kept[0][0] == number:
                self._let_go(stream)
                if stream.done and not stream.kept:
                    stream.shelf.drop(stream)

    def _let_go(self, stream: EventStream) -> None:
        _, data = stream.kept.popleft()
        stream.size -= len(data)
        stream.shelf.size -= len(data)
        self.size -= len(data)
        self.count -= 1
