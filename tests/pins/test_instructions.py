"""What a start and a call cost, in instructions: a count that does not move with the machine's load."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from bench import counting, wire
from bench.entrants import SERVERS
from tests.needs import program

FLOOR = (sys.executable, str(SERVERS / "floor_stdio.py"))
OURS = (sys.executable, str(SERVERS / "dragoman_server.py"))
MANY = Path(__file__).with_name("many_server.py")


@pytest.fixture(autouse=True)
def valgrind() -> None:
    program("valgrind")


@cache
def warm(command: tuple[str, ...]) -> list[str]:
    """The command, whose compiled files are there after a first start."""
    with wire.Stdio(list(command)) as server:
        server.hello()
    return list(command)


def test_a_life_with_one_call_costs_at_most_1_3_of_a_bare_loop() -> None:
    floor, ours = (counting.stdio(warm(command), 1) for command in (FLOOR, OURS))
    assert ours <= 1.3 * floor, f"{ours / 1e6:.0f} million instructions beside {floor / 1e6:.0f}"


@pytest.mark.parametrize("stateless", [True, False], ids=["stateless", "handshake"])
def test_a_call_costs_at_most_150_thousand_instructions(stateless: bool) -> None:
    cost = counting.per_call(warm(OURS), 100, 600, stateless=stateless)
    assert 10_000 < cost <= 150_000, f"{cost:,.0f} instructions"


@pytest.mark.parametrize("stateless", [True, False], ids=["stateless", "handshake"])
def test_a_call_among_64_in_flight_costs_at_most_60_thousand_instructions(stateless: bool) -> None:
    cost = counting.per_call(warm(OURS), 128, 1152, stateless=stateless, depth=64)
    assert 10_000 < cost <= 60_000, f"{cost:,.0f} instructions"


def test_a_call_among_10_000_tools_costs_what_it_costs_among_ten() -> None:
    few, many = (
        counting.per_call(warm((sys.executable, str(MANY), str(count))), 100, 600) for count in (10, 10_000)
    )
    assert 10_000 < many <= 1.1 * few, f"{many:,.0f} instructions beside {few:,.0f}"
