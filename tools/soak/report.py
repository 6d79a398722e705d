"""The soak's summary: tables for people, one object for programs, and whether all held."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from dragoman.cli import output

from .faults import FAULTS, OUTCOMES, RESULT
from .run import BOUND, Outcome
from .watch import MIB

_HEADS: Final = ("result", "tool", "remote", "closed", "connect", "deadline", "peer", "status")
_HEARD: Final = 3  # changes that a server told of, of which one at least has to be heard
GROWTH: Final = 8 * MIB  # of resident memory between the end of the warm-up and the end, at most


_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32"}


class Brush:
    """Paints on a terminal that has colours (no-color.org), and nowhere else."""

    def __init__(self) -> None:
        self.columns = output.columns()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._colours = sys.stdout.isatty() and not plain

    def __call__(self, style: str, words: str) -> str:
        """The words in a style, or as they are."""
        return f"\x1b[{_STYLES[style]}m{words}\x1b[0m" if self._colours else words


def failures(outcome: Outcome) -> list[str]:
    """What did not hold, in words; nothing where all did."""
    tally = outcome.tally
    found = [f"{count} x {what}" for what, count in tally.wrong.items()]
    found += [f"left over: {what}" for what in outcome.left]
    found += [f"{count} x logged as an error: {what}" for what, count in outcome.logged.items()]
    for place in outcome.places:
        told = tally.sum(server=place.name, fault="list changed", end=RESULT)
        if told >= _HEARD and not outcome.changes[place.name]:
            found.append(f"{place.name} told of {told} changes, of which none was heard")
    first, last = outcome.memory.ends()
    if last - first > GROWTH:
        found.append(f"memory grew from {first / MIB:.1f} to {last / MIB:.1f} MiB")
    if tally.longest > BOUND:
        found.append(f"a call took {tally.longest:.1f} s")
    return found


def record(outcome: Outcome) -> dict[str, Any]:
    """All figures, as JSON has them."""
    tally, plan = outcome.tally, outcome.plan
    first, last = outcome.memory.ends()
    return {
        "seed": plan.seed,
        "seconds": round(outcome.seconds, 1),
        "calls": tally.begun,
        "ends": {end: tally.sum(end=end) for end in OUTCOMES},
        "faults": tally.begun - tally.sum(fault=""),
        "came_back": _returns(outcome),
        "longest_call": round(tally.longest, 2),
        "memory_mib": {"warm": _mib(first), "end": _mib(last), "most": _mib(outcome.memory.most)},
        "memory_course_mib": [_mib(size) for size in outcome.memory.course()],
        "counts": [
            {"server": server, "fault": fault, "end": end, "calls": calls}
            for (server, fault, end), calls in sorted(tally.counts.items())
        ],
        "failures": failures(outcome),
    }


def _mib(size: int) -> float:
    return round(size / MIB, 1)


def _returns(outcome: Outcome) -> int:
    return sum(count for (_, state), count in outcome.states.items() if state == "connected")


def text(outcome: Outcome, brush: Brush) -> str:
    """The tables and the verdict."""
    lines = [brush("bold", "By server"), *_table(brush, _by_server(outcome)), ""]
    lines += [brush("bold", "By fault"), *_table(brush, _by_fault(outcome)), ""]
    lines += [*_facts(outcome), ""]
    wrong = failures(outcome)
    if wrong:
        lines += [brush("red", f"{len(wrong)} things did not hold"), *(f"  {what}" for what in wrong)]
    else:
        lines.append(brush("green", "all held: no call lost, no answer given to another, nothing left"))
    return "\n".join(lines)


def _table(brush: Brush, rows: list[list[str]]) -> list[str]:
    first, *rest = output.table(rows, brush.columns)
    return [brush("dim", first), *rest]


def _cell(number: int) -> str:
    return f"{number:,}" if number else "·"


def _by_server(outcome: Outcome) -> list[list[str]]:
    tally = outcome.tally
    rows = [["server", "calls", *_HEADS, "waits", "back", "changes"]]
    for place in outcome.places:
        ends = [tally.sum(server=place.name, end=end) for end in OUTCOMES]
        states = [outcome.states[place.name, state] for state in ("waiting", "connected")]
        states.append(outcome.changes[place.name])
        rows.append([place.name, _cell(sum(ends)), *map(_cell, ends), *map(_cell, states)])
    return rows


def _by_fault(outcome: Outcome) -> list[list[str]]:
    tally = outcome.tally
    names = ["", *dict.fromkeys(fault.name for fault in FAULTS)]
    rows = [["fault", "calls", *_HEADS]]
    for name in names:
        ends = [tally.sum(fault=name, end=end) for end in OUTCOMES]
        if sum(ends):
            rows.append([name or "none", _cell(sum(ends)), *map(_cell, ends)])
    return rows


def _facts(outcome: Outcome) -> list[str]:
    tally, plan = outcome.tally, outcome.plan
    first, last = outcome.memory.ends()
    return [
        f"{tally.begun:,} calls in {outcome.seconds:.0f} s, seed {plan.seed}; longest {tally.longest:.1f} s",
        f"memory {_mib(first)} MiB after the warm-up, {_mib(last)} at the end",
        f"servers were given up and came back {_returns(outcome)} times",
    ]
