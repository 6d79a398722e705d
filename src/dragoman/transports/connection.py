"""One message stream, served: frames come in, tasks answer them, frames go out.

What stdio, memory and any other stream of messages have in common on the server's side. It knows
no file descriptor: whoever owns the stream feeds `receive` and takes what `send` is given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import get_ident
from typing import Any

import msgspec

from dragoman.errors import ClosedError, Refusal
from dragoman.jsonrpc.message import (
    DEFAULT,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Batch,
    Id,
    Invalid,
    Limits,
    Message,
    Notification,
    Request,
    Response,
    decode,
    encode_batch,
    encode_error,
    encode_invalid,
    encode_notification,
    encode_request,
    encode_result,
)
from dragoman.model import CancelledParams
from dragoman.protocol.admission import admit
from dragoman.protocol.call import Kernel
from dragoman.protocol.link import Link
from dragoman.protocol.reading import READING
from dragoman.transports.driven import Starter

log = logging.getLogger("dragoman.server")

STUBBORN_SECONDS = 1.0  # that a cancelled call has to end before it is left behind

Send = Callable[[bytes], None]


class StreamChannel(msgspec.Struct, eq=False):
    """The way back to the sender of one request, over the stream that all requests share."""

    _connection: ServerConnection
    open: bool = True
    collector: _Collector | None = None  # of the batch that the request came in
    task: asyncio.Task[None] | None = None  # none until the work has to wait

    def notify(self, method: str, params: object) -> None:
        """Send a notification at once; nothing once the request is answered. Safe from any thread."""
        if self.open:
            self._connection.send(encode_notification(method, params))

    async def ask(self, method: str, params: object) -> Any:
        """Send a request of ours and await its raw result."""
        return await self._connection.ask(method, params)

    @property
    def congested(self) -> bool:
        """Whether the other side does not read what was sent so far."""
        return self._connection.congested()


class _Collector:
    """The answers of one batch, sent together when the last is there (JSON-RPC 2.0, section 6)."""

    __slots__ = ("_answers", "_owed", "_send")

    def __init__(self, owed: int, send: Send) -> None:
        self._answers: list[bytes] = []
        self._owed = owed
        self._send = send

    def settle(self, answer: bytes) -> None:
        """Add one answer; empty stands for a request that is answered by silence."""
        if answer:
            self._answers.append(answer)
        self._owed -= 1
        if self._owed == 0 and self._answers:
            self._send(encode_batch(self._answers))


class ServerConnection:
    """The server's side of one stream of messages.

    `send` takes one encoded message and must not block; `on_room` is called when work in flight
    falls below `max_in_flight` again after it was reached, so that reading can go on.
    """

    def __init__(
        self,
        kernel: Kernel,
        send: Send,
        *,
        limits: Limits = DEFAULT,
        max_in_flight: int = 1024,
        on_room: Callable[[], None] | None = None,
        congested: Callable[[], bool] = lambda: False,
    ) -> None:
        self._kernel = kernel
        self._transmit = send
        self._limits = limits
        self._max = max_in_flight
        self.full = False  # no further request should be read for now
        self.stubborn = 0  # calls that went on when everything was cancelled
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._starter = Starter(self._loop)
        self._open: dict[Id, StreamChannel] = {}
        self._idle: asyncio.Future[None] | None = None
        self.congested = congested
        self.link = Link(notify=self._notify)
        self._attached = True
        kernel.attach()
        kernel.linked(self.link)

    # Going out -----------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Pass one message on, from whichever thread a tool runs in."""
        if get_ident() == self._thread:
            self._transmit(frame)
        else:
            self._loop.call_soon_threadsafe(self._transmit, frame)

    def _notify(self, method: str, params: object) -> None:
        self.send(encode_notification(method, params))

    async def ask(self, method: str, params: object) -> Any:
        """Send a request of ours to the client and await its raw result.

        Raises:
            RemoteError: the client's error.
            ClosedError: the connection ended first.
        """
        future: asyncio.Future[Any] = self._loop.create_future()

        def settle(result: Any, exception: Exception | None) -> None:
            if future.done():
                return
            if exception is None:
                future.set_result(result)
            else:
                future.set_exception(exception)

        asked = self.link.ask(settle)
        self.send(encode_request(asked, method, params))
        try:
            return await future
        except asyncio.CancelledError:
            if self.link.forget(asked):
                self._notify("notifications/cancelled", CancelledParams(request_id=asked))  # type: ignore[arg-type]  # ours are integers
            raise

    # Coming in -----------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Requests that are being worked on."""
        return len(self._open)

    def receive(self, frame: bytes) -> None:
        """Take in one message; a request is begun, everything else is dealt with at once."""
        message = decode(frame, self._limits, known=READING.envelope)
        if type(message) is Request:
            self._start(message)
        else:
            self._take(message)

    def refuse(self, message: Invalid) -> None:
        """Answer bytes that a framing could not make a message of."""
        self._take(message)

    def _take(self, message: Message, collector: _Collector | None = None) -> None:
        send = self._transmit if collector is None else collector.settle
        kind = type(message)
        if kind is Request:
            self._start(message, collector)  # type: ignore[arg-type]  # the type was just looked at
        elif isinstance(message, Notification):
            self._notified(message)
        elif isinstance(message, Response):
            if not self.link.answered(message.id, result=message.result, error=message.error):
                log.warning("an answer to nothing that was asked was ignored (id %r)", message.id)
        elif isinstance(message, Batch):
            self._loop.call_soon(self._batch, message)
        elif isinstance(message, Invalid) and not message.of_response:
            send(encode_invalid(message))

    def _start(self, request: Request, collector: _Collector | None = None) -> None:
        id_, still_open = request.id, self._open
        if id_ in still_open:
            answer = in_use(id_)
            self._transmit(answer) if collector is None else collector.settle(answer)
            return
        channel = still_open[id_] = StreamChannel(self, collector=collector)
        if len(still_open) >= self._max:
            self.full = True
        task = self._starter.begin(self._run(request, channel))
        if task is not None:
            channel.task = task
            if not channel.open:
                self._stop(id_, channel)  # it was cancelled in its first step, when it had no task yet

    async def _run(self, request: Request, channel: StreamChannel) -> None:
        id_ = request.id
        try:
            link, kernel = self.link, self._kernel
            call = admit(request, link, channel=channel, principal=link.principal, extra=kernel.extra_methods)
            answer = encode_result(id_, await kernel.handle(call))
        except Refusal as exc:
            answer = refusal(id_, exc)
        except BaseException as exc:  # noqa: BLE001  # whatever it is, the stream goes on
            answer = b"" if not channel.open else failed(id_, request.method, exc=exc)
        if channel.open:
            channel.open = False
            del self._open[id_]
            if self.full or self._idle is not None:
                self._ended()
            send = self._transmit if channel.collector is None else channel.collector.settle
            send(answer)
        elif channel.task is None:
            self._silent(id_, channel)  # cancelled in its first step, which was its last
        # Else it was cancelled: it is answered by silence, and `_silent` sees to what it leaves.

    def _ended(self) -> None:
        """Somebody waits for fewer requests to be open, and there is one less."""
        if self.full:
            self.full = False
            if self._on_room is not None:
                self._on_room()
        if self._idle is not None and not self._open and not self._idle.done():
            self._idle.set_result(None)

    def _notified(self, notification: Notification) -> None:
        if notification.method == "notifications/cancelled":
            self._cancel(notification.params)
        else:
            # After the first step of every request that came before: `initialized` may follow its
            # `initialize` in one burst.
            self._loop.call_soon(self._deliver, notification)

    def _deliver(self, notification: Notification) -> None:
        self._kernel.notified(self.link, notification.method, params=notification.params)

    def _cancel(self, params: bytes | msgspec.Raw) -> None:
        # Malformed, unknown and late cancellations are passed over (cancellation: Error Handling).
        try:
            wanted = msgspec.json.decode(params or b"{}", type=CancelledParams).request_id
        except msgspec.ValidationError:
            log.warning("a malformed notifications/cancelled was ignored")
            return
        channel = self._open.get(wanted)  # type: ignore[arg-type]  # UNSET is no key of the table
        if channel is not None:
            self._stop(wanted, channel)  # type: ignore[arg-type]  # it was a key of the table

    def _stop(self, id_: Id, channel: StreamChannel) -> None:
        channel.open = False
        if channel.task is not None:
            # A task that is cancelled before its first step never runs, so it cannot tidy up after itself.
            channel.task.add_done_callback(lambda _: self._silent(id_, channel))
            channel.task.cancel()

    def _silent(self, id_: Id, channel: StreamChannel) -> None:
        """A cancelled request is over."""
        if self._open.get(id_) is channel:
            del self._open[id_]
            self._ended()
            if channel.collector is not None:
                channel.collector.settle(b"")  # the batch it belongs to no longer waits for it

    def _batch(self, batch: Batch) -> None:
        session = self.link.session
        if session is None or not session.revision.batches:
            spoken = "before the handshake" if session is None else f"in revision {session.revision.version}"
            self._transmit(
                encode_error(None, INVALID_REQUEST, f"Invalid request: there are no batches {spoken}")
            )
            return
        owed = sum(
            isinstance(item, Request) or (isinstance(item, Invalid) and not item.of_response)
            for item in batch.items
        )
        collector = _Collector(owed, self._transmit)
        for item in batch.items:
            self._take(item, collector)

    # The end -------------------------------------------------------------------------------------

    async def drain(self, timeout: float) -> None:
        """Let what is in flight finish for at most `timeout` seconds, then cancel the rest."""
        self._kernel.unlinked(self.link)
        self.link.close("the client closed the connection")
        if self._open:
            self._idle = self._loop.create_future()
            await asyncio.wait([self._idle], timeout=timeout)
        await self.cancel()

    async def cancel(self) -> None:
        """Stop everything at once; nothing more is sent for it. Calls that do not stop are left behind."""
        self._kernel.unlinked(self.link)
        self.link.close("the connection is closed")
        self._starter.close()
        still_open = dict(self._open)
        for id_, channel in still_open.items():
            self._stop(id_, channel)
        tasks = [channel.task for channel in still_open.values() if channel.task is not None]
        if tasks:
            _, stubborn = await asyncio.wait(tasks, timeout=STUBBORN_SECONDS)
            self.stubborn = len(stubborn)
            if stubborn:
                log.warning(
                    "%d calls go on although they were cancelled; they are left behind", len(stubborn)
                )
        if self._attached:
            self._attached = False
            await self._kernel.detach()


def in_use(id_: Id) -> bytes:
    """The answer to a request whose id belongs to one that is still open."""
    text = f"Invalid request: id {id_!r} is already in use by a request that is not answered yet"
    return encode_error(id_, INVALID_REQUEST, text)


def refusal(id_: Id, exc: Refusal) -> bytes:
    """A refusal as an encoded error answer; one that is no JSON is a failure of the server's."""
    try:
        return encode_error(id_, exc.code, exc.message, exc.data)
    except Exception as fault:  # noqa: BLE001  # a code, a text and data of the author's
        return failed(id_, "a refusal", exc=fault)


def failed(id_: Id, what: str, *, exc: BaseException) -> bytes:
    """The answer to a request whose handling broke inside the server, which the log says more about."""
    log.error("%s failed inside the server", what, exc_info=exc)
    return encode_error(id_, INTERNAL_ERROR, "Internal error")


__all__ = ["ClosedError", "ServerConnection", "StreamChannel", "failed", "in_use", "refusal"]
