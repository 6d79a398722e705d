"""`SyncClient`: the client's verbs without `await`, for scripts and for programs with threads.

It owns one thread with an event loop in it, and knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, Unpack

from dragoman.client.client import Client
from dragoman.client.options import ClientKeywords, ProgressHandler
from dragoman.client.result import ToolResult
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError, UsageError
from dragoman.model import DiscoverResult, Implementation, ServerCapabilities, Tool
from dragoman.revisions import Revision

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


class _Background:
    """A thread that runs an event loop until it is told to stop."""

    def __init__(self, name: str) -> None:
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
                "a SyncClient cannot be called from its own handlers: they run in its event loop"
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


def _end(background: _Background, client: Client) -> None:
    try:
        background.run(client.close())
    finally:
        background.stop()


class SyncClient:
    """A `Client` for code that does not await; the same verbs, targets, options and errors.

    Safe from several threads at the same time. Handlers (progress, logs, elicitation) run in the
    client's own thread and must not call it::

        with SyncClient("server.py") as client:
            print(client.call_tool("add", {"a": 1, "b": 2}).text)
    """

    def __init__(self, target: TargetLike, **options: Unpack[ClientKeywords]) -> None:
        self._client = Client(target, **options)
        self._lock = threading.Lock()
        self._background: _Background | None = None
        self._finalizer: weakref.finalize[[_Background, Client], SyncClient] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Sync{repr(self._client)[1:]}"

    def connect(self) -> Self:
        """As `Client.connect`."""
        with self._lock:
            if self._closed:
                raise ClosedError("this client was closed", server=self._client.name, stage="connect")
            if self._background is None:
                self._background = _Background(f"dragoman client of {self._client.name}")
                # Also when the program ends, or this object is lost, without a close.
                self._finalizer = weakref.finalize(self, _end, self._background, self._client)
        self._run(self._client.connect())
        return self

    def close(self) -> None:
        """As `Client.close`: from any thread but that of the handlers, any number of times."""
        if self._background is not None and self._background.inside:
            raise UsageError(
                "a SyncClient cannot be closed from its own handlers: they run in its event loop"
            )
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

    @property
    def name(self) -> str:
        """As `Client.name`."""
        return self._client.name

    @property
    def connected(self) -> bool:
        """As `Client.connected`."""
        return self._client.connected

    @property
    def revision(self) -> Revision:
        """As `Client.revision`."""
        return self._client.revision

    @property
    def server_info(self) -> Implementation | None:
        """As `Client.server_info`."""
        return self._client.server_info

    @property
    def capabilities(self) -> ServerCapabilities:
        """As `Client.capabilities`."""
        return self._client.capabilities

    @property
    def instructions(self) -> str | None:
        """As `Client.instructions`."""
        return self._client.instructions

    def facts(self) -> Mapping[str, Any]:
        """As `Client.facts`."""
        return self._client.facts()

    def list_tools(self, *, refresh: bool = False) -> list[Tool]:
        """As `Client.list_tools`."""
        return self._run(self._client.list_tools(refresh=refresh))

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress: ProgressHandler | None = None,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """As `Client.call_tool`."""
        return self._run(
            self._client.call_tool(
                name, arguments, progress=progress, timeout=timeout, idle_timeout=idle_timeout, meta=meta
            )
        )

    def ping(self) -> None:
        """As `Client.ping`."""
        self._run(self._client.ping())

    def discover(self) -> DiscoverResult:
        """As `Client.discover`."""
        return self._run(self._client.discover())

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """As `Client.request`."""
        return self._run(self._client.request(method, params))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        background = self._background
        if background is None:
            # Never connected: the client itself says so, without awaiting anything.
            background = _Background("dragoman client, not connected")
            try:
                return background.run(work)
            finally:
                background.stop()
        return background.run(work)
