"""Our client under the official suite: one server of the suite and one process of ours a scenario."""

from __future__ import annotations

import pytest

from . import suite
from .expectations import cases, judge


@pytest.mark.parametrize(("revision", "scenario"), cases("client"))
def test_scenario(revision: str, scenario: str) -> None:
    outcome = suite.run_client_scenario(scenario, revision)
    judge(outcome, revision=revision, side="client", scenario=scenario)
