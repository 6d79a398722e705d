"""A thread with an event loop in it, for faces without `await`: work goes there, its outcome comes back.

`Blocking` is what all such faces have in common. It knows no client and no protocol.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

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


class Opened(Protocol):
    """What a face without `await` stands before."""

    async def connect(self) -> Any:
        """Begin."""
        ...

    async def close(self) -> None:
        """End."""
        ...


def _end(background: Background, inner: Opened) -> None:
    try:
        background.run(inner.close())
    finally:
        background.stop()


class Blocking:
    """A face without `await`: its life, and the thread in which everything is done.

    Safe from several threads at the same time.
    """

    _face: ClassVar[str] = "a SyncClient"
    _noun: ClassVar[str] = "client"  # what it is to whoever has closed it
    _awaited: ClassVar[str] = "Client"  # the one to use where there is an event loop

    def __init__(self, inner: Opened, *, server: str | None = None) -> None:
        self._inner = inner
        self._server = server
        self._lock = threading.Lock()
        self._background: Background | None = None
        self._finalizer: weakref.finalize[[Background, Opened], Blocking] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Sync{repr(self._inner)[1:]}"

    def connect(self) -> Self:
        """As the same of what it stands before; nothing when that is done already."""
        with self._lock:
            if self._closed:
                raise self._gone("connect")
            if self._background is None:
                name = f"dragoman {self._noun}" + (f" of {self._server}" if self._server else "")
                self._background = Background(name, face=self._face)
                # Also when the program ends, or this object is lost, without a close.
                self._finalizer = weakref.finalize(self, _end, self._background, self._inner)
        self._run(self._inner.connect())
        return self

    def close(self) -> None:
        """End all of it: from any thread but that of the handlers, any number of times."""
        if self._background is not None and self._background.inside:
            text = f"{self._face} cannot be closed from its own handlers: they run in its event loop"
            raise UsageError(text)
        with self._lock:
            self._closed = True
            finalizer, self._finalizer = self._finalizer, None
            if finalizer is not None:
                finalizer()

    def __enter__(self) -> Self:
        try:
            return self.connect()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # a type checker says it of itself, as there is no such method for it

        async def __aenter__(self) -> Self:
            """Say what was meant."""
            hint = f"{self._beginning()}, or {self._awaited} where there is an event loop"
            raise UsageError(f"{self._face} is entered with `with`, not `async with`", hint=hint)

        async def __aexit__(self, *exc: object) -> None:
            """Never reached; Python looks for it before it enters."""

    def _beginning(self) -> str:
        return f"`with {type(self).__name__}(...) as {self._noun}:`"

    def _gone(self, stage: str) -> UsageError | ClosedError:
        if self._closed:
            return ClosedError(f"this {self._noun} was closed", server=self._server, stage=stage)
        hint = f"{self._beginning()}, or `{self._noun}.connect()` first"
        return UsageError("not connected yet", server=self._server, stage=stage, hint=hint)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of `work`, which is done in the thread."""
        if self._background is None:
            work.close()
            raise self._gone("call")
        return self._background.run(work)
