"""The sessions that one HTTP app knows: opening, finding, taking up, idling out, ending.

Revisions with a handshake only. A session that another process opened is taken up from its id. It
knows no request and no response beyond the streams that a session's messages go out on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from secrets import token_urlsafe
from time import monotonic, time
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.protocol.link import Link
from dragoman.protocol.sealing import BrokenSeal
from dragoman.protocol.sessions import Ticket, issue, seal, unseal
from dragoman.transports.asgi_events import EventLog
from dragoman.transports.asgi_session import HttpSession
from dragoman.transports.asgi_shared import SharedSessions

if TYPE_CHECKING:
    from dragoman.protocol.call import Kernel
    from dragoman.protocol.sealing import Keys
    from dragoman.transports.asgi_options import HttpOptions

log = logging.getLogger("dragoman.http")

ENDED: Final = 100_000  # sessions of which it is remembered that they ended before their time was up


class Seats(Protocol):
    """See `protocol.http.Seats`."""

    def get(self, key: str, /) -> HttpSession | None: ...


class Sessions:
    """The sessions in memory by id, at most `options.max_sessions`.

    As it stands it shows the sessions of nobody in particular; see `of`. Ids are sealed with `keys`,
    for the server `name`. `shared` is where all processes of one service keep what they have to
    know of each other's sessions; without it, each counts idleness for itself, and knows of the
    sessions that ended at its own hand.
    """

    def __init__(self, kernel: Kernel, options: HttpOptions, *, name: str, keys: Callable[[], Keys]) -> None:
        self._kernel = kernel
        self._options = options
        self._name = name
        self._keys = keys
        self._open: dict[str, HttpSession] = {}
        self._by_key: dict[str, HttpSession] = {}
        self._ended: dict[str, int] = {}
        self._told = False
        self.clock: Callable[[], float] = time
        self.shared: SharedSessions | None = None
        if options.store is not None:
            self.shared = SharedSessions(self, options.store, name=name, options=options)
        self.events = EventLog(
            max_events=options.resume_events, max_bytes=options.resume_bytes, max_age=options.resume_seconds
        )

    def __len__(self) -> int:
        return len(self._open)

    def __getitem__(self, key: str) -> HttpSession:
        return self._open[key]

    def values(self) -> Collection[HttpSession]:
        """Those in memory."""
        return list(self._open.values())

    def named(self, key: str) -> HttpSession | None:
        """The one in memory whose ticket has this key."""
        return self._by_key.get(key)

    def get(self, key: str, /) -> HttpSession | None:
        """The session with this id that nobody in particular opened."""
        return self.find(key, principal=None)

    def of(self, principal: str | None) -> Seats:
        """The sessions that `principal` opened: a session answers to nobody else."""
        return self if principal is None else _Own(self, principal)

    def find(self, key: str, *, principal: str | None) -> HttpSession | None:
        """An open session, from memory or taken up from its id. None if it is somebody else's."""
        session = self._open.get(key)
        if session is None and self.shared is None:
            ticket = self.read(key)
            if ticket is not None and ticket.key not in self._ended and ticket.principal == principal:
                session = self.take_up(key, ticket, initialized=True)
        return None if session is None or session.link.principal != principal else session

    def read(self, key: str) -> Ticket | None:
        """What a session id says; None if it is none, or its time is up."""
        try:
            return unseal(key, self._keys(), server=self._name, now=self.clock())
        except BrokenSeal:
            if len(key) > 100 and not self._told:
                self._told = True
                log.warning(
                    "a session id came that was sealed elsewhere, or before the last start; for sessions to "
                    "be open in every process, give all the same secret (Server(secret=...), DRAGOMAN_SECRET)"
                )
            return None

    @property
    def limit(self) -> int:
        """How many there may be."""
        return self._options.max_sessions

    # Beginning -----------------------------------------------------------------------------------

    def room(self) -> bool:
        """Whether one more session may open; makes room by ending the one that has been idle longest."""
        if len(self) < self._options.max_sessions:
            return True
        idle = min((s for s in self._open.values() if not s.busy), key=lambda s: s.seen, default=None)
        if idle is None:
            return False
        self._part(idle, "it was idle, and the server needed room")
        return True

    def begin(self, link: Link) -> HttpSession:
        """Open a session for a link whose handshake succeeded. Raises Refusal."""
        assert link.session is not None  # that is what the handshake left
        ticket = issue(
            token_urlsafe(12),
            link.session,
            principal=link.principal,
            now=self.clock(),
            lifetime=self._options.session_lifetime,
        )
        return self._add(seal(ticket, self._keys(), server=self._name), ticket, link=link)

    def take_up(self, key: str, ticket: Ticket, *, initialized: bool) -> HttpSession | None:
        """Go on with a session that another process opened, or this one before it forgot."""
        agreed = ticket.session()
        if agreed is None:
            return None
        self.room()  # it is open already: refusing it would end it
        session = self._add(key, ticket, link=Link(agreed, ticket.principal))
        if initialized:
            self.initialized(session)
        return session

    def initialized(self, session: HttpSession) -> None:
        """The client said elsewhere that the handshake is complete."""
        self._kernel.notified(session.link, "notifications/initialized", params=b"")

    def _add(self, key: str, ticket: Ticket, *, link: Link) -> HttpSession:
        session = self._open[key] = HttpSession(key, ticket, link=link, events=self.events)
        self._by_key[ticket.key] = session
        session.shared = self.shared
        self.touch(session)
        self._kernel.linked(link)
        return session

    # Idling and ending ---------------------------------------------------------------------------

    def touch(self, session: HttpSession) -> None:
        """Count the session's idle time from now on."""
        session.seen = asyncio.get_running_loop().time()

    def expire(self, now: float) -> None:
        """End what has been idle too long, or is at the end of its lifetime, and forget old events.

        Open requests and streams are no idleness.
        """
        self.events.trim(monotonic())
        today = self.clock()
        for session in list(self._open.values()):
            if session.busy:
                session.seen = now
            elif now - session.seen > self._options.session_idle:
                self._part(session, "the session was idle too long")
            elif today >= session.ticket.expires:
                self.forget(session, "the session's time is up")
        for key in [key for key, expires in self._ended.items() if expires <= today]:
            del self._ended[key]

    def _part(self, session: HttpSession, reason: str) -> None:
        # Where sessions are shared, whether this one is still open is not for one process to say.
        if self.shared is None:
            self.end(session, reason)
        else:
            self.forget(session, reason)

    def end(self, session: HttpSession, reason: str) -> None:
        """End a session for good: its id opens nothing any more."""
        if len(self._ended) >= ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[session.ticket.key] = session.ticket.expires
        self.forget(session, reason)

    def forget(self, session: HttpSession, reason: str) -> None:
        """Let go of what is here of a session: its connections close, what goes on stops."""
        if self._open.pop(session.id, None) is None:
            return
        self._by_key.pop(session.ticket.key, None)
        self._kernel.unlinked(session.link)
        session.stop(reason)

    def close(self, reason: str) -> None:
        """Forget all of them: whoever has their keys can go on with them."""
        for session in self.values():
            self.forget(session, reason)
        if self.shared is not None:
            self.shared.rest()


class _Own:
    """The sessions of one principal."""

    def __init__(self, sessions: Sessions, principal: str) -> None:
        self._sessions = sessions
        self._principal = principal

    def get(self, key: str, /) -> HttpSession | None:
        return self._sessions.find(key, principal=self._principal)
