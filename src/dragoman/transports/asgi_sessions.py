"""The sessions that one HTTP app holds in memory: opening, finding, idling out, ending.

Revisions with a handshake only. It knows no request and no response beyond the streams that a
session's own messages go out on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from secrets import token_urlsafe
from threading import get_ident
from typing import Final

from dragoman.jsonrpc.message import Id, encode_notification
from dragoman.protocol.call import Kernel
from dragoman.protocol.link import Link
from dragoman.transports.asgi_exchange import CLOSING, Exchange

BACKLOG: Final = 32  # messages kept for a session that has no stream of its own open


class HttpSession:
    """One session. `calls` are its open requests, by id, with what stops each."""

    __slots__ = ("_backlog", "_loop", "_thread", "calls", "id", "link", "seen", "streams")

    def __init__(self, link: Link) -> None:
        self.id = token_urlsafe(24)  # 192 bits; visible ASCII (2025-11-25, "Session Management")
        self.link = link
        self.calls: dict[Id, Callable[[], object]] = {}
        self.streams: list[Exchange] = []
        self.seen = 0.0
        self._backlog: deque[bytes] = deque(maxlen=BACKLOG)
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        link.notify = self.notify

    @property
    def busy(self) -> bool:
        """Whether something of it is going on."""
        return bool(self.calls or self.streams)

    def notify(self, method: str, params: object) -> None:
        """Send a message that belongs to no request, on one of the session's own streams. Any thread."""
        frame = encode_notification(method, params)
        if get_ident() == self._thread:
            self._deliver(frame)
        else:
            self._loop.call_soon_threadsafe(self._deliver, frame)

    def _deliver(self, frame: bytes) -> None:
        # On one stream, never on several (2025-11-25, "Multiple Connections").
        for stream in self.streams:
            if stream.open:
                stream.emit(frame)
                return
        self._backlog.append(frame)

    def attach(self, stream: Exchange) -> None:
        """A stream of the session's own opened: what waited for one goes out on it."""
        self.streams.append(stream)
        while self._backlog:
            stream.emit(self._backlog.popleft())

    def detach(self, stream: Exchange) -> None:
        """That stream is over."""
        if stream in self.streams:
            self.streams.remove(stream)


class Sessions(dict[str, HttpSession]):
    """All open sessions by id, at most `limit`; those idle for `idle` seconds end."""

    def __init__(self, kernel: Kernel, *, limit: int, idle: float) -> None:
        super().__init__()
        self._kernel = kernel
        self._limit = limit
        self._idle = idle

    def room(self) -> bool:
        """Whether one more session may open; makes room by ending the one that has been idle longest."""
        if len(self) < self._limit:
            return True
        idle = min((s for s in self.values() if not s.busy), key=lambda s: s.seen, default=None)
        if idle is None:
            return False
        self.end(idle, "it was idle, and the server needed room")
        return True

    def begin(self, link: Link) -> HttpSession:
        """Open a session for a link whose handshake succeeded."""
        session = HttpSession(link)
        self[session.id] = session
        self.touch(session)
        self._kernel.linked(link)
        return session

    def touch(self, session: HttpSession) -> None:
        """Count the session's idle time from now on."""
        session.seen = asyncio.get_running_loop().time()

    def expire(self, now: float) -> None:
        """End what has been idle too long. Open requests and streams are no idleness."""
        for session in list(self.values()):
            if session.busy:
                session.seen = now
            elif now - session.seen > self._idle:
                self.end(session, "the session was idle too long")

    def end(self, session: HttpSession, reason: str) -> None:
        """End a session: its streams close, what we asked the client fails, its open calls stop."""
        if self.pop(session.id, None) is None:
            return
        self._kernel.unlinked(session.link)
        session.link.close(reason)
        for stream in list(session.streams):
            stream.stop(CLOSING)
        for stop in list(session.calls.values()):
            stop()
