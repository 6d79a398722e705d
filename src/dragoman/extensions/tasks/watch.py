"""Tells a listener what becomes of its tasks: `notifications/tasks` on a `subscriptions/listen` stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Final, Self

from msgspec.structs import replace

from dragoman.errors import ClosedError
from dragoman.extensions.tasks.shelf import Shelf, shelf_mark
from dragoman.extensions.tasks.state import State
from dragoman.model import SUBSCRIPTION_ID_KEY, Result
from dragoman.protocol.call import Call, Channel
from dragoman.server.middleware import Handler
from dragoman.stores import StoreError

log = logging.getLogger("dragoman.tasks")

MOST: Final = 1000  # tasks that one stream can follow
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class Watch:
    """The tasks that one listener follows: those of the wish that are there, and are the caller's."""

    def __init__(self, shelf: Shelf, call: Call, *, marks: list[str]) -> None:
        self._shelf = shelf
        self._call = call
        self._channel = call.channel
        self._open = set(marks)
        self._told: dict[str, State] = {}
        self._tag: dict[str, Any] = {SUBSCRIPTION_ID_KEY: call.id}
        self._acknowledged = asyncio.Event()

    @classmethod
    async def over(cls, shelf: Shelf, call: Call) -> Self:
        """What `call` wishes to follow; its params then say what is granted."""
        params = call.params
        wish: list[str] = list(dict.fromkeys(params.notifications.task_ids))[:MOST]
        marks = [shelf_mark(task_id) for task_id in wish]
        states = await asyncio.gather(*(shelf.state(mark) for mark in marks))
        granted = [
            (task_id, mark)
            for task_id, mark, state in zip(wish, marks, states, strict=True)
            if state is not None and state.principal == call.principal
        ]
        notifications = replace(params.notifications, task_ids=[task_id for task_id, _ in granted])
        call.params = replace(params, notifications=notifications)
        return cls(shelf, call, marks=[mark for _, mark in granted])

    async def around(self, proceed: Handler) -> Result:
        """Tell of the tasks for as long as the subscription lives."""
        if not self._open:
            return await proceed(self._call)
        self._call.channel = _Gate(self._channel, self._acknowledged)
        feed = asyncio.get_running_loop().create_task(self._feed(), name="dragoman-tasks-listen")
        try:
            return await proceed(self._call)
        finally:
            feed.cancel()

    async def _feed(self) -> None:
        try:
            # Listening begins before the first look, so that nothing can happen unseen between the two.
            async with self._shelf.news.subscribe(*self._open) as news:
                await self._acknowledged.wait()
                for mark in sorted(self._open):
                    await self._tell(mark)
                while self._open:
                    await self._tell((await anext(news)).topic)
        except (StopAsyncIteration, ClosedError):
            return  # the store is closed: the server ends
        except StoreError as exc:
            log.error("a listener is not told of its tasks any more: %s", exc)

    async def _tell(self, mark: str) -> None:
        state = await self._shelf.state(mark) if mark in self._open else None
        if state is None or state == self._told.get(mark):
            return
        self._told[mark] = state
        if state.over:
            self._open.discard(mark)
            self._told.pop(mark)
        self._channel.notify("notifications/tasks", replace(state.detailed(), meta=self._tag))


class _Gate:
    """A channel that notices the acknowledgement: nothing of a subscription may be sent before it."""

    def __init__(self, channel: Channel, acknowledged: asyncio.Event) -> None:
        self._channel = channel
        self._acknowledged = acknowledged

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    @property
    def congested(self) -> bool:
        """See `Channel`."""
        return self._channel.congested

    def notify(self, method: str, params: object) -> None:
        """See `Channel`."""
        self._channel.notify(method, params)
        if method == ACKNOWLEDGED:
            self._acknowledged.set()

    def ask(self, method: str, params: object) -> Awaitable[Any]:
        """See `Channel`."""
        return self._channel.ask(method, params)
