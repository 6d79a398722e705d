"""Files that are there whole or not at all: written beside their place, and put into it in one step.

Knows no form of what is in them, and follows no link: whoever wants that resolves the path first.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

PRIVATE: Final = 0o600
"""The mode of a file that its owner alone reads and writes."""

_PUBLIC: Final = 0o666  # of which the umask takes
_FLAGS: Final[int] = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def create(path: Path, *, mode: int = PRIVATE) -> BinaryIO:
    """A file that was not there, open to be written, with the bits of `mode` that the umask leaves.

    Raises:
        OSError: it cannot be made. FileExistsError: something of that name is there, if only a link.
    """
    return os.fdopen(os.open(path, _FLAGS, mode), "wb")


@contextmanager
def replacing(path: Path, *, mode: int | None, durable: bool = True) -> Generator[BinaryIO]:
    """A file to write, which takes the place of `path` when the block ends; if it raises, nothing is left.

    `mode` are the new file's permissions, None for what the umask leaves of a common file's. What is
    `durable` is on the disk before it takes its place.

    Raises:
        OSError: it cannot be written; what was at `path` is then as it was.
    """
    new = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        with create(new, mode=_PUBLIC if mode is None else PRIVATE) as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if mode is not None and mode != PRIVATE:
            new.chmod(mode)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
