"""The events of sessions' streams in a store, for clients that come back to another process.

Kept within bounds of number and age. It knows no request; a connection is whatever can be ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from dragoman.protocol.sessions import event_id
from dragoman.protocol.sse import encode_event
from dragoman.transports.asgi_events import OWN

if TYPE_CHECKING:
    from dragoman.stores.base import KV, Log, Record
    from dragoman.transports.asgi_events import EventStream
    from dragoman.transports.asgi_options import HttpOptions
    from dragoman.transports.asgi_session import HttpSession

log = logging.getLogger("dragoman.http")

LOOK: Final = 5.0  # seconds after which a stream is looked at again, should a message have got lost
SOON: Final = 1.0  # seconds that a client waits for a stream to be there of which nothing is
BEGUN: Final = -1
ENDED: Final = 0
WAITING: Final = 10_000  # events that may wait for a slow store

_encode: Final = msgspec.msgpack.Encoder().encode
_read_event: Final = msgspec.msgpack.Decoder(tuple[int, bytes]).decode


class Carrier(Protocol):
    """A connection that carries a stream."""

    def displaced(self) -> None:
        """End: another one carries it."""
        ...


class Say(Protocol):
    """Telling the other processes something of a session."""

    def __call__(self, key: str, kind: Any, *, what: Any) -> Coroutine[Any, Any, None]: ...


class SharedStreams:
    """Streams by session and name. `say` tells the other processes; `start` runs what
    nobody waits for.
    """

    def __init__(
        self,
        records: Log,
        values: KV,
        *,
        say: Say,
        start: Callable[[Coroutine[Any, Any, None]], None],
        options: HttpOptions,
    ) -> None:
        self._log = records
        self._kv = values
        self._say = say
        self._start = start
        self._options = options
        self._tails: dict[tuple[str, str], set[asyncio.Event]] = {}
        self._carried: dict[tuple[str, str], Carrier] = {}
        # What is to be kept, and the stream here that it is of.
        self._queue: deque[tuple[str, str, bytes, EventStream | None]] = deque()
        self._draining = False

    def follow(self, session: HttpSession, stream: EventStream) -> None:
        """A stream began here: its events are kept for all."""
        stream.copy = partial(self._copy, stream=stream, key=session.ticket.key)
        stream.copy(BEGUN, b"")

    def _copy(self, number: int, data: bytes, *, stream: EventStream, key: str) -> None:
        self._keep((key, stream.id), _encode((number, data)), of=stream)
        if number > 0 and number % self._options.resume_events == 0:
            self._start(self._trim(f"{key}/{stream.id}"))

    def tell(self, session: HttpSession, frame: bytes) -> None:
        """A message that belongs to no request: for whichever process holds the session's own stream."""
        self._keep((session.ticket.key, OWN), frame)
        session.own.last += 1
        if session.own.last % self._options.resume_events == 0:
            self._start(self._trim(f"{session.ticket.key}/{OWN}"))

    def _keep(self, place: tuple[str, str], data: bytes, *, of: EventStream | None = None) -> None:
        if len(self._queue) >= WAITING:
            log.error("the store is too slow: an event of a session's stream is not kept")
            return
        self._queue.append((*place, data, of))
        if not self._draining:
            self._draining = True
            self._start(self._drain())

    async def _drain(self) -> None:
        try:
            while self._queue:
                batch, self._queue = self._queue, deque()
                await asyncio.gather(
                    *[self._log.append(f"{key}/{stream}", data) for key, stream, data, _ in batch]
                )
                for (key, stream), here in {(key, stream): here for key, stream, _, here in batch}.items():
                    if here is not None and here.outlet is not None:
                        continue  # who is connected here is connected nowhere else
                    self.wake(key, stream)
                    await self._say(key, "news", what=stream)
        finally:
            self._draining = False

    async def _trim(self, topic: str) -> None:
        await self._log.trim(topic, keep=self._options.resume_events)

    def wake(self, key: str, stream: str) -> None:
        """There is something new on that stream."""
        for event in self._tails.get((key, stream), ()):
            event.set()

    async def known(self, session: HttpSession, stream: str) -> bool:
        """Whether there is anything left of a stream that began elsewhere, or very soon will be."""
        key = session.ticket.key
        place, event = (key, stream), asyncio.Event()
        self._tails.setdefault(place, set()).add(event)
        try:
            async with asyncio.timeout(SOON):
                while await self._log.last(f"{key}/{stream}") == 0:
                    # The client may be quicker here than the store there.
                    await self._say(key, "took", what=stream)
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return False
        finally:
            self._leave(place, event)
        return True

    async def heard(self, session: HttpSession) -> int:
        """The last event that a connection took from the session's own stream."""
        entry = await self._kv.get(f"{session.ticket.key}/heard")
        return 0 if entry is None else int(entry.value)

    async def tail(
        self, session: HttpSession, stream: str, *, after: int, connection: Carrier
    ) -> AsyncGenerator[bytes, None]:
        """The encoded events of a stream behind `after`, as they come, to its end.

        `connection` is what carries them: others that carry this stream end, and it ends when another
        one comes.
        """
        key = session.ticket.key
        place, event = (key, stream), asyncio.Event()
        await self.take_over(session, stream, connection=connection)
        self._tails.setdefault(place, set()).add(event)
        seen = after if stream == OWN else 0
        try:
            while True:
                event.clear()
                records = await self._log.read(f"{key}/{stream}", after=seen, limit=100)
                found: list[bytes] = []
                for record in records:
                    seen = record.id
                    number, data = _event(stream, record)
                    if number == ENDED:
                        yield b"".join(found)
                        return
                    if number > after:
                        found.append(data)
                if found and stream == OWN:
                    # Before it is sent: whoever does not get it comes back with the id of the one before.
                    await self._kv.put(f"{key}/heard", b"%d" % seen, ttl=self._options.session_lifetime)
                if found:
                    yield b"".join(found)
                if not records:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK):
                            await event.wait()
        finally:
            self._leave(place, event)
            if self._carried.get(place) is connection:
                del self._carried[place]

    async def take_over(self, session: HttpSession, stream: str, *, connection: Carrier) -> None:
        """`connection` carries that stream from now on, in whichever process it was carried before."""
        place = session.ticket.key, stream
        before, self._carried[place] = self._carried.get(place), connection
        if before is not None:
            before.displaced()
        await self._say(session.ticket.key, "took", what=stream)

    def took(self, session: HttpSession, name: str) -> None:
        """Another process carries that stream now."""
        key, stream = session.ticket.key, session.shelf.streams.get(name)
        if stream is not None:
            stream.displace()
            # What was kept while the connection was thought to be here has been told to nobody.
            self._start(self._say(key, "news", what=name))
        connection = self._carried.get((key, name))
        if connection is not None:
            connection.displaced()

    def _leave(self, place: tuple[str, str], event: asyncio.Event) -> None:
        events = self._tails.get(place, set())
        events.discard(event)
        if not events:
            self._tails.pop(place, None)

    async def forget(self, session: HttpSession) -> None:
        """The session is over: what is known of its streams goes, and the rest when its time is up."""
        key = session.ticket.key
        await self._kv.delete(f"{key}/heard")
        for stream in session.shelf.streams:  # its own is one of them
            await self._log.trim(f"{key}/{stream}", keep=0)

    async def trim(self) -> None:
        """Let go what is too old."""
        await self._log.trim(max_age=self._options.resume_seconds)


def _event(stream: str, record: Record) -> tuple[int, bytes]:
    if stream == OWN:
        return record.id, encode_event(record.data, id=event_id(OWN, record.id))
    return _read_event(record.data)
