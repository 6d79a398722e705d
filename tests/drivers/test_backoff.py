"""How long is waited before another attempt."""

from __future__ import annotations

import pytest

from dragoman.transports.backoff import backoff


@pytest.mark.parametrize(
    ("failures", "whole"), [(0, 0.5), (1, 1.0), (3, 4.0), (4, 8.0), (5, 8.0), (5000, 8.0)]
)
def test_twice_as_long_each_time_up_to_the_most_and_never_less_than_half(failures: int, whole: float) -> None:
    waits = [backoff(failures, first=0.5, most=8.0) for _ in range(200)]
    assert whole / 2 <= min(waits) < max(waits) <= whole
