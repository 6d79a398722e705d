"""A call's progress as a bar on a terminal; nothing where stderr is none."""

from __future__ import annotations

import sys
from typing import Final

from dragoman.cli.output import columns, cut, flat

_CELLS: Final = 24
_COLUMNS: Final = 80
_ERASE: Final = "\r\x1b[K"


class Bar:
    """One line on stderr that is written over and over, and gone when it is cleared."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._shown = False

    def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Show a report of the server's."""
        if not self._on:
            return
        text = draw(progress, total, message=message)
        sys.stderr.write(_ERASE + cut(text, (columns(sys.stderr) or _COLUMNS) - 1))
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away, so that what is printed next has it for itself."""
        if self._shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._shown = False


def draw(progress: float, total: float | None, *, message: str | None) -> str:
    """One line for a report: a bar where there is a total to compare with, else the bare number."""
    if total is not None and total > 0:
        share = min(max(progress / total, 0.0), 1.0)
        full = round(share * _CELLS)
        head = f"[{'#' * full}{'.' * (_CELLS - full)}] {share:4.0%}"
    else:
        head = f"{progress:g}"
    return f"{head} {flat(message)}" if message else head
