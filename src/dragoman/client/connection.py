"""One open transport and the requests on it: ids, metadata, time limits, progress, what the server asks.

It knows the revision once that is agreed on, and neither how it came to be nor what a tool is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from math import inf
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.client.frames import encode_call
from dragoman.client.inputs import PING, Inputs
from dragoman.client.loop import check_loop, loop_over
from dragoman.client.options import ClientOptions, ProgressHandler
from dragoman.client.recovery import Course, Patience, Recovery, is_safe
from dragoman.client.target import Target
from dragoman.client.waiting import Limits, Waiting
from dragoman.errors import ClosedError, LocalError, RemoteError
from dragoman.jsonrpc.message import (
    METHOD_NOT_FOUND,
    Notification,
    Request,
    Response,
    encode_error,
    encode_notification,
)
from dragoman.model import LoggingLevel, LoggingMessageParams, Params, ProgressParams, RequestMeta
from dragoman.revisions import Revision
from dragoman.transports.base import Outgoing, Transport

log = logging.getLogger("dragoman.client")

_NO_HEADERS: Final[Mapping[str, str]] = {}
_read_progress: Final = msgspec.json.Decoder(ProgressParams).decode
_read_log: Final = msgspec.json.Decoder(LoggingMessageParams).decode
_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True, eq=False)
class Extras:
    """What goes with one request beside its params."""

    subject: str | None = None  # for `Mcp-Name`
    mirrored: Mapping[str, str] | None = None  # `Mcp-Param-*`
    meta: Mapping[str, Any] | None = None  # members for `_meta`
    watched: bool = False  # asks for progress, which renews the idle limit
    progress: ProgressHandler | None = None
    limits: Limits | None = None  # in place of the connection's
    on_sent: Callable[[int], None] | None = None  # called with the id, each time it is sent
    safe: bool = False  # the server may get it twice, whatever its method is


PLAIN: Final = Extras()


class Connection:
    """The client's end of one transport."""

    def __init__(self, target: Target, *, options: ClientOptions, inputs: Inputs) -> None:
        self.target = target
        self._make = target.make
        self.transport: Transport = target.make()
        self.revision: Revision | None = None
        self.limits = Limits(options.idle_timeout, options.timeout)
        self.on_notice: Callable[[str, Raw], None] = _nobody  # every notification: method and params
        self.on_gap: Callable[[], None] = _nothing  # what a server says by itself may have been missed
        self.recovery = Recovery(target.name, options)
        self._options = options
        self.log_level: LoggingLevel | UnsetType = UNSET if options.log_handler is None else options.log_level
        self._inputs = inputs
        self._loop = asyncio.get_running_loop()
        self._last = 0
        self._open: dict[int | str, Waiting] = {}
        self._asking = 0
        self._asked_since = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._base = b"{"  # the `_meta` of every request, still open at its end
        self._closing: asyncio.Task[None] | None = None

    # Life --------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the transport."""
        await self._start()

    async def reopen(self) -> None:
        """Replace the transport by a new one to the same target: a process ended, start it once more."""
        await self.transport.close()
        self.transport = self._make()
        try:
            await self._start()
        except BaseException:
            await self.transport.close()  # it says so to whoever uses it
            raise

    async def use(self, make: Callable[[], Transport]) -> None:
        """Go over transports of another kind from now on."""
        self._make = make
        await self.reopen()

    async def _start(self) -> None:
        self._check_open()
        self.transport.tap = self._options.tap
        self.transport.on_gap = self._gap
        await self.transport.open(self._notified, self._asked)
        try:
            self._check_open()
        except ClosedError:  # closed meanwhile by another task, which knew nothing of this transport yet
            await self.transport.close()
            raise

    def _gap(self) -> None:
        self.on_gap()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise ClosedError("the connection is closed", server=self.target.name, stage="call")
        check_loop(self._loop, server=self.target.name)

    def agreed(self, revision: Revision) -> None:
        """Speak `revision` from now on."""
        self.revision = revision
        self._base = b"{" if revision.handshake else self.stateless_meta(revision)[:-1] + b","
        self.transport.agreed(revision)

    def set_log_level(self, level: LoggingLevel) -> None:
        """Ask for log entries from `level` up with each request, where each one says it for itself."""
        self.log_level = level
        if self.revision is not None and not self.revision.handshake:
            self._base = self.stateless_meta(self.revision)[:-1] + b","

    def stateless_meta(self, revision: Revision) -> bytes:
        """What each request of a stateless revision says of its sender (basic: `_meta`), encoded."""
        options = self._options
        meta = RequestMeta(
            protocol_version=revision.version,
            client_info=options.client_info,
            client_capabilities=self._inputs.capabilities(revision),
            log_level=self.log_level,
        )
        return _encode(meta)

    @property
    def closed(self) -> bool:
        """Whether `close` has begun."""
        return self._closing is not None

    async def close(self) -> None:
        """End everything; safe from any task, at any time, any number of times."""
        if loop_over(self._loop, server=self.target.name):
            return
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        # A closer that is cancelled leaves; the closing goes on for the others.
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self.recovery.close()
        await self.transport.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # Requests ----------------------------------------------------------------------------------------

    def next_id(self) -> int:
        """An id that no request of this connection had before."""
        self._last += 1
        return self._last

    async def request(self, method: str, params: Params | dict[str, Any], *, extras: Extras = PLAIN) -> Raw:
        """Send a request of the agreed revision and await its raw result.

        One that failed on its way is sent again where `Recovery` says so, with an id of its own.

        Raises:
            RemoteError: the server answered with an error.
            DeadlineError: a time limit ran out; the request is cancelled at the server.
            ClosedError, ConnectError, HttpError: as `Transport.exchange`.
            UsageError: the params cannot be sent as JSON.
        """
        recovery = self.recovery
        if recovery.renewal is not None:
            await recovery.ready()
        generation = recovery.generation
        try:
            response = await self._send(method, params, extras=extras)
        except LocalError as exc:
            limits = extras.limits or self.limits
            course = Course(
                send=lambda: self._send(method, params, extras=extras),
                safe=extras.safe or is_safe(method, self.revision),
                generation=generation,
                patience=Patience(min(recovery.limit, limits.overall or inf)),
            )
            restarts = self.transport.shared and self.target.restarts
            response = await recovery.again(exc, course, restarts=restarts)
        if response.error is None:
            return response.result
        raise remote_error(response)

    async def _send(self, method: str, params: Params | dict[str, Any], *, extras: Extras) -> Response:
        self._check_open()
        self._last = id_ = self._last + 1
        frame = encode_call(id_, method, params=params, meta=self._meta(id_, extras))
        outgoing = Outgoing(id_, method, frame, self.revision, extras.subject, extras.mirrored or _NO_HEADERS)
        waiting = Waiting(
            extras.limits or self.limits,
            now=self._loop.time(),
            held=self._asking > 0,
            progress=extras.progress,
        )
        self._open[id_] = waiting
        if extras.on_sent is not None:
            extras.on_sent(id_)
        try:
            async with waiting.scope:
                return await self.transport.exchange(outgoing, self._notified)
        except TimeoutError:
            if not waiting.scope.expired():
                raise
            late = waiting.late(method, now=self._loop.time())
            late.server = self.target.name
            late.stderr_tail = tuple(self.transport.facts().get("stderr_tail", ()))
            raise late from None
        finally:
            del self._open[id_]

    def _meta(self, id_: int, extras: Extras) -> Raw | UnsetType:
        if extras.meta:
            known: dict[str, Any] = msgspec.json.decode(self._closed_base()) if len(self._base) > 1 else {}
            token = {"progressToken": id_} if extras.watched else {}
            return Raw(_encode({**extras.meta, **known, **token}))
        if extras.watched:
            return Raw(b'%b"progressToken":%d}' % (self._base, id_))
        return Raw(self._closed_base()) if len(self._base) > 1 else UNSET

    def _closed_base(self) -> bytes:
        return self._base[:-1] + b"}"

    async def notify(self, method: str) -> None:
        """Send a notification without params."""
        self._check_open()
        await self.transport.notify(encode_notification(method), self.revision)

    # What comes in -----------------------------------------------------------------------------------

    def _notified(self, notification: Notification) -> None:
        method, params = notification.method, notification.params
        if method == "notifications/progress":
            self._progressed(params)
        elif method == "notifications/message":
            self._logged(params)
        else:
            self.on_notice(method, params)
        handler = self._options.notification_handler
        if handler is not None:
            self._tell(handler, method, msgspec.json.decode(params) if params else None)

    def _logged(self, params: Raw) -> None:
        if self._options.log_handler is None:
            return
        try:
            entry = _read_log(params or b"{}")
        except msgspec.ValidationError as exc:
            log.warning("%s: a malformed log entry was passed over: %s", self.target.name, exc)
        else:
            self._tell(self._options.log_handler, entry)

    def _progressed(self, params: Raw) -> None:
        try:
            progress = _read_progress(params or b"{}")
        except msgspec.ValidationError as exc:
            log.warning("%s: a malformed progress notification was passed over: %s", self.target.name, exc)
            return
        waiting = self._open.get(progress.progress_token)
        if waiting is None:
            return  # late, which the specification allows for
        if not self._asking:
            waiting.renew(self._loop.time())
        if waiting.progress is not None:
            total = None if progress.total is UNSET else progress.total
            message = None if progress.message is UNSET else progress.message
            self._tell(waiting.progress, progress.progress, total, message)

    def _tell(self, handler: Callable[..., Any], *arguments: Any) -> None:
        """Call a handler of the caller's; what it raises is logged and goes no further."""
        try:
            outcome = handler(*arguments)
        except Exception:
            log.exception("%s: a handler failed", self.target.name)
            return
        if isawaitable(outcome):
            task = self._loop.create_task(_finish(outcome, self.target.name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _asked(self, request: Request) -> bytes:
        """Answer a request of the server's own; the time it takes is not the server's."""
        if self.revision is not None and not self.revision.asks_inline:
            text = f"revision {self.revision.version} has no requests from server to client"
            return encode_error(request.id, METHOD_NOT_FOUND, text)
        if request.method == PING:
            return await self._inputs.respond(request)
        self._hold()
        try:
            return await self._inputs.respond(request)
        finally:
            self._release()

    def _hold(self) -> None:
        self._asking += 1
        if self._asking == 1:
            self._asked_since = self._loop.time()
            for waiting in self._open.values():
                waiting.hold()

    def _release(self) -> None:
        self._asking -= 1
        if self._asking == 0:
            now = self._loop.time()
            for waiting in self._open.values():
                waiting.resume(now, held=now - self._asked_since)


def _nobody(method: str, params: Raw) -> None:
    del method, params


def _nothing() -> None:
    pass


async def _finish(outcome: Any, server: str) -> None:
    try:
        await outcome
    except Exception:
        log.exception("%s: a handler failed", server)


def remote_error(response: Response) -> RemoteError:
    """The error of a response as an exception."""
    error = response.error
    if error is None:
        raise ValueError("a response without an error")
    data = None if error.data is UNSET else msgspec.json.decode(error.data)
    return RemoteError(error.code, error.message, data)
