"""`SyncClient`: the client's verbs without `await`, for scripts and for programs with threads.

It owns one thread with an event loop in it, and knows nothing of the protocol.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Unpack

from dragoman.client.background import Background
from dragoman.client.client import Client
from dragoman.client.options import ClientKeywords, ProgressHandler
from dragoman.client.result import ToolResult
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError, UsageError
from dragoman.model import DiscoverResult, Implementation, ServerCapabilities, Tool
from dragoman.revisions import Revision

T = TypeVar("T")


def _end(background: Background, client: Client) -> None:
    try:
        background.run(client.close())
    finally:
        background.stop()


class _Client(Client):
    """The one behind a `SyncClient`, which says how that is begun."""

    _first: ClassVar[str] = "`with SyncClient(...) as client:`, or `client.connect()` first"


class SyncClient:
    """A `Client` for code that does not await; the same verbs, targets, options and errors.

    Safe from several threads at the same time. Handlers (progress, logs, elicitation) run in the
    client's own thread and must not call it::

        with SyncClient("server.py") as client:
            print(client.call_tool("add", {"a": 1, "b": 2}).text)
    """

    def __init__(self, target: TargetLike, **options: Unpack[ClientKeywords]) -> None:
        self._client = _Client(target, **options)
        self._lock = threading.Lock()
        self._background: Background | None = None
        self._finalizer: weakref.finalize[[Background, Client], SyncClient] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Sync{repr(self._client)[1:]}"

    def connect(self) -> Self:
        """As `Client.connect`."""
        with self._lock:
            if self._closed:
                raise ClosedError("this client was closed", server=self._client.name, stage="connect")
            if self._background is None:
                self._background = Background(f"dragoman client of {self._client.name}")
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

    if not TYPE_CHECKING:  # a type checker says it of itself, as there is no such method for it

        async def __aenter__(self) -> Self:
            """Say what was meant."""
            hint = "`with SyncClient(...) as client:`, or Client where there is an event loop"
            raise UsageError("a SyncClient is entered with `with`, not `async with`", hint=hint)

        async def __aexit__(self, *exc: object) -> None:
            """Never reached; Python looks for it before it enters."""

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
        check: bool = False,
    ) -> ToolResult:
        """As `Client.call_tool`."""
        result = self._run(
            self._client.call_tool(
                name, arguments, progress=progress, timeout=timeout, idle_timeout=idle_timeout, meta=meta
            )
        )
        return result.raise_for_error() if check else result

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
            background = Background("dragoman client, not connected")
            try:
                return background.run(work)
            finally:
                background.stop()
        return background.run(work)
