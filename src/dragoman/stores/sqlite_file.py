"""The file of a SQLite store: created, recognised, brought up to date, opened; its faults put in words."""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import time
from pathlib import Path
from typing import Final, Literal

import msgspec

from .base import StoreError
from .sealed import Seals

APPLICATION: Final = 0x44524753  # "DRGS", in the header of the file
OLDEST: Final = (3, 35, 0)  # RETURNING
CANARY: Final = b"dragoman"

# One script a version of the schema; a file is brought from its own to the last. Never edit one: add one.
SCHEMAS: Final = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO meta VALUES ('token', 0);
    CREATE TABLE kv (
        id INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, key TEXT NOT NULL,
        value BLOB NOT NULL, expires REAL, UNIQUE (space, key)
    );
    CREATE INDEX kv_expires ON kv (expires) WHERE expires IS NOT NULL;
    CREATE TABLE log (
        id INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, topic TEXT NOT NULL,
        at REAL NOT NULL, data BLOB NOT NULL
    );
    CREATE INDEX log_topic ON log (space, topic, id, at);
    CREATE TABLE bus (
        id INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, topic TEXT NOT NULL,
        at REAL NOT NULL, data BLOB NOT NULL
    );
    CREATE INDEX bus_at ON bus (at);
    CREATE TABLE queue (
        id INTEGER PRIMARY KEY AUTOINCREMENT, space TEXT NOT NULL, job TEXT NOT NULL,
        payload BLOB NOT NULL, due REAL NOT NULL, worker TEXT NOT NULL DEFAULT '',
        token INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, UNIQUE (space, job)
    );
    CREATE INDEX queue_due ON queue (space, due);
    """,
)

Durability = Literal["power", "process"]


class FileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is opened; see `SQLiteStore`."""

    busy_seconds: float = 5.0
    max_bytes: int | None = None
    durability: Durability = "power"


class StoreFile:
    """One file and how to open it."""

    def __init__(self, path: str, options: FileOptions, *, seals: Seals) -> None:
        self.path = path
        self.options = options
        self._seals = seals

    def open(self) -> sqlite3.Connection:
        """A connection, used by the calling thread alone. Raises StoreError."""
        if sqlite3.sqlite_version_info < OLDEST:
            raise self._fault(
                f"SQLite is {sqlite3.sqlite_version}; expected {'.'.join(map(str, OLDEST))} or later",
                "use a Python that brings a newer SQLite",
            )
        self._create()
        connection = None
        try:
            # None: transactions that Python begins by itself would be in our way.
            connection = sqlite3.connect(
                self.path, timeout=self.options.busy_seconds, isolation_level=None, cached_statements=64
            )
            self._prepare(connection)
            connection.execute("PRAGMA busy_timeout = 0")  # `sqlite_thread` waits by itself
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise self.fault(error) from None
        except StoreError:
            if connection is not None:
                connection.close()
            raise
        return connection

    def guard(self) -> sqlite3.Connection:
        """A second connection, which holds off all writers while it is in a transaction."""
        return sqlite3.connect(self.path, timeout=0.05, isolation_level=None)

    def _create(self) -> None:
        """An empty file that only its owner can read; the files that SQLite puts beside it are the same.

        Made elsewhere and linked: a file of SQLite's that is opened and closed by others loses its locks.
        """
        if os.path.lexists(self.path):
            return
        fresh = f"{self.path}.{secrets.token_hex(4)}"
        try:
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            try:
                os.link(fresh, self.path)
            except FileExistsError:
                pass  # somebody else was faster
            finally:
                Path(fresh).unlink()
        except OSError as error:
            raise self._os_fault(error) from None

    def _os_fault(self, error: OSError) -> StoreError:
        hint = {
            errno.ENOENT: f"create the directory {Path(self.path).parent}",
            errno.ENOSPC: "make room on the disk",
        }.get(error.errno or 0, "give a path in a directory that this user may write to")
        return self._fault(f"the file cannot be created: {error.strerror}", hint)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        sql = connection.execute
        sql("BEGIN")  # one view of the file: another process may be making its schema right now
        try:
            self._recognise(connection)
        finally:
            if connection.in_transaction:
                sql("COMMIT")
        sql("PRAGMA trusted_schema = OFF")
        self._write_ahead(connection)
        # `sqlite_thread` says when, and holds all writers off meanwhile.
        sql("PRAGMA wal_autocheckpoint = 0")
        sql("PRAGMA journal_size_limit = 0")
        sql("PRAGMA synchronous = NORMAL")
        if self.options.max_bytes is not None:
            (page,) = sql("PRAGMA page_size").fetchone()
            sql(f"PRAGMA max_page_count = {max(1, self.options.max_bytes // page)}")
        self._migrate(connection)

    def _recognise(self, connection: sqlite3.Connection) -> int:
        """The version of its schema, 0 for an empty file. Raises StoreError if it is somebody else's."""
        version: int
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION and (application or version or tables):
            raise self._fault(
                "the file is a SQLite database, but no store of dragoman's", "give a path of its own"
            )
        if version > len(SCHEMAS):
            raise self._fault(
                f"the file was written by a later dragoman (schema {version}, this one knows {len(SCHEMAS)})",
                "use that one, or give another path",
            )
        return version

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        end = time.monotonic() + self.options.busy_seconds
        mode = None
        while mode is None:
            try:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except sqlite3.OperationalError as error:
                # Here SQLite does not wait by itself where two begin at once.
                if not locked(error) or time.monotonic() > end:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise self._fault(
                f"the file system does not let processes share memory (journal mode {mode!r})",
                "put the file on a local disk",
            )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = self._recognise(connection)  # again: somebody else may have been faster
            for script in SCHEMAS[version:]:
                for statement in script.split(";"):
                    connection.execute(statement)
            if version < len(SCHEMAS):
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(f"PRAGMA user_version = {len(SCHEMAS)}")
            self._check_keys(connection, fresh=version == 0)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _check_keys(self, connection: sqlite3.Connection, *, fresh: bool) -> None:
        """A word that was sealed when the file was made tells at once whether the keys are the right ones."""
        if not fresh:
            row = connection.execute("SELECT value FROM meta WHERE name = 'canary'").fetchone()
            if self._seals and row is None:
                raise self._fault(
                    "the file is not encrypted, and the store was given keys",
                    "give another path, or leave the keys out",
                )
            if not self._seals and row is not None:
                raise self._fault(
                    "the file is encrypted, and the store was given no keys",
                    "give the keys that it was written with",
                )
            if row is None:
                return
            try:
                self._seals.open(row[0], "meta", "canary")
            except StoreError:
                raise self._fault(
                    "the file is encrypted with a secret that the key ring does not have",
                    "give the former secrets as well: Keys(new, former)",
                ) from None
        if self._seals:
            # With the newest secret, so that the former ones can be left out one day.
            sealed = self._seals.seal(CANARY, "meta", "canary")
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('canary', ?)", (sealed,))

    def _fault(self, message: str, hint: str) -> StoreError:
        return StoreError(f"{self.path}: {message}", hint=hint)

    def fault(self, error: sqlite3.Error) -> StoreError:
        """What SQLite said, with the file and the way out. Neither SQL nor values are in it."""
        code = _code(error)
        message, hint = FAULTS.get(code, (f"SQLite failed ({_name(error)})", "check the disk and the file"))
        if code in _LOCKED:
            message = f"{message} for {self.options.busy_seconds:g} seconds"
        return self._fault(message, hint.replace("FILE", self.path))


