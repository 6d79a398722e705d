"""Three linked JSON lines a model's call: what was asked, what was sent, what was answered.

`tool_use` is the call as the model made it, with the tool it means and the decision; `tools/call` is
the request as it stood on the wire, and is missing where nothing was sent; `result` is what the model
is told, and by whom. Lines are UTF-8 and end in LF. Knows no client and no model.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.errors import LocalError
from dragoman.host.definition import hashed
from dragoman.host.permissions import Decision
from dragoman.host.trace.file import ChainFile
from dragoman.host.trace.large import Large, Limits, encode, shorten
from dragoman.host.trace.redaction import Redact, Redaction, cover
from dragoman.host.trace.seal import GENESIS, seal_line
from dragoman.model import Tool
from dragoman.protocol.naming import Name
from dragoman.schema.errors import Fault

log = logging.getLogger("dragoman.host")

By: TypeAlias = Literal["server", "schema", "lock", "permission", "host"]

# What a loop calls its present turn, for the entries that are begun in it.
_turn: Final[ContextVar[str | None]] = ContextVar("turn", default=None)


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
        tool: Tool | None = None,
        config: str | None = None,
    ) -> None:
        """The first line: the model's `tool_use` block, the tool that it means, and what was decided.

        `faults` are what the schema refused; then, as for a tool that is unknown, there is no decision.
        `tool` is the definition by which it was judged, `config` the place of its server's entry.

        Raises:
            LocalError: the line could not be written. What is not on record is not to be sent.
        """
        more: dict[str, Any] = {}
        spilled: dict[str, bytes] = {}
        if tool is not None:
            hashes, spilled = hashed(tool)
            more["definition"] = {"kept": self.trace.keeps, **hashes}
        if config is not None:
            more["config"] = config
        if (turn := _turn.get()) is not None:
            more["turn"] = turn
        members = {
            "block": dict(block),
            "model_name": None if name is None else name.model,
            "server": None if name is None else name.server,
            "tool": None if name is None else name.tool,
            "faults": [{"field": fault.field, "text": str(fault), "rule": fault.rule} for fault in faults],
            "decision": None if decision is None else describe(decision),
        }
        self.trace.write(self._line("tool_use", members | more), spilled=spilled)

    def sent(self, frame: bytes, *, server: str, revision: str | None, transport: str) -> None:
        """The second line: the JSON-RPC request as it was sent."""
        members = {"server": server, "transport": transport, "revision": revision}
        self._late("tools/call", {**members, "request": msgspec.json.decode(frame)})

    def result(self, block: Mapping[str, Any], *, by: By) -> None:
        """The last line: the `tool_result` for the model, who said it, and the time since the call."""
        self._late("result", {"by": by, "is_error": bool(block.get("is_error", False)), "block": dict(block)})

    def _line(self, kind: str, members: dict[str, Any]) -> dict[str, Any]:
        spent = round((perf_counter() - self.started) * 1000, 3)
        return {"kind": kind, "call": self.call, "at": self.trace.now(), "ms": spent, **members}

    def _late(self, kind: str, members: dict[str, Any]) -> None:
        """Write of what has happened already: that it cannot be written does not undo it."""
        try:
            self.trace.write(self._line(kind, members))
        except LocalError as exc:
            log.error("call %s has no %s line: %s", self.call, kind, exc.message)


class Trace:
    """Where the lines go: a file that is appended to, or a function that gets each line.

    `redact` says what is not written: a `Redaction`, or a function that is asked about every member of
    every object. `limits` are for files: what is longer goes beside, what is full is followed by the next.
    With `key` nobody without it can make a line that fits the chain. `sync` waits for the disk each time.

    Raises:
        LocalError: the file cannot be made or opened.
    """

    def __init__(
        self,
        target: Path | str | Callable[[bytes], None],
        *,
        redact: Redact | Redaction | None = None,
        now: Callable[[], str] | None = None,
        limits: Limits | None = None,
        key: bytes | None = None,
        sync: bool = False,
    ) -> None:
        self._limits = limits or Limits()
        self._key = key
        self._redact = Redaction() if redact is None else redact
        self.now = now or _now
        self._count = 0
        self._run, self._pid = _run()
        self._guard = Lock()
        self._seq, self._prev = 0, GENESIS
        self._file: ChainFile | None = None
        self._write: Callable[[bytes], None] | None = None
        if callable(target):
            self._write = target
        else:
            self._file = ChainFile(Path(target), limits=self._limits, key=key, mend=self._mend, sync=sync)

    @property
    def keeps(self) -> bool:
        """Whether there is where to keep what is too long for a line."""
        return self._file is not None

    def begin(self) -> Entry:
        """Open the entry of one call."""
        if self._pid != os.getpid():  # a fork: its calls are others
            (self._run, self._pid), self._count = _run(), 0
        self._count += 1
        return Entry(f"{self._run}-{self._count}", self)

    @contextmanager
    def turn(self, number: int, **facts: Any) -> Generator[None]:
        """A line with the facts of a turn of the model, to which the calls that are begun inside belong."""
        name = f"{self._run}/{number}"
        self.write({"kind": "turn", "turn": name, "at": self.now(), **facts})
        token = _turn.set(name)
        try:
            yield
        finally:
            _turn.reset(token)

    def write(self, members: Mapping[str, Any], *, spilled: Mapping[str, bytes] | None = None) -> None:
        """Append one line. `spilled` are texts that go beside it, by their hash, if there is a file.

        Raises:
            LocalError: it could not be written.
        """
        shown = self._covered(members)
        large = Large(keeps=self.keeps, limits=self._limits)
        body = shorten(shown, large)
        if self._file is not None:
            self._file.append(body, {**(spilled or {}), **large.kept})
        elif self._write is not None:
            with self._guard:
                line, sealed = seal_line(body, seq=self._seq + 1, prev=self._prev, key=self._key)
                self._seq, self._prev = sealed.seq, sealed.hash
                self._write(line)

    def close(self) -> None:
        """Close the file; a function has nothing to close."""
        if self._file is not None:
            self._file.close()

    def _covered(self, members: Mapping[str, Any]) -> dict[str, Any]:
        hook = self._redact
        covered: dict[str, Any] = hook(members) if isinstance(hook, Redaction) else cover(members, hook)
        return covered

    def _mend(self, why: str, torn: dict[str, Any] | None) -> bytes:
        more = {} if torn is None else {"torn": torn}
        return encode({"kind": "mend", "at": self.now(), "why": why, **more})


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


def _run() -> tuple[str, int]:
    """What the calls of one host in one process have in common: several may append to one file."""
    return os.urandom(4).hex(), os.getpid()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
