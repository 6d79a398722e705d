"""A trace's files at one moment, while writers go on: opened, with their lengths, and the head."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from dragoman.errors import UsageError
from dragoman.host.locking import locked
from dragoman.host.trace.family import HEAD, Head, number_of
from dragoman.host.trace.reading import existing

_HELD: Final = 256  # files that are open at once

Opened: TypeAlias = tuple[Path, BinaryIO | None, int]


def standing(path: Path, stack: ExitStack) -> tuple[list[Opened], Head | None]:
    """The files, opened, with their lengths, and the head, as all were at one moment.

    Writers go on meanwhile: what they append, move and remove is not seen.
    """
    existing(path)
    if number_of(path) is not None:
        return [opened_file(path, stack)], None
    try:
        lock = os.open(path.with_name(path.name + HEAD), os.O_RDONLY)
    except OSError:
        lock = -1
    try:
        with locked(lock):
            *older, last = existing(path)
            # Of very many, those from before are opened one by one: they stay as they are.
            held = len(older) <= _HELD
            found = [opened_file(file, stack) if held else (file, None, 0) for file in older]
            return [*found, opened_file(last, stack)], Head.of(path)
    finally:
        if lock >= 0:
            os.close(lock)


def opened_file(file: Path, stack: ExitStack) -> tuple[Path, BinaryIO, int]:
    try:
        opened = stack.enter_context(file.open("rb"))
        return file, opened, os.fstat(opened.fileno()).st_size
    except OSError as exc:
        raise UsageError(f"{file} cannot be read: {exc.strerror}", stage="trace") from None
