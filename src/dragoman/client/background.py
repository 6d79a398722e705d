"""A thread with an event loop in it, for faces without `await`: work goes there, its outcome comes back.

It knows no client and no protocol.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from dragoman.errors import ClosedError, UsageError

T = TypeVar("T")


class _Job(Generic[T]):
    """One piece of work on its way to the loop's thread and back."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.outcome: Future[T] = Future()
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        """Begin; in the loop's thread."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._finish)

    def drop(self) -> None:
        """Nobody waits for it any more; in the loop's thread, after `start` or in its place."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.outcome.set_exception(ClosedError("this client was closed", stage="call"))
            return
        exc = task.exception()
        if exc is None:
            self.outcome.set_result(task.result())
        else:
            self.outcome.set_exception(exc)


class Background:
    """A thread that runs an event loop until it is told to stop.

    `face` is what errors call the object whose thread it is.
    """

    def __init__(self, name: str, *, face: str = "a SyncClient") -> None:
        self._face = face
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._stopped = False
        # A daemon: a script that forgets to close must still be able to end.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            if left:
                self._loop.run_until_complete(asyncio.wait(left))
            # What finished in the loop's last turn has yet to be handed to whoever waits for it.
            self._loop.run_until_complete(asyncio.sleep(0))
        finally:
            self._loop.close()

    @property
    def inside(self) -> bool:
        """Whether the caller runs in this thread."""
        return threading.current_thread() is self._thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of `work`. On Ctrl-C it is cancelled there, and the interrupt goes on here."""
        if self.inside:
            work.close()
            raise UsageError(
                f"{self._face} cannot be called from its own handlers: they run in its event loop"
            )
        job = _Job(work)
        try:
            with self._lock:
                if self._stopped:
                    work.close()
                    raise ClosedError("this client was closed", stage="call")
                self._loop.call_soon_threadsafe(job.start)
            return job.outcome.result()
        except BaseException:
            # An interrupt can come at any moment, also before the job was handed over.
            if not job.outcome.done():
                self._drop(job)
            raise

    def _drop(self, job: _Job[Any]) -> None:
        with self._lock:
            if not self._stopped:
                self._loop.call_soon_threadsafe(job.drop)

    def stop(self) -> None:
        """End the loop and the thread, and wait for that; nothing when it is done already."""
        with self._lock:
            if not self._stopped:
                self._stopped = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
