"""One call of a model, from its name to its answer: schema first, lock second, rules third, then the call.

Nothing is sent before all have agreed. What each of them says is decided elsewhere; here is the order.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final

from dragoman.errors import LocalError, RemoteError
from dragoman.host.config.record import Rule, ServerConfig
from dragoman.host.models.base import ToolUse
from dragoman.host.options import SESSION, Ask, HostOptions, Question
from dragoman.host.outcome import Judged, Outcome
from dragoman.host.output import fitted
from dragoman.host.permissions import Decision, own
from dragoman.host.roster import Roster, same_server
from dragoman.host.ruling import call_of, decide
from dragoman.host.trace import By, Entry
from dragoman.model import Tool
from dragoman.protocol.naming import Name
from dragoman.schema.errors import SchemaError
from dragoman.schema.shapes import is_object, is_sequence

log = logging.getLogger("dragoman.host")

_FARES: Final = {"new": "is being started", "starting": "is being started", "failed": "cannot be reached"}
_SHOWN: Final = 200  # characters of a name that there is not
_LISTED: Final = 20  # names that the text for an unknown tool lists at most


@dataclass(frozen=True, slots=True)
class _Grant:
    """A yes for the session: to this tool as it was then, of the server that this entry comes to."""

    rule: Rule
    tool: Tool
    config: ServerConfig


class Calls:
    """Answers calls of tools of a roster. `keep` writes a text that is too long to a file."""

    def __init__(
        self, roster: Roster, options: HostOptions, *, env: Mapping[str, str], keep: Callable[[str], Path]
    ) -> None:
        self._roster = roster
        self._options = options
        self._env = env
        self._keep = keep
        self._grants: list[_Grant] = []

    @property
    def grants(self) -> tuple[Rule, ...]:
        """The tools for which a person said yes for this session."""
        return tuple(grant.rule for grant in self._grants)

    async def answer(self, use: ToolUse, *, sending: Callable[[], None] | None) -> Outcome:
        """Answer a call. Raises nothing of what the call comes to."""
        use = _apart(use)
        entry = None if self._options.trace is None else self._options.trace.begin()
        await self._roster.arrive(use.name)
        judged = self.judge(use, whole=False)
        decision = judged.decision
        if judged.by is None and decision is not None and decision.effect == "ask":
            try:
                judged, decision = await self._agreed(judged, decision)
            except BaseException:
                why = f"{decision.why}; the call was given up before there was an answer"
                with contextlib.suppress(LocalError):  # nothing was sent, and whoever gave up is to know that
                    _note(entry, judged, decision=replace(decision, effect="deny", why=why))
                raise
        _note(entry, judged, decision=decision)
        outcome = await self._sent(judged, decision, entry=entry, sending=sending)
        if entry is not None:
            entry.result(outcome.block, by=outcome.by)
        return outcome

    # Before it is sent -------------------------------------------------------------------------------

    def judge(self, use: ToolUse, *, whole: bool) -> Judged:
        """The facts in their order, to the first that refuses the call, or all of them if `whole`."""
        found = self._roster.find(use.name)
        if found is None:
            return self._absent(use)
        name, tool = found
        session = self._roster.sessions[name.server]
        judged = Judged(
            use=use,
            name=name,
            tool=tool,
            standing=self._roster.files.servers.get(name.server),
            state=session.state,
            why=session.why,
        )
        for look in (self._check_schema, self._check_lock, self._check_rules):
            judged = look(judged, name, tool=tool)
            if judged.by is not None and not whole:
                break
        return judged

    def _absent(self, use: ToolUse) -> Judged:
        """What is said of a tool that is not there: maybe it was, and its server is on its way back."""
        name = self._roster.names.ever(use.name)
        session = None if name is None else self._roster.sessions.get(name.server)
        if name is None or session is None or session.state == "connected":
            near = tuple(get_close_matches(use.name[:_SHOWN], self._known(), n=3))
            return Judged(use=use, by="host", text=self._unknown(use.name), near=near)
        how = _FARES.get(session.state, f"is {session.state}")
        text = f"{use.name} is not there now: its server {how}"
        standing = self._roster.files.servers.get(name.server)
        return Judged(
            use=use, by="host", text=text, name=name, standing=standing, state=session.state, why=session.why
        )

    def _check_schema(self, judged: Judged, name: Name, *, tool: Tool) -> Judged:
        use = judged.use
        if use.fault is not None:
            return _refused(judged, "schema", text=f"Invalid arguments for {use.name}: {use.fault}")
        try:
            faults = self._roster.sessions[name.server].faults(tool.name, use.arguments)
        except SchemaError as exc:
            text = f"{use.name} cannot be called: its input schema cannot be used: {exc}"
            return _refused(replace(judged, unusable=str(exc)), "schema", text=text)
        if not faults:
            return judged
        lines = [f"Invalid arguments for {use.name}:", *(f"- {fault}" for fault in faults)]
        return _refused(replace(judged, faults=faults), "schema", text="\n".join(lines))

    def _check_lock(self, judged: Judged, name: Name, *, tool: Tool) -> Judged:
        lock = self._options.lock
        why = None if lock is None else lock.check(name.server, tool)
        if why is None:
            return judged
        text = f"{judged.use.name} cannot be called: it is not the tool that was locked: {why}"
        return _refused(replace(judged, locked=why), "lock", text=text)

    def _check_rules(self, judged: Judged, name: Name, *, tool: Tool) -> Judged:
        call = call_of(name, judged.use.arguments, tool=tool)
        grants = self._granted(name, tool)
        decision = decide(self._roster.files, call, now=time.time(), grants=grants)
        judged = replace(judged, decision=decision)
        if decision.effect != "deny":
            return judged
        return _refused(judged, "permission", text=f"Not permitted: {decision.why}")

    def _granted(self, name: Name, tool: Tool) -> tuple[Rule, ...]:
        """What a person said for the session that may speak of this tool: not of what it was before."""
        config = self._roster.sessions[name.server].config
        return tuple(
            grant.rule for grant in self._grants if grant.tool == tool and same_server(grant.config, config)
        )

    async def _agreed(self, judged: Judged, decision: Decision) -> tuple[Judged, Decision]:
        """What a person makes of it, and the facts as they are then: the answer may take long.

        A yes is to the tool as it was shown, of the server as it was, under rules that still leave it open.
        """
        name, tool, ask = judged.name, judged.tool, self._options.ask
        if name is None or tool is None or ask is None:  # a question is of a tool that is there
            why = f"{decision.why}, and there is nobody to ask"
            return judged, replace(decision, effect="deny", why=why)
        session = self._roster.sessions[name.server]
        question = Question(name, tool, _copied(judged.use.arguments), decision, session.config)
        decision, lasting = await _asked(ask, question)
        if decision.effect != "allow":
            return judged, decision
        again = self.judge(judged.use, whole=False)
        if self._roster.sessions.get(name.server) is not session or again.tool != tool:
            text = f"{judged.use.name} has changed while the call waited for an answer: it was not called"
            return replace(judged, by="host", text=text), decision
        if again.by is not None:
            return again, again.decision or decision
        if lasting:
            rule = own.grant(call_of(name, judged.use.arguments, tool=tool))
            self._grants.append(_Grant(rule, tool, session.config))
        return judged, decision

    # And then ----------------------------------------------------------------------------------------

    async def _sent(
        self,
        judged: Judged,
        decision: Decision | None,
        *,
        entry: Entry | None,
        sending: Callable[[], None] | None,
    ) -> Outcome:
        use, name, tool = judged.use, judged.name, judged.tool
        if judged.by is not None or name is None or tool is None:
            return Outcome(use, judged.by or "host", judged.text, name, judged.faults, decision)
        if decision is None or decision.effect != "allow":
            why = "" if decision is None else f": {decision.why}"
            return Outcome(use, "permission", f"Not permitted{why}", name, decision=decision)
        session = self._roster.sessions[name.server]
        if sending is not None:
            sending()
        try:
            result = await session.call(tool, use.arguments, entry=entry)
        except RemoteError as exc:
            return Outcome(use, "server", f"The server refused the call: {exc}", name, decision=decision)
        except LocalError as exc:
            # Not str(exc): the last lines of a server's stderr are for people, not for a model.
            return Outcome(use, "host", f"The call came to nothing: {exc.message}", name, decision=decision)
        fit = fitted(result, tool, config=session.config, env=self._env, keep=self._keep)
        full = None if fit is result else result
        return Outcome(use, "server", "", name, decision=decision, result=fit, full=full)

    def _known(self) -> list[str]:
        return [name.model for name, _ in self._roster.visible()]

    def _unknown(self, name: str) -> str:
        known = self._known()
        listed = ", ".join(known[:_LISTED]) or "none"
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        told = repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}…"
        return f"Unknown tool {told}. There is: {listed}{more}."


def _refused(judged: Judged, by: By, *, text: str) -> Judged:
    """The facts with one more refusal: the first is the one that counts."""
    return judged if judged.by is not None else replace(judged, by=by, text=text)


def _block(use: ToolUse) -> dict[str, Any]:
    return {"type": "tool_use", "id": use.id, "name": use.name, "input": dict(use.arguments)}


def _note(entry: Entry | None, judged: Judged, *, decision: Decision | None) -> None:
    """The first line of the call's trace."""
    if entry is not None:
        entry.tool_use(
            _block(judged.use),
            name=judged.name,
            faults=judged.faults,
            decision=decision,
            tool=judged.tool,
            config=None if judged.standing is None else str(judged.standing.config.origin),
        )


