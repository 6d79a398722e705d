"""Who listens to a server: each keeps one feed supplied, on through broken connections.

A stateless server is listened to with `subscriptions/listen` (2026-07-28, Subscriptions), a session with
what it sends by itself and `resources/subscribe`. How changes are read is not known here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from dragoman.client.connection import Connection, Extras
from dragoman.client.feed import Feed, Wish
from dragoman.client.waiting import Limits
from dragoman.errors import DeadlineError, DragomanError, HttpError, LocalError, RemoteError, UsageError
from dragoman.jsonrpc.message import INTERNAL_ERROR
from dragoman.model import (
    Params,
    RequestId,
    ServerCapabilities,
    SubscribeParams,
    SubscriptionFilter,
    SubscriptionsListenParams,
    UnsubscribeParams,
)
from dragoman.transports.backoff import backoff

log = logging.getLogger("dragoman.client")

ATTEMPTS: Final = 8  # in a row that came to nothing
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 20.0
_GOODBYE: Final = 2.0  # seconds for the server to be told that nobody listens any more
_BUSY: Final = frozenset({408, 425, 429})  # HTTP statuses that pass, beside all from 500 up


class Watches:
    """The resources that a session is subscribed to, each for as long as anybody wants it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._wanted: dict[str, int] = {}
        self._lock = asyncio.Lock()

    async def add(self, uri: str) -> None:
        """Want to hear of it. Raises as `Connection.request`."""
        async with self._lock:
            if uri not in self._wanted:
                await self._connection.request("resources/subscribe", SubscribeParams(uri=uri))
            self._wanted[uri] = self._wanted.get(uri, 0) + 1

    async def drop(self, uri: str) -> None:
        """Want it no more, once for each `add`; without one, the server is told all the same."""
        async with self._lock:
            left = self._wanted.pop(uri, 1) - 1
            if left > 0:
                self._wanted[uri] = left
            else:
                await self._connection.request("resources/unsubscribe", UnsubscribeParams(uri=uri))

    async def renew(self) -> None:
        """Subscribe once more, at a server that has forgotten it."""
        async with self._lock:
            for uri in self._wanted:
                try:
                    await self._connection.request("resources/subscribe", SubscribeParams(uri=uri))
                except DragomanError as exc:
                    log.warning("the subscription to %s could not be renewed: %s", uri, exc)


class Registry:
    """Who listens over one connection."""

    def __init__(self, connection: Connection, capabilities: ServerCapabilities) -> None:
        self.connection = connection
        self.name = connection.target.name
        self.capabilities = capabilities
        self.watches = Watches(connection)
        self.everybody: set[Listener] = set()
        self.by_id: dict[RequestId, Listener] = {}
        self.renewing: asyncio.Task[None] | None = None
        self.closing = False
        self.on_missed: Callable[[], None] = lambda: None  # changes may have been missed

    def forget(self, listener: Listener) -> None:
        """It has ended."""
        self.everybody.discard(listener)
        self.by_id = {id_: other for id_, other in self.by_id.items() if other is not listener}

    def assign(self, id_: int, listener: Listener) -> None:
        """What comes under that subscription id is for this one."""
        self.by_id = {known: other for known, other in self.by_id.items() if other is not listener}
        self.by_id[id_] = listener

    async def settled(self) -> None:
        """Return when a server that has forgotten everything has been told again."""
        if self.renewing is not None:
            await asyncio.wait([self.renewing])


class Listener:
    """Keeps one feed supplied, in a task of its own, until nobody reads it any more."""

    def __init__(self, registry: Registry, feed: Feed) -> None:
        self._registry = registry
        self._connection = registry.connection
        self._name = registry.name
        self.feed = feed
        self._fault: LocalError | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self.feed.on_stop = self._stop
        self._task = asyncio.get_running_loop().create_task(self._run())

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._listen()
        except asyncio.CancelledError:
            self.feed.end(self._fault)
        except DragomanError as exc:
            self.feed.end(None if self._connection.closed else exc)
        except BaseException as exc:
            self.feed.end(exc)
            raise
        finally:
            self.feed.end()
            self._registry.forget(self)
            self.feed.ended.set_result(None)

    async def _listen(self) -> None:
        """Listen until it is over."""

    def acknowledge(self, answer: SubscriptionFilter) -> None:
        """The server says what of the wish it grants; it may come more than once."""

    def gap(self) -> None:
        """What the server says by itself may have been missed."""

    def _fail(self, fault: LocalError) -> None:
        """End it with that; from outside of its task."""
        self._fault = fault
        self._stop()

    def _refused(self, granted: Wish) -> None:
        """Look at what is granted: nothing at all would be silence for ever."""
        refused = self.feed.wish.without(granted)
        if not any(granted.changes()):
            raise UsageError(f"the server does not tell when these change: {refused}", server=self._name)
        if refused:
            log.warning("%s does not tell when these change: %s", self._name, refused)
        self.feed.wish = granted


