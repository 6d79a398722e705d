"""`Host`: the servers of a project, their tools for a model, and each of its calls checked and traced.

What may run is decided in `permissions` and what is written in `trace`; here is the order of things:
schema first, permission second, then the call. Nothing is sent before both have agreed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, Unpack

from dragoman.errors import LocalError, RemoteError
from dragoman.host.config.record import Problem, ServerConfig
from dragoman.host.files import SERVERS, Project, read_project
from dragoman.host.models import anthropic
from dragoman.host.models.base import LeftOut, Shown, ToolUse
from dragoman.host.options import HostKeywords, HostOptions, Question
from dragoman.host.outcome import Judged, Outcome
from dragoman.host.permissions import Decision, check, decide, hidden
from dragoman.host.session import Session, Setting
from dragoman.host.trace import By, Entry
from dragoman.model import Tool
from dragoman.protocol.naming import Name, Names
from dragoman.schema.errors import SchemaError

_LISTED: Final = 20  # names that the text for an unknown tool lists at most


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

    async def tools(self) -> list[dict[str, Any]]:
        """Definitions of the tools for Anthropic's Messages API; see `shown`.

        Not among them: those in `left_out`, which the API would refuse.
        """
        blocks, self.left_out = anthropic.definitions(await self.shown())
        return blocks

    async def shown(self) -> list[Shown]:
        """The tools that the model may see, by server and tool, for the definitions of any model's API.

        Not among them: tools that a rule denies altogether. Lists that are no longer fresh are read again.
        """
        await asyncio.gather(*(session.refresh() for session in self.sessions.values()))
        self._rename()
        return [
            Shown(name.model, self.sessions[name.server].tools[name.tool], group=name.server)
            for name in self._names
            if hidden(name, self.rules) is None
        ]

    def _rename(self) -> None:
        sessions = self.sessions.items()
        self._names = Names((server, tool) for server, session in sessions for tool in session.tools)

    # Calls -------------------------------------------------------------------------------------------

    async def call(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a model's `tool_use` block with the `tool_result` block for it.

        Whatever goes wrong is told to the model as an error; nothing is raised but UsageError for a
        block that is no `tool_use`.
        """
        return (await self.answer(block)).block

    async def answer(
        self, use: ToolUse | Mapping[str, Any], *, sending: Callable[[], None] | None = None
    ) -> Outcome:
        """Answer a call of a model, with all that is known of how it came out.

        `use` is a call as every API comes to it, or a `tool_use` block of Anthropic's Messages API. Nothing
        is raised but UsageError for a mapping that is no such block. `sending` is called once everything
        has agreed and the call is about to go out.
        """
        use = use if isinstance(use, ToolUse) else anthropic.tool_use(use)
        entry = None if self._options.trace is None else self._options.trace.begin()
        judged = self._judge(use, whole=False)
        decision = judged.decision
        if judged.by is None and decision is not None and decision.effect == "ask":
            decision = await self._asked(judged, decision)
        if entry is not None:
            entry.tool_use(_block(use), name=judged.name, faults=judged.faults, decision=decision)
        outcome = await self._sent(judged, decision, entry=entry, sending=sending)
        if entry is not None:
            entry.result(outcome.block, by=outcome.by)
        return outcome

    def judged(self, use: ToolUse | Mapping[str, Any]) -> Judged:
        """All that is known about a call before it is sent: sends nothing and asks nobody.

        Unlike a call, which ends at the first refusal, it has the facts behind that one too.
        """
        return self._judge(use if isinstance(use, ToolUse) else anthropic.tool_use(use), whole=True)

    def _judge(self, use: ToolUse, *, whole: bool) -> Judged:
        """The facts in their order, to the first that refuses the call, or all of them if `whole`."""
        name = self._names.find(use.name)
        if name is None:
            near = tuple(get_close_matches(use.name, self._visible(), n=3))
            return Judged(use=use, by="host", text=self._unknown(use.name), near=near)
        session = self.sessions[name.server]
        tool = session.tools[name.tool]
        judged = Judged(use=use, name=name, state=session.state, why=session.why, tool=tool)
        for look in (self._check_schema, self._check_lock, self._check_rules):
            judged = look(judged, name, tool=tool)
            if judged.by is not None and not whole:
                break
        return judged

    def _check_schema(self, judged: Judged, name: Name, *, tool: Tool) -> Judged:
        use = judged.use
        if use.fault is not None:
            return _refused(judged, "schema", f"Invalid arguments for {use.name}: {use.fault}")
        try:
            faults = self.sessions[name.server].faults(tool.name, use.arguments)
        except SchemaError as exc:
            text = f"{use.name} cannot be called: its input schema cannot be used: {exc}"
            return _refused(replace(judged, unusable=str(exc)), "schema", text)
        if not faults:
            return judged
        lines = [f"Invalid arguments for {use.name}:", *(f"- {fault}" for fault in faults)]
        return _refused(replace(judged, faults=faults), "schema", "\n".join(lines))

    def _check_lock(self, judged: Judged, name: Name, *, tool: Tool) -> Judged:
        lock = self._options.lock
        why = None if lock is None else lock.check(name.server, tool)
        if why is None:
            return judged
        text = f"{judged.use.name} cannot be called: it is not the tool that was locked: {why}"
        return _refused(replace(judged, locked=why), "lock", text)

    def _check_rules(self, judged: Judged, name: Name, *, tool: Tool) -> Judged:
        del tool
        options, arguments = self._options, judged.use.arguments
        decision = decide(
            name, arguments, rules=self.rules, can_ask=options.ask is not None, trusted=options.trusted
        )
        judged = replace(judged, decision=decision)
        if decision.effect != "deny":
            return judged
        return _refused(judged, "permission", f"Not permitted: {decision.why}")

    async def _asked(self, judged: Judged, decision: Decision) -> Decision:
        """What a person makes of it."""
        name, tool, ask = judged.name, judged.tool, self._options.ask
        assert name is not None
        assert tool is not None
        assert ask is not None
        answer = ask(Question(name, tool, judged.use.arguments, decision))
        said = await answer if isawaitable(answer) else answer
        # Only a plain yes is one.
        yes = said is True
        why = f"{decision.why}; the answer was {'yes' if yes else 'no'}"
        return replace(decision, effect="allow" if yes else "deny", why=why, answer=yes)

    async def _sent(
        self,
        judged: Judged,
        decision: Decision | None,
        *,
        entry: Entry | None,
        sending: Callable[[], None] | None,
    ) -> Outcome:
        use, name = judged.use, judged.name
        if judged.by is not None or name is None:
            return Outcome(use, judged.by or "host", judged.text, name, judged.faults, decision)
        if decision is None or decision.effect != "allow":
            why = "" if decision is None else f": {decision.why}"
            return Outcome(use, "permission", f"Not permitted{why}", name, decision=decision)
        if sending is not None:
            sending()
        try:
            result = await self.sessions[name.server].call(name.tool, use.arguments, entry=entry)
        except RemoteError as exc:
            return Outcome(use, "server", f"The server refused the call: {exc}", name, decision=decision)
        except LocalError as exc:
            # Not str(exc): the last lines of a server's stderr are for people, not for a model.
            return Outcome(use, "host", f"The call came to nothing: {exc.message}", name, decision=decision)
        return Outcome(use, "server", "", name, decision=decision, result=result)

    def _visible(self) -> list[str]:
        return [found.model for found in self._names if hidden(found, self.rules) is None]

    def _unknown(self, name: str) -> str:
        known = self._visible()
        listed = ", ".join(known[:_LISTED]) or "none"
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        return f"Unknown tool {name!r}. There is: {listed}{more}."


def _refused(judged: Judged, by: By, text: str) -> Judged:
    """The facts with one more refusal: the first is the one that counts."""
    return judged if judged.by is not None else replace(judged, by=by, text=text)


def _block(use: ToolUse) -> dict[str, Any]:
    return {"type": "tool_use", "id": use.id, "name": use.name, "input": dict(use.arguments)}
