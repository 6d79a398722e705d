"""How long a request may wait: its limits, and the deadline that progress moves.

It keeps no clock of its own and sends nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf

from dragoman.client.options import ProgressHandler
from dragoman.errors import DeadlineError, UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one request may take: without any sign of life, and overall. Seconds; None for no limit."""

    idle: float | None
    overall: float | None

    def override(self, *, idle: float | None, overall: float | None) -> Limits:
        """These limits with those that a call names itself; `math.inf` lifts one.

        Raises:
            UsageError: a limit that is not above 0.
        """
        if idle is None and overall is None:
            return self
        return Limits(
            _limit("idle_timeout", idle, otherwise=self.idle),
            _limit("timeout", overall, otherwise=self.overall),
        )


def _limit(name: str, given: float | None, *, otherwise: float | None) -> float | None:
    if given is None:
        return otherwise
    if not given > 0:
        raise UsageError(f"{name}: expected seconds above 0; received {given!r}")
    return None if given == inf else given


class Waiting:
    """A request that awaits its answer, since `now` on the loop's clock; `scope` ends it when it is time."""

    __slots__ = ("limits", "progress", "scope", "until")

    def __init__(self, limits: Limits, *, now: float, held: bool, progress: ProgressHandler | None) -> None:
        self.limits = limits
        self.until = None if limits.overall is None else now + limits.overall
        self.progress = progress
        self.scope = asyncio.Timeout(None if held else self._deadline(now))

    def _deadline(self, now: float) -> float | None:
        """The next moment at which a limit runs out."""
        idle = self.limits.idle
        if idle is None:
            return self.until
        soon = now + idle
        return soon if self.until is None or soon < self.until else self.until

    def renew(self, now: float) -> None:
        """There was a sign of life."""
        self._move(self._deadline(now))

    def hold(self) -> None:
        """No limit counts until `resume`: it is this side that is being waited for."""
        self._move(None)

    def resume(self, now: float, *, held: float) -> None:
        """Count on, but not the seconds that it was `held`."""
        if self.until is not None:
            self.until += held
        self._move(self._deadline(now))

    def _move(self, when: float | None) -> None:
        if not self.scope.expired():
            self.scope.reschedule(when)

    def late(self, method: str, *, now: float) -> DeadlineError:
        """The error for the limit that ran out: its `stage` is `"idle"` or `"overall"`."""
        if self.until is not None and now >= self.until:
            text = f"{method} was not answered within {self.limits.overall:g} s"
            return DeadlineError(text, stage="overall", hint="a larger timeout=")
        text = f"{method}: neither answer nor progress for {self.limits.idle:g} s"
        return DeadlineError(text, stage="idle", hint="a larger idle_timeout=")
