"""The soak, short: every way to break at least once, and no call without an end of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.soak import report
from tools.soak.faults import FAULTS, OUTCOMES, RESULT
from tools.soak.fleet import places
from tools.soak.run import Outcome, Plan, Soak
from tools.soak.tally import Call, Tally


def nothing(_: Outcome) -> None:
    pass


@pytest.mark.parametrize("seed", [1])
async def test_300_calls_of_which_a_quarter_meets_a_fault(seed: int, tmp_path: Path) -> None:
    plan = Plan(calls=300, rate=60.0, servers=4, share=0.25, seed=seed)
    outcome = await Soak(plan, tmp_path, nothing).run()
    assert report.failures(outcome) == []
    figures = report.record(outcome)
    assert sum(figures["ends"].values()) == figures["calls"] == 300
    assert figures["ends"][RESULT] > 100
    assert figures["faults"] > 50


# What it looks for it would find --------------------------------------------------------------------


@pytest.fixture
def tally(tmp_path: Path) -> tuple[Tally, Call]:
    [place] = places(1, tmp_path)
    counts = Tally(3)
    call = Call(1, place, safe=False, fault=None)
    counts.begin(call)
    return counts, call


def test_an_answer_of_another_call_is_found(tally) -> None:
    counts, call = tally
    counts.answered(call, f"{call.place.name} 2", failed=False)
    assert any("answer of another call" in what for what in counts.wrong)


def test_a_call_that_ends_twice_or_not_at_all_is_found(tally) -> None:
    counts, call = tally
    counts.answered(call, f"{call.place.name} 1", failed=False)
    assert not counts.wrong
    counts.answered(call, f"{call.place.name} 1", failed=False)
    counts.close()
    assert counts.wrong == {"a call ended twice": 1, "calls without an end": 2}


def test_a_call_that_came_twice_or_never_is_found(tally) -> None:
    counts, call = tally
    counts.answered(call, f"{call.place.name} 1", failed=False)
    counts.compare(call.place, [1])
    assert not counts.wrong
    counts.compare(call.place, [1, 1])
    counts.compare(call.place, [])
    assert len(counts.wrong) == 2


def test_an_exception_that_says_nothing_is_found(tally) -> None:
    counts, call = tally
    counts.failed(call, RuntimeError("Event loop is closed"))
    assert any("none of the package's" in what for what in counts.wrong)


def test_every_fault_names_ends_that_there_are() -> None:
    assert all(fault.ends and fault.ends <= set(OUTCOMES) for fault in FAULTS)
