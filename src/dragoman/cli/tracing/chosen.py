"""Which trace and which calls are meant, and what is said of lines that cannot be read."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dragoman.cli import output
from dragoman.host.trace.calls import Wanted, since
from dragoman.host.trace.place import usual_place
from dragoman.host.trace.reading import Fault

_TOLD: Final = 10


def path(options: Namespace) -> Path:
    """The trace's file."""
    return place(options.file)


def place(name: str | None) -> Path:
    """The file of that name, or the usual one."""
    return usual_place() if name is None else Path(name)


def wanted(options: Namespace) -> Wanted:
    """The calls that the options choose. Raises UsageError for a time that is none."""
    begun = None if options.since is None else since(options.since, now=datetime.now(UTC))
    return Wanted(
        server=options.server,
        tool=options.tool,
        call=options.call,
        denied=options.denied,
        errors=options.errors,
        since=begun,
    )


class Faults:
    """Lines that could not be read: the first are told, all are counted."""

    def __init__(self) -> None:
        self.told: list[Fault] = []
        self.count = 0

    def __call__(self, fault: Fault) -> None:
        """Take one."""
        self.count += 1
        if len(self.told) < _TOLD:
            self.told.append(fault)

    def note(self) -> None:
        """Tell of them on stderr."""
        for fault in self.told:
            output.note(f"left out: {output.cut(output.flat(str(fault)), 300)}")
        if self.count > len(self.told):
            output.note(f"left out: {self.count - len(self.told):,} lines more that cannot be read")

    def record(self) -> list[dict[str, Any]]:
        """What `--json` says of them."""
        return [{"file": str(each.file), "line": each.number, "text": each.text} for each in self.told]
