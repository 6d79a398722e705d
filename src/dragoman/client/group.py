"""`ClientGroup`: many servers at once, of which each may fail by itself.

It knows the names under which the tools of all are shown, and what is merged; how one server fares is
its member's business.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Final, Self, TypeAlias, Unpack

from msgspec.structs import replace

from dragoman.client.changes import Change, Changes
from dragoman.client.client import Client
from dragoman.client.member import Member, Retry
from dragoman.client.merged import MergedVerbs, sought
from dragoman.client.options import ClientKeywords, ClientOptions
from dragoman.client.result import ToolResult
from dragoman.client.servers import ServersLike, Unusable, entry, read
from dragoman.client.session import CallKeywords
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError, ConnectError, UsageError
from dragoman.model import Tool
from dragoman.protocol.naming import Names

RETRY: Final = Retry()
PATIENCE: Final = 10.0

Each: TypeAlias = Mapping[str, ClientKeywords] | Callable[[str], ClientKeywords]


class ClientGroup(MergedVerbs):
    """Clients of many servers, started side by side and kept connected::

        async with ClientGroup("mcp.json") as group:
            for tool in await group.list_tools():
                print(tool.name)                                 # mcp__orders__lookup_order
            await group.call_tool("mcp__orders__lookup_order", {"order_id": "A-1042"})

    `servers` maps names to what `Client` takes, or is the path or the content of a file with `mcpServers`.
    A server that does not start, or dies, takes no other with it: `group.servers[name]` has its `state`
    and `why`, and it is tried again as `retry` says (never, with None). `patience` is how many seconds
    `connect` and lists wait for the slowest. `each` gives further options for single servers, `options`
    are for all of them; both are those of `Client`. `variables` is where `${NAME}` in entries is looked up,
    the process's environment by default.

    Raises:
        UsageError: `servers` is none of these, or an option that does not exist.
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
        super().__init__(patience=patience)
        ClientOptions.of(options)
        self._options = options
        self._each = each
        self._retry = retry
        self._variables = os.environ if variables is None else variables
        self._names = Names()
        self._streams: set[Changes] = set()
        self._open = False
        self._named = False  # not before all had their chance: who is first must not make a difference
        self._closed = False
        for name, target in read(servers, self._variables).items():
            self._admit(name, target)

    def __repr__(self) -> str:
        up = sum(member.client is not None for member in self._members.values())
        return f"<ClientGroup, {up} of {len(self._members)} servers connected>"

    def _admit(self, name: str, target: TargetLike | Unusable) -> Member:
        options: ClientKeywords = {**self._options, **self._own(name)}
        ClientOptions.of(options)
        member = self._members[name] = Member(
            name, target=target, options=options, retry=self._retry, on_change=self._changed
        )
        if self._streams:
            member.listen()
        return member

    def _own(self, name: str) -> ClientKeywords:
        if callable(self._each):
            return self._each(name)
        return self._each[name] if self._each and name in self._each else ClientKeywords()

    # Life --------------------------------------------------------------------------------------------

    async def connect(self) -> Self:
        """Start or reach every server, all at the same time.

        Returns when each has come or failed once, or after `patience` seconds; what comes later joins
        later. What fails is told in `servers`, and not raised.

        Raises:
            ClosedError: the group was closed.
        """
        if self._closed:
            raise ClosedError("this group was closed", stage="connect")
        self._open = True
        for member in self._members.values():
            member.start()
        await self._patiently(member.settled.wait() for member in self._members.values())
        self._named = True
        self._name_all()
        return self

    async def close(self) -> None:
        """End every connection, and the processes that were started from here. Any number of times."""
        self._closed = True
        members = list(self._members.values())
        await asyncio.gather(*(member.close() for member in members))
        for stream in list(self._streams):
            stream.close()

    async def __aenter__(self) -> Self:
        try:
            return await self.connect()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def add(self, name: str, target: TargetLike) -> Member:
        """Take in one more server, and wait for it as `connect` does.

        Raises:
            UsageError: there is one of that name.
            ClosedError: the group was closed.
        """
        if self._closed:
            raise ClosedError("this group was closed", server=name, stage="connect")
        if name in self._members:
            raise UsageError(f"there is a server {name!r} already: remove it first, or choose another name")
        member = self._admit(name, entry(target, self._variables))
        if self._open:
            member.start()
            await self._patiently([member.settled.wait()])
        return member

    async def remove(self, name: str) -> None:
        """Close one server and forget it; its tools' names are not given to others. UsageError if unknown."""
        member = self.member(name)
        del self._members[name]
        for kind in (self._prompts, self._resources, self._templates, self._skills):
            kind.forget(name)
        await member.close()

    async def retry(self, name: str | None = None) -> None:
        """Try what is lost again now, without waiting for its time; all of it, or one server."""
        chosen = list(self._members.values()) if name is None else [self.member(name)]
        waiting = [member for member in chosen if member.state == "waiting"]
        for member in waiting:
            member.settled.clear()
            member.hurry()
        await self._patiently(member.settled.wait() for member in waiting)

    # Facts -------------------------------------------------------------------------------------------

    @property
    def servers(self) -> Mapping[str, Member]:
        """The servers by name, with how each fares."""
        return MappingProxyType(self._members)

    @property
    def names(self) -> Names:
        """The two-way table of tools: `find(name)` says server and tool, `of(server, tool)` the name.

        A name is at most 64 characters of `A-Za-z0-9_-`, and means the same tool as long as this group lives.
        """
        return self._names

    def __getitem__(self, name: str) -> Client:
        """The client of one server, for all that concerns it alone.

        Raises:
            UsageError: there is no such server.
            ConnectError: it is not connected; says why.
        """
        member = self.member(name)
        if member.client is None:
            raise ConnectError(f"not connected: {member.why or member.state}", server=name, stage="call")
        return member.client

    # Change ------------------------------------------------------------------------------------------

    def changes(self) -> Changes:
        """What changes from now on at any server: `async for change in group.changes()`.

        On every revision; from the first call on the servers are listened to. It ends with the group, or
        by `close()`. Of a change that is still waiting to be taken there is one, however often it happens.
        When a change of tools is told, `names` and the members' `tools` have it already. What stands at
        single resources is listened for at their server, with `group[name].listen(resources=[uri])`.
        """
        stream = Changes(self._streams.discard, established=self._heard)
        if self._closed:
            stream.close()
            return stream
        self._streams.add(stream)
        for member in self._members.values():
            member.listen()
        return stream

    async def _heard(self) -> None:
        await self._patiently(member.heard.wait() for member in self._members.values() if member.client)

    def _changed(self, change: Change) -> None:
        if change.kind == "tools" and self._named:
            self._name_all()
        for stream in list(self._streams):
            stream.put(change)

    def _name_all(self) -> None:
        members = self._members.items()
        tools = [(server, tool) for server, member in members for tool in member.tools]
        if any(self._names.of(*pair) is None for pair in tools):
            self._names = Names(tools, keep=self._names)

    # Tools -------------------------------------------------------------------------------------------

    async def list_tools(self, *, refresh: bool = False) -> list[Tool]:
        """The tools of all servers that are connected, under the names by which this group calls them.

        By server, in the order of the configuration. Lists that are fresh by their servers' word are not
        read again, unless `refresh`. Of a server that does not answer within `patience`, those that were
        listed last.
        """
        up = [member for member in self._members.values() if member.client is not None]
        await self._patiently(member.refresh(anew=refresh) for member in up)
        self._name_all()
        return [
            replace(tool, name=self._name(member.name, tool.name))
            for member in self._members.values()
            if member.client is not None
            for tool in member.tools.values()
        ]

    def _name(self, server: str, tool: str) -> str:
        name = self._names.of(server, tool)
        assert name is not None  # all were named just now
        return name.model

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
        **keywords: Unpack[CallKeywords],
    ) -> ToolResult:
        """Call a tool by the name under which this group lists it. As `Client.call_tool`.

        Raises:
            UsageError: no tool has this name.
            ConnectError: its server is not connected; says why, and when it is tried again.
            RemoteError, LocalError: as `Client.call_tool`.
        """
        found = sought(name, self._names, servers=self._members, noun="tool")
        return await self._at(
            found.server, lambda client: client.call_tool(found.tool, arguments, check=check, **keywords)
        )
