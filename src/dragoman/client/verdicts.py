"""What each server spoke: remembered for the life of this process, and in a directory where one is given.

A file holds the revision and nothing of the server but a digest: a command line may hold secrets.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

log = logging.getLogger("dragoman.client")

_MOST: Final = 512
_LONGEST: Final = 64  # bytes of a file that is one of these
_OLDER: Final = "http+sse"


class Verdict(NamedTuple):
    """What a server spoke: the version of a revision, and whether over the older transport."""

    version: str
    older: bool = False


# (versioning: Backward Compatibility)
_known: Final[dict[str, Verdict]] = {}


def forget(key: str | None) -> None:
    """Forget what a server spoke; of all of them without a key. Files stay."""
    if key is None:
        _known.clear()
    else:
        _known.pop(key, None)


class Verdicts:
    """What is known of servers, here and in `folder`. Nothing of it fails: it saves time, no more."""

    def __init__(self, folder: str | Path | None) -> None:
        self._folder = None if folder is None else Path(folder)

    def get(self, key: str | None) -> Verdict | None:
        """What the server spoke the last time."""
        if key is None:
            return None
        found = _known.get(key)
        if found is None and self._folder is not None:
            found = _read(self._file(self._folder, key))
        return found

    def keep(self, key: str | None, verdict: Verdict) -> None:
        """Remember it."""
        if key is None:
            return
        if len(_known) >= _MOST and key not in _known:
            _known.pop(next(iter(_known)), None)
        _known[key] = verdict
        if self._folder is not None:
            file = self._file(self._folder, key)
            if _read(file) != verdict:
                _write(file, verdict)

    def forget(self, key: str | None) -> None:
        """It is not so any more."""
        if key is None:
            return
        forget(key)
        if self._folder is not None:
            with suppress(OSError):
                self._file(self._folder, key).unlink(missing_ok=True)

    @staticmethod
    def _file(folder: Path, key: str) -> Path:
        return folder / f"spoken-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def _read(file: Path) -> Verdict | None:
    try:
        with file.open("rb") as opened:
            words = opened.read(_LONGEST).decode("ascii", "replace").split()
    except OSError:
        return None
    if not words or words[1:] not in ([], [_OLDER]):
        return None
    return Verdict(words[0], len(words) > 1)


def _write(file: Path, verdict: Verdict) -> None:
    text = f"{verdict.version} {_OLDER}\n" if verdict.older else f"{verdict.version}\n"
    own = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(text)
        own.replace(file)  # whoever reads meanwhile has all of the old one or all of the new one
    except OSError as exc:
        log.warning("what a server spoke could not be kept: %s", exc)
        with suppress(OSError):
            own.unlink(missing_ok=True)
