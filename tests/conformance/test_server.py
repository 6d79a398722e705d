"""Our server under the official suite, on both wires of the same endpoint of the same process."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from . import suite
from .expectations import ALONE, SCENARIOS, cases, judge
from .served import serving


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    suite.command()  # says what is missing, before a server is started for nothing
    with serving() as where:
        yield where


@cache
def required(url: str, revision: str) -> dict[str, suite.Outcome]:
    """All that a revision requires, in one run: the suite's own start takes longer than most scenarios."""
    return suite.run_server_requirements(url, revision)


@pytest.mark.parametrize(("revision", "scenario"), cases("server"))
def test_scenario(url: str, revision: str, scenario: str) -> None:
    found = None if scenario in ALONE else required(url, revision).get(scenario)
    outcome = found or suite.run_server_scenario(url, scenario, revision)
    judge(outcome, revision=revision, side="server", scenario=scenario)


@pytest.mark.parametrize("revision", SCENARIOS)
def test_no_scenario_ran_that_is_not_judged(url: str, revision: str) -> None:
    assert set(required(url, revision)) <= set(SCENARIOS[revision]["server"])
