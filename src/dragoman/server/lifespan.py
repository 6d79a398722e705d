"""The life of a server: what it sets up before its first answer and tears down at the end.

Started by whoever serves first, or by the first request where nobody says that serving begins;
shared by all; ended when the last is done, or with the event loop. It knows no request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from typing import Any, TypeAlias

import msgspec

from dragoman.errors import Refusal, UsageError

log = logging.getLogger("dragoman.server")

Factory: TypeAlias = Callable[[Any], AbstractAsyncContextManager[Any]]


class _Run(msgspec.Struct, eq=False):
    """One time that it lives: `begun` and `over` tell, `value` or `fault` is what became of the start."""

    begun: asyncio.Future[None]
    over: asyncio.Future[None]
    value: Any = None
    fault: BaseException | None = None
    task: asyncio.Task[None] | None = None  # there as soon as anybody else sees it


class _Place(msgspec.Struct, eq=False):
    """The state in one event loop: what it sets up belongs to the loop, and cannot be used in another."""

    run: _Run | None = None
    holders: int = 0
    kept: bool = False  # used by a transport that never says when it is done
    ending: asyncio.Task[None] | None = None


class Lifespan:
    """`factory(server)` as an async context manager: entered once, its value shared, left once."""

    def __init__(self, factory: Factory, server: Any) -> None:
        if not callable(factory):
            raise UsageError(
                f"lifespan: expected a function of the server that returns an async context manager, "
                f"received {factory!r}"
            )
        self._factory = factory
        self._server = server
        # Not the context of the request that happens to come first.
        self._context = copy_context()
        self._places: dict[asyncio.AbstractEventLoop, _Place] = {}

    def _place(self) -> _Place:
        loop = asyncio.get_running_loop()
        place = self._places.get(loop)
        if place is None:
            for known in [known for known in self._places if known.is_closed()]:
                del self._places[known]
            place = self._places[loop] = _Place()
        return place

    def hold(self) -> None:
        """Start, without waiting for it, and go on until as many `release`."""
        place = self._place()
        place.holders += 1
        if place.run is None:
            self._start(place)

    async def release(self) -> None:
        """Undo one `hold`; the last one waits for the end."""
        place = self._place()
        place.holders = max(0, place.holders - 1)
        if not place.holders and not place.kept:
            await self._end(place)

    async def close(self) -> None:
        """End it now. It starts again when it is needed again."""
        place = self._place()
        place.kept = False
        await self._end(place)

    async def value(self) -> Any:
        """What the context manager gave; starts it where that was not done, or failed.

        Raises:
            Refusal: -32603, it could not start. The next one to ask tries again.
        """
        place = self._place()
        if not place.holders:
            place.kept = True
        run = place.run or self._start(place)
        if not run.begun.done():
            await asyncio.shield(run.begun)
        if run.fault is not None:
            raise Refusal(
                -32603,
                f"The server is not ready: its lifespan could not start ({type(run.fault).__name__}); "
                "its log says more",
            )
        return run.value

    def _start(self, place: _Place) -> _Run:
        loop = asyncio.get_running_loop()
        run = place.run = _Run(loop.create_future(), loop.create_future())
        live = self._live(run, place, after=place.ending)
        run.task = loop.create_task(live, name="dragoman-lifespan", context=self._context.copy())
        return run

    async def _live(self, run: _Run, place: _Place, *, after: asyncio.Task[None] | None) -> None:
        # One task enters and leaves: task groups and cancel scopes inside need that.
        try:
            if after is not None:
                await asyncio.wait([after])
            async with self._made() as run.value:
                run.begun.set_result(None)
                await self._until(run.over)
        except BaseException as exc:
            self._failed(run, exc)
            if not isinstance(exc, Exception):
                raise
        finally:
            if place.run is run:
                place.run = None
            if not run.begun.done():
                run.begun.set_result(None)

    @staticmethod
    async def _until(over: asyncio.Future[None]) -> None:
        # The end of the loop cancels what is left in it: that is the end too, and an orderly one.
        try:
            await over
        except asyncio.CancelledError:
            return

    def _made(self) -> AbstractAsyncContextManager[Any]:
        made = self._factory(self._server)
        if not hasattr(made, "__aenter__"):
            kind = type(made).__name__
            raise UsageError(
                f"lifespan: expected an async context manager, received {kind}",
                hint="decorate the function with contextlib.asynccontextmanager",
            )
        return made

    @staticmethod
    def _failed(run: _Run, exc: BaseException) -> None:
        if not run.begun.done():
            run.fault = exc
        if isinstance(exc, Exception):
            when = "end" if run.begun.done() else "start"
            log.error("the server's lifespan failed at its %s", when, exc_info=exc)

    @staticmethod
    async def _end(place: _Place) -> None:
        run, place.run = place.run, None
        if run is None or run.task is None:
            return
        place.ending = task = run.task
        if not run.begun.done():
            task.cancel()
        elif not run.over.done():
            run.over.set_result(None)
        await asyncio.wait([task])
        if place.ending is task:
            place.ending = None
