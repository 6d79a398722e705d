"""The calls of a trace: lines that belong together, and which of them are wanted.

Pure but for what lines are read from. It shows nothing.
"""

from __future__ import annotations

import contextlib
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.host.trace.reading import Fault, Line, OnFault, lines, size

_OPEN: Final = 4096  # calls under way that are waited for at most
_HELD: Final = 64 << 20  # bytes of their lines at most
_KEPT: Final = 256 << 20  # bytes of the calls that are shown at once
_WINDOW: Final = 1 << 20  # bytes at the end of a trace that are read first
_SPAN: Final = re.compile(r"([0-9]{1,9})(s|m|h|d|w)")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@dataclass(slots=True)
class Call:
    """One call of a model, by its lines; each is missing where it was not written or is gone."""

    id: str
    use: Line | None = None
    sent: Line | None = None
    result: Line | None = None

    @property
    def lines(self) -> list[Line]:
        """Those that are there, in their order."""
        return [line for line in (self.use, self.sent, self.result) if line is not None]

    @property
    def server(self) -> str | None:
        """The server, by its name in the configuration; None for a tool that is unknown."""
        return next((line.facts.server for line in self.lines if line.facts.server is not None), None)

    @property
    def tool(self) -> str | None:
        """The tool, by the server's own name for it."""
        return None if self.use is None else self.use.facts.tool

    @property
    def name(self) -> str:
        """What the model called."""
        block = None if self.use is None else self.use.facts.block
        return (block.name if block else None) or self.tool or "(unknown)"

    @property
    def tool_use_id(self) -> str | None:
        """The id that the model's API gave it."""
        if self.use is not None and self.use.facts.block is not None:
            return self.use.facts.block.id
        if self.result is not None and self.result.facts.block is not None:
            return self.result.facts.block.tool_use_id
        return None

    @property
    def effect(self) -> str | None:
        """What was decided; None where the call did not come so far."""
        decision = None if self.use is None else self.use.facts.decision
        return None if decision is None else decision.effect

    @property
    def outcome(self) -> str:
        """In a word: `done`, `error`, `denied`, `schema`, `lock`, `refused`, or `open` without a result."""
        if self.result is None:
            return "open"
        by = self.result.facts.by or ""
        if by == "permission":
            return "denied"
        if by in ("schema", "lock"):
            return by
        if by == "host":
            return "refused" if self.sent is None else "error"
        return "error" if self.result.facts.is_error else "done"

    @property
    def begun(self) -> datetime | None:
        """When the call came from the model."""
        for line in self.lines:
            at = moment(line.facts.at)
            if at is not None:
                return after(at, -(line.facts.ms or 0))
        return None

    @property
    def ms(self) -> float | None:
        """Milliseconds from the model's call to its answer."""
        return None if self.result is None else self.result.facts.ms


def after(at: datetime, ms: float) -> datetime:
    """A time so many milliseconds later; the same where that is no time, as in forged lines."""
    try:
        return at + timedelta(milliseconds=ms)
    except OverflowError:
        return at


def moment(text: str) -> datetime | None:
    """A time as lines have it; None for what is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which calls: `server` and `tool` are names or patterns with `*`, `call` is an id or its start."""

    server: str | None = None
    tool: str | None = None
    call: str | None = None
    denied: bool = False
    errors: bool = False
    since: datetime | None = None

    def __call__(self, call: Call) -> bool:
        """Whether a call is among them."""
        return (
            (self.server is None or fnmatchcase(call.server or "", self.server))
            and (
                self.tool is None
                or any(fnmatchcase(name, self.tool) for name in (call.tool or "", call.name))
            )
            and (self.call is None or self.is_called(call))
            and self._ended(call.outcome)
            and (self.since is None or ((begun := call.begun) is not None and begun >= self.since))
        )

    def is_called(self, call: Call) -> bool:
        """Whether a call has the id that is wanted: its own, its start, or the model's API's."""
        return self.call is not None and (call.id.startswith(self.call) or call.tool_use_id == self.call)

    def _ended(self, outcome: str) -> bool:
        if not self.denied and not self.errors:
            return True
        denied = outcome in ("denied", "lock")
        return (self.denied and denied) or (self.errors and not denied and outcome not in ("done", "open"))


def calls(path: Path | str, *, on_fault: OnFault | None = None) -> Iterator[Call]:
    """The calls of a trace, each when its result is read, and at the end those without one.

    Raises:
        UsageError: there is no such trace, or a file of it cannot be read.
    """
    yield from gathered(lines(path, on_fault=on_fault))


def gathered(found: Iterable[Line]) -> Iterator[Call]:
    """Lines in any interleaving as calls. Of calls that stay without a result, the oldest go first."""
    waiting: OrderedDict[str, Call] = OrderedDict()
    held = 0
    for line in found:
        kind, name = line.facts.kind, line.facts.call
        if kind not in _KINDS or not name:
            continue
        call = waiting.get(name)
        if call is None or (kind == "tool_use" and call.use is not None):
            if call is not None:
                held -= _length(call)
                yield waiting.pop(name)  # an id that comes again is another call
            call = waiting[name] = Call(name)
        setattr(call, _KINDS[kind], line)
        held += len(line.raw)
        if kind == "result":
            held -= _length(call)
            yield waiting.pop(name)
        while waiting and (len(waiting) > _OPEN or held > _HELD):
            _, oldest = waiting.popitem(last=False)
            held -= _length(oldest)
            yield oldest
    yield from waiting.values()


