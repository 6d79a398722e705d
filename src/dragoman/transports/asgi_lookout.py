"""Looking after the exchanges of one app that take longer than most.

Nearly every call ends within a few turns of the loop; for those nothing is set up. What is still
there when the lookout comes round gets its connection watched, and its stream kept alive.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

WATCH_AFTER: Final = 0.02  # seconds between two rounds; a call is watched after one or two of them


class Watched(Protocol):
    """An exchange, as far as the lookout knows it."""

    def watch(self) -> None:
        """Notice from now on when the client closes the connection."""
        ...

    def keep_alive(self) -> None:
        """Send a comment if nothing was sent since the last time."""
        ...


class Lookout:
    """Who is being worked on: `fresh` exchanges, and `long` ones, which were there for a round.

    An exchange adds itself to `fresh`, calls `go_round` if `loop` is not the running loop, and
    discards itself from both in the end. `housekeeping` is called every `interval` seconds and says
    whether it has anything to look after.
    """

    def __init__(self, interval: float, *, housekeeping: Callable[[float], bool]) -> None:
        self.fresh: set[Watched] = set()
        self.long: set[Watched] = set()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._seen: set[Watched] = set()
        self._interval = interval
        self._housekeeping = housekeeping
        self._ticking: asyncio.AbstractEventLoop | None = None

    def go_round(self, loop: asyncio.AbstractEventLoop) -> None:
        """Come round after a moment, again and again until nothing is fresh."""
        self.loop = loop
        loop.call_later(WATCH_AFTER, self._round, loop)

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        for exchange in self._seen & self.fresh:
            self.fresh.discard(exchange)
            self.long.add(exchange)
            exchange.watch()
        self._seen = set(self.fresh)
        if self.long:
            self.keep_house()
        if self.fresh:
            self.go_round(loop)
        else:
            self.loop = None

    def keep_house(self) -> None:
        """Keep streams alive and have `housekeeping` done, for as long as there is a need."""
        loop = asyncio.get_running_loop()
        if self._ticking is not loop:
            self._ticking = loop
            loop.call_later(self._interval, partial(self._tick, loop))

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for exchange in list(self.long):
            exchange.keep_alive()
        if self._housekeeping(loop.time()) or self.long:
            loop.call_later(self._interval, partial(self._tick, loop))
        else:
            self._ticking = None
