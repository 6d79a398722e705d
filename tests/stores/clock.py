"""A clock that stands still until it is told to go on."""

from __future__ import annotations


class FakeClock:
    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time

    def pass_(self, seconds: float) -> None:
        self.time += seconds
