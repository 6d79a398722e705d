"""The lines of a trace as they are written, through rotation and through a file that is not there yet.

It sleeps by a function that it is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from dragoman.errors import UsageError
from dragoman.host.trace.family import files
from dragoman.host.trace.reading import LONGEST, Line, OnFault, line_of

_BLOCK: Final = 1 << 20


class Follower:
    """Reads what is appended from now on; `wait` is called where there is nothing, and False ends it.

    Raises:
        UsageError: the file cannot be read.
    """

    def __init__(self, path: Path, *, wait: Callable[[], bool], on_fault: OnFault | None = None) -> None:
        self._path = path
        self._wait = wait
        self._on_fault = on_fault
        self._file: BinaryIO | None = None
        self._rest = b""
        self._too_long = False
        with self._told():
            self._before = {file for file in files(path) if file.exists()}
            if path in self._before:
                self._file = self._open(path)
                self._to_end(self._file)

    def lines(self) -> Iterator[Line]:
        """The lines from when this was made. Those that were there already are left out.

        Raises:
            UsageError: the file cannot be read.
        """
        try:
            with self._told():
                while True:
                    yield from self._read()
                    if not self._moved() and not self._wait():
                        return
        finally:
            if self._file is not None:
                self._file.close()

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except OSError as exc:
            raise UsageError(f"{self._path} cannot be read: {exc.strerror}", stage="trace") from None

    def _open(self, path: Path) -> BinaryIO:
        self._rest, self._too_long = b"", False
        return path.open("rb")

    def _to_end(self, file: BinaryIO) -> None:
        """Go behind the last whole line."""
        place = size = file.seek(0, os.SEEK_END)
        while place > 0:
            step = max(0, place - _BLOCK)
            file.seek(step)
            at = file.read(place - step).rfind(b"\n")
            if at >= 0:
                file.seek(step + at + 1)
                return
            place = step
        file.seek(0 if size <= LONGEST else size)

    def _read(self) -> Iterator[Line]:
        """What is there to read."""
        while self._file is not None and (data := self._file.read(_BLOCK)):
            *whole, self._rest = (self._rest + data).split(b"\n")
            for raw in whole:
                if self._too_long:
                    self._too_long = False  # the end of it
                    raw = b""  # noqa: PLW2901  # only its end is here
                line = (
                    line_of(raw, self._path, number=0, whole=True, on_fault=self._on_fault) if raw else None
                )
                if line is not None:
                    yield line
            if len(self._rest) > LONGEST:
                line_of(self._rest, self._path, number=0, whole=False, on_fault=self._on_fault)
                self._rest, self._too_long = b"", True

    def _moved(self) -> bool:
        """Whether there is another file to go on with: the next one, or this one begun anew."""
        if self._file is None:
            new = [file for file in files(self._path) if file not in self._before and file.exists()]
            if not new:
                return False
            self._file = self._open(new[0])
            return True
        mine = os.fstat(self._file.fileno())
        if mine.st_size < self._file.tell():
            self._file.seek(0)
            self._rest, self._too_long = b"", False
            return True
        following = self._next(mine)
        if following is None:
            return False
        # What was written between the last look and the move is still to be read here.
        if self._file.tell() < os.fstat(self._file.fileno()).st_size:
            return True
        self._file.close()
        self._file = self._open(following)
        return True

    def _next(self, mine: os.stat_result) -> Path | None:
        """The file after the one that is open, if the name has gone to another."""
        found = files(self._path)
        for place, file in enumerate(found):
            with suppress(FileNotFoundError):
                if os.path.samestat(file.stat(), mine):
                    return found[place + 1] if place + 1 < len(found) and found[place + 1].exists() else None
        # It is kept no longer: go on with the oldest that is.
        return next((file for file in found if file.exists()), None)
