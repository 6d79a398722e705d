"""What a process holds: memory, descriptors, children. Linux, by way of /proc."""

from __future__ import annotations

import asyncio
import os
from array import array
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

MIB: Final = 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


def resident() -> int:
    """Resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def children() -> set[int]:
    """The processes that this one has started and not reaped."""
    own = str(os.getpid())
    found = set[int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == own:
            found.add(int(path.parent.name))
    return found


def descriptors() -> dict[str, str]:
    """The open descriptors of this process and what they are."""
    found: dict[str, str] = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[path.name] = str(path.readlink())
        except FileNotFoundError:
            continue  # the one of the listing itself
    return found


@dataclass(frozen=True)
class Held:
    """What is held at one time, to be compared with later."""

    children: set[int]
    descriptors: set[str]
    tasks: set[asyncio.Task[object]]

    @classmethod
    def now(cls) -> Held:
        """What this process holds."""
        return cls(children(), set(descriptors()), set(asyncio.all_tasks()))

    def left(self) -> list[str]:
        """What there is now that was not there then, each by a name."""
        later = Held.now()
        shown = descriptors()
        return [
            *(f"child {pid}" for pid in sorted(later.children - self.children)),
            *(
                f"descriptor {fd}: {shown.get(fd, '?')}"
                for fd in sorted(later.descriptors - self.descriptors)
            ),
            *(f"task {task.get_name()}: {task.get_coro()}" for task in later.tasks - self.tasks),
        ]


class Memory:
    """Resident memory over time, in two numbers: after the warm-up, and at the end."""

    def __init__(self) -> None:
        self._samples = array("q")

    def sample(self) -> int:
        """Look now; returns bytes."""
        now = resident()
        self._samples.append(now)
        return now

    def ends(self) -> tuple[int, int]:
        """Median of the tenth that follows the first fifth, and of the last tenth, in bytes."""
        count = len(self._samples)
        tenth = max(1, count // 10)
        first = list(self._samples[count // 5 : count // 5 + tenth]) or [resident()]
        return int(median(first)), int(median(self._samples[-tenth:] or first))

    def course(self, parts: int = 20) -> list[int]:
        """The median of each of so many parts of the time, in bytes."""
        step = max(1, len(self._samples) // parts)
        return [int(median(self._samples[at : at + step])) for at in range(0, len(self._samples), step)]

    @property
    def most(self) -> int:
        """The highest sample, in bytes."""
        return max(self._samples, default=0)
