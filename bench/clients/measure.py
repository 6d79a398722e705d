"""What all clients in Python have in common: the command line, and the median time of one call."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable


def target() -> tuple[str, str]:
    """The transport and where: `stdio` and a JSON list, or `http` and a URL."""
    return sys.argv[1], sys.argv[2]


async def measure(call: Callable[[], Awaitable[None]]) -> None:
    """Call one at a time for as many seconds as the command line says; print the median in microseconds."""
    seconds = float(sys.argv[3])
    for _ in range(20):
        await call()
    times: list[float] = []
    clock = time.perf_counter
    end = clock() + seconds
    while (start := clock()) < end:
        await call()
        times.append(clock() - start)
    times.sort()
    print("JSON " + json.dumps({"p50_us": times[len(times) // 2] * 1e6, "calls": len(times)}), flush=True)
