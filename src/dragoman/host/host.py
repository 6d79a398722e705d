"""`Host`: the servers of a project, their tools for a model, and each of its calls checked and traced.

What may run is decided in `permissions` and what is written in `trace`; here is the order of things:
schema first, permission second, then the call. Nothing is sent before both have agreed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypedDict, Unpack

from dragoman.client import ToolResult
from dragoman.errors import LocalError, RemoteError
from dragoman.host.config.record import Problem, ServerConfig
from dragoman.host.files import SERVERS, Project, read_project
from dragoman.host.models import anthropic
from dragoman.host.models.base import LeftOut, Shown, ToolUse
from dragoman.host.permissions import Decision, check, decide, hidden
from dragoman.host.session import ServerTap, Session, Setting
from dragoman.host.trace import By, Entry, Trace
from dragoman.model import Tool
from dragoman.protocol.naming import Name, Names
from dragoman.schema.errors import Fault, SchemaError

_LISTED: Final = 20  # names that the text for an unknown tool lists at most


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before a call: the tool, its arguments, and why there is a question."""

    name: Name
    tool: Tool
    arguments: Mapping[str, Any]
    decision: Decision


Ask: TypeAlias = Callable[[Question], Awaitable[bool] | bool]


class HostKeywords(TypedDict, total=False):
    """The keywords of `Host(...)`: see `HostOptions`."""

    ask: Ask | None
    trace: Trace | None
    env: Mapping[str, str] | None
    protocol: str
    trusted: bool
    tap: ServerTap | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What a host can be told.

    `ask` answers for the person, True for yes; without it nobody can be asked, and what would ask is
    denied. `trace` gets three lines a call. `env` is where `${NAME}` is looked up, the process's own
    environment by default. `protocol` is `"auto"` or the one revision to speak. Without `trusted`, allow
    rules of the project's own file do not count. `tap` sees every frame of every server.
    """

    ask: Ask | None = None
    trace: Trace | None = None
    env: Mapping[str, str] | None = None
    protocol: str = "auto"
    trusted: bool = True
    tap: ServerTap | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call of the model came to.

    `block` is the `tool_result` for the model, `by` who answered: the server, or with nothing sent the
    schema, a permission or the host itself. `faults` are what the schema refused, `decision` what the
    rules said, `result` what the server answered; each is there only if the call came so far.
    """

    block: Mapping[str, Any]
    by: By
    name: Name | None = None
    faults: tuple[Fault, ...] = ()
    decision: Decision | None = None
    result: ToolResult | None = None

    @property
    def is_error(self) -> bool:
        """Whether the model is told of an error."""
        return bool(self.block.get("is_error", False))


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may be sent."""

    name: Name
    decision: Decision
    faults: tuple[Fault, ...] = ()


class Host:
    """The servers of a project, for one model::

        async with Host.from_files(".", ask=ask, trace=Trace("trace.jsonl")) as host:
            tools = await host.tools()
            result = await host.call(tool_use)

    A server that does not start, or dies, takes nothing with it: see `sessions` for how each fares.
    """

    def __init__(
        self,
        servers: Iterable[ServerConfig],
        *,
        project: Project | None = None,
        **options: Unpack[HostKeywords],
    ) -> None:
        self._options = told = HostOptions(**options)
        setting = Setting(
            env=os.environ if told.env is None else told.env,
            folder=None if project is None else project.folder,
            protocol=told.protocol,
            tap=told.tap,
        )
        self.rules = () if project is None else project.rules
        self.sessions = {config.name: Session(config, setting) for config in servers}
        self.left_out: list[LeftOut] = []
        self._problems = () if project is None else project.problems
        self._names = Names()

    @classmethod
    def from_files(
        cls,
        folder: Path | str = ".",
        *,
        servers: str = SERVERS,
        user: bool = True,
        **options: Unpack[HostKeywords],
    ) -> Self:
        """A host for the files of a project: `.mcp.json` and the settings beside it (see `read_project`)."""
        project = read_project(folder, servers=servers, user=user, env=options.get("env"))
        return cls(project.servers, project=project, **options)

    # Life --------------------------------------------------------------------------------------------

    async def connect(self) -> Self:
        """Start or reach every server, all at the same time. What fails is in `sessions`, and not raised."""
        await asyncio.gather(*(session.connect() for session in self.sessions.values()))
        self._rename()
        return self

    async def close(self) -> None:
        """End every connection, and the processes that were started from here."""
        await asyncio.gather(*(session.close() for session in self.sessions.values()))

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

    # Facts -------------------------------------------------------------------------------------------

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files, rules that never match included."""
        configs = [session.config for session in self.sessions.values()]
        warnings = (
            Problem(f"server {config.name!r}: {text}", config.origin, config.name)
            for config in configs
            for text in config.warnings
        )
        rules = check(self.rules, servers=tuple(self.sessions), names=tuple(self._names))
        return (*self._problems, *warnings, *rules)

    @property
    def names(self) -> Names:
        """The table of names, of all tools of all servers that answer."""
        return self._names

    async def tools(self) -> list[anthropic.Block]:
        """Definitions of the tools that the model may see, by server and tool.

        Not among them: tools that a rule denies altogether, and those in `left_out`, which the model's
        API would refuse.
        """
        await asyncio.gather(*(session.refresh() for session in self.sessions.values()))
        self._rename()
        shown = [
            Shown(name.model, self.sessions[name.server].tools[name.tool])
            for name in self._names
            if hidden(name, self.rules) is None
        ]
        blocks, self.left_out = anthropic.definitions(shown)
        return blocks

    def _rename(self) -> None:
        sessions = self.sessions.items()
        self._names = Names((server, tool) for server, session in sessions for tool in session.tools)

    # Calls -------------------------------------------------------------------------------------------

    async def call(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a model's `tool_use` block with the `tool_result` block for it.

        Whatever goes wrong is told to the model as an error; nothing is raised but UsageError for a
        block that is no `tool_use`.
        """
        return (await self.run(block)).block

    async def run(self, block: Mapping[str, Any]) -> Outcome:
        """As `call`, with all that is known of how it came out."""
        use = anthropic.tool_use(block)
        entry = None if self._options.trace is None else self._options.trace.begin()
        judged = await self._judge(use)
        if entry is not None:
            entry.tool_use(block, name=judged.name, faults=judged.faults, decision=judged.decision)
        outcome = judged if isinstance(judged, Outcome) else await self._send(use, judged, entry=entry)
        if entry is not None:
            entry.result(outcome.block, by=outcome.by)
        return outcome

    async def _judge(self, use: ToolUse) -> Outcome | _Ready:
        """Whether the call may be sent; if not, what the model is told instead."""
        name = self._names.find(use.name)
        if name is None:
            return Outcome(anthropic.failure(use.id, self._unknown(use.name)), "host")
        try:
            faults = self.sessions[name.server].faults(name.tool, use.arguments)
        except SchemaError as exc:
            text = f"{use.name} cannot be called: its input schema cannot be used: {exc}"
            return Outcome(anthropic.failure(use.id, text), "schema", name)
        if faults:
            lines = [f"Invalid arguments for {use.name}:", *(f"- {fault}" for fault in faults)]
            return Outcome(anthropic.failure(use.id, "\n".join(lines)), "schema", name, faults)
        decision = await self._decide(use, name)
        if decision.effect == "deny":
            block = anthropic.failure(use.id, f"Not permitted: {decision.why}")
            return Outcome(block, "permission", name, decision=decision)
        return _Ready(name, decision)

    async def _decide(self, use: ToolUse, name: Name) -> Decision:
        options, ask = self._options, self._options.ask
        decision = decide(
            name, use.arguments, rules=self.rules, can_ask=ask is not None, trusted=options.trusted
        )
        if decision.effect != "ask" or ask is None:
            return decision
        tool = self.sessions[name.server].tools[name.tool]
        answer = ask(Question(name, tool, use.arguments, decision))
        yes = await answer if isawaitable(answer) else answer
        # Only a plain yes is one.
        said = f"{decision.why}; the answer was {'yes' if yes is True else 'no'}"
        return replace(decision, effect="allow" if yes is True else "deny", why=said, answer=yes is True)

    async def _send(self, use: ToolUse, ready: _Ready, *, entry: Entry | None) -> Outcome:
        name, decision = ready.name, ready.decision
        try:
            result = await self.sessions[name.server].call(name.tool, use.arguments, entry=entry)
        except RemoteError as exc:
            block = anthropic.failure(use.id, f"The server refused the call: {exc}")
            return Outcome(block, "server", name, decision=decision)
        except LocalError as exc:
            # Not str(exc): the last lines of a server's stderr are for people, not for a model.
            block = anthropic.failure(use.id, f"The call came to nothing: {exc.message}")
            return Outcome(block, "host", name, decision=decision)
        block = anthropic.tool_result(use.id, result)
        return Outcome(block, "server", name, decision=decision, result=result)

    def _unknown(self, name: str) -> str:
        known = [found.model for found in self._names if hidden(found, self.rules) is None]
        listed = ", ".join(known[:_LISTED]) or "none"
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        return f"Unknown tool {name!r}. There is: {listed}{more}."
