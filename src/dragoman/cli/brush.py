"""Colours for what commands print: on a terminal that has them, and nothing of it in a pipe."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Final, Self

from dragoman.cli import output

LABEL: Final = 10
"""Columns of a label before its text, but for two before it."""

_PIPE_WIDTH: Final = 110
_LEAST_WIDTH: Final = 30
_STYLES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "36",
}


@dataclass(frozen=True, slots=True)
class Brush:
    """Whether to colour, how wide to paint, whether messages are shown whole, and whether on a terminal."""

    colour: bool
    width: int
    full: bool
    terminal: bool

    @property
    def room(self) -> int:
        """Columns beside a label."""
        return self.width - LABEL - 3

    @classmethod
    def for_stdout(cls, *, colour: bool = True, full: bool = False) -> Self:
        """As stdout and the environment are: colours only on a terminal that has them (no-color.org)."""
        terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        wanted = colour and terminal and not os.environ.get("NO_COLOR")
        columns = output.columns()
        return cls(wanted, max(_LEAST_WIDTH, columns or _PIPE_WIDTH), full, sys.stdout.isatty())

    def wrapped(self, text: str, room: int) -> list[str]:
        """The text, harmless: on a terminal wrapped to `room` columns, in a pipe on one line."""
        plain = output.flat(text)
        return output.wrapped(plain, room) if self.terminal else [plain]

    def __call__(self, style: str, text: str) -> str:
        """The text in a style, or as it is."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colour else text