async def _asked(ask: Ask, question: Question) -> tuple[Decision, bool]:
    """The decision with a person's answer, and whether it is one for the session.

    A question that fails is no yes.
    """
    decision = question.decision
    try:
        answer = ask(question)
        said = await answer if isawaitable(answer) else answer
    except Exception:
        log.exception("the question about %s of server %r failed", question.name.tool, question.name.server)
        return replace(decision, effect="deny", why=f"{decision.why}; the question failed"), False
    # Only a plain yes is one.
    lasting = said == SESSION and not decision.once
    yes = said is True or said == SESSION
    word = "yes for this session" if lasting else "yes" if yes else "no"
    why = f"{decision.why}; the answer was {word}"
    return replace(decision, effect="allow" if yes else "deny", why=why, answer=yes), lasting


def _apart(use: ToolUse) -> ToolUse:
    """The call with arguments of its own: what is looked at is what is sent, whoever changes theirs."""
    try:
        return replace(use, arguments=_copied(dict(use.arguments)))
    except RecursionError:
        return replace(use, arguments={}, fault="the arguments are nested too deeply")
    except TypeError:
        return replace(use, arguments={}, fault="a member of the arguments has a name that is no text")


def _copied(value: Any) -> Any:
    if is_object(value):
        names: list[Any] = list(value)
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if is_sequence(value) else value
