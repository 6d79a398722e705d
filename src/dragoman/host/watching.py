"""When the files of a host change: a look at each of them now and then, and no thread.

Knows paths and no meaning. A change is told once the files have been the same at two looks in a row, so
that a file which is being written is not read in the middle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from dragoman.host.locations import Location, Machine, locations, own
from dragoman.host.reading import above, files_of

EVERY: Final = 1.0
"""Seconds between two looks."""

Signature: TypeAlias = tuple[tuple[str, int, int, int], ...]


def places(host: str, machine: Machine) -> list[Location]:
    """The files that decide about a host's servers and calls."""
    return [*above(host, machine), *locations(host, machine), *own(machine)]


def signature(watched: Iterable[Location]) -> Signature:
    """What changes when any of the files does: one comes, goes, is written or replaced."""
    seen: list[tuple[str, int, int, int]] = []
    for place in watched:
        for path in dict.fromkeys((place.path, *files_of(place))):
            try:
                known = path.stat()
            except OSError:
                continue
            seen.append((str(path), known.st_mtime_ns, known.st_size, known.st_ino))
    return tuple(seen)


async def watch(
    watched: Iterable[Location],
    changed: Callable[[], Awaitable[object]],
    *,
    since: Signature,
    every: float = EVERY,
) -> None:
    """Call `changed` after each change `since` then, until cancelled."""
    watched = tuple(watched)
    told = last = since
    while True:
        await asyncio.sleep(every)
        now = signature(watched)
        if now == last and now != told:
            told = now
            await changed()
        last = now