class StreamListener(Listener):
    """Over `subscriptions/listen`, opened again when it breaks."""

    def __init__(self, registry: Registry, feed: Feed) -> None:
        super().__init__(registry, feed)
        self._wish = feed.wish
        self._acknowledged = False
        self._broken = False
        self._timer: asyncio.TimerHandle | None = None
        self._extras = Extras(limits=Limits(None, None), on_sent=self._sent)

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                await self._until_over()
                return  # the server ended it in good order (Graceful Closure)
            except (LocalError, RemoteError) as exc:
                failures = 0 if self._acknowledged else failures + 1
                if not self._goes_on(exc, failures):
                    raise
                log.info("%s: listening again: %s", self._name, exc.message)
            self._broken, self._acknowledged = True, False
            await asyncio.sleep(backoff(failures, first=_FIRST_PAUSE, most=_LONGEST_PAUSE))

    def _goes_on(self, exc: LocalError | RemoteError, failures: int) -> bool:
        if self._connection.closed or not (self._broken or self._acknowledged) or failures > ATTEMPTS:
            return False
        if isinstance(exc, RemoteError):
            return exc.code == INTERNAL_ERROR
        if isinstance(exc, HttpError):
            return exc.status >= 500 or exc.status in _BUSY
        return not isinstance(exc, UsageError)

    async def _until_over(self) -> None:
        params = SubscriptionsListenParams(notifications=self._wish.filter())
        try:
            await self._connection.request("subscriptions/listen", params, extras=self._extras)
        finally:
            self._stop_timer()

    def _sent(self, id_: int) -> None:
        """It is on its way under that id: once more, where the connection sends again what did not arrive."""
        self._registry.assign(id_, self)
        self._broken = self._broken or self._acknowledged
        self._acknowledged = False
        self._stop_timer()
        limit = self._connection.limits.idle
        if limit is not None:
            self._timer = asyncio.get_running_loop().call_later(limit, self._late, limit)

    def _late(self, limit: float) -> None:
        text = f"subscriptions/listen was not acknowledged within {limit:g} s"
        self._fail(DeadlineError(text, server=self._name, stage="idle", hint="a larger idle_timeout="))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def acknowledge(self, answer: SubscriptionFilter) -> None:
        self._stop_timer()
        try:
            self._refused(self._wish.granted(answer))
        except UsageError as exc:
            self._fail(exc)
            return
        self._acknowledged = True
        if self._broken:
            self._broken = False
            self._registry.on_missed()
            self.feed.missed()
        self.feed.establish()


class SessionListener(Listener):
    """With what a session says by itself."""

    def __init__(self, registry: Registry, feed: Feed) -> None:
        super().__init__(registry, feed)
        self._gap = asyncio.Event()
        self._uris: list[str] = []

    def gap(self) -> None:
        self._gap.set()

    async def _listen(self) -> None:
        self._refused(self.feed.wish.offered(self._registry.capabilities))
        watches = self._registry.watches
        try:
            for uri in self.feed.wish.uris:
                await watches.add(uri)
                self._uris.append(uri)
            self.feed.establish()
            while True:
                await self._gap.wait()
                self._gap.clear()
                await self._revive()
                await self._registry.settled()
                self.feed.missed()
        finally:
            await self._leave()

    async def _revive(self) -> None:
        """Return when the server answers, over a new connection or in a new session where it takes one."""
        failures = 0
        while True:
            try:
                await self._connection.request("ping", Params())
            except LocalError as exc:
                failures += 1
                if self._connection.closed or failures > ATTEMPTS or isinstance(exc, UsageError):
                    raise
            else:
                return
            await asyncio.sleep(backoff(failures, first=_FIRST_PAUSE, most=_LONGEST_PAUSE))

    async def _leave(self) -> None:
        if self._registry.closing or self._connection.closed:
            return
        try:
            async with asyncio.timeout(_GOODBYE):
                for uri in self._uris:
                    await self._registry.watches.drop(uri)
        except (DragomanError, TimeoutError) as exc:
            log.debug("%s: unsubscribing failed: %s", self._name, exc)
