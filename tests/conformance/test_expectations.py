"""The lists of scenarios and of expected failures are whole, and an entry that is wrong is noticed."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from . import expectations, suite
from .expectations import FAILURES, SCENARIOS, SIDES, judge, read_failures
from .suite import Check, Outcome

_LISTED = re.compile(r"^ +- (\S+)(?: \[(server|client)\])?", re.MULTILINE)


def required(revision: str) -> set[tuple[str, str]]:
    """(side, scenario) of all that the suite runs for a revision, scored or not."""
    text = suite.listed("--requirements", revision)
    found: set[tuple[str, str]] = set()
    side = ""
    for line in text.splitlines():
        if line[:6] in ("Server", "Client"):
            side = line[:6].lower()
        elif match := _LISTED.match(line):
            found.add((match[2] or side, match[1]))
    return found


@pytest.mark.parametrize("revision", SCENARIOS)
def test_every_required_scenario_is_run(revision: str) -> None:
    mine = {(side, scenario) for side in SIDES for scenario in SCENARIOS[revision][side]}
    assert len(required(revision)) > 50
    assert required(revision) <= mine


@pytest.mark.parametrize("side", SIDES)
def test_every_scenario_of_the_suite_is_run_on_some_revision(side: str) -> None:
    whole = {match[1] for match in _LISTED.finditer(suite.listed(f"--{side}"))}
    mine = {scenario for sides in SCENARIOS.values() for scenario in sides[side]}
    assert whole == mine


def test_expected_failures_are_of_known_scenarios_and_each_is_named_once() -> None:
    known = {
        (revision, side, scenario)
        for revision, sides in SCENARIOS.items()
        for side, scenarios in sides.items()
        for scenario in scenarios
    }
    assert {item[:3] for item in FAILURES} <= known
    assert len({item[:4] for item in FAILURES}) == len(FAILURES)


def test_scenarios_without_a_passing_check_are_the_expected_failures() -> None:
    none = {
        (revision, side, scenario)
        for revision, sides in SCENARIOS.items()
        for side, scenarios in sides.items()
        for scenario, count in scenarios.items()
        if count == 0
    }
    assert none == {item[:3] for item in FAILURES if item.check is None}


# The judge itself ------------------------------------------------------------------------------------

PASSED = Check("a", "SUCCESS", "")
FAILED = Check("b", "FAILURE", "what was wrong")


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three scenarios: one that has to pass, one that fails, one that passes but for two checks."""
    monkeypatch.setattr(
        expectations, "SCENARIOS", {"2026-07-28": {"server": {"ping": 2, "listing": 0, "caching": 4}}}
    )
    text = """
        2026-07-28:
          server:
            # comments say more
            - listing  # there are no lists
            - caching:one  # there is no one
            - caching:two  # there is no two
    """
    monkeypatch.setattr(expectations, "FAILURES", read_failures(dedent(text)))


def judged(scenario: str, *checks: Check, status: int = 0) -> None:
    judge(Outcome(checks, "the command", status), revision="2026-07-28", side="server", scenario=scenario)


@pytest.mark.usefixtures("lists")
def test_a_scenario_passes_with_the_number_of_checks_that_it_has() -> None:
    judged("ping", PASSED, PASSED, Check("c", "INFO", ""), Check("d", "SKIPPED", ""))
    with pytest.raises(AssertionError, match="1 checks passed"):
        judged("ping", PASSED)
    with pytest.raises(AssertionError, match="what was wrong"):
        judged("ping", PASSED, PASSED, FAILED)
    with pytest.raises(AssertionError, match="exit status 1"):
        judged("ping", PASSED, PASSED, status=1)


@pytest.mark.usefixtures("lists")
def test_a_broken_should_is_as_bad_as_a_broken_must() -> None:
    with pytest.raises(AssertionError, match="WARNING"):
        judged("ping", PASSED, PASSED, Check("b", "WARNING", ""))


@pytest.mark.usefixtures("lists")
def test_an_expected_failure_that_passes_is_stale() -> None:
    judged("listing", PASSED, FAILED)
    judged("listing", PASSED, status=1)
    judged("listing", Check("a", "SKIPPED", ""))
    judged("listing", Check(suite.HARNESS, "SUCCESS", ""))
    with pytest.raises(AssertionError, match="passes now"):
        judged("listing", PASSED)


@pytest.mark.usefixtures("lists")
def test_an_expected_failure_of_one_check_allows_no_other_and_goes_stale_too() -> None:
    passed = [PASSED] * 4
    one, two = Check("one", "FAILURE", ""), Check("two", "WARNING", "")
    judged("caching", *passed, one, two)
    with pytest.raises(AssertionError, match="what was wrong"):
        judged("caching", *passed, one, two, FAILED)
    with pytest.raises(AssertionError, match=r"pass now.*two"):
        judged("caching", *passed, one)
    with pytest.raises(AssertionError, match="3 checks passed"):
        judged("caching", *passed[1:], one, two)


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-28:\n  server:\n    - ping\n",
        "2026-07-28:\n  server:\n    - ping  #\n",
        "2026-07-28:\n    - ping  # no side\n",
        "server:\n    - ping  # no revision\n",
        "2026-07-28:\n  servers:\n",
    ],
)
def test_an_entry_says_where_it_belongs_and_why(text: str) -> None:
    with pytest.raises(ValueError, match="line"):
        read_failures(text)
