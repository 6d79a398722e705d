"""The budgets, a row each: what is measured, and what it is held against."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .entrants import FLOOR, MCP, OURS, PLAIN, TS

Samples = Mapping[str, Mapping[str, list[float]]]


@dataclass(frozen=True)
class Bound:
    """Our figure, in relation to another entrant's of the same run, or as it is."""

    sign: str
    factor: float
    other: str = ""

    def __str__(self) -> str:
        if not self.other:
            return f"{self.sign} {self.factor:g}"
        factor = "" if self.factor == 1 else f"{self.factor:g} x "
        return f"{self.sign} {factor}{self.other}"


@dataclass(frozen=True)
class Row:
    """One line of the table; `entrant` is who the budget is for."""

    key: str
    what: str
    bounds: tuple[Bound, ...] = ()
    entrant: str = OURS


ROWS = (
    Row("start", "spawn to first answer, stdio, ms", (Bound("<=", 1.3, FLOOR),)),
    Row("start-cpu", "processor time of that, s", (Bound("<=", 0.15),)),
    Row("start-instructions", "a life with one call, million instructions", (Bound("<=", 1.3, FLOOR),)),
    Row("memory", "peak memory after the first call, MiB", (Bound("<=", 32),)),
    Row("instructions", "thousand instructions a stdio call", (Bound("<=", 150),)),
    Row("instructions-64", "thousand instructions a stdio call, 64 at once", (Bound("<=", 60),)),
    Row("stdio", "stdio, one at a time, p50, us", (Bound("<=", 1.7, FLOOR), Bound("<", 1, TS))),
    Row(
        "stdio-64",
        "stdio, 64 in flight, calls/s",
        (Bound(">=", 0.3, FLOOR), Bound(">=", 80, MCP), Bound(">=", 5, TS)),
    ),
    Row(
        "stdio-64",
        "the same, plain `def` tool in a thread",
        (Bound(">=", 20, MCP),),
        PLAIN,
    ),
    Row("http-64", "HTTP, 64 connections, calls/s", (Bound(">=", 0.7, FLOOR), Bound(">=", 15, MCP))),
    Row("list-1000", "`tools/list`, 1,000 tools, ms", (Bound("<=", 3),)),
    Row("list-10000", "`tools/list`, 10,000 tools, ms", (Bound("<=", 30),)),
    Row("many", "call time with 10,000 tools against 10 (peers: 1,000)", (Bound("<=", 1.1),)),
    Row("register", "registering one of 10,000 tools, ms", (Bound("<=", 0.3),)),
    Row("big-stdio", "10 MB echo over stdio, growth of peak memory, x payload", (Bound("<=", 6),)),
    Row("big-http", "10 MB echo over HTTP, growth of peak memory, x payload", (Bound("<=", 6),)),
    Row("streams", "KiB for an open listen stream, 1,000 open", (Bound("<=", 20),)),
    Row("client-stdio", "client, stdio, p50, us", (Bound("<=", 1.8, FLOOR),)),
    Row("client-http", "client, HTTP, p50, us", (Bound("<=", 3, FLOOR),)),
)

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
}


def middle(values: list[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def ratio(samples: Mapping[str, list[float]], one: str, other: str) -> float | None:
    """The median of the ratios round by round: what disturbed a round disturbed both."""
    pairs = list(zip(samples.get(one, []), samples.get(other, []), strict=False))
    return middle([a / b for a, b in pairs]) if pairs else None


def verdict(row: Row, samples: Samples) -> list[tuple[Bound, float, bool]]:
    """Each bound that could be measured, what was measured, and whether it holds."""
    found: list[tuple[Bound, float, bool]] = []
    values = samples.get(row.key, {})
    for bound in row.bounds:
        if bound.other:
            value = ratio(values, row.entrant, bound.other)
        else:
            value = middle(values[row.entrant]) if values.get(row.entrant) else None
        if value is not None:
            found.append((bound, value, _SIGNS[bound.sign](value, bound.factor)))
    return found