_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED: Final = (
    "move it and its -wal and -shm away and begin anew, or save what can be read: "
    "sqlite3 FILE .recover | sqlite3 NEW"
)
FAULTS: Final = {
    sqlite3.SQLITE_BUSY: (
        "another process held the file locked",
        "end what holds it (fuser FILE), or give more busy_seconds",
    ),
    sqlite3.SQLITE_LOCKED: (
        "another process held the file locked",
        "end what holds it (fuser FILE), or give more busy_seconds",
    ),
    sqlite3.SQLITE_PROTOCOL: (
        "the locks of the file could not be had",
        "put the file on a local disk",
    ),
    sqlite3.SQLITE_FULL: (
        "the disk is full, or the file has reached max_bytes",
        "make room, trim the logs, or give more max_bytes; what was stored is unharmed",
    ),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", _DAMAGED),
    sqlite3.SQLITE_NOTADB: ("the file is no SQLite database, or its beginning is damaged", _DAMAGED),
    sqlite3.SQLITE_IOERR: (
        "the file could not be read or written",
        "check the disk, its quota and the limits of the process; what was stored before is unharmed",
    ),
    sqlite3.SQLITE_READONLY: (
        "the file cannot be written to",
        "give this user the right to write to FILE and to its directory",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened",
        "give a path of a file, in a directory that this user may write to",
    ),
    sqlite3.SQLITE_PERM: (
        "the file cannot be opened",
        "give this user the right to write to FILE and to its directory",
    ),
    sqlite3.SQLITE_TOOBIG: (
        "the value is larger than SQLite can hold",
        "keep large values elsewhere, and their place here",
    ),
}


def _code(error: sqlite3.Error) -> int:
    # Absent where the module itself found fault, and then the text is all there is.
    if "too big" in str(error):
        return sqlite3.SQLITE_TOOBIG
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF  # the rest says more than anyone can act on


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def locked(error: sqlite3.Error) -> bool:
    """Whether somebody else is in the way, and trying again may help."""
    return _code(error) in _LOCKED
