"""`SyncClientGroup`: the verbs of a group without `await`, for scripts and for programs with threads.

It owns one thread with an event loop in it, in which all clients of the group run.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from dragoman.client.background import Background
from dragoman.client.changes import Change, Changes
from dragoman.client.group import PATIENCE, RETRY, ClientGroup, Each
from dragoman.client.member import Member, Retry
from dragoman.client.options import ClientKeywords, ProgressHandler
from dragoman.client.result import ToolResult
from dragoman.client.servers import ServersLike
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError, UsageError
from dragoman.model import Tool
from dragoman.protocol.naming import Names

T = TypeVar("T")

_FACE = "a SyncClientGroup"


def _end(background: Background, group: ClientGroup) -> None:
    try:
        background.run(group.close())
    finally:
        background.stop()


class SyncClientGroup:
    """A `ClientGroup` for code that does not await; the same verbs, options and errors.

    Safe from several threads at the same time. Handlers run in the group's own thread and must not call
    it::

        with SyncClientGroup("mcp.json") as group:
            print(group.call_tool("mcp__orders__lookup_order", {"order_id": "A-1042"}).text)
    """

    def __init__(
        self,
        servers: ServersLike,
        *,
        each: Each | None = None,
        retry: Retry | None = RETRY,
        patience: float = PATIENCE,
        variables: Mapping[str, str] | None = None,
        **options: Unpack[ClientKeywords],
    ) -> None:
        self._group = ClientGroup(
            servers, each=each, retry=retry, patience=patience, variables=variables, **options
        )
        self._lock = threading.Lock()
        self._background: Background | None = None
        self._finalizer: weakref.finalize[[Background, ClientGroup], SyncClientGroup] | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<Sync{repr(self._group)[1:]}"

    def connect(self) -> Self:
        """As `ClientGroup.connect`."""
        with self._lock:
            if self._closed:
                raise ClosedError("this group was closed", stage="connect")
            if self._background is None:
                self._background = Background("dragoman client group", face=_FACE)
                # Also when the program ends, or this object is lost, without a close.
                self._finalizer = weakref.finalize(self, _end, self._background, self._group)
        self._run(self._group.connect())
        return self

    def close(self) -> None:
        """As `ClientGroup.close`: from any thread but that of the handlers, any number of times."""
        if self._background is not None and self._background.inside:
            raise UsageError(f"{_FACE} cannot be closed from its own handlers: they run in its event loop")
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
    def servers(self) -> Mapping[str, Member]:
        """As `ClientGroup.servers`; to be read, not awaited on."""
        return self._group.servers

    @property
    def names(self) -> Names:
        """As `ClientGroup.names`."""
        return self._group.names

    def add(self, name: str, target: TargetLike) -> None:
        """As `ClientGroup.add`."""
        self._run(self._group.add(name, target))

    def remove(self, name: str) -> None:
        """As `ClientGroup.remove`."""
        self._run(self._group.remove(name))

    def retry(self, name: str | None = None) -> None:
        """As `ClientGroup.retry`."""
        self._run(self._group.retry(name))

    def changes(self) -> Iterator[Change]:
        """As `ClientGroup.changes`: blocks for each next change, and ends with the group."""
        return self._told(self._run(self._stream()))

    def _told(self, stream: Changes) -> Iterator[Change]:
        while True:
            try:
                change = self._run(stream.next())
            except ClosedError:  # by another thread, while this one waited
                return
            if change is None:
                return
            yield change

    async def _stream(self) -> Changes:
        return await self._group.changes().established()

    def list_tools(self, *, refresh: bool = False) -> list[Tool]:
        """As `ClientGroup.list_tools`."""
        return self._run(self._group.list_tools(refresh=refresh))

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
        """As `ClientGroup.call_tool`."""
        result = self._run(
            self._group.call_tool(
                name, arguments, progress=progress, timeout=timeout, idle_timeout=idle_timeout, meta=meta
            )
        )
        return result.raise_for_error() if check else result

    def request(self, server: str, method: str, *, params: Mapping[str, Any] | None = None) -> Any:
        """As `Client.request`, of one server."""

        async def ask() -> Any:
            return await self._group[server].request(method, params)

        return self._run(ask())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        background = self._background
        if background is None:
            work.close()
            raise UsageError("not connected yet", stage="call", hint="`with SyncClientGroup(...) as group:`")
        return background.run(work)
