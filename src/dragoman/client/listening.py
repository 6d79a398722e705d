"""`async for change in client.listen(...)`: the same on every revision.

It brings what a server says to those who want to hear of it. How a server is listened to is not known here.
"""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Raw

from dragoman.client.feed import Change, ChangeKind, Feed, Wish
from dragoman.client.listeners import Registry, SessionListener, StreamListener
from dragoman.errors import DragomanError
from dragoman.model import RequestId, SubscriptionFilter
from dragoman.model.base import SUBSCRIPTION_ID_KEY

log = logging.getLogger("dragoman.client")

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
UPDATED: Final = "notifications/resources/updated"
CHANGED: Final[dict[str, ChangeKind]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}


class _Meta(msgspec.Struct):
    id: RequestId | None = msgspec.field(name=SUBSCRIPTION_ID_KEY, default=None)


class _Notice(msgspec.Struct):
    meta: _Meta = msgspec.field(name="_meta", default_factory=_Meta)
    uri: str | None = None
    notifications: SubscriptionFilter = msgspec.field(default_factory=SubscriptionFilter)


_read: Final = msgspec.json.Decoder(_Notice).decode


class Listeners(Registry):
    """All who listen to one server."""

    def listen(self, wish: Wish) -> Listening:
        """Begin to listen."""
        revision = self.connection.revision
        kind = SessionListener if revision is not None and revision.handshake else StreamListener
        listener = kind(self, Feed(wish))
        self.everybody.add(listener)
        listener.start()
        return Listening(listener.feed)

    def notice(self, method: str, params: Raw) -> str | None:
        """Tell whoever wants to hear of it; returns the URI that it is about, if any."""
        try:
            notice = _read(params or b"{}")
        except msgspec.ValidationError as exc:
            log.warning("%s: a malformed %s was passed over: %s", self.name, method, exc)
            return None
        named = self.by_id.get(notice.meta.id) if notice.meta.id is not None else None
        if method == ACKNOWLEDGED:
            if named is not None:
                named.acknowledge(notice.notifications)
            return None
        kind = CHANGED.get(method, "resource")
        for listener in [named] if named is not None else list(self.everybody):
            # What comes under its own id is a listener's, however the server spells the URI.
            own = listener is named and kind == "resource" and listener.feed.wish.uris
            if own or listener.feed.wish.hears(kind, notice.uri):
                listener.feed.put(kind, notice.uri if kind == "resource" else None)
        return notice.uri

    def gap(self) -> None:
        """What the server says by itself may have been missed."""
        for listener in list(self.everybody):
            listener.gap()

    def renewed(self, first: Callable[[], Awaitable[None]]) -> None:
        """The server has forgotten everything, and is spoken with anew; `first` is said before the rest."""
        loop = asyncio.get_running_loop()
        before = self.renewing
        # Not awaited here: it sends requests, and what calls this holds them up until it returns.
        self.renewing = loop.create_task(self._say_again(first))
        if before is not None:
            before.cancel()
        self.gap()

    async def _say_again(self, first: Callable[[], Awaitable[None]]) -> None:
        try:
            await first()
        except DragomanError as exc:
            log.warning("%s: what a new session has to be told was refused: %s", self.name, exc)
        await self.watches.renew()

    def stop(self) -> None:
        """The client closes: end them all, as it should be."""
        self.closing = True
        if self.renewing is not None:
            self.renewing.cancel()
        for listener in list(self.everybody):
            listener.feed.stop()

    async def ended(self) -> None:
        """Return when nothing runs here any more."""
        await self.settled()
        feeds = [listener.feed.ended for listener in self.everybody]
        if feeds:
            await asyncio.wait(feeds)


class Listening:
    """The changes, as they come: `async for change in listening`.

    It listens from the moment it is made until it is closed, the client is closed, the server ends it in good
    order, or nobody holds it any more. Any number of tasks may read it. `async with` returns when the server
    has said that it listens, and closes it at the end.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._finalizer = weakref.finalize(self, _let_go, feed, asyncio.get_running_loop())
        self._finalizer.atexit = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        change = await self._feed.next()
        if change is None:
            raise StopAsyncIteration
        return change

    async def next(self) -> Change | None:
        """The next change, or None at the end. Whoever gives up waiting does not end the listening."""
        return await self._feed.next()

    @property
    def over(self) -> bool:
        """Whether nothing more will be heard."""
        return self._feed.over

    async def established(self) -> Self:
        """Return when no change is missed from now on.

        Raises:
            RemoteError: the server refuses to be listened to.
            UsageError: it tells of nothing that was asked for.
            LocalError: as any request.
        """
        await asyncio.wait([self._feed.established])
        if self._feed.over:
            self._feed.raise_error()
        return self

    @property
    def heard(self) -> tuple[str, ...]:
        """What is listened for: kinds of lists, and URIs; less than asked for where less is offered."""
        return tuple(kind if uri is None else uri for kind, uri in self._feed.wish.changes())

    async def aclose(self) -> None:
        """Listen no more, and return when the server has been told; what reads ends. Any number of times."""
        self._finalizer.detach()
        self._feed.stop()
        await asyncio.wait([self._feed.ended])

    async def __aenter__(self) -> Self:
        try:
            return await self.established()
        except BaseException:
            await self.aclose()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _let_go(feed: Feed, loop: asyncio.AbstractEventLoop) -> Any:
    try:
        loop.call_soon_threadsafe(feed.stop)
    except RuntimeError:  # the loop is closed, and the feed with it
        return
