"""The progress of one call as its client is told: rising, and not more often than is of use.

It knows what was told and when, and nothing of what makes progress.
"""

from __future__ import annotations

import asyncio
import time
from threading import Lock

from msgspec import UNSET

from dragoman.model import Number, ProgressParams, ProgressToken
from dragoman.protocol.call import Call


class Progress:
    """Reports for one progress token, at most `rate` in any second.

    A report too many waits until its second is over; a later one takes its place, so the last one
    is always told. Any thread may report.
    """

    def __init__(
        self, call: Call, token: ProgressToken, *, rate: float, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._channel = call.channel
        self._token = token
        self._rate = rate
        self._words = call.revision.progress_messages
        self._loop = loop
        self._lock = Lock()
        self._highest: Number | None = None
        self._since = float("-inf")
        self._count = 0
        self._held: ProgressParams | None = None
        self._timer: asyncio.TimerHandle | None = None

    def report(self, progress: Number, total: Number | None, *, message: str | None) -> None:
        """Tell it now or soon; one that does not rise is left out (patterns/progress)."""
        with self._lock:
            if self._highest is not None and progress <= self._highest:
                return
            self._highest = progress
            params = ProgressParams(
                progress_token=self._token,
                progress=progress,
                total=UNSET if total is None else total,
                message=message if message is not None and self._words else UNSET,
            )
            rest = self._rest()
            if rest <= 0:
                self._send(params)
                return
            first = self._held is None
            self._held = params
        if first:
            self._loop.call_soon_threadsafe(self._wait, rest)

    def _rest(self) -> float:
        """Seconds until another may be sent."""
        now = time.monotonic()
        if now - self._since >= 1.0:
            self._since, self._count = now, 0
        return 0.0 if self._count < self._rate else self._since + 1.0 - now

    def _send(self, params: ProgressParams) -> None:
        self._count += 1
        self._held = None
        self._channel.notify("notifications/progress", params)

    def _wait(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self._rest()  # a new second has begun
        self.flush()

    def flush(self) -> None:
        """Tell what waits: the call is about to be answered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._lock:
            if self._held is not None:
                self._send(self._held)
