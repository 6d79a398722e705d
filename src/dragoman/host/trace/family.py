"""The files of one trace: the current one, those before it, its head and its long values.

Names and the record of the head; what is in the lines is read elsewhere.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Self, TypeAlias

import msgspec

from dragoman.host.regular import read_regular
from dragoman.host.trace.seal import GENESIS

HEAD: Final = ".head"
SPILL: Final = ".spill"
_ROOM: Final = 512  # the head always takes this much, so that one write replaces it
_MOST: Final = 1 << 30  # bytes of a long value
_NUMBER: Final = re.compile(r"\.([0-9]{6,9})\Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")


# What no head ever has would be written on from, and into lines that are then none.
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=10**15)]
_Hash: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Head(msgspec.Struct):
    """What is known of the end of a trace, and of its beginning.

    `seq` and `hash` are those of the last line, `size` is the length of the current file with it, `file` how
    many files came before, `born` when the current one was begun. `first_seq` and `first_prev` say where the
    oldest file that was kept begins.
    """

    seq: _Count = 0
    hash: _Hash = GENESIS
    size: _Count = 0
    file: _Count = 0
    born: str = ""
    first_seq: _Count = 1
    first_prev: _Hash = GENESIS

    @classmethod
    def read(cls, file: int) -> Self | None:
        """The head in an open file; None where there is none that can be read."""
        try:
            return msgspec.json.decode(read_at(file, 0, size=_ROOM), type=cls)
        except msgspec.DecodeError:
            return None

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """The head beside a trace's file; None where there is none that can be read."""
        try:
            data = read_regular(path.with_name(path.name + HEAD), most=_MOST)
            return msgspec.json.decode(data[:_ROOM], type=cls)
        except (OSError, ValueError, msgspec.DecodeError):
            return None

    def write(self, file: int) -> None:
        """Replace the head in an open file."""
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, msgspec.json.encode(self).ljust(_ROOM - 1) + b"\n")


def read_at(file: int, start: int, *, size: int) -> bytes:
    """Bytes from a place of an open file, which nobody else reads meanwhile. Windows has no `pread`."""
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, size)


def rotated(path: Path, number: int) -> Path:
    """The file that was the current one as the `number`th, counted from 1."""
    return path.with_name(f"{path.name}.{number:06d}")


def number_of(path: Path) -> int | None:
    """Which file of its trace this is, None for the current one."""
    found = _NUMBER.search(path.name)
    return int(found[1]) if found else None


def spill_of(path: Path) -> Path:
    """The folder of the long values of one of the files."""
    return path.with_name(path.name + SPILL)


def numbered(path: Path, *, last: int) -> list[tuple[Path, Path]]:
    """The older files up to a number, and the folders of their long values, of which either may be gone."""
    if last < 1:
        return []
    names = [other.name.removesuffix(SPILL) for other in path.parent.glob(f"{_escaped(path.name)}.*")]
    found = {int(match[1]) for name in names if (match := _NUMBER.search(name)) is not None}
    old = [rotated(path, number) for number in sorted(found) if number <= last]
    return [(file, spill_of(file)) for file in old]


def files(path: Path) -> list[Path]:
    """The files of a trace, the oldest first. A file from before is looked at alone."""
    if number_of(path) is not None:
        return [path]
    older = [
        (number, other)
        for other in path.parent.glob(f"{_escaped(path.name)}.*")
        if (number := number_of(other))
    ]
    found = [other for _, other in sorted(older) if other.is_file()]
    return [*found, path] if path.exists() or not found else found


def _escaped(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def kept(path: Path, digest: str) -> bytes | None:
    """A long value that was kept beside a file; None where it is not there, or is not what was kept.

    Of a trace that came from elsewhere, what bears the name of a value may be a link to anything.
    """
    found = spilled(path, digest)
    if found is None:
        return None
    try:
        data = read_regular(found, most=_MOST)
    except (OSError, ValueError):
        return None
    return data if sha256(data).hexdigest() == digest else None


def spilled(path: Path, digest: str) -> Path | None:
    """The file of a long value: that of its own file, or where a crash left it."""
    if not _DIGEST.match(digest):
        return None
    own = spill_of(path) / digest
    if own.is_file():
        return own
    root = path.with_name(_NUMBER.sub("", path.name))
    others = (spill_of(other) / digest for other in files(root))
    return next((other for other in others if other.is_file()), None)
