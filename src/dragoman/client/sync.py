"""`SyncClient`: the client's verbs without `await`, for scripts and for programs with threads.

It owns one thread with an event loop in it, and knows nothing of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, Unpack

from dragoman.client.background import Blocking
from dragoman.client.client import Client
from dragoman.client.feed import Change
from dragoman.client.listening import Listening
from dragoman.client.options import ClientKeywords
from dragoman.client.result import ToolResult
from dragoman.client.session import CallKeywords, RequestKeywords
from dragoman.client.skills import LoadedSkill, SkillFile
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError
from dragoman.model import (
    Completion,
    DiscoverResult,
    GetPromptResult,
    Implementation,
    LoggingLevel,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    ServerCapabilities,
    Tool,
)
from dragoman.model.skills_extension import Skill
from dragoman.revisions import Revision


class SyncListening:
    """`Listening` for code that does not await: each step of the iteration blocks until something changed.

    It ends with the client, from whichever thread that is closed, and by `close`.
    """

    def __init__(self, listening: Listening, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._listening = listening
        self._run = run

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        try:
            change: Change | None = self._run(self._listening.next())
        except ClosedError:
            if not self._listening.over:
                raise
            change = None  # the client's thread has ended
        if change is None:
            raise StopIteration
        return change

    def established(self) -> Self:
        """As `Listening.established`."""
        self._run(self._listening.established())
        return self

    @property
    def heard(self) -> tuple[str, ...]:
        """As `Listening.heard`."""
        return self._listening.heard

    def close(self) -> None:
        """As `Listening.aclose`."""
        if not self._listening.over:
            self._run(self._listening.aclose())

    def __enter__(self) -> Self:
        try:
            return self.established()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Client(Client):
    """The one behind a `SyncClient`, which says how that is begun."""

    _first: ClassVar[str] = "`with SyncClient(...) as client:`, or `client.connect()` first"


class SyncClient(Blocking):
    """A `Client` for code that does not await; the same verbs, targets, options and errors.

    Safe from several threads at the same time. Handlers (progress, logs, elicitation) run in the
    client's own thread and must not call it::

        with SyncClient("server.py") as client:
            print(client.call_tool("add", {"a": 1, "b": 2}).text)
    """

    def __init__(self, target: TargetLike, **options: Unpack[ClientKeywords]) -> None:
        self._client = _Client(target, **options)
        super().__init__(self._client, server=self._client.name)

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

    def list_resources(self, *, refresh: bool = False) -> list[Resource]:
        """As `Client.list_resources`."""
        return self._run(self._client.list_resources(refresh=refresh))

    def list_resource_templates(self, *, refresh: bool = False) -> list[ResourceTemplate]:
        """As `Client.list_resource_templates`."""
        return self._run(self._client.list_resource_templates(refresh=refresh))

    def list_prompts(self, *, refresh: bool = False) -> list[Prompt]:
        """As `Client.list_prompts`."""
        return self._run(self._client.list_prompts(refresh=refresh))

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        check: bool = False,
        **keywords: Unpack[CallKeywords],
    ) -> ToolResult:
        """As `Client.call_tool`."""
        result = self._run(self._client.call_tool(name, arguments, **keywords))
        return result.raise_for_error() if check else result

    def read_resource(self, uri: str, **keywords: Unpack[RequestKeywords]) -> ReadResourceResult:
        """As `Client.read_resource`."""
        return self._run(self._client.read_resource(uri, **keywords))

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **keywords: Unpack[RequestKeywords],
    ) -> GetPromptResult:
        """As `Client.get_prompt`."""
        return self._run(self._client.get_prompt(name, arguments, **keywords))

    def complete(
        self,
        ref: PromptReference | ResourceTemplateReference | str,
        argument: str | Mapping[str, str],
        *,
        value: str = "",
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """As `Client.complete`."""
        return self._run(self._client.complete(ref, argument, value=value, context=context))

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool | Sequence[str] = False,
        resource_list: bool = False,
    ) -> SyncListening:
        """As `Client.listen`: `for change in client.listen(tools=True)`, where each step blocks."""

        async def begin() -> Listening:
            return self._client.listen(
                tools=tools, prompts=prompts, resources=resources, resource_list=resource_list
            )

        return SyncListening(self._run(begin()), self._run)

    def subscribe(self, uri: str) -> None:
        """As `Client.subscribe`."""
        self._run(self._client.subscribe(uri))

    def unsubscribe(self, uri: str) -> None:
        """As `Client.unsubscribe`."""
        self._run(self._client.unsubscribe(uri))

    def set_logging_level(self, level: LoggingLevel) -> None:
        """As `Client.set_logging_level`."""
        self._run(self._client.set_logging_level(level))

    def roots_changed(self) -> None:
        """As `Client.roots_changed`."""
        self._run(self._client.roots_changed())

    def ping(self) -> None:
        """As `Client.ping`."""
        self._run(self._client.ping())

    def discover(self) -> DiscoverResult:
        """As `Client.discover`."""
        return self._run(self._client.discover())

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """As `Client.request`."""
        return self._run(self._client.request(method, params))

    def list_skills(self, *, refresh: bool = False) -> list[Skill]:
        """As `Client.list_skills`."""
        return self._run(self._client.list_skills(refresh=refresh))

    def get_skill(self, uri: str) -> Skill:
        """As `Client.get_skill`."""
        return self._run(self._client.get_skill(uri))

    def load_skill(self, skill: Skill | str) -> LoadedSkill:
        """As `Client.load_skill`."""
        return self._run(self._client.load_skill(skill))

    def read_skill(self, skill: LoadedSkill, path: str) -> SkillFile:
        """As `Client.read_skill`."""
        return self._run(self._client.read_skill(skill, path))

    def read_directory(self, uri: str) -> list[Resource]:
        """As `Client.read_directory`."""
        return self._run(self._client.read_directory(uri))