def _length(call: Call) -> int:
    return sum(len(line.raw) for line in call.lines)


_KINDS: Final = {"tool_use": "use", "tools/call": "sent", "result": "result"}


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest calls that were wanted, the oldest first; `earlier` says whether there are more before.

    `turns` are the lines of turns that were read on the way, by what their calls name them.
    """

    calls: list[Call]
    earlier: bool
    turns: Mapping[str, Line]


def newest(path: Path | str, wanted: Wanted, *, last: int | None, on_fault: OnFault | None = None) -> Newest:
    """The last calls that are wanted, None for all; the end of the trace is read first, and more if need be.

    Raises:
        UsageError: there is no such trace, or a file of it cannot be read.
    """
    if wanted.call is not None:
        return _called(path, wanted, last=last, on_fault=on_fault)
    window: int | None = None if last is None else _WINDOW
    while window is not None and window < size(path):
        faults: list[Fault] = []
        turns = _Turns()
        seen = gathered(turns.take(lines(path, on_fault=faults.append, window=window)))
        # A call without its first line may have it before the window.
        found, _ = _last((call for call in seen if call.use is not None), wanted, last=last)
        if len(found) == last:
            if on_fault is not None:
                for fault in faults:
                    on_fault(fault)
            return Newest(found, earlier=True, turns=turns.lines)
        window *= 16
    turns = _Turns()
    found, earlier = _last(gathered(turns.take(lines(path, on_fault=on_fault))), wanted, last=last)
    return Newest(found, earlier, turns.lines)


def _called(path: Path | str, wanted: Wanted, *, last: int | None, on_fault: OnFault | None) -> Newest:
    """As `newest`, for one id: lines without it are not read."""
    ids = _ids(path, wanted.call or "", on_fault=on_fault)
    having = _plain(ids[0]) if len(ids) == 1 else b""
    found, earlier = _last(gathered(lines(path, having=having)), wanted, last=last)
    return Newest(found, earlier, {})


class _Turns:
    """The lines of turns among others, the newest of them."""

    def __init__(self) -> None:
        self.lines: OrderedDict[str, Line] = OrderedDict()

    def take(self, found: Iterable[Line]) -> Iterator[Line]:
        """The same lines, of which those of turns are kept."""
        for line in found:
            if line.facts.kind == "turn" and line.facts.turn is not None:
                self.lines[line.facts.turn] = line
                if len(self.lines) > _OPEN:
                    self.lines.popitem(last=False)
            yield line


def _last(
    found: Iterable[Call], wanted: Callable[[Call], bool], *, last: int | None
) -> tuple[list[Call], bool]:
    """The last that are wanted, and whether there are more before."""
    kept: deque[Call] = deque()
    held, earlier = 0, False
    for call in found:
        if not wanted(call):
            continue
        kept.append(call)
        held += _length(call)
        while kept and ((last is not None and len(kept) > last) or held > _KEPT):
            held -= _length(kept.popleft())
            earlier = True
    return list(kept), earlier


def find(path: Path | str, wanted: str, *, on_fault: OnFault | None = None) -> Call:
    """The newest call with an id, or the start of one, or the id that the model's API gave it.

    Raises:
        UsageError: there is none, several calls have that start, or a file cannot be read.
    """
    ids = _ids(path, wanted, on_fault=on_fault)
    exact = [name for name in ids if name == wanted] or ids
    starts = [name for name in exact if name.startswith(wanted)]
    if len(starts) > 1:
        raise UsageError(f"several calls begin with {wanted!r}: {', '.join(starts[:5])}")
    if not exact:
        raise UsageError(f"no call {wanted!r} in {path}", hint="dragoman trace show lists the calls")
    name = exact[-1]
    return [call for call in gathered(lines(path, having=_plain(name))) if call.id == name][-1]


def _ids(path: Path | str, wanted: str, *, on_fault: OnFault | None) -> list[str]:
    """The ids of the calls that have an id, its start, or the id of the model's API, in their order."""
    is_wanted = Wanted(call=wanted).is_called
    seen = gathered(lines(path, on_fault=on_fault, having=_plain(wanted)))
    return list(dict.fromkeys(call.id for call in seen if is_wanted(call)))


def _plain(name: str) -> bytes:
    """What stands in every line of a call of that id, so that other lines need no reading."""
    return (
        b"" if '"' in name or "\\" in name or not (name.isascii() and name.isprintable()) else name.encode()
    )


def since(text: str, *, now: datetime) -> datetime:
    """A time, or how long ago: `2026-11-30`, `2026-11-30T08:00Z`, `90s`, `15m`, `2h`, `3d`, `1w`.

    Raises:
        UsageError: it is neither.
    """
    span = _SPAN.fullmatch(text)
    found = moment(text)
    if span is not None:
        found = None
        with contextlib.suppress(OverflowError):  # longer ago than there are times
            found = now - timedelta(seconds=int(span[1]) * _SECONDS[span[2]])
    if found is None:
        raise UsageError(f"{text!r} is no time: expected one such as 2026-11-30T08:00Z, or 15m, 2h, 3d ago")
    return found


def whole(call: Call) -> dict[str, Any]:
    """A call as one JSON value: its id and its lines in full."""
    parts = {"tool_use": call.use, "tools/call": call.sent, "result": call.result}
    return {"call": call.id, **{name: line.full() for name, line in parts.items() if line is not None}}
