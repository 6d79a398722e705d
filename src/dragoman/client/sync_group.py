"""`SyncClientGroup`: the verbs of a group without `await`, for scripts and for programs with threads.

It owns one thread with an event loop in it, in which all clients of the group run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Unpack

from dragoman.client.background import Blocking
from dragoman.client.changes import Change, Changes
from dragoman.client.group import PATIENCE, RETRY, ClientGroup, Each
from dragoman.client.member import Member, Retry
from dragoman.client.options import ClientKeywords
from dragoman.client.result import ToolResult
from dragoman.client.servers import ServersLike
from dragoman.client.session import CallKeywords, RequestKeywords
from dragoman.client.skills import LoadedSkill, SkillFile
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError
from dragoman.model import GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate, Tool
from dragoman.model.skills_extension import Skill
from dragoman.protocol.naming import Names


class SyncClientGroup(Blocking):
    """A `ClientGroup` for code that does not await; the same verbs, options and errors.

    Safe from several threads at the same time. Handlers run in the group's own thread and must not call
    it::

        with SyncClientGroup("mcp.json") as group:
            print(group.call_tool("mcp__orders__lookup_order", {"order_id": "A-1042"}).text)
    """

    _face: ClassVar[str] = "a SyncClientGroup"
    _noun: ClassVar[str] = "group"
    _awaited: ClassVar[str] = "ClientGroup"

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
        super().__init__(self._group)

    @property
    def servers(self) -> Mapping[str, Member]:
        """As `ClientGroup.servers`; to be read, not awaited on."""
        return self._group.servers

    @property
    def names(self) -> Names:
        """As `ClientGroup.names`."""
        return self._group.names

    @property
    def prompt_names(self) -> Names:
        """As `ClientGroup.prompt_names`."""
        return self._group.prompt_names

    def member(self, name: str) -> Member:
        """As `ClientGroup.member`."""
        return self._group.member(name)

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
        check: bool = False,
        **keywords: Unpack[CallKeywords],
    ) -> ToolResult:
        """As `ClientGroup.call_tool`."""
        result = self._run(self._group.call_tool(name, arguments, **keywords))
        return result.raise_for_error() if check else result

    def list_prompts(self, *, refresh: bool = False) -> list[Prompt]:
        """As `ClientGroup.list_prompts`."""
        return self._run(self._group.list_prompts(refresh=refresh))

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **keywords: Unpack[RequestKeywords],
    ) -> GetPromptResult:
        """As `ClientGroup.get_prompt`."""
        return self._run(self._group.get_prompt(name, arguments, **keywords))

    def list_resources(self, *, refresh: bool = False) -> dict[str, list[Resource]]:
        """As `ClientGroup.list_resources`."""
        return self._run(self._group.list_resources(refresh=refresh))

    def list_resource_templates(self, *, refresh: bool = False) -> dict[str, list[ResourceTemplate]]:
        """As `ClientGroup.list_resource_templates`."""
        return self._run(self._group.list_resource_templates(refresh=refresh))

    def list_skills(self, *, refresh: bool = False) -> dict[str, list[Skill]]:
        """As `ClientGroup.list_skills`; `load_skill` loads one."""
        return self._run(self._group.list_skills(refresh=refresh))

    def load_skill(self, server: str, skill: Skill | str) -> LoadedSkill:
        """As `Client.load_skill`, of one server."""

        async def load() -> LoadedSkill:
            return await self._group[server].load_skill(skill)

        return self._run(load())

    def read_skill(self, skill: LoadedSkill, path: str) -> SkillFile:
        """As `Client.read_skill`, of the server that the skill is of."""

        async def read() -> SkillFile:
            return await self._group[skill.server].read_skill(skill, path)

        return self._run(read())

    def read_resource(
        self, uri: str, *, server: str | None = None, **keywords: Unpack[RequestKeywords]
    ) -> ReadResourceResult:
        """As `ClientGroup.read_resource`."""
        return self._run(self._group.read_resource(uri, server=server, **keywords))

    def request(self, server: str, method: str, *, params: Mapping[str, Any] | None = None) -> Any:
        """As `Client.request`, of one server."""

        async def ask() -> Any:
            return await self._group[server].request(method, params)

        return self._run(ask())
