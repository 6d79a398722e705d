"""How often somebody may call: a token bucket for each."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Final

from dragoman.errors import UsageError
from dragoman.model import Result
from dragoman.protocol.call import Call
from dragoman.server.layers.subject import RATE_LIMITED, WORK, By, Key, keyed, refused
from dragoman.server.middleware import Handler

MAX_KEYS: Final = 100_000  # buckets in memory; the one that was used longest ago goes first


class RateLimit:
    """At most `calls` in `seconds`, on average, for each of those who are told apart `by`.

    `burst` may come at once after a quiet time, as many as `calls` unless it is given. `by` is one or
    several of `"principal"`, `"client"` and `"tool"`, or a function of the call; an empty sequence
    counts all together. `methods` are counted, others pass. A call too many is not delayed: it is
    told when to come again, by a tool result with `isError` or by error 429 with
    `data.retryAfterMs`.

    Raises:
        UsageError: a number that is not above 0, or an unknown `by`.
    """

    def __init__(
        self,
        calls: float,
        seconds: float = 1.0,
        *,
        burst: float | None = None,
        by: Sequence[By] | Key = ("principal",),
        methods: Collection[str] = WORK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        size = max(calls, 1.0) if burst is None else burst
        if not (calls > 0 and seconds > 0 and size >= 1):
            raise UsageError(
                f"RateLimit: expected calls and seconds above 0 and a burst of at least 1, received "
                f"{calls!r}, {seconds!r} and {size!r}"
            )
        self._rate = calls / seconds
        self._burst = size
        self._key = keyed(by)
        self._methods = frozenset(methods)
        self._clock = clock
        # What is left, and when that was so.
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        if call.method.name not in self._methods:
            return await proceed(call)
        rest = self._take(self._key(call))
        if rest <= 0:
            return await proceed(call)
        text = f"Rate limit: too many calls; try again in {max(rest, 0.01):.2f} s"
        return refused(call, text, code=RATE_LIMITED, data={"retryAfterMs": round(rest * 1000) or 1})

    def _take(self, key: Hashable) -> float:
        """Take one; 0, or in how many seconds there is one."""
        now = self._clock()
        left, since = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        allowed = left >= 1.0
        self._buckets[key] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > MAX_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._rate
