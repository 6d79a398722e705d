"""What commands write: one JSON envelope, or text for people with nothing in it that steers a terminal."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

import msgspec

from dragoman.cli import failure
from dragoman.errors import DragomanError
from dragoman.schema.escapes import harmless, writable

_GAP: Final = "  "
_WORDS: Final = re.compile(r"(\s*\S+)\s*")
_LEAST: Final = 2  # columns in which the beginning of a word that is longer than a line is worth it
_NARROWEST: Final = 8  # what a column keeps
_COLUMNS: Final = 80  # of a terminal that does not know its own width


def envelope(*, ok: bool, value: Any) -> None:
    """Print the one object that `--json` promises: `{"ok": true, "result": ...}` or `"error"`."""
    body = {"ok": ok, "result" if ok else "error": value}
    try:
        text = msgspec.json.encode(body).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON lets people write
        text = msgspec.json.encode(writable(msgspec.to_builtins(body))).decode()
    line(text)


def line(text: str) -> None:
    """Print to stdout, whatever the locale's encoding can say."""
    _write(sys.stdout, text)


def note(text: str) -> None:
    """Print to stderr, with nothing in it that steers a terminal."""
    _write(sys.stderr, harmless(text))


def text(value: str) -> None:
    """Print a server's text: as it is into a pipe or file, and with nothing that steers on a terminal."""
    line(harmless(value) if sys.stdout.isatty() else value)


def fail(error: DragomanError, *, json: bool) -> int:
    """Tell what went wrong, on stderr and with `--json` on stdout too; returns the exit status."""
    if json:
        envelope(ok=False, value=failure.record(error))
    lines = failure.lines(error)
    if lines and not isinstance(error, failure.ToolFailed):
        lines[0] = f"dragoman: {lines[0]}"
    if lines:
        note("\n".join(lines))
    return failure.status(error)


def piece(value: str) -> None:
    """Print a piece of a text that is not over, at once; on a terminal with nothing in it that steers it."""
    _write(sys.stdout, harmless(value) if sys.stdout.isatty() else value, end="")
    sys.stdout.flush()


def _write(stream: TextIO, value: str, *, end: str = "\n") -> None:
    value += end
    try:
        stream.write(value)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(value.encode(encoding, "backslashreplace").decode(encoding))


def flat(value: str) -> str:
    """The text on one line."""
    return harmless(" ".join(value.split()))


def counted(number: int, noun: str) -> str:
    """`1 tool`, `2 tools`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def columns(stream: TextIO | None = None) -> int | None:
    """How wide the terminal is that the stream (stdout) leads to; None where it leads to none."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or _COLUMNS
    except (OSError, ValueError):
        return None


def width(value: str) -> int:
    """How many columns a text takes: wide characters count two, combining ones none."""
    if value.isascii():
        return len(value)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in value
    )


def cut(value: str, limit: int) -> str:
    """The text, shortened to `limit` columns where it is longer."""
    if width(value) <= limit:
        return value
    kept = ""
    room = limit - 1
    for char in value:
        room -= width(char)
        if room < 0:
            break
        kept += char
    return kept + "…"


def wrapped(value: str, room: int) -> list[str]:
    """A line on lines of at most `room` columns: cut between words, and within a word that is longer.

    There is always a first one, if only an empty one.
    """
    lines: list[str] = []
    start, used = 0, 0  # of the line that is being filled: its first character, and its columns
    for word in _WORDS.finditer(value):
        wide = width(word[1])
        if used and wide > room - used and (wide <= room or room - used < _LEAST):
            lines.append(value[start : word.start()].rstrip())
            start, used = word.start(), 0
        if wide > room - used:
            for place in range(word.start(), word.end(1)):
                used += width(value[place])
                if used > room and place > start:
                    lines.append(value[start:place])
                    start, used = place, width(value[place])
            used += word.end() - word.end(1)
        else:
            used += wide + word.end() - word.end(1)
    last = value[start:].rstrip()
    return [*lines, last] if last or not lines else lines


def table(rows: Iterable[Sequence[str]], limit: int | None = None) -> list[str]:
    """Rows in aligned columns; columns without any text are left out.

    Where a line would be longer than `limit`, the widest columns give way, so that each still says something.
    """
    cells = [list(map(flat, row)) for row in rows]
    header, *body = cells
    used = [place for place in range(len(header)) if any(row[place] for row in body)]
    wide = {place: max(width(row[place]) for row in cells) for place in used}
    if limit is not None:
        _narrow(wide, limit)
    lines: list[str] = []
    for row in cells:
        shown = [(cut(row[place], wide[place]), wide[place]) for place in used]
        full = _GAP.join(text + " " * (room - width(text)) for text, room in shown).rstrip()
        lines.append(full if limit is None else cut(full, limit))
    return lines


def _narrow(wide: dict[int, int], limit: int) -> None:
    """Take columns of text from the widest until all fit, or none can give more."""
    over = sum(wide.values()) + len(_GAP) * (len(wide) - 1) - limit
    while over > 0:
        widest = max(wide, key=wide.__getitem__)
        if wide[widest] <= _NARROWEST:
            return
        wide[widest] -= 1
        over -= 1
