"""One session of an HTTP app, as one process has it in memory: its link, its calls, its streams.

It knows no request and no response beyond what its messages go out on, and no other session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from secrets import randbits
from threading import get_ident
from typing import TYPE_CHECKING, Final, Protocol

from dragoman.jsonrpc.message import Id, encode_notification
from dragoman.protocol.link import Link
from dragoman.protocol.sessions import Ticket
from dragoman.transports.asgi_events import EventLog, EventStream, Shelf
from dragoman.transports.asgi_exchange import CLOSING

if TYPE_CHECKING:
    from dragoman.transports.asgi_resume import SessionExchange

BACKLOG: Final = 32  # messages kept for a session that has opened no stream of its own yet


class Shared(Protocol):
    """What a session tells the other processes that serve it."""

    def tell(self, session: HttpSession, frame: bytes) -> None:
        """Here is a message that belongs to no request."""
        ...

    def follow(self, session: HttpSession, stream: EventStream) -> None:
        """A stream of it began here."""
        ...


class HttpSession:
    """One session. `calls` are its open requests by id, with what stops each; `connections` are those
    that carry one of its streams; `own` is the stream for what belongs to no request. `shared` is
    what it has in common with other processes, where there is such a thing.
    """

    __slots__ = (
        *("_loop", "_thread", "calls", "connections", "id", "link", "own", "patience", "primes"),
        *("seen", "shared", "shelf", "state", "ticket"),
    )

    def __init__(self, id_: str, ticket: Ticket, *, link: Link, events: EventLog) -> None:
        self.id = id_
        self.ticket = ticket
        self.link = link
        self.shelf = Shelf(events)
        self.own = self.shelf.open_own(BACKLOG)
        self.patience = events.max_age
        self.primes = link.session is not None and link.session.revision.http.polling
        self.calls: dict[Id, Callable[[], object]] = {}
        self.connections: list[SessionExchange] = []
        self.seen = 0.0
        self.state: object = None
        self.shared: Shared | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        # Not from 1: other processes that serve this session number their requests as well.
        link.last = randbits(32) << 20
        link.notify = self.notify

    @property
    def busy(self) -> bool:
        """Whether something of it is going on."""
        return bool(self.calls or self.connections)

    def notify(self, method: str, params: object) -> None:
        """Send a message that belongs to no request, on the session's own stream. From any thread."""
        frame = encode_notification(method, params)
        if get_ident() == self._thread:
            self._deliver(frame)
        else:
            self._loop.call_soon_threadsafe(self._deliver, frame)

    def _deliver(self, frame: bytes) -> None:
        if self.shared is not None:
            self.shared.tell(self, frame)
        else:
            self.own.append(frame)

    def follow(self, stream: EventStream) -> None:
        """A stream began; other processes may have to go on with it."""
        if self.shared is not None:
            self.shared.follow(self, stream)

    def attach(self, connection: SessionExchange) -> None:
        """A connection is about to carry one of its streams."""
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self.connections.append(connection)

    def detach(self, connection: SessionExchange) -> None:
        """It no longer does."""
        self.connections.remove(connection)

    def stop(self, reason: str) -> None:
        """End what goes on: what we asked the client fails, open calls stop, connections close."""
        self.link.close(reason)
        for connection in list(self.connections):
            connection.stop(CLOSING)
        for stop in list(self.calls.values()):
            stop()
        self.shelf.clear()
