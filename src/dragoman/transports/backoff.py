"""How long to wait before another attempt, wherever something is tried again. It waits for nothing itself."""

from __future__ import annotations

from random import random


def backoff(failures: int, *, first: float, most: float) -> float:
    """Seconds before the next attempt, `failures` having failed before in a row besides the last one.

    `first` to begin with, then twice as long each time, up to `most`; each cut by a random part of up to a
    half, so that all who lost one server do not come back to it at once.
    """
    whole = min(first * 2.0 ** min(failures, 60), most)  # more would be more than a float holds
    return whole * (0.5 + random() / 2)  # noqa: S311  # spreads load, guards nothing
