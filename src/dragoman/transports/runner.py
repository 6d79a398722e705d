"""The requests of the other side, run: one task each, answered as they end, called off on demand.

It drives a service for one connection and hands finished frames on. It refuses to know streams.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeGuard

import msgspec
from msgspec import Raw

from dragoman.errors import Refusal
from dragoman.jsonrpc.binding import Exchange
from dragoman.jsonrpc.message import Id
from dragoman.jsonrpc.peer import NotificationReceived, Peer, RequestReceived
from dragoman.jsonrpc.service import Call, Cancellation, Fault, Service

logger: Final = logging.getLogger("dragoman.jsonrpc")

TOO_MANY: Final = -32000


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How one stream is driven.

    `max_in_flight` requests of the other side run at a time; reading stops while there are as many.
    When they in turn wait for answers from the other side, reading goes on and further requests are
    refused with -32000, since otherwise both sides would wait for ever. `drain_seconds` is the time
    that owed answers have after the end of input.
    """

    max_in_flight: int = 1000
    drain_seconds: float | None = 10.0
    cancellation: Cancellation | None = None


class Runner:
    """Runs the methods of `service` for the other side of `peer`.

    `send` takes frames to send; `ask` and `tell` send a request and a notification of ours; `freed`
    is called when there is room for one more request.
    """

    def __init__(
        self,
        service: Service,
        peer: Peer,
        *,
        options: Options,
        send: Callable[[bytes], None],
        ask: Callable[[str, Any], Awaitable[Any]],
        tell: Callable[[str, Any], bool],
        freed: Callable[[], None],
    ) -> None:
        self._service = service
        self._peer = peer
        self._options = options
        self._send = send
        self._ask = ask
        self._tell = tell
        self._freed = freed
        self._running: dict[Id, asyncio.Future[Any]] = {}
        self._background: set[asyncio.Future[Any]] = set()
        self._called_off: set[Id] = set()
        self._stopped = False

    @property
    def full(self) -> bool:
        """Whether as many requests are running as may."""
        return len(self._running) >= self._options.max_in_flight

    @property
    def busy(self) -> bool:
        """Whether anything is running."""
        return bool(self._running or self._background)

    async def finish(self) -> None:
        """Wait for what is running, at most `drain_seconds`."""
        owed = [*self._running.values(), *self._background]
        if owed:
            await asyncio.wait(owed, timeout=self._options.drain_seconds)
            await asyncio.sleep(0)  # the callbacks that answer run one turn later

    def stop(self) -> None:
        """Cancel what is running, save the task that asks for it. No answer is sent any more."""
        self._stopped = True
        for task in (*self._running.values(), *self._background):
            if task is not asyncio.current_task():
                task.cancel()

    def request(self, request: RequestReceived) -> None:
        """Run a request; its answer is sent when it is there."""
        if self.full:
            self._refuse(request, Fault(TOO_MANY, "Too many requests in flight"))
            return
        outcome = self._attempt(request)
        if _is_future(outcome):
            self._running[request.id] = outcome
            outcome.add_done_callback(lambda done: self._settle(request, done))
        elif isinstance(outcome, Fault):
            self._refuse(request, outcome)
        else:
            self._respond(request, outcome)

    def notification(self, notification: NotificationReceived) -> None:
        """Run a notification, or do what it says where it calls a request off."""
        cancellation = self._options.cancellation
        if cancellation is not None and notification.method == cancellation.method:
            self._cancel(notification.params, cancellation.member)
            return
        outcome = self._attempt(notification)
        if _is_future(outcome):
            self._background.add(outcome)
            outcome.add_done_callback(lambda done: self._note(notification.method, done))

    def _attempt(self, received: RequestReceived | NotificationReceived) -> Any:
        """Run it: a future, a fault, or the value at once."""
        try:
            call = self._service.bind(received, self._exchange(received))
        except Refusal as error:
            return self._service.fault(error, bound=False)
        try:
            return begin(call)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it raises is an answer
            return self._fault(received.method, error)

    def _settle(self, request: RequestReceived, done: asyncio.Future[Any]) -> None:
        self._running.pop(request.id, None)
        self._freed()
        called_off = request.id in self._called_off
        self._called_off.discard(request.id)
        if self._stopped:
            # An exception that nobody looked at would be reported as forgotten.
            _ = None if done.cancelled() else done.exception()
        elif done.cancelled() and called_off:
            self._answer_cancelled(request)
        elif done.cancelled():
            self._refuse(request, self._fault(request.method, asyncio.CancelledError()))
        elif (error := done.exception()) is not None:
            self._refuse(request, self._fault(request.method, error))
        else:
            self._respond(request, done.result())

    def _answer_cancelled(self, request: RequestReceived) -> None:
        cancellation = self._options.cancellation
        if cancellation is None or cancellation.code is None:
            self._send(self._peer.drop(request.id))
        else:
            self._refuse(request, Fault(cancellation.code, cancellation.message))

    def _note(self, method: str, done: asyncio.Future[Any]) -> None:
        self._background.discard(done)
        if not done.cancelled() and (error := done.exception()) is not None:
            self._fault(method, error)

    def _cancel(self, params: Raw, member: str) -> None:
        try:
            id_: Id = msgspec.json.decode(msgspec.json.decode(params, type=dict[str, Raw])[member])
            running = self._running.get(id_)
        except (msgspec.DecodeError, KeyError, TypeError):
            logger.warning("a cancellation names no request: expected its id as %r", member)
            return
        if running is not None:
            self._called_off.add(id_)
            running.cancel()

    def _fault(self, method: str, error: BaseException) -> Fault:
        fault = self._service.fault(error)
        if fault.internal:
            logger.error("method %r failed", method, exc_info=error)
        return fault

    def _respond(self, request: RequestReceived, value: Any) -> None:
        try:
            frame = self._peer.respond(request.id, value)
        except Exception as error:  # noqa: BLE001 - a value that is no JSON, by whatever way it fails
            self._refuse(request, self._fault(request.method, error))
        else:
            self._send(frame)

    def _refuse(self, request: RequestReceived, fault: Fault) -> None:
        self._send(self._peer.refuse(request.id, fault.code, fault.message, fault.data))

    def _exchange(self, received: RequestReceived | NotificationReceived) -> Exchange:
        id_ = received.id if isinstance(received, RequestReceived) else None
        return Exchange(id_, received.method, notify=self._tell, request=self._ask)


def _is_future(value: Any) -> TypeGuard[asyncio.Future[Any]]:
    return isinstance(value, asyncio.Future)


def begin(call: Call) -> Any:
    """Run a call: its value, or a future of it where it waits or has to stay off the loop."""
    if call.thread:
        return asyncio.ensure_future(asyncio.to_thread(call.run))
    value = call.run()
    return asyncio.ensure_future(value) if inspect.isawaitable(value) else value
