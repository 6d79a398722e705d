"""Files that somebody else may have put where they are: read only if they are plain files of a sane size.

Knows no form of what is in them.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

# A pipe, or a device, that is put in a file's place between two looks must not be waited for.
_FLAGS: Final[int] = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
)


def read_regular(path: Path, *, most: int) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or larger than `most` bytes.
    """
    # Before it is opened, too: there are devices that do something when they are.
    _check(path.stat())
    number = os.open(path, _FLAGS)
    with os.fdopen(number, "rb") as file:
        _check(os.fstat(number))
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most} bytes")
    return data


def _check(known: os.stat_result) -> None:
    if not stat.S_ISREG(known.st_mode):
        raise ValueError("not a regular file")


def is_there(path: Path) -> bool:
    """Whether there is something of this name, as far as this process may see."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True
