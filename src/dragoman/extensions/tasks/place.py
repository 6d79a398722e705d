"""Where tasks are kept when nobody says more than a path, or nothing at all: a file, and the secret of it."""

from __future__ import annotations

import os
import re
from os import PathLike
from pathlib import Path
from typing import Final

from dragoman.errors import LocalError
from dragoman.protocol.sealing import MIN_SECRET, Keys
from dragoman.stores import Store
from dragoman.stores.sqlite import SQLiteStore

KEY: Final = ".key"  # what the name of the file with the secret ends with
BYTES: Final = 32


def open_store(
    given: Store | str | PathLike[str] | None, *, name: str, secrets: tuple[str | bytes, ...]
) -> tuple[Store, bool]:
    """The store for the tasks of the server `name`, and whether it is ours to close.

    Raises:
        LocalError: there is no folder for it, or the file with its secret is none.
    """
    if given is not None and not isinstance(given, (str, PathLike)):
        return given, False
    path = Path(given) if given is not None else _default(name)
    return SQLiteStore(path, keys=_keys(path, secrets)), True


def _default(name: str) -> Path:
    from platformdirs import user_state_path

    folder = user_state_path("dragoman", appauthor=False) / "tasks"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise LocalError(
            f"{folder} cannot be created: {exc.strerror}",
            hint='give tasks a file of their own: Tasks("tasks.db")',
        ) from None
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name)[:100]}.sqlite3"


def _keys(path: Path, secrets: tuple[str | bytes, ...]) -> Keys:
    """The server's secrets seal; one beside the file opens what was sealed before there were any."""
    beside = path.with_name(path.name + KEY)
    if not secrets or beside.exists():
        return Keys(*secrets, _secret(beside))
    return Keys(*secrets)


def _secret(path: Path) -> bytes:
    """The secret in a file that only its owner can read; made if there is none."""
    try:
        if not path.exists():
            _make(path)
        secret = path.read_bytes().strip()
    except OSError as exc:
        raise LocalError(
            f"{path}: the secret of the tasks cannot be read or made: {exc.strerror}",
            hint="give a path in a folder that this user may write to, or the server a secret",
        ) from None
    if len(secret) < MIN_SECRET:
        raise LocalError(f"{path}: expected a secret of at least {MIN_SECRET} bytes, found {len(secret)}")
    return secret


def _make(path: Path) -> None:
    # Whole under its name or not at all, and one of several processes that begin at once wins.
    fresh = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(os.urandom(BYTES).hex().encode())
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        fresh.unlink()
