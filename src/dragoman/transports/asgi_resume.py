"""Exchanges of sessions: responses that may break off, and go on over another connection.

What is sent on a session's stream is an event with an id, and kept. The work of a request is tied
to no connection: the client, or the server itself by `close_stream`, may close the one that it came
by, and a GET with `Last-Event-ID` carries the stream on.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Protocol

from dragoman.errors import ClosedError
from dragoman.transports.asgi_events import EventStream, Shelf
from dragoman.transports.asgi_exchange import GONE, Exchange, Stopped

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

COMPLETE: Final = "the stream is over"
TAKEN: Final = "another connection carries the stream"


class Seat(Protocol):
    """The session of an exchange, as far as its streams go."""

    @property
    def shelf(self) -> Shelf:
        """Where its streams are kept."""
        ...

    @property
    def primes(self) -> bool:
        """Whether its revision lets the server close a stream early, and so begins it with an id."""
        ...

    @property
    def patience(self) -> float:
        """Seconds that a question waits for a client whose connection broke."""
        ...

    def follow(self, stream: EventStream) -> None:
        """A stream of it began: whoever else wants to keep its events may."""
        ...


class SessionExchange(Exchange):
    """The response to a request of a session.

    `seat` is that session, once it is known; without one this is a plain exchange. `stream` is what
    the request's own messages go to, from the first of them on.
    """

    seat: Seat | None = None
    stream: EventStream | None = None
    _last = b""
    _hanging_up: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None

    # The request's own stream --------------------------------------------------------------------

    def emit(self, frame: bytes) -> None:
        """Add one message to the stream, whether a connection carries it or not."""
        if self.seat is None:
            super().emit(frame)
        elif self.open:
            self._own(self.seat).append(frame)

    def _own(self, seat: Seat) -> EventStream:
        stream = self.stream
        if stream is None:
            stream = self.stream = seat.shelf.open()
            seat.follow(stream)
            if not self.broken:
                stream.attach(self)
                if seat.primes:
                    self.write(stream.priming())
        return stream

    def close_stream(self, retry_ms: int) -> None:
        """Close the connection, and have the client come back for the rest after so many milliseconds.

        The call goes on. Nothing happens where the revision has no such thing. Safe from any thread.
        """
        if get_ident() != self._thread:
            task = self._task
            if task is not None:
                task.get_loop().call_soon_threadsafe(self.close_stream, retry_ms)
            return
        seat = self.seat
        if seat is None or not seat.primes or not self.open:
            return
        stream = self._own(seat)
        outlet = stream.outlet
        if outlet is None:
            return  # it is closed already
        outlet.carry(b"retry: %d\n\n" % retry_ms)
        stream.displace()

    @property
    def streaming(self) -> bool:
        """Whether the response is a stream by now."""
        return self.stream is not None or super().streaming

    async def answer(self, frame: bytes, *, status: int = 200) -> None:
        """Send the answer: on the stream, wherever that goes by now, if there is one."""
        if self.stream is not None:
            await self.end_stream(*([frame] if frame else []))
        else:
            await super().answer(frame, status=status)

    async def end_stream(self, *frames: bytes) -> None:
        """Add the last messages to the stream, send them, and end it."""
        stream = self.stream
        if stream is None:
            await self.finish(*([self._last] if self._last else []))
            return
        self.drop_timer()
        data = b"".join([stream.keep(frame) for frame in frames])
        if stream.outlet is self:
            stream.detach(self)
            stream.finish()
            await self.finish(data)
        else:
            stream.finish(data)
        if self._hanging_up is not None:
            await asyncio.wait([self._hanging_up])

    # A connection that breaks --------------------------------------------------------------------

    def gone(self) -> None:
        """The connection broke. What goes to the stream is kept; questions wait for a while."""
        if self.stream is None:
            super().gone()
        else:
            self._give_up()

    def _give_up(self) -> None:
        stream = self.stream
        if stream is None:
            super()._give_up()
            return
        calls_go_on = self.open
        super()._give_up()
        self.open = calls_go_on
        stream.detach(self)
        self._wait_for_client()

    def _wait_for_client(self, passed: float = 0.0) -> None:
        seat, task = self.seat, self._task
        if seat is not None and task is not None and self._timer is None:
            self._timer = task.get_loop().call_later(seat.patience - passed, self._waited)

    def _waited(self) -> None:
        self._timer = None
        seat, stream = self.seat, self.stream
        if seat is None or stream is None:
            return
        passed = monotonic() - stream.left if stream.outlet is None else 0.0
        if passed < seat.patience:
            self._wait_for_client(passed)
        else:
            self.forget_asked(GONE)
            self._wait_for_client()

    def drop_timer(self) -> None:
        """Wait for the client no longer: the work is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def abandon(self) -> None:
        """The work ended without an answer, with the server: the stream is over as it is."""
        self.drop_timer()
        if self.stream is not None:
            self.stream.detach(self)
            self.stream.finish()

    def _start_watch(self) -> None:
        if not self.broken:
            super()._start_watch()

    # A connection that carries a stream: this response's own, or any, on a GET -------------------

    def carry(self, data: bytes) -> None:
        """Send an encoded event on this connection."""
        if not self.broken:
            self.write(data)

    def complete(self, data: bytes) -> None:
        """Send the last events and end this connection."""
        self._last = data
        self.stop(COMPLETE)

    def displaced(self) -> None:
        """End this connection, which carries nothing any more."""
        if self._listens:
            self.stop(TAKEN)
        elif not self.broken:
            self.broken = True
            self._wait_for_client()
            self._leave()
            self._hanging_up = asyncio.get_running_loop().create_task(self._hang_up())

    async def _hang_up(self) -> None:
        with suppress(OSError):
            await self.finish()

    def keep_alive(self) -> None:
        """Send a comment if nothing was sent since the last time."""
        if not self.broken:
            super().keep_alive()

    async def carry_stream(self, stream: EventStream, after: int, *, primes: bool) -> None:
        """Be the connection that carries `stream`, from behind the event `after` on, until either ends."""
        await self._listen(self._carry_stream(stream, after, primes=primes))

    async def _carry_stream(self, stream: EventStream, after: int, *, primes: bool) -> None:
        await self.start()
        if primes:
            await self.pour(stream.priming())
        stream.displace()
        while missed := stream.since(after):
            # What comes while this is sent waits its turn: a stream may hold more than a queue.
            after = stream.last
            await self.pour(missed)
        if stream.done:
            return
        stream.heard = stream.last
        stream.attach(self)
        try:
            await self.disconnected()
            self.broken = True
        finally:
            stream.detach(self)

    async def carry_events(self, events: AsyncGenerator[bytes, None], *, priming: bytes) -> None:
        """Be the connection that carries encoded events from elsewhere, until they or the client end."""
        await self._listen(self._carry_events(events, priming=priming))

    async def _carry_events(self, events: AsyncGenerator[bytes, None], *, priming: bytes) -> None:
        await self.start()
        if priming:
            await self.pour(priming)
        self._start_watch()
        async with aclosing(events):
            async for data in events:
                await self.pour(data)

    async def _listen(self, carrying: Coroutine[Any, Any, None]) -> None:
        self.cancels = self._listens = True
        try:
            await self.work(carrying)
        except Stopped:
            pass  # for whichever reason: if the connection is still there, it ends in order
        except OSError:
            self.broken = True
        if not self.broken:
            await self.end_stream()

    async def pour(self, data: bytes) -> None:
        """Send events, and wait until they are on their way."""
        self.fresh = True
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    # Questions -----------------------------------------------------------------------------------

    def forget_asked(self, reason: str) -> None:
        """Fail what this request asked the client and has no answer to."""
        for asked in list(self._asked or ()):
            settle = None if self.link is None else self.link.pending.pop(asked, None)
            if settle is not None:
                settle(None, ClosedError(reason))
