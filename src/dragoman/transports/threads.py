"""Worker threads for functions that may block.

What many of them finish at about the same time wakes the event loop once, not once each: with many
calls in flight that is most of what a thread costs. It knows nothing of what the functions are.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from queue import SimpleQueue

T = TypeVar("T")
_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]  # a value, or what was raised

LIMIT: Final = 64  # threads at the same time
NAME: Final = "dragoman-tool"


class _Returns:
    """What comes back to one event loop."""

    __slots__ = ("_done", "_woken", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._done: deque[_Outcome] = deque()
        self._woken = False

    def give(self, outcome: _Outcome) -> None:
        """From a thread: settle a future in the next turn of its loop."""
        # In this order: a wake-up takes back the mark before it looks, and so misses nothing.
        self._done.append(outcome)
        if not self._woken:
            self._woken = True
            try:
                self.loop.call_soon_threadsafe(self._take)
            except RuntimeError:
                self._done.clear()  # the loop is closed: nobody waits any more

    def _take(self) -> None:
        self._woken = False
        done = self._done
        while done:
            future, value, fault = done.popleft()
            if future.done():
                continue  # whoever waited has given up
            if fault is None:
                future.set_result(value)
            elif isinstance(fault, StopIteration):
                # No future takes one: it would end the coroutine that awaits it.
                future.set_exception(RuntimeError(f"the function raised {fault!r}"))
            else:
                future.set_exception(fault)


_Item = tuple[_Returns, "asyncio.Future[Any]", Callable[[], Any]]


class Threads:
    """At most `limit` threads, started as they are needed and kept; they do not hold up the process's end."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._items: SimpleQueue[_Item] | None = None
        self._returns: _Returns | None = None
        self._working: set[int] = set()

    @property
    def working(self) -> bool:
        """Whether a function is running."""
        return bool(self._working)

    def run(self, function: Callable[[], T]) -> asyncio.Future[T]:
        """Call `function()` in a thread. Cancelling the future leaves it running and forgets its value."""
        returns = self._returns
        loop = asyncio.get_running_loop()
        if returns is None or returns.loop is not loop:
            returns = self._returns = _Returns(loop)
        items = self._items
        if items is None:
            from queue import SimpleQueue

            items = self._items = SimpleQueue()
        future: asyncio.Future[T] = loop.create_future()
        items.put((returns, future, function))
        if not self._idle.acquire(blocking=False) and self._count < self._limit:
            self._count += 1
            name = f"{NAME}-{self._count}"
            threading.Thread(target=self._work, args=(items,), name=name, daemon=True).start()
        return future

    def _work(self, items: SimpleQueue[_Item]) -> None:
        working, me = self._working, threading.get_ident()
        while True:
            returns, future, function = items.get()
            if not future.cancelled():
                working.add(me)
                try:
                    value = function()
                except BaseException as exc:  # noqa: BLE001  # whatever it is, the caller is told
                    returns.give((future, None, exc))
                else:
                    returns.give((future, value, None))
                working.discard(me)
            # Nothing is held on to while there is nothing to do.
            del returns, future, function
            value = None
            self._idle.release()


THREADS: Final = Threads()
