"""Those who wait for something to happen in a store: subscriptions, and workers without a job.

An engine calls them from whatever thread it runs in; each of them lives on one event loop. They refuse
to know where messages come from.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from dragoman.errors import ClosedError, DragomanError, UsageError

from .base import Message


class Source(Protocol):
    """What tells listeners; see `core.Engine`."""

    async def listen(self, listener: Inbox | Waiter) -> None: ...

    def unlisten(self, listener: Inbox | Waiter) -> None: ...


class _Listener:
    """One future at a time, resolved when there is something to look at."""

    def __init__(self, space: str) -> None:
        self.space = space
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted: asyncio.Future[None] | None = None
        self._ended = False
        self._error: DragomanError | None = None

    def attach(self) -> None:
        """Live on the loop that is running."""
        self._loop = asyncio.get_running_loop()

    def _stir(self) -> None:
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)

    def _finish(self, error: DragomanError | None) -> None:
        if not self._ended:
            self._ended, self._error = True, error
            self._stir()

    def end(self, error: DragomanError | None = None) -> None:
        """Nothing comes any more, because of `error`. From any thread."""
        self._call(self._finish, error)

    def _call(self, function: object, *arguments: object) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]  # the callers match them
        except RuntimeError:
            self._ended = True  # the loop is closed: nobody is there to be told


class Inbox(_Listener):
    """See `base.Subscription`. `start` is for the engine: only what lies behind it is for us."""

    def __init__(self, source: Source, space: str, *, topics: frozenset[str], buffer: int) -> None:
        super().__init__(space)
        self.topics = topics
        self.start = 0
        self.lost = 0
        self._source = source
        self._messages: deque[Message] = deque()
        self._buffer = buffer

    def wants(self, space: str, topic: str) -> bool:
        """Whether such a message is for this subscription."""
        return space == self.space and (not self.topics or topic in self.topics)

    def deliver(self, messages: list[Message]) -> None:
        """Here are messages. From any thread."""
        self._call(self._take, messages)

    def _take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if len(self._messages) == self._buffer:
                self._messages.popleft()
                self.lost += 1
            self._messages.append(message)
        self._stir()

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise UsageError("this subscription was used before; subscribe again")
        self.attach()
        try:
            await self._source.listen(self)
        except BaseException:
            self._source.unlisten(self)
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._source.unlisten(self)
        self._finish(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        """The next message; ends when the store is closed. Raises what ended it otherwise."""
        if self._loop is None:
            raise UsageError("a subscription begins with `async with`")
        while not self._messages:
            if self._error is not None and not isinstance(self._error, ClosedError):
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._wanted = self._loop.create_future()
            await self._wanted
        return self._messages.popleft()


class Waiter(_Listener):
    """Somebody who waits for a job in `space`."""

    def __init__(self, space: str) -> None:
        super().__init__(space)
        self._stirred = False

    def wake(self) -> None:
        """There may be a job. From any thread."""
        self._call(self._look)

    def _look(self) -> None:
        self._stirred = True
        self._stir()

    async def wait(self, seconds: float) -> None:
        """Until woken since the last time, at most so long. Raises what ended it."""
        if not self._stirred and not self._ended:
            loop = asyncio.get_running_loop()
            self._wanted = loop.create_future()
            timer = loop.call_later(seconds, self._stir)
            try:
                await self._wanted
            finally:
                timer.cancel()
        self._stirred = False
        if self._error is not None:
            raise self._error
