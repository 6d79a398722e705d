"""Where calls stand on a line of time, in stretches without long pauses. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from dragoman.host.trace.calls import Call, after

PAUSE: Final = 60.0
"""Seconds without a call after which another stretch begins."""

_LEAST: Final = 1.0  # milliseconds that a stretch takes at least


@dataclass(frozen=True, slots=True)
class Bar:
    """One call: where it begins, how long it was looked at here, and how long the server took.

    All are parts of the stretch, from 0 to 1.
    """

    call: Call
    left: float
    here: float
    there: float


@dataclass(slots=True)
class Stretch:
    """Calls without a long pause between them, of one run and turn; `ms` is how long they took together."""

    begun: datetime
    run: str
    turn: str | None
    ms: float = _LEAST
    calls: list[Call] = field(default_factory=list[Call])

    def bars(self) -> list[Bar]:
        """The calls as parts of the stretch."""
        found: list[Bar] = []
        for call in self.calls:
            begun = call.begun or self.begun
            left = min(1.0, max(0.0, (begun - self.begun).total_seconds() * 1000 / self.ms))
            whole = min(1 - left, _length(call) / self.ms)
            here = whole if call.sent is None else min(whole, max(0.0, (call.sent.facts.ms or 0) / self.ms))
            found.append(Bar(call, left, here, whole - here))
        return found


def run_of(call: Call) -> str:
    """The run of a host that a call belongs to."""
    return call.id.rpartition("-")[0] or call.id


def stretches(found: Iterable[Call], *, pause: float = PAUSE) -> list[Stretch]:
    """Calls by their times, in stretches of one run and turn each. Those without a time come first."""
    made: list[Stretch] = []
    end: datetime | None = None
    for call in sorted(found, key=lambda call: call.begun or _NEVER):
        begun = call.begun or _NEVER
        turn = None if call.use is None else call.use.facts.turn
        last = made[-1] if made else None
        if (
            last is None
            or end is None
            or (last.run, last.turn) != (run_of(call), turn)
            or (begun - end).total_seconds() > pause
        ):
            last = Stretch(begun, run_of(call), turn)
            made.append(last)
            end = begun
        last.calls.append(call)
        end = max(end, after(begun, _length(call)))
        last.ms = max(last.ms, (end - last.begun).total_seconds() * 1000)
    return made


def _length(call: Call) -> float:
    """Milliseconds that a call takes on the line."""
    known = [line.facts.ms for line in call.lines if line.facts.ms is not None]
    return min(max(0.0, *known, 0.0), _LONGEST)


_LONGEST: Final = 366 * 86_400_000.0
_NEVER: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
