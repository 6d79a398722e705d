"""What several processes that serve the same sessions have to know of each other, kept in a store.

Whether a session is open, and what its client asked to be told; and, over the store's bus, messages
for the process that waits for them. It knows no request and no response.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine
from contextlib import suppress
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from dragoman.errors import LocalError
from dragoman.jsonrpc.message import DEFAULT, Id, Response, decode, encode_error, encode_result
from dragoman.model import LoggingLevel
from dragoman.transports.asgi_shared_streams import SharedStreams

if TYPE_CHECKING:
    from dragoman.protocol.sessions import Ticket
    from dragoman.stores.base import Entry, Store
    from dragoman.transports.asgi_events import EventStream
    from dragoman.transports.asgi_options import HttpOptions
    from dragoman.transports.asgi_session import HttpSession

log = logging.getLogger("dragoman.http")

TRIES: Final = 8

Kind = Literal["answer", "cancel", "end", "news", "took"]


class State(msgspec.Struct, frozen=True, array_like=True):
    """What a client may change about its session."""

    level: LoggingLevel | None = None
    initialized: bool = False
    watched: frozenset[str] = frozenset()


class _Known(msgspec.Struct, frozen=True):
    version: int
    state: State
    renewed: float


class _Said(msgspec.Struct, frozen=True, array_like=True):
    worker: str
    kind: Kind
    what: Any = None


_encode: Final = msgspec.msgpack.Encoder().encode
_read_state: Final = msgspec.msgpack.Decoder(State).decode
_read_said: Final = msgspec.msgpack.Decoder(_Said).decode


class Table(Protocol):
    """The sessions that this process has in memory (`asgi_sessions.Sessions`)."""

    def find(self, key: str, *, principal: str | None) -> HttpSession | None: ...

    def named(self, key: str) -> HttpSession | None: ...

    def read(self, key: str) -> Ticket | None: ...

    def take_up(self, key: str, ticket: Ticket, *, initialized: bool) -> HttpSession | None: ...

    def initialized(self, session: HttpSession) -> None: ...

    def forget(self, session: HttpSession, reason: str) -> None: ...

    def values(self) -> Collection[HttpSession]: ...


class SharedSessions:
    """The sessions of one service in one store.

    Every method that waits for the store raises StoreError if it cannot do its work.
    """

    def __init__(self, sessions: Table, store: Store, *, name: str, options: HttpOptions) -> None:
        space = f"http-sessions/{name}"
        self._sessions = sessions
        self._kv, self._bus = store.kv(space), store.bus(space)
        self.streams = SharedStreams(
            store.log(space), self._kv, say=self._say, start=self._start, options=options
        )
        self._clock = store.clock
        self._idle = options.session_idle
        self._options = options
        self._worker = token_urlsafe(6)
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._trimmed = 0.0

    def tell(self, session: HttpSession, frame: bytes) -> None:
        """See `asgi_session.Shared`."""
        self.streams.tell(session, frame)

    def follow(self, session: HttpSession, stream: EventStream) -> None:
        """See `asgi_session.Shared`."""
        self.streams.follow(session, stream)

    # Whether a session is open ---------------------------------------------------------------------

    async def open(self, session: HttpSession) -> None:
        """A session began here."""
        await self._listen()
        state = _state(session)
        version = await self._kv.put(session.ticket.key, _encode(state), ttl=self._idle)
        session.state = _Known(version, state, self._clock())

    async def visit(self, key: str, *, principal: str | None) -> None:
        """A request names this session: have it in memory as it is now, if it is open and theirs."""
        session = self._sessions.find(key, principal=principal)
        ticket = self._sessions.read(key) if session is None else session.ticket
        if ticket is None or ticket.principal != principal:
            return
        await self._listen()
        entry = await self._kv.get(ticket.key)
        session = self._sessions.find(key, principal=principal)
        if entry is None:
            if session is not None:
                self._sessions.forget(session, "the session ended")
            return
        if session is None:
            session = self._sessions.take_up(key, ticket, initialized=False)
            if session is None:
                return
        self._learn(session, entry)
        await self._renew(session)

    def _learn(self, session: HttpSession, entry: Entry) -> None:
        theirs = _read_state(entry.value)
        known = session.state
        if not isinstance(known, _Known):
            _apply(theirs, session)
        elif entry.version > known.version and theirs != known.state:
            _apply(_merged(known.state, _state(session), theirs=theirs), session)
        agreed = session.link.session
        if theirs.initialized and agreed is not None and not agreed.initialized:
            self._sessions.initialized(session)
        renewed = self._clock() if entry.expires is None else entry.expires - self._idle
        session.state = _Known(entry.version, theirs, renewed)

    async def _renew(self, session: HttpSession) -> None:
        known = session.state
        if isinstance(known, _Known) and self._clock() - known.renewed > self._idle / 10:
            await self._write(session, known.state)

    async def _write(self, session: HttpSession, state: State) -> bool:
        known = session.state
        if not isinstance(known, _Known):
            return True
        key = session.ticket.key
        version = await self._kv.compare_and_set(key, _encode(state), version=known.version, ttl=self._idle)
        if version is not None:
            session.state = _Known(version, state, self._clock())
        return version is not None

    async def save(self, session: HttpSession) -> None:
        """A request of it is done: what it changed is for all to know, and idleness counts from now on."""
        for _ in range(TRIES):
            known, state = session.state, _state(session)
            if not isinstance(known, _Known):
                return
            if state == known.state:
                await self._renew(session)
                return
            if await self._write(session, state):
                return
            entry = await self._kv.get(session.ticket.key)
            if entry is None:
                return  # it ended meanwhile
            self._learn(session, entry)

    async def end(self, session: HttpSession) -> None:
        """The session is over, in every process."""
        key = session.ticket.key
        await self._kv.delete(key)
        await self._say(key, "end")
        await self.streams.forget(session)

    # Messages for another process ------------------------------------------------------------------

    async def answer(self, session: HttpSession, message: Response) -> None:
        """The client answered a request that was not sent from here."""
        error = message.error
        if error is None:
            frame = encode_result(message.id, message.result)
        else:
            frame = encode_error(message.id, error.code, error.message, error.data)
        await self._say(session.ticket.key, "answer", what=frame)

    async def cancel(self, session: HttpSession, id_: Id) -> None:
        """The client cancelled a call that is not open here."""
        await self._say(session.ticket.key, "cancel", what=id_)

    async def _say(self, key: str, kind: Kind, *, what: Any = None) -> None:
        await self._bus.publish(key, _encode(_Said(self._worker, kind, what)))

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        if self._listener is None or self._listener.done() or self._listener.get_loop() is not loop:
            self._ready = loop.create_future()
            self._listener = loop.create_task(self._listening(self._ready), name="dragoman-http-sessions")
        if self._ready is not None and not self._ready.done():
            await asyncio.shield(self._ready)

    async def _listening(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._bus.subscribe() as messages:
                ready.set_result(None)
                async for message in messages:
                    said = _read_said(message.data)
                    if said.worker != self._worker:
                        self._hear(message.topic, said)
        except LocalError as exc:
            if ready.done():
                log.error(
                    "what other processes say of sessions is not heard for now: %s", exc
                )  # the message says it all
            else:
                ready.set_exception(exc)
        finally:
            ready.cancel()

    def _hear(self, key: str, said: _Said) -> None:
        if said.kind == "news":
            self.streams.wake(key, said.what)
            return
        session = self._sessions.named(key)
        if session is None:
            return
        if said.kind == "answer":
            message = decode(said.what, DEFAULT)
            if isinstance(message, Response):
                session.link.answered(message.id, result=message.result, error=message.error)
        elif said.kind == "cancel":
            stop = session.calls.get(said.what)
            if stop is not None:
                stop()
        elif said.kind == "end":
            self._sessions.forget(session, "the session ended")
        else:
            self.streams.took(session, said.what)

    # Housekeeping ------------------------------------------------------------------------------------

    def keep_house(self) -> None:
        """Keep sessions open that are in use, and the events in bounds; with no sessions, rest."""
        now = self._clock()
        sessions = self._sessions.values()
        for session in sessions:
            known = session.state
            if session.busy and isinstance(known, _Known) and now - known.renewed > self._idle / 4:
                self._start(self.save(session))
        if now - self._trimmed > max(1.0, self._options.resume_seconds / 5):
            self._trimmed = now
            self._start(self.streams.trim())
        if not sessions:
            self.rest()

    def rest(self) -> None:
        """Listen no longer, until there is a session again."""
        if self._listener is not None:
            with suppress(RuntimeError):  # its loop is closed
                self._listener.cancel()
            self._listener = None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()) is not None:
            log.error("the store of sessions failed: %s", fault, exc_info=fault)


def _state(session: HttpSession) -> State:
    agreed = session.link.session
    watched = frozenset(session.link.subscriptions)
    return State() if agreed is None else State(agreed.log_level, agreed.initialized, watched)


def _apply(state: State, session: HttpSession) -> None:
    link = session.link
    if link.session is not None:
        link.session.log_level = state.level
    link.subscriptions.clear()
    link.subscriptions.update(state.watched)


def _merged(before: State, mine: State, *, theirs: State) -> State:
    """Both changes: mine, since `before`, upon theirs."""
    watched = (theirs.watched | (mine.watched - before.watched)) - (before.watched - mine.watched)
    level = theirs.level if mine.level == before.level else mine.level
    return State(level, mine.initialized or theirs.initialized, watched)
