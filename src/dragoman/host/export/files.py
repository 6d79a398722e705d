"""A configuration file written so that nothing is lost: whole or not at all, and back again.

A copy of what was there is kept with a journal in the folder for the user's state, for that user alone.
Links are followed and stay links; a file keeps its mode.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from dragoman.errors import UsageError
from dragoman.host.atomic import PRIVATE, create, replacing
from dragoman.host.reading import LARGEST
from dragoman.host.regular import read_regular

_JOURNAL: Final = "journal.jsonl"


@dataclass(frozen=True, slots=True)
class Change:
    """One file that was written: what it held, None where it was not there, and what it holds since.

    `before` and `after` are digests of the bytes, `copy` is the name of the copy.
    """

    id: str
    at: str
    file: str
    before: str | None
    after: str
    copy: str | None
    mode: int | None
    undone: str = ""


class Journal:
    """What was written, in a folder of its own: by default that for the user's state."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = _state() if folder is None else folder

    def write(self, path: Path, text: str, *, seen: bytes | None, private: bool = False) -> Change:
        """Put a text into a file, of which `seen` is what it was thought to hold, None for no file.

        A file that is new is readable for others only if it is not `private`.

        Raises:
            UsageError: the file holds something else by now, or its link leads nowhere.
            OSError: it cannot be written; it is then as it was.
        """
        real = _real(path)
        before, mode = _content(real)
        if before != seen:
            raise UsageError(f"{path}: it was changed in the meantime; nothing is written")
        data = text.encode()
        number = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.urandom(3).hex()}"
        change = Change(
            id=number,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            file=str(real),
            before=None if before is None else _digest(before),
            after=_digest(data),
            copy=None if before is None else f"{number}.copy",
            mode=mode,
        )
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if before is not None and change.copy is not None:
            with create(self.folder / change.copy) as file:
                file.write(before)
                file.flush()
                os.fsync(file.fileno())
        self._append(change)
        try:
            _replace(real, data, mode=mode if mode is not None else PRIVATE if private else None)
        except BaseException:
            self._forget(change)
            raise
        return change

    def undo(self, path: Path | None = None, *, force: bool = False) -> Change:
        """Put back what the last change of a file, or the last of all, replaced.

        Raises:
            UsageError: there is no such change, its copy is gone, or the file was changed since and nothing
                is to be forced.
            OSError: the file cannot be written.
        """
        wanted = None if path is None else str(_real(path))
        changes = [change for change in self.changes() if wanted in (None, change.file)]
        if not changes:
            raise UsageError(
                "there is nothing to take back" if path is None else f"{path}: it was not written from here"
            )
        change = changes[-1]
        real = Path(change.file)
        now, _ = _content(real)
        if not force and (None if now is None else _digest(now)) != change.after:
            raise UsageError(f"{real}: it was changed since; `--force` puts it back all the same")
        if change.copy is None:
            real.unlink(missing_ok=True)
        else:
            _replace(real, self._copy(change), mode=change.mode)
        self._forget(change)
        return change

    def changes(self) -> list[Change]:
        """Those that were not undone, oldest first."""
        found: dict[str, Change] = {}
        for change in self._lines():
            if change.undone:
                found.pop(change.undone, None)
            else:
                found[change.id] = change
        return list(found.values())

    def _forget(self, change: Change) -> None:
        """A change that did not happen, or is undone; what was kept of it may hold secrets."""
        self._append(replace(change, undone=change.id))
        if change.copy is not None:
            (self.folder / change.copy).unlink(missing_ok=True)

    def _copy(self, change: Change) -> bytes:
        try:
            data = (self.folder / (change.copy or "")).read_bytes()
        except OSError as exc:
            raise UsageError(f"{change.file}: the copy cannot be read: {exc.strerror}") from None
        if _digest(data) != change.before:
            raise UsageError(f"{change.file}: the copy is not what was kept")
        return data

    def _lines(self) -> Iterator[Change]:
        try:
            lines = (self.folder / _JOURNAL).read_bytes().splitlines()
        except OSError:
            return
        for line in lines:
            with suppress(msgspec.DecodeError):  # a line that was not finished
                yield msgspec.json.decode(line, type=Change)

    def _append(self, change: Change) -> None:
        number = os.open(self.folder / _JOURNAL, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
        try:
            line = msgspec.json.encode(change) + b"\n"
            if os.fstat(number).st_size:
                os.lseek(number, -1, os.SEEK_END)
                if os.read(number, 1) != b"\n":  # a line that was cut off ends before the next one begins
                    line = b"\n" + line
            os.write(number, line)
        finally:
            os.close(number)


def _state() -> Path:
    from platformdirs import user_state_path

    return user_state_path("dragoman", appauthor=False) / "config"


def _real(path: Path) -> Path:
    """The file that a path leads to. Raises UsageError for a link that leads nowhere."""
    real = Path(os.path.realpath(path))
    if path.is_symlink() and not real.exists():
        raise UsageError(f"{path}: a link that leads nowhere")
    return real


def _content(path: Path) -> tuple[bytes | None, int | None]:
    try:
        return read_regular(path, most=LARGEST), path.stat().st_mode & 0o7777
    except FileNotFoundError:
        return None, None
    except ValueError as exc:
        raise UsageError(f"{path}: {exc}") from None


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _replace(path: Path, data: bytes, *, mode: int | None) -> None:
    """Put a file in place of another in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, mode=mode) as file:
        file.write(data)
