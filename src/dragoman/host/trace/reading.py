"""The lines of a trace as they are read again, one after the other, whatever is wrong with some of them.

Files of any size: a line is in memory only while it is looked at. It judges no hash; that is `verifying`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec

from dragoman.errors import UsageError
from dragoman.host.trace.family import files, kept
from dragoman.schema.shapes import is_array, is_object

LONGEST: Final = 16 << 20
"""The longest line that is read, in bytes; no trace of ours has a longer one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that cannot be read, by its number in its file, counted from 1."""

    file: Path
    number: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.text}"


_BLOCK: Final = 1 << 20

OnFault: TypeAlias = Callable[[Fault], None]


class Block(msgspec.Struct):
    """What is read at once of a block: ids and the name that the model called."""

    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None


class Decided(msgspec.Struct):
    """What is read at once of a decision."""

    effect: str = ""
    rule: str | None = None
    origin: str | None = None
    why: str = ""
    answer: bool | None = None


class Facts(msgspec.Struct):
    """What is read at once of a line: by what it is found, and what a table of calls shows."""

    kind: str
    call: str = ""
    at: str = ""
    ms: float | None = None
    turn: str | None = None
    server: str | None = None
    tool: str | None = None
    by: str | None = None
    is_error: bool = False
    decision: Decided | None = None
    block: Block | None = None


_read: Final = msgspec.json.Decoder(Facts).decode


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `raw` as it stands in the file without its LF, `facts` what is read of it at once.

    `number` counts from 1 where the file was read from.
    """

    facts: Facts
    raw: bytes
    file: Path
    number: int

    def value(self) -> dict[str, Any]:
        """The whole line as it stands, with long values shortened."""
        return msgspec.json.decode(self.raw, type=dict[str, Any])

    def full(self) -> dict[str, Any]:
        """The whole line with its long values in their places, as far as they were kept."""
        value = self.value()
        places: Any = value.pop("large", ())
        for place in places if is_array(places) else ():
            _restore(value, place, file=self.file)
        return value


def _restore(line: dict[str, Any], place: Any, *, file: Path) -> None:
    if not is_object(place) or not is_array(place.get("at")) or not place["at"]:
        return
    data = kept(file, str(place.get("sha256")))
    if data is None:
        return
    *way, last = place["at"]
    try:
        inner: Any = line
        for part in way:
            inner = inner[part]
        inner[last] = msgspec.json.decode(data) if place.get("form") == "json" else data.decode("utf-8")
    except (LookupError, TypeError, ValueError, RecursionError):
        return  # what stands in the line is shown


def definition(line: Line) -> dict[str, Any]:
    """The parts of the tool's definition by which a call was judged, as far as they were kept."""
    hashes: Any = line.value().get("definition")
    parts: dict[str, Any] = {}
    for name, digest in hashes.items() if is_object(hashes) else ():
        data = kept(line.file, digest) if isinstance(digest, str) else None
        if data is not None:
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                parts[name] = msgspec.json.decode(data)
    return parts


def existing(path: Path | str) -> list[Path]:
    """The files of a trace, the oldest first.

    Raises:
        UsageError: there is none.
    """
    try:
        found = [file for file in files(Path(path)) if file.exists()]
    except (OSError, ValueError) as exc:  # a name that is too long, or none at all
        raise UsageError(f"{str(path)[:200]!r} names no trace: {exc}") from None
    if found and found[-1].is_dir():
        raise UsageError(f"{path} is a folder, not a trace", hint="name the file in it")
    if not found:
        raise UsageError(
            f"there is no trace at {path}", hint="name the file that the host writes its trace to"
        )
    return found


def pieces(file: BinaryIO, *, end: int | None = None) -> Iterator[tuple[bytes, bool]]:
    """What stands between line ends, with whether an LF follows; of what is too long, only the start.

    What is behind `end` bytes is not looked at.
    """
    left = sys.maxsize if end is None else end
    while data := file.readline(min(LONGEST, left)):
        left -= len(data)
        whole = data.endswith(b"\n")
        rest = data
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(min(LONGEST, left))
            left -= len(rest)
            whole = rest.endswith(b"\n")
        yield (data[:-1] if data.endswith(b"\n") else data), whole


def lines(
    path: Path | str, *, on_fault: OnFault | None = None, having: bytes = b"", window: int | None = None
) -> Iterator[Line]:
    """The lines of all files of a trace in their order; those that cannot be read go to `on_fault`.

    `having` leaves out, unread, lines that do not have these bytes. With `window`, only so many bytes at the
    end are read.

    Raises:
        UsageError: there is no such trace, or a file of it cannot be read.
    """
    for file, start in _from(existing(path), window):
        try:
            with file.open("rb") as opened:
                _skip(opened, start)
                for number, (raw, whole) in enumerate(pieces(opened), 1):
                    if having in raw:
                        line = line_of(
                            raw, file, number=number, whole=whole, on_fault=_counted(on_fault, start)
                        )
                        if line is not None:
                            yield line
        except FileNotFoundError:
            continue  # it is kept no longer, since a moment ago
        except OSError as exc:
            raise UsageError(f"{file} cannot be read: {exc.strerror}", stage="trace") from None


def _from(found: list[Path], window: int | None) -> list[tuple[Path, int]]:
    """The files that are in the last bytes of a trace, and where in each they begin."""
    if window is None:
        return [(file, 0) for file in found]
    chosen: list[tuple[Path, int]] = []
    for file in reversed(found):
        length = file.stat().st_size if file.exists() else 0
        chosen.append((file, max(0, length - window)))
        window -= length
        if window <= 0:
            break
    return chosen[::-1]


def _skip(file: BinaryIO, start: int) -> None:
    """Go to the first line that begins at a place or behind it."""
    if start > 0:
        file.seek(start - 1)
        while (data := file.readline(_BLOCK)) and not data.endswith(b"\n"):
            pass


def _counted(on_fault: OnFault | None, start: int) -> OnFault | None:
    """`on_fault` with the numbers that lines have in the whole file, counted when there is a fault."""
    if on_fault is None or start == 0:
        return on_fault

    def tell(fault: Fault) -> None:
        before, left = 0, start - 1
        with fault.file.open("rb") as file:
            while left > 0 and (data := file.read(min(_BLOCK, left))):
                before += data.count(b"\n")
                left -= len(data)
        on_fault(Fault(fault.file, before + 1 + fault.number, fault.text))

    return tell


def line_of(raw: bytes, file: Path, *, number: int, whole: bool, on_fault: OnFault | None) -> Line | None:
    """A line that was read; None where it is none, which goes to `on_fault`."""
    try:
        return Line(_read(raw), raw, file, number)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        text = f"no line of a trace: {exc}"
        if len(raw) >= LONGEST:
            text = f"longer than the {LONGEST >> 20} MiB that a line may have"
        elif not whole:
            text = "cut off in its middle, as a writer leaves it that was killed"
    if on_fault is not None:
        on_fault(Fault(file, number, text))
    return None


def size(path: Path | str) -> int:
    """The bytes of all files of a trace."""
    return sum(os.path.getsize(file) for file in existing(path))  # noqa: PTH202  # of a path, in one call
