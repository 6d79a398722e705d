"""What an HTTP app does for the requests of sessions: calls, batches, messages, streams, the end.

Which request is one of a session's is decided by `protocol.http`; how sessions are kept, by
`asgi_sessions`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec

from dragoman.errors import LocalError, Refusal
from dragoman.jsonrpc.message import Notification, Response, encode_error
from dragoman.model import CancelledParams
from dragoman.protocol.call import Call, Kernel
from dragoman.protocol.head import Say, fault
from dragoman.protocol.http import SESSION, End, Hear, Serve, ServeBatch
from dragoman.protocol.link import Link
from dragoman.protocol.sessions import read_event_id
from dragoman.transports.asgi_batch import HttpBatch
from dragoman.transports.asgi_events import OWN, EventStream, priming
from dragoman.transports.asgi_exchange import CANCELLED, Exchange
from dragoman.transports.asgi_resume import SessionExchange
from dragoman.transports.asgi_session import HttpSession
from dragoman.transports.asgi_sessions import Sessions
from dragoman.transports.asgi_shared import SharedSessions
from dragoman.transports.connection import in_use

log = logging.getLogger("dragoman.http")

AGAIN: Final = ((b"retry-after", b"5"),)
_read_cancelled = msgspec.json.Decoder(CancelledParams).decode
Handled = Callable[[Exchange, Call], Awaitable[tuple[bytes, int]]]


class Seated:
    """The requests of sessions. `handled` lets the kernel handle a call: the encoded answer, the status.

    `on_session` is told whenever there may be a session more to look after.
    """

    def __init__(
        self, kernel: Kernel, sessions: Sessions, *, handled: Handled, on_session: Callable[[], None]
    ) -> None:
        self._kernel = kernel
        self._sessions = sessions
        self._shared = sessions.shared
        self._handled = handled
        self._on_session = on_session

    async def arrive(self, exchange: Exchange) -> Say | None:
        """Have the session that a request names as all processes know it; what to say if that fails."""
        shared = self._shared
        if shared is None:
            return None
        key = exchange.head.fields[SESSION].strip().decode("latin-1")
        try:
            await shared.visit(key, principal=exchange.principal)
        except LocalError as exc:
            return _no_store(exc)
        return None

    async def serve(self, exchange: Exchange, plan: Serve[HttpSession]) -> None:
        """Handle a call of a session, or the one that opens it."""
        call, seat = plan.call, plan.seat
        exchange.link = call.link
        exchange.cancels = call.revision.http.disconnect_cancels
        if seat is None:
            await self._open(exchange, call)
        elif call.id in seat.calls:
            await exchange.answer(in_use(call.id), status=400)
        else:
            self._on_session()
            await self._serve(exchange, call, seat=seat)

    async def _open(self, exchange: Exchange, call: Call) -> None:
        if not self._sessions.room():
            text = f"No room for another session (at most {self._sessions.limit}, all in use)"
            await exchange.say(fault(503, text, headers=AGAIN))
            return
        link = call.link
        link.principal = exchange.principal
        frame, status = await self._handled(exchange, call)
        if link.session is None or status != 200:
            await exchange.answer(frame, status=status)
            return
        try:
            session = self._sessions.begin(link)
        except Refusal as exc:
            await exchange.answer(encode_error(call.id, exc.code, exc.message, exc.data))
            return
        if self._shared is not None:
            try:
                await self._shared.open(session)
            except LocalError as exc:
                self._sessions.forget(session, "the store failed")
                await exchange.say(_no_store(exc))
                return
        self._on_session()
        exchange.extra = [*exchange.extra, (SESSION, session.id.encode())]
        await exchange.answer(frame, status=status)

    async def _serve(self, exchange: Exchange, call: Call, *, seat: HttpSession) -> None:
        if isinstance(exchange, SessionExchange):
            exchange.seat = seat
        exchange.asks = call.revision.asks_inline
        self._sessions.touch(seat)
        seat.calls[call.id] = partial(exchange.stop, CANCELLED)
        answered = False
        try:
            frame, status = await self._handled(exchange, call)
            await self._save(seat)
            answered = True
        finally:
            seat.calls.pop(call.id, None)
            self._sessions.touch(seat)
            if not answered and isinstance(exchange, SessionExchange):
                exchange.abandon()
        await exchange.answer(frame, status=status)

    async def _save(self, seat: HttpSession) -> None:
        if self._shared is not None:
            try:
                await self._shared.save(seat)
            except LocalError as exc:  # the answer is there: it is not lost for that
                log.error("the store of sessions failed: %s", exc)  # the message says it all

    async def serve_batch(self, exchange: Exchange, plan: ServeBatch[HttpSession]) -> None:
        """Handle the calls of a batch, and take its other messages."""
        seat = plan.seat
        if isinstance(exchange, SessionExchange):
            exchange.seat = seat
        for message in plan.incoming:
            await self.take(seat, message)
        self._sessions.touch(seat)
        try:
            await HttpBatch(self._kernel, seat, exchange=exchange).answer(plan.items)
        except BaseException:
            if isinstance(exchange, SessionExchange):
                exchange.abandon()
            raise
        await self._save(seat)
        self._sessions.touch(seat)

    # Messages that are owed no answer ------------------------------------------------------------

    async def take(self, seat: HttpSession | None, message: Notification | Response) -> Say:
        """Pass on a message that is owed no answer."""
        if seat is None:
            if isinstance(message, Notification):
                self._kernel.notified(Link(), message.method, params=message.params)
            return Say(202)
        self._sessions.touch(seat)
        try:
            if isinstance(message, Response):
                return await self._answered(seat, message)
            if message.method == "notifications/cancelled":
                await self._cancel(seat, message.params)
            else:
                self._kernel.notified(seat.link, message.method, params=message.params)
                await self._save(seat)
        except LocalError as exc:
            return _no_store(exc)
        return Say(202)

    async def _answered(self, seat: HttpSession, message: Response) -> Say:
        if seat.link.answered(message.id, result=message.result, error=message.error):
            return Say(202)
        if self._shared is not None:  # another process may await it
            await self._shared.answer(seat, message)
            return Say(202)
        return fault(400, f"Nobody awaits an answer with id {message.id!r}: it was given, or given up on")

    async def _cancel(self, seat: HttpSession, params: bytes) -> None:
        # Malformed, unknown and late cancellations are passed over (cancellation: Error Handling).
        try:
            wanted = _read_cancelled(params or b"{}").request_id
        except msgspec.ValidationError:
            log.warning("a malformed notifications/cancelled was ignored")
            return
        if wanted is msgspec.UNSET:
            return
        stop = seat.calls.get(wanted)
        if stop is not None:
            stop()
        elif self._shared is not None:
            await self._shared.cancel(seat, wanted)

    # Streams -------------------------------------------------------------------------------------

    async def hear(self, exchange: SessionExchange, plan: Hear[HttpSession]) -> None:
        """Carry the session's own stream, or go on with the one that the last event is of.

        A session has one stream of its own, and one connection carries it: a new one takes the place
        of one that may be broken, unnoticed.
        """
        seat, place = plan.seat, None
        if plan.last is not None:
            place = read_event_id(plan.last)
            if place is None:
                await exchange.say(_not_kept(plan.last))
                return
        self._on_session()
        seat.attach(exchange)
        try:
            if self._shared is not None:
                await self._carry_shared(exchange, plan, shared=self._shared, place=place)
                return
            name, after = (OWN, seat.own.heard) if place is None else place
            stream = seat.shelf.streams.get(name)
            if stream is None:
                await exchange.say(_not_kept(plan.last))
            else:
                await self._carry(exchange, stream, after=after, primes=place is None and seat.primes)
        except LocalError as exc:
            if not exchange.started:
                await exchange.say(_no_store(exc))
        finally:
            seat.detach(exchange)
            self._sessions.touch(seat)

    async def _carry(
        self, exchange: SessionExchange, stream: EventStream, *, after: int, primes: bool
    ) -> None:
        if stream.id == OWN:
            stream.limit = self._sessions.events.max_events  # it is asked for: more is kept from now on
        await exchange.carry_stream(stream, after, primes=primes)

    async def _carry_shared(
        self,
        exchange: SessionExchange,
        plan: Hear[HttpSession],
        *,
        shared: SharedSessions,
        place: tuple[str, int] | None,
    ) -> None:
        seat, streams = plan.seat, shared.streams
        name, after = place if place is not None else (OWN, await streams.heard(seat))
        here = None if name == OWN else seat.shelf.streams.get(name)
        if here is not None:
            await streams.take_over(seat, name, connection=exchange)
            await self._carry(exchange, here, after=after, primes=False)
        elif name != OWN and not await streams.known(seat, name):
            await exchange.say(_not_kept(plan.last))
        else:
            events = streams.tail(seat, name, after=after, connection=exchange)
            first = priming(OWN, after) if place is None and seat.primes else b""
            await exchange.carry_events(events, priming=first)

    async def end(self, exchange: Exchange, plan: End[HttpSession]) -> None:
        """The client ends the session."""
        if self._shared is not None:
            try:
                await self._shared.end(plan.seat)
            except LocalError as exc:
                await exchange.say(_no_store(exc))
                return
        self._sessions.end(plan.seat, "the client ended the session")
        await exchange.say(Say(204))


def _not_kept(last: str | None) -> Say:
    text = f"Last-Event-ID {last!r}: its stream is over, or its events are no longer kept"
    return fault(400, text)


def _no_store(exc: LocalError) -> Say:
    log.error("the store of sessions failed: %s", exc)
    return fault(503, "Sessions cannot be looked up at the moment", headers=AGAIN)
