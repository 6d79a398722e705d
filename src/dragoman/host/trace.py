"""The trace of a host: three linked JSON lines a model's call, of what was asked, sent and answered.

`tool_use` is the call as the model made it, with the tool it means and the decision; `tools/call` is
the request as it stood on the wire, and is missing where nothing was sent; `result` is what the model
is told, and by whom. Lines are UTF-8 and end in LF. Knows no client and no model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, Final, Literal, TypeAlias, cast

import msgspec

from dragoman.host.permissions import Decision
from dragoman.protocol.naming import Name
from dragoman.schema.errors import Fault

By: TypeAlias = Literal["server", "schema", "lock", "permission", "host"]
Redact: TypeAlias = Callable[[str, Any], Any]
"""Given a member's name and value, what to write in place of the value."""

HIDDEN: Final = "[redacted]"
_SECRET: Final = re.compile(
    r"pass(word|wd|phrase)?$|secret|token$|api[-_]?key|private[-_]?key|authorization|credential|cookie",
    re.IGNORECASE,
)
# Members of the protocol that only sound like it.
_OPEN: Final = frozenset({"progressToken"})


def redact(name: str, value: Any) -> Any:
    """The value, or `[redacted]` where the member's name says that it is a secret."""
    return HIDDEN if name not in _OPEN and _SECRET.search(name) else value


def cover(value: Any, hook: Redact) -> Any:
    """A copy of a JSON value with `hook` applied to every member of every object in it."""
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {name: cover(hook(name, member), hook) for name, member in table.items()}
    if isinstance(value, list | tuple):
        return [cover(item, hook) for item in cast("list[Any]", value)]
    return value


@dataclass(slots=True)
class Entry:
    """One call on its way: `call` links its lines."""

    call: str
    trace: Trace
    started: float = field(default_factory=perf_counter)

    def tool_use(
        self,
        block: Mapping[str, Any],
        *,
        name: Name | None,
        faults: Sequence[Fault],
        decision: Decision | None,
    ) -> None:
        """The first line: the model's `tool_use` block, the tool that it means, and what was decided.

        `faults` are what the schema refused; then, as for a tool that is unknown, there is no decision.
        """
        self._line(
            "tool_use",
            block=dict(block),
            server=None if name is None else name.server,
            tool=None if name is None else name.tool,
            faults=[{"field": fault.field, "text": str(fault), "rule": fault.rule} for fault in faults],
            decision=None if decision is None else describe(decision),
        )

    def sent(self, frame: bytes, *, server: str, revision: str | None, transport: str) -> None:
        """The second line: the JSON-RPC request as it was sent."""
        request = msgspec.json.decode(frame)
        self._line("tools/call", server=server, transport=transport, revision=revision, request=request)

    def result(self, block: Mapping[str, Any], *, by: By) -> None:
        """The last line: the `tool_result` for the model, who said it, and the time since the call."""
        spent = round((perf_counter() - self.started) * 1000, 3)
        self._line("result", by=by, is_error=bool(block.get("is_error", False)), ms=spent, block=dict(block))

    def _line(self, kind: str, **members: Any) -> None:
        self.trace.write({"kind": kind, "call": self.call, "at": self.trace.now(), **members})


class Trace:
    """Where the lines go: a file that is appended to, or a function that gets each line.

    `redact` is asked about every member of every object before it is written.
    """

    def __init__(
        self,
        target: Path | str | Callable[[bytes], None],
        *,
        redact: Redact = redact,
        now: Callable[[], str] | None = None,
    ) -> None:
        self._file: BinaryIO | None = None
        if callable(target):
            self._write = target
        else:
            # Unbuffered: what was said is on record even if this process ends badly.
            self._file = Path(target).open("ab", buffering=0)  # noqa: SIM115  # closed by close()
            self._write = self._append
        self._redact = redact
        self.now = now or _now
        self._count = 0
        self._run = os.urandom(4).hex()  # several hosts may append to one file

    def begin(self) -> Entry:
        """Open the entry of one call."""
        self._count += 1
        return Entry(f"{self._run}-{self._count}", self)

    def write(self, members: Mapping[str, Any]) -> None:
        """Append one line."""
        self._write(msgspec.json.encode(cover(members, self._redact)) + b"\n")

    def close(self) -> None:
        """Close the file; a function has nothing to close."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, line: bytes) -> None:
        if self._file is not None:
            self._file.write(line)


def describe(decision: Decision) -> dict[str, Any]:
    """A decision as the trace shows it."""
    rule = decision.rule
    return {
        "effect": decision.effect,
        "rule": None if rule is None else rule.text,
        "origin": None if rule is None else str(rule.origin),
        "lost": [str(other) for other in decision.lost],
        "why": decision.why,
        "answer": decision.answer,
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
