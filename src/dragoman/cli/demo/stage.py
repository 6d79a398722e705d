"""Where the demo plays: one run of the host, and the evidence it leaves, as frames, rules, schema lines.

It knows no scene, and what is expected of none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from dragoman.cli.demo.answers import Answers
from dragoman.cli.demo.cases import Case
from dragoman.host import Frame, Host, Outcome, Session, Source
from dragoman.revisions import REVISIONS as SPOKEN
from dragoman.revisions import Revision

# The newest of those that shake hands, and the newest of those that do not.
REVISIONS: Final[tuple[Revision, ...]] = (
    next(revision for revision in reversed(SPOKEN) if not revision.handshake),
    next(revision for revision in reversed(SPOKEN) if revision.handshake),
)

SERVER: Final = "orders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One scene as it went: `decided` is what decided and `place` where that is written
    down. `lines` are lines of the trace, where those are what is shown.
    """

    title: str
    asked: str | None
    frames: tuple[Frame, ...]
    decided: str
    place: str
    outcome: str
    expected: str
    ok: bool
    lines: tuple[bytes, ...] = ()

    def record(self) -> dict[str, Any]:
        """The scene as JSON."""
        return {
            "title": self.title,
            "asked": self.asked,
            "frames": [{"direction": one.direction, "frame": msgspec.Raw(one.data)} for one in self.frames],
            "lines": [msgspec.Raw(line) for line in self.lines],
            "decided": self.decided,
            "place": self.place,
            "outcome": self.outcome,
            "expected": self.expected,
            "ok": self.ok,
        }


@dataclass(slots=True)
class Run:
    """One way to play on one revision, and the scenes played so far."""

    case: Case
    revision: Revision
    folder: Path
    shown: list[Shown] = field(default_factory=list[Shown], kw_only=True)

    @property
    def more(self) -> list[Source]:
        """The entry for HTTP, which stands in place of the project's own as one of a command line does."""
        file = self.case.file
        if self.case.transport == "stdio":
            return []
        return [Source((self.folder / file).read_text("utf-8"), file, "cli")]

    @property
    def name(self) -> str:
        """How it is called: transport or mode, and revision."""
        return f"{self.case.surface or self.case.transport} {self.revision.version}"

    @property
    def ok(self) -> bool:
        """Whether every scene went as expected."""
        return bool(self.shown) and all(shown.ok for shown in self.shown)

    def record(self) -> dict[str, Any]:
        """The run as JSON."""
        scenes = [shown.record() for shown in self.shown]
        return {
            "host": self.case.host,
            "transport": self.case.transport,
            "mode": self.case.mode,
            "revision": self.revision.version,
            "ok": self.ok,
            "scenes": scenes,
        }


class Stage:
    """What the scenes of one run share: host, frames and trace lines as they come in."""

    host: Host

    def __init__(self, run: Run, answers: Answers) -> None:
        self.run = run
        self.answers = answers
        self.frames: list[Frame] = []
        self.lines: list[bytes] = []
        self.calls = 0

    @property
    def session(self) -> Session:
        return self.host.sessions[SERVER]

    def taken(self) -> tuple[Frame, ...]:
        """The frames since the last time."""
        frames = tuple(self.frames)
        self.frames.clear()
        return frames

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, Outcome, tuple[Frame, ...]]:
        """Let the model call a tool; returns how that reads, what came of it, and the frames it took."""
        self.calls += 1
        found = self.host.names.of(SERVER, tool)
        name = f"mcp__{SERVER}__{tool}" if found is None else found.model
        block = {"type": "tool_use", "id": f"toolu_{self.calls:02}", "name": name, "input": dict(arguments)}
        outcome = await self.host.answer(block)
        return f"{name} {json(arguments)}", outcome, self.taken()

    def place(self, file: str, line: int | None = None) -> str:
        """A place in one of the example's files, from here, or from the example where that is elsewhere."""
        path = self.run.folder / file
        try:
            shown = str(path.relative_to(Path.cwd()))
        except ValueError:
            shown = file
        return shown if line is None else f"{shown}:{line}"

    def ruled(self, outcome: Outcome) -> tuple[str, str]:
        """The rule that decided a call, and its place."""
        decision = outcome.decision
        if decision is None:
            return "no rule was asked", ""
        rule = decision.rule
        if rule is None:
            return decision.why, ""
        place = self.place(rule.origin.file, rule.origin.line)
        answer = {None: "", True: "; answered yes", False: "; answered no"}[decision.answer]
        return f"{rule.effect} {rule.text}{answer}", place


# Evidence ------------------------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"null")


def methods(frames: Sequence[Frame]) -> list[str]:
    """The methods that were sent."""
    return [
        msgspec.json.decode(frame.data, type=_Head).method for frame in frames if frame.direction == "out"
    ]


def sent(frames: Sequence[Frame]) -> list[str]:
    """The tools that were called on the wire, under the server's names."""
    heads = [msgspec.json.decode(frame.data, type=_Head) for frame in frames if frame.direction == "out"]
    return [msgspec.json.decode(head.params)["name"] for head in heads if head.method == "tools/call"]


def told(outcome: Outcome) -> str:
    """What the model is told, and by whom."""
    content = outcome.block["content"]
    text = content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)
    who = "the server" if outcome.by == "server" else f"{_BY[outcome.by]}, with nothing sent"
    return f"{'error' if outcome.is_error else 'result'} from {who}: {text}"


_BY: Final = {
    "schema": "the schema check",
    "lock": "the lock",
    "permission": "the permission check",
    "host": "the host",
}


def member(value: Any, pointer: str) -> Any:
    """What stands at a JSON Pointer; None where nothing does."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def line_of(stage: Stage, text: str) -> str:
    """Where the server's own file says so."""
    lines = (stage.run.folder / "server.py").read_text("utf-8").splitlines()
    found = (number for number, line in enumerate(lines, 1) if text and re.search(re.escape(text), line))
    return stage.place("server.py", next(found, None))


def json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
