"""What the suite has to find: how many checks of each scenario pass, and what cannot pass yet.

`scenarios.toml` names every scenario of the suite, by revision and by side, with the number of checks
that succeed; 0 stands for those that fail as a whole. `expected-failures.yml` says why each of these
fails, and which single checks fail in scenarios that pass otherwise.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from .suite import Outcome

HERE = Path(__file__).parent
SIDES = ("server", "client")
# They measure hundreds of milliseconds, so nothing else may run beside them.
ALONE = frozenset({"server-stateless", "sse-retry"})

_ENTRY = re.compile(r"    - (?P<scenario>[^\s:#]+)(?::(?P<check>[^\s:#]+))?  # (?P<reason>\S.*)")


class Failure(NamedTuple):
    """One line of `expected-failures.yml`: a scenario, or one check of it, and what is missing."""

    revision: str
    side: str
    scenario: str
    check: str | None
    reason: str


def read_failures(text: str) -> list[Failure]:
    """The entries of `expected-failures.yml`: the suite's own form below each revision.

    Raises ValueError for a line that is none, which for an entry includes one without a reason.
    """
    revision = side = ""
    found: list[Failure] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if re.fullmatch(r"\d{4}-\d\d-\d\d:", line):
            revision, side = line[:-1], ""
        elif line.strip().removesuffix(":") in SIDES and revision:
            side = line.strip().removesuffix(":")
        elif side and (match := _ENTRY.fullmatch(line)):
            found.append(Failure(revision, side, match["scenario"], match["check"], match["reason"]))
        else:
            raise ValueError(f"line {number}: expected `    - scenario[:check]  # reason`, found {line!r}")
    return found


SCENARIOS: dict[str, dict[str, dict[str, int]]] = tomllib.loads((HERE / "scenarios.toml").read_text())
FAILURES = read_failures((HERE / "expected-failures.yml").read_text())


def cases(side: str) -> list[object]:
    """A parameter set of (revision, scenario) for each scenario of a side."""
    return [
        pytest.param(
            revision,
            scenario,
            id=f"{revision}-{scenario}",
            marks=[pytest.mark.alone] if scenario in ALONE else [],
        )
        for revision, sides in SCENARIOS.items()
        for scenario in sides[side]
    ]


def judge(outcome: Outcome, *, revision: str, side: str, scenario: str) -> None:
    """Fail unless the scenario found exactly what it has to."""
    mine = [item for item in FAILURES if item[:3] == (revision, side, scenario)]
    whole = [item for item in mine if item.check is None]
    if whole:
        assert outcome.fails, (
            f"{scenario} passes now: take it out of expected-failures.yml, where it was because "
            f"{whole[0].reason}, and put the number of its checks, {outcome.passed}, into scenarios.toml"
        )
        return
    allowed = {item.check: item.reason for item in mine}
    unexpected = set(outcome.bad) - set(allowed)
    assert not unexpected, f"{scenario} at {revision}: {sorted(unexpected)}\n{outcome}"
    stale = set(allowed) - set(outcome.bad)
    assert not stale, f"pass now, take them out of expected-failures.yml: {sorted(map(str, stale))}"
    assert outcome.passed == SCENARIOS[revision][side][scenario], f"{scenario} at {revision}:\n{outcome}"
    assert outcome.status == 0 or allowed, f"{scenario} at {revision}:\n{outcome}"
