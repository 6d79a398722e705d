"""A client's end of one channel that all messages share, over a connection that somebody else keeps.

Answers are paired with requests, and what the server asks is answered. It refuses to know what carries the
messages, which a transport fills in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from dragoman.errors import ClosedError, LocalError, UsageError
from dragoman.jsonrpc.framing import TooLong
from dragoman.jsonrpc.message import (
    INTERNAL_ERROR,
    Batch,
    Id,
    Limits,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_notification,
    too_large,
)
from dragoman.revisions.base import Revision
from dragoman.transports.base import OnNotification, OnRequest, Outgoing, Tap
from dragoman.transports.ledger import Ledger

log = logging.getLogger("dragoman")

_ASKED: Final = 256  # requests of the server that are worked on at the same time
_GOODBYE: Final = 2.0  # seconds for a cancellation to be told

_read_members: Final = msgspec.json.Decoder(dict[str, Any]).decode


class Channel:
    """What transports over one shared channel have in common; see `base.Transport`.

    A transport fills in `_connect`, `_transmit` and `_disconnect`, passes what it hears to `_receive` and
    says with `_over` when nothing comes any more.
    """

    shared = True

    def __init__(self, name: str, *, limits: Limits) -> None:
        self.name = name
        self.tap: Tap | None = None
        self.on_gap: Callable[[], None] | None = None
        self._limits = limits
        self._ledger = Ledger(name)
        self._asked: dict[Id, asyncio.Task[None]] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._opened = False
        self._why = ""  # it is over, once it is known why
        self._on_notification: OnNotification | None = None
        self._on_request: OnRequest | None = None
        self._closing: asyncio.Task[None] | None = None

    # For the transport to fill in ----------------------------------------------------------------------

    async def _connect(self) -> None:
        """Make the connection. Raises as `base.Transport.open`."""

    async def _transmit(self, frame: bytes) -> None:
        """Send one message. Raises as `base.Transport.exchange`."""

    async def _disconnect(self) -> None:
        """Close the connection; nothing is to be sent any more."""

    # Life --------------------------------------------------------------------------------------------

    async def open(self, on_notification: OnNotification, on_request: OnRequest) -> None:
        """Make the connection.

        Raises:
            ConnectError, HttpError, PeerFault: it did not come about.
        """
        if self._opened:
            raise UsageError("this transport has been opened before", server=self.name)
        self._opened = True
        self._on_notification, self._on_request = on_notification, on_request
        try:
            await self._connect()
        except LocalError as exc:
            exc.server = self.name
            exc.stage = "connect"
            raise

    def agreed(self, revision: Revision) -> None:
        """Nothing depends on the revision here."""

    async def close(self) -> None:
        """End the connection. Safe from any task, in any order, twice."""
        if self._closing is None:
            self._opened = True
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._telling:
            await asyncio.wait(self._telling, timeout=_GOODBYE)
        self._over("the connection was closed from this side")
        tasks = [*self._telling, *self._asked.values()]
        for task in tasks:
            task.cancel()
        await self._disconnect()
        if tasks:
            await asyncio.wait(tasks)

    def _over(self, why: str) -> None:
        """No answer comes any more: end everything that is open."""
        if self._why:
            return
        self._why = why
        self._ledger.fail(self._closed)
        current = asyncio.current_task()
        for task in list(self._asked.values()):
            if task is not current:
                task.cancel()
        if self._closing is None and self.on_gap is not None:
            self.on_gap()

    def _closed(self) -> ClosedError:
        return ClosedError(self._why, server=self.name, stage="call")

    def facts(self) -> Mapping[str, Any]:
        """Whether it is open, and what the server did that it should not."""
        return {"running": self._opened and not self._why, "asked": len(self._asked), **self._ledger.facts()}

    # Going out -----------------------------------------------------------------------------------------

    async def exchange(self, outgoing: Outgoing, on_notification: OnNotification | None = None) -> Response:
        """Send a request and await its response; every notification goes to the one that `open` was given.

        Cancelling sends `notifications/cancelled`, except for `initialize`. Raises as `base.Transport`.
        """
        self._check()
        id_, pending = outgoing.id, self._ledger.pending
        if id_ in pending:
            text = f"id {id_!r} is already in use by a request that is not answered yet"
            raise UsageError(text, server=self.name, stage="call")
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        pending[id_] = future
        try:
            await self._say(outgoing.frame)
            return await future
        except asyncio.CancelledError:
            if self._ledger.give_up(id_, future) and not self._why:
                self._ledger.abandon(id_)
                if not outgoing.handshake:
                    self._tell(encode_notification("notifications/cancelled", {"requestId": id_}))
            raise
        except LocalError as exc:
            self._ledger.give_up(id_, future)
            exc.server = exc.server or self.name
            exc.stage = exc.stage or "call"
            raise

    async def notify(self, frame: bytes, revision: Revision | None) -> None:
        """Send a notification. Raises as `exchange`."""
        del revision
        self._check()
        await self._say(frame)

    async def _say(self, frame: bytes) -> None:
        if self.tap is not None:
            self.tap("out", frame)
        await self._transmit(frame)

    def _check(self) -> None:
        if self._why:
            error = self._closed()
            error.undelivered = True
            raise error
        if not self._opened:
            raise UsageError("this transport has not been opened", server=self.name, stage="call")

    def _tell(self, frame: bytes) -> None:
        task = asyncio.get_running_loop().create_task(self._quietly(self._say(frame)))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _quietly(self, work: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(_GOODBYE):
                await work
        except (LocalError, TimeoutError) as exc:
            log.info("%s: %s", self.name, str(exc) or "the time for it ran out")

    # Coming in -----------------------------------------------------------------------------------------

    def _receive(self, frame: bytes) -> None:
        """A message came in."""
        if self._why:
            return
        if self.tap is not None:
            self.tap("in", frame)
        self._dispatch(decode(frame, self._limits), frame)

    def _too_long(self, event: TooLong) -> None:
        """What came is longer than a message may be."""
        fault = too_large(event.size, self._limits.max_bytes, head=event.head)
        self._ledger.unreadable(fault, event.head)

    def _dispatch(self, message: Message, frame: bytes) -> None:
        if isinstance(message, Response):
            self._ledger.settle(message)
        elif isinstance(message, Notification):
            self._notified(message)
        elif isinstance(message, Request):
            self._serve(message)
        elif isinstance(message, Batch):
            for item in message.items:
                self._dispatch(item, frame)
        else:
            self._ledger.unreadable(message, frame)

    def _notified(self, message: Notification) -> None:
        if message.method == "notifications/cancelled":
            with contextlib.suppress(msgspec.DecodeError, TypeError):
                task = self._asked.pop(_read_members(message.params or b"{}").get("requestId"), None)
                if task is not None:
                    task.cancel()
        try:
            if self._on_notification is not None:
                self._on_notification(message)
        except Exception:
            log.exception("%s of server %r failed in its handler", message.method, self.name)

    def _serve(self, request: Request) -> None:
        if request.id in self._asked or len(self._asked) >= _ASKED:
            text = f"id {request.id!r} is already in use, or there are more than {_ASKED} requests at once"
            self._tell(encode_error(request.id, INTERNAL_ERROR, text))
            return
        task = self._asked[request.id] = asyncio.get_running_loop().create_task(self._answer(request))
        task.add_done_callback(lambda _: self._asked.pop(request.id, None))

    async def _answer(self, request: Request) -> None:
        try:
            frame = b"" if self._on_request is None else await self._on_request(request)
        except Exception:
            log.exception("%s of server %r failed in its handler", request.method, self.name)
            frame = encode_error(request.id, INTERNAL_ERROR, "Internal error")
        if frame and not self._why:
            await self._quietly(self._say(frame))
