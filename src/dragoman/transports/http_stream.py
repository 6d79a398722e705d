"""Event streams of a server: one that ends in an answer, and one that never has to end.

Both are taken up again where they broke off, as long as the server allows it. It knows events and
messages; how a stream is opened is passed in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from dragoman.errors import ClosedError, ConnectError, PeerFault
from dragoman.jsonrpc.framing import TooLong
from dragoman.jsonrpc.message import Invalid, Limits, Message, Response, read_id
from dragoman.protocol.sse import Event, Parser
from dragoman.transports.backoff import backoff
from dragoman.transports.base import Outgoing, Tap
from dragoman.transports.http_base import Reply
from dragoman.transports.http_fault import EVENTS, answers, media_type, messages

log = logging.getLogger("dragoman.http")

_RETRY: Final = 1.0  # seconds before a stream is taken up again, where the server gives no time
_ATTEMPTS: Final = 5  # in a row that brought nothing new
_MAX_WAIT: Final = 30.0

Other = Callable[[Message], None]
Again = Callable[[str | None], Awaitable[Reply]]
Pause = Callable[[float], Awaitable[None]]


class AnswerStream:
    """The stream that answers one request, over as many connections as it takes.

    `again` opens it anew after the id of the last event (2025-11-25, Streamable HTTP, "Resumability and
    Redelivery"); None where streams are not resumed, so that one that ends too early is an error at once.
    """

    def __init__(
        self,
        outgoing: Outgoing,
        *,
        limits: Limits,
        other: Other,
        again: Again | None,
        pause: Pause,
        tap: Tap | None = None,
    ) -> None:
        self._outgoing = outgoing
        self._limits = limits
        self._other = other
        self._again = again
        self._pause = pause
        self._tap = tap
        self._parser = Parser(limits.max_bytes)

    async def answer(self, reply: Reply) -> Response:
        """The response, when it has come.

        Raises:
            ClosedError: the stream ended without it and was not, or could not be, resumed.
            PeerFault: what came in its place cannot be taken for it.
        """
        fruitless = 0
        while True:
            known = self._parser.last_id
            try:
                response = await self._read(reply)
                if response is not None:
                    return response
                fault = ClosedError(f"the stream ended without the answer to {self._outgoing.method}")
            except ClosedError as exc:
                fault = ClosedError(f"{self._outgoing.method} was not answered: {exc.message}")
            fruitless = 0 if self._parser.last_id != known else fruitless + 1
            if self._again is None or not self._parser.last_id or fruitless >= _ATTEMPTS:
                raise fault
            reply = await self._resume(self._again, fault)

    async def _read(self, reply: Reply) -> Response | None:
        """Read one connection to the response or to its end; however it ends, the connection is let go."""
        try:
            while data := await reply.chunk():
                response = self._take(data)
                if response is not None:
                    reply.finish()
                    return response
        except BaseException:
            reply.abort()
            raise
        return None

    def _take(self, data: bytes) -> Response | None:
        for event in self._parser.feed(data):
            if isinstance(event, TooLong):
                self._too_long(event)
                continue
            for message in _messages(event, self._limits, tap=self._tap):
                if answers(message, self._outgoing.id):
                    return message
                if isinstance(message, Invalid) and message.of_response:
                    raise PeerFault(f"the answer to {self._outgoing.method} is none: {message.detail}")
                self._other(message)
        return None

    def _too_long(self, event: TooLong) -> None:
        text = f"an event is longer than {self._limits.max_bytes} bytes"
        if read_id(event.head) in (None, self._outgoing.id):
            raise PeerFault(f"{self._outgoing.method} cannot be answered: {text}")
        log.warning("%s", text)

    async def _resume(self, again: Again, fault: ClosedError) -> Reply:
        parser = self._parser
        wait = _RETRY if parser.retry is None else parser.retry / 1000
        why = ""
        for attempt in range(_ATTEMPTS):
            await self._pause(max(wait, _backoff(attempt) if attempt else 0))
            try:
                reply = await again(parser.last_id)
            except (ConnectError, ClosedError) as exc:
                why = exc.message
                continue
            if reply.status == 200 and media_type(reply.headers) == EVENTS:
                self._parser = _fresh(parser, self._limits)
                return reply
            status = reply.status
            reply.abort()
            why = f"HTTP {status}"
            if status < 500:
                break
        raise ClosedError(f"{fault.message}; resuming it failed: {why}") from None


class Listener:
    """The stream by which a server says what belongs to no request (2025-11-25, "Listening for Messages").

    `tried` is set once it is open, or has failed to open for the first time. `gap` is called where it was
    open once, and is opened again, or not any more, without an event id to go on from.
    """

    def __init__(
        self,
        again: Again,
        *,
        limits: Limits,
        other: Other,
        pause: Pause,
        tap: Tap | None = None,
        gap: Callable[[], None] | None = None,
    ) -> None:
        self._again = again
        self._limits = limits
        self._other = other
        self._pause = pause
        self._tap = tap
        self._gap = gap
        self._was_open = False
        self._parser = Parser(limits.max_bytes)
        self.tried = asyncio.Event()

    async def run(self) -> None:
        """Listen until the server says that there is nothing to listen to, or fails too often in a row."""
        fruitless = 0
        while fruitless < _ATTEMPTS:
            try:
                reply = await self._open()
                if reply.status < 500 and (reply.status != 200 or media_type(reply.headers) != EVENTS):
                    reply.abort()
                    break
                if reply.status == 200:
                    self._opened()
                heard = await self._hear(reply)
            except (ClosedError, ConnectError) as exc:
                log.debug("the listening stream broke: %s", exc.message)
                heard = False
            fruitless = 0 if heard else fruitless + 1
            retry = _RETRY if self._parser.retry is None else self._parser.retry / 1000
            await self._pause(max(retry, _backoff(fruitless)))
        if self._was_open and self._gap is not None:
            self._gap()

    def _opened(self) -> None:
        if self._was_open and not self._parser.last_id and self._gap is not None:
            self._gap()
        self._was_open = True

    async def _open(self) -> Reply:
        try:
            return await self._again(self._parser.last_id)
        finally:
            self.tried.set()

    async def _hear(self, reply: Reply) -> bool:
        """Read one connection to its end; whether anything came."""
        heard = False
        self._parser = _fresh(self._parser, self._limits)
        try:
            while reply.status == 200 and (data := await reply.chunk()):
                for event in self._parser.feed(data):
                    heard = True
                    if isinstance(event, TooLong):
                        log.warning("an event of %d bytes and more was passed over", event.size)
                        continue
                    for message in _messages(event, self._limits, tap=self._tap):
                        self._other(message)
        finally:
            reply.abort()
        return heard


def _messages(event: Event, limits: Limits, *, tap: Tap | None) -> tuple[Message, ...]:
    """What an event holds: nothing when it only primes a resumption, or is of a type that is not ours."""
    if not event.data or event.event not in (None, "message"):
        return ()
    if tap is not None:
        tap("in", event.data)
    return messages(event.data, limits)


def _fresh(parser: Parser, limits: Limits) -> Parser:
    """A parser for the next connection of a stream; what was incomplete will be sent again."""
    fresh = Parser(limits.max_bytes, parser.last_id)
    fresh.retry = parser.retry
    return fresh


def _backoff(failures: int) -> float:
    return backoff(failures - 1, first=_RETRY, most=_MAX_WAIT) if failures else 0.0
