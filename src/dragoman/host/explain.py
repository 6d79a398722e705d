"""Why a call may run, is asked about, or is refused: a chain from the configuration to the rule that decides.

Pure: it puts together what was read and what a server listed, and says it in words with places. Each link
stands for itself, so that a server that does not answer takes neither the configuration nor the rules away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias

from dragoman.host.config.record import Origin, Standing
from dragoman.host.files import HostFiles
from dragoman.host.naming import HostNames
from dragoman.host.outcome import Judged
from dragoman.host.overview import place
from dragoman.host.permissions import Decision
from dragoman.host.remedies import allowing, remedy
from dragoman.protocol.naming import Name

Step: TypeAlias = Literal["config", "list", "schema", "lock", "permission"]
Verdict: TypeAlias = Literal["allow", "ask", "deny", "refused", "unknown"]
"""`refused`: by something before the rules. `unknown`: there is no such tool, or nobody could be asked."""

_SEPARATORS: Final = (":", "/")
_EFFECTS: Final = {"allow": "allowed", "ask": "asked about", "deny": "denied"}


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the chain.

    `ok` is False where the call ends here and None where nothing was found out. `text` is a sentence,
    `details` further ones, `remedy` what to do about it, `places` where it stands.
    """

    step: Step
    ok: bool | None
    text: str
    details: tuple[str, ...] = ()
    remedy: str = ""
    places: tuple[Origin, ...] = ()

    def record(self) -> dict[str, Any]:
        """The link as JSON shows it."""
        return {
            "step": self.step,
            "ok": self.ok,
            "text": self.text,
            "details": self.details,
            "remedy": self.remedy,
            "places": [place(origin) for origin in self.places],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What a server said when it was asked for its tools: `why` it did not, or their names.

    `asked` is False where nobody asked it. `near` are names like the one that was looked for.
    """

    asked: bool = True
    why: str = ""
    tools: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    hidden: str = ""  # why the host shows the tool to no model

    @property
    def answered(self) -> bool:
        """Whether there is a list."""
        return self.asked and not self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that is known of one call.

    `name` is the tool, `judged` what a host made of it where its server listed it. `decision` is what the
    rules say, without what only the server could tell where it was not asked. `others` are decisions on the
    same call in other situations, by a word for each.
    """

    files: HostFiles
    name: Name
    listed: Listed
    decision: Decision
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    judged: Judged | None = None
    locked: bool = False
    others: Mapping[str, Decision] = field(default_factory=dict[str, Decision])


@dataclass(frozen=True, slots=True)
class Chain:
    """The links in their order, and what they come to."""

    verdict: Verdict
    text: str
    links: tuple[Link, ...]

    def __getitem__(self, step: Step) -> Link:
        """The link of a step."""
        return next(link for link in self.links if link.step == step)


def candidates(files: HostFiles, text: str) -> list[tuple[str, str]]:
    """The tools that a text may mean, as server and tool, by the servers of the files alone.

    It is `server:tool`, `server/tool`, or a name as the model or the host's rules have it. Which tool a name
    stands for that was cut, or has other characters in it, is known only when the server has listed its own.
    """
    servers = list(files.servers)
    plain = [
        (server, text[len(server) + 1 :])
        for server in servers
        for mark in _SEPARATORS
        if text.startswith(server + mark) and len(text) > len(server) + 1
    ]
    if plain:
        return plain
    whole = [
        (server, text[at:])
        for server in servers
        for at in range(1, len(text))
        if _means(files.host, server, tool=text[at:], text=text)
    ]
    return whole or [
        (server, text[len(start) :])
        for server in servers
        if (start := _start(files.host, server)) and text.startswith(start) and len(text) > len(start)
    ]


def _start(host: str, server: str) -> str:
    """What the names of all tools of a server begin with, where their end may be cut; "" for none."""
    names = [name.model for tool in "ab" for name in HostNames(host, [(server, tool)])]
    return names[0][:-1] if [name[-1:] for name in names] == ["a", "b"] else ""


def _means(host: str, server: str, *, tool: str, text: str) -> bool:
    return any(text in (name.model, name.canonical) for name in HostNames(host, [(server, tool)]))


def nearest(files: HostFiles, text: str) -> list[str]:
    """Servers whose names are like what a text begins with."""
    servers = list(files.servers)
    words = [text, *(text.partition(mark)[0] for mark in _SEPARATORS), *text.split("__")]
    found = [name for word in words for name in get_close_matches(word, servers, n=3)]
    return list(dict.fromkeys(found))


def explain(facts: Facts) -> Chain:
    """The chain for one call."""
    links = [
        _config(facts),
        _list(facts),
        _schema(facts),
        *([_lock(facts)] if facts.locked else []),
        _permission(facts),
    ]
    verdict, text = _verdict(facts, links)
    return Chain(verdict, text, tuple(links))


def _verdict(facts: Facts, links: Sequence[Link]) -> tuple[Verdict, str]:
    broken = next((link for link in links if link.ok is False), None)
    if broken is None:
        effect = facts.decision.effect
        unsure = facts.listed.asked and not facts.listed.answered
        if unsure:
            return "unknown", f"it cannot be called: {facts.listed.why.splitlines()[0]}"
        words: dict[str, str] = {"allow": "it may run", "ask": "a person is asked first", "deny": "denied"}
        return effect, words[effect]
    if broken.step == "permission":
        return "deny", f"denied: {facts.decision.why}"
    if broken.step == "list":
        return "unknown", f"there is no such tool: {broken.text}"
    return "refused", f"refused before the rules are asked: {broken.text}"


# Links ---------------------------------------------------------------------------------------------------


def _config(facts: Facts) -> Link:
    server, files = facts.name.server, facts.files
    standing = files.servers.get(server)
    if standing is None:
        return Link("config", False, f"no file of {files.host} has a server {server!r}")
    config = standing.config
    used = standing.state == "active"
    text = f"{server!r} in {config.origin.exact} is "
    text += "used" if used else f"{standing.state}: {standing.why}"
    by = [standing.by] if standing.by is not None and standing.by != config.origin else []
    details = [f"{standing.why}"] if used and standing.why else []
    details += [
        _other(item) for item in files.setup if item.config.name == config.name and item is not standing
    ]
    cure = remedy(standing, host=files.host, folder=str(files.machine.folder))
    if standing.state in ("pending", "untrusted"):
        cure += "; `--trusted` explains the call as if somebody had"
    return Link(
        "config",
        used,
        text,
        tuple(details),
        cure,
        (config.origin, *by),
    )


def _other(item: Standing) -> str:
    return f"the entry in {item.config.origin} is {item.state}: {item.why}"


def _list(facts: Facts) -> Link:
    listed, tool = facts.listed, facts.name.tool
    if not listed.asked:
        return Link("list", None, f"the server was not asked{': ' if listed.why else ''}{listed.why}")
    if listed.why:
        # An error's own hint stands on a line of its own.
        said, *hints = (line.strip() for line in listed.why.splitlines())
        cure = next((hint.removeprefix("try: ") for hint in hints if hint.startswith("try: ")), "")
        others = tuple(hint for hint in hints if not hint.startswith("try: "))
        return Link("list", None, f"the server did not answer: {said}", others, cure)
    if listed.hidden:
        return Link("list", False, f"the host shows {tool!r} to no model: {listed.hidden}")
    count = len(listed.tools)
    if tool in listed.tools:
        among = "the one tool" if count == 1 else f"one of {count} tools"
        return Link("list", True, f"the server answered: {tool!r} is {among} that it lists")
    near = listed.near or tuple(get_close_matches(tool, listed.tools, n=3))
    meant = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    shown = ", ".join(listed.tools[:_FEW]) or "none"
    more = f" and {count - _FEW} more" if count > _FEW else ""
    return Link("list", False, f"the server lists no {tool!r}", (f"it lists {shown}{more}",), meant)


_FEW: Final = 12


def _schema(facts: Facts) -> Link:
    judged = facts.judged
    if judged is None or judged.tool is None:
        return Link("schema", None, "not looked at, as the tool's definition is not there")
    if judged.unusable:
        return Link("schema", False, f"the tool's schema cannot be used: {judged.unusable}")
    if judged.use.fault is not None:
        return Link("schema", False, judged.use.fault)
    if judged.faults:
        count = len(judged.faults)
        text = "1 argument does not fit" if count == 1 else f"{count} arguments do not fit"
        details = tuple(
            f"{fault.told('argument')}{f' ({fault.rule})' if fault.rule else ''}" for fault in judged.faults
        )
        return Link("schema", False, text, details)
    return Link("schema", True, "the arguments fit" if facts.arguments else "no argument is missing")


def _lock(facts: Facts) -> Link:
    judged = facts.judged
    if judged is None or judged.tool is None:
        return Link("lock", None, "not looked at, as the tool's definition is not there")
    if judged.locked:
        return Link(
            "lock", False, judged.locked, (), "look at it, and `dragoman lock --update` if it is right"
        )
    return Link("lock", True, "the tool is what it was when it was locked")


def _permission(facts: Facts) -> Link:
    decision = facts.decision
    rules = [decision.rule] if decision.rule is not None else []
    return Link(
        "permission",
        decision.effect != "deny",
        f"{_EFFECTS[decision.effect]}: {decision.why}",
        tuple(_about(facts)),
        _change(facts),
        tuple(rule.origin for rule in (*rules, *decision.lost)),
    )


def _about(facts: Facts) -> Iterator[str]:
    decision = facts.decision
    for rule in decision.lost:
        yield f"loses: {rule}"
    if decision.hidden:
        yield "the model does not see the tool"
    if decision.once:
        yield "it is asked about each time: a yes holds for one call"
    if decision.review:
        yield "its result is shown to a person before the model sees it"
    if facts.judged is None or facts.judged.tool is None:
        yield "decided without the tool's own hints, as its definition is not there"
    for situation, other in facts.others.items():
        if other.effect != decision.effect:
            by = "" if other.rule == decision.rule else f", by {_by(other)}"
            yield f"{situation}: {_EFFECTS[other.effect]}{by}"


def _by(decision: Decision) -> str:
    return decision.why if decision.rule is None else str(decision.rule)


def _change(facts: Facts) -> str:
    """What would let the call run without a question."""
    decision, rule = facts.decision, facts.decision.rule
    if decision.effect == "allow":
        return ""
    if rule is not None:
        return f"to change that, change the rule in {rule.origin.exact}"
    standing = facts.files.servers.get(facts.name.server)
    if standing is not None and not standing.config.lists(facts.name.tool):
        return f"to change that, change the lists of tools of the entry in {standing.config.origin.exact}"
    how = allowing(facts.files.host, facts.name)
    return f"to allow it, {how}" if how else ""
