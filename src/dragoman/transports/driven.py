"""Work that has begun already: awaiting the rest of it, and beginning it without a turn of the loop.

It knows the coroutine protocol and nothing of what the work is.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage]  # documented for "extending asyncio"
from collections.abc import Coroutine, Generator, Mapping
from contextvars import Context, copy_context
from gc import get_referents
from sys import getrefcount, version_info
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from weakref import getweakrefcount

_ENDED: Final = object()
_RETRACTS: Final = version_info >= (3, 13)  # `uncancel` takes a cancellation back that was not thrown in yet
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


if TYPE_CHECKING:  # a start does without it

    class Steps(Protocol[T_co]):
        """A coroutine, as far as driving it goes; the return value is that of its StopIteration."""

        def send(self, value: Any, /) -> Any:
            """Go on with a value, up to where it waits again."""
            ...

        def throw(self, exc: BaseException, /) -> Any:
            """Go on with an exception."""
            ...

        def close(self) -> None:
            """End it where it stands."""
            ...


@coroutine
def resumed(work: Steps[Any] | Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Await the rest of `work`, whose first `send` gave `waiting`, in the task that began it."""
    thrown: BaseException | None = None
    while True:
        sent: Any = None
        try:
            sent = yield waiting
        except GeneratorExit:
            work.close()
            raise
        except BaseException as exc:  # noqa: BLE001  # whatever is thrown in goes to the work, as with `await`
            thrown = exc
        # Out of the `except`: within it, all that the work does later would be done while `exc` is handled.
        try:
            if thrown is None:
                waiting = work.send(sent)
            else:
                waiting = work.throw(thrown)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            thrown = None  # its traceback leads here


class _InContext:
    """A coroutine whose every step runs in the context of the first one."""

    __slots__ = ("_context", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], context: Context) -> None:
        self._work = work
        self._context = context

    def send(self, value: Any, /) -> Any:
        return self._context.run(self._work.send, value)

    def throw(self, exc: BaseException, /) -> Any:
        return self._context.run(self._work.throw, exc)

    def close(self) -> None:
        self._context.run(self._work.close)


class _Spare:
    """A task that waits for the rest of some work."""

    __slots__ = ("_awaited", "_waiting", "_work", "attributes", "handed", "name", "parked", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.handed: asyncio.Future[None] = loop.create_future()
        self._work: _InContext | None = None
        self._waiting: Any = None
        self._awaited = False
        self.parked = False  # only then does a cancellation reach what is handed over
        self.task = loop.create_task(self._go_on())
        self.name = self.task.get_name()
        self.attributes = _attributes(self.task)

    def take(self, work: _InContext, waiting: Any) -> None:
        """Go on with `work` in the next turn of the loop."""
        self._work = work
        self._wait_for(waiting)
        self.release()

    def release(self) -> None:
        """Go on in the next turn of the loop: to the end, where nothing was handed over."""
        if not self.handed.done():
            self.handed.set_result(None)

    def _wait_for(self, waiting: Any) -> None:
        self._waiting = waiting
        # A future that is awaited has this mark. What has none no task takes, and the work is told so.
        self._awaited = getattr(waiting, "_asyncio_future_blocking", None) is True

    async def _go_on(self) -> None:
        self.parked = True
        cancelled: asyncio.CancelledError | None = None
        try:
            await self.handed
        except asyncio.CancelledError as exc:
            if self._work is None:
                raise
            cancelled = None if _RETRACTS and not self.task.cancelling() else exc
        work = self._work
        if work is None:
            return  # what began here has ended
        # A task that is cancelled cancels what it waits for; only where that cannot be, it is told.
        if cancelled is not None and not (self._awaited and self._waiting.cancel()):
            try:
                self._wait_for(work.throw(cancelled))
            except StopIteration:
                return
        cancelled = None  # its traceback leads here
        if self._awaited:
            # Others may have begun to wait for the same future since, which takes this mark away.
            self._waiting._asyncio_future_blocking = True  # noqa: SLF001  # the mark of `await` on futures of any kind
        await resumed(work, self._waiting)


def _attributes(task: asyncio.Task[None]) -> Mapping[str, Any]:
    """A view of what others set on a task. It has no `__dict__`, and takes attributes nevertheless."""
    try:
        mark = "_dragoman"
        setattr(task, mark, task)  # now there is a dictionary
        delattr(task, mark)  # and now it is empty
    except AttributeError:  # a task of another kind, which takes none
        return {}
    empty: list[Mapping[str, Any]] = [one for one in get_referents(task) if one == {}]
    return empty[0] if empty else {}


class Starter:
    """Begins coroutines at once, where a task would begin them in the next turn of the loop.

    What ends without waiting costs neither a turn nor a task. What waits goes on in a task that it
    has had from its first step on: `current_task()`, time-outs and task groups see no difference.
    """

    __slots__ = ("_loop", "_spare")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._spare: _Spare | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        """Begin `work`, which must not raise; the task that goes on with it, or None where it has ended."""
        loop, spare = self._loop, self._spare
        if spare is None or not spare.parked or spare.handed.done():
            return self._begin_later(work)
        task = spare.task
        holders, watchers = getrefcount(task), getweakrefcount(task)
        try:
            _enter_task(loop, task)
        except RuntimeError:  # this is called from within a task
            return loop.create_task(work)
        context = copy_context()
        try:
            # `next` tells the end by what it was given; `send` would raise, which costs more than the rest.
            waiting = context.run(next, work.__await__(), _ENDED)
        finally:
            _leave_task(loop, task)
        if waiting is _ENDED:
            if (
                getrefcount(task) != holders
                or task._callbacks  # noqa: SLF001  # nothing public tells
                or getweakrefcount(task) != watchers
                or spare.attributes
                or task.get_name() != spare.name
            ):
                # It kept its task, waits for its end, or left something with it: a mark, a name, an entry
                # in a table by tasks. The next work must not run in it: what is meant for this one would
                # reach that one. (Nor does it in one that was cancelled.)
                self._spare = None
                spare.release()
            return None
        self._spare = None
        spare.take(_InContext(work, context), waiting)
        return task

    def _begin_later(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        spare = self._spare
        if spare is None or spare.handed.done() or spare.task.done():  # the last two: somebody cancelled it
            self._spare = _Spare(self._loop)
        return self._loop.create_task(work)

    def close(self) -> None:
        """Give up the task that is held ready."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.task.cancel()
