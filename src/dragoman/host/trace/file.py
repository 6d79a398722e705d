"""A trace's file: lines appended under a lock, one chain over all processes that write to it.

Beside the file stand its head (`.head`: number and hash of the last line, and how long the file then
was), the values that are too long for a line (`.spill/`), and the files before it (`.000001` and so on).
It knows lines as bytes, and not what they tell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

from dragoman.errors import LocalError
from dragoman.host.locking import locked
from dragoman.host.trace.family import HEAD, SPILL, Head, numbered, read_at, rotated, spill_of
from dragoman.host.trace.large import Limits
from dragoman.host.trace.seal import fits, read_seal, seal_line

Mend: TypeAlias = Callable[[str, dict[str, Any] | None], bytes]
"""Given the reason and what is known of torn bytes, the body of the line that tells of it."""

PRIVATE: Final = 0o600
_BLOCK: Final = 1 << 16
_BINARY: Final[int] = getattr(os, "O_BINARY", 0)  # Windows would write CR before each LF


class ChainFile:
    """One trace in one file and those before it, open for appending.

    Several processes, and several of these in one, may append to the same file.

    Raises:
        LocalError: the file or its folder cannot be made or written.
    """

    def __init__(
        self, path: Path, *, limits: Limits, key: bytes | None, mend: Mend, sync: bool = False
    ) -> None:
        self.path = path
        self._limits = limits
        self._key = key
        self._mend = mend
        self._sync = sync
        self._guard = Lock()
        self._file = -1
        self._pid = os.getpid()
        with self._told():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = self._open_lock()
            self._file = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._guard:
            for number in (self._file, self._lock):
                if number >= 0:
                    os.close(number)
            self._file = self._lock = -1

    def append(self, body: bytes, spilled: dict[str, bytes]) -> None:
        """Append a line for an encoded JSON object; `spilled` are its long values, by their hash.

        Raises:
            LocalError: it could not be written, and nothing of it is in the file.
        """
        if self._pid != os.getpid():
            self._apart()
        with self._guard, self._told(), locked(self._lock):
            if self._lock < 0:
                raise LocalError(f"the trace {self.path} is closed", stage="trace")
            head = self._settled()
            if self._is_due(head, len(body)):
                head = self._rotate(head)
            for digest, data in spilled.items():
                self._spill(digest, data)
            self._write(head, body)

    @contextmanager
    def _told(self) -> Generator[None]:
        try:
            yield
        except OSError as exc:
            raise LocalError(
                f"the trace {self.path} cannot be written: {exc.strerror or exc}", stage="trace"
            ) from None

    def _apart(self) -> None:
        """Open the files anew in a fork: the lock of an open file is the parent's too."""
        self._guard, self._pid = Lock(), os.getpid()
        if self._lock >= 0:
            with self._told():
                mine = self._open_lock(), self._open()
            os.close(self._lock)
            os.close(self._file)
            self._lock, self._file = mine

    def _open_lock(self) -> int:
        return os.open(self.path.with_name(self.path.name + HEAD), os.O_RDWR | os.O_CREAT | _BINARY, PRIVATE)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, PRIVATE)

    # Under the lock ----------------------------------------------------------------------------------

    def _settled(self) -> Head:
        """The head as the file is now; what a crash or somebody else left there is told of in a line."""
        self._follow()
        size = os.fstat(self._file).st_size
        head = Head.read(self._lock)
        if head is None:
            return self._found(size)
        if head.size == size:
            return head
        if size == 0 and rotated(self.path, head.file + 1).exists():
            return self._begun(head)  # whoever rotated died before the head was written
        if head.size > size:
            head.size = self._ended(size)
            return self._tell(head, f"the file is shorter than the {head.seq} lines that were written")
        return self._adopted(head, size)

    def _follow(self) -> None:
        """Go to the file that now has the name, if another process rotated."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            now = None
        mine = os.fstat(self._file)
        if now is None or (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev):
            os.close(self._file)
            self._file = self._open()

    def _found(self, size: int) -> Head:
        """The head of a file that has none: a new one, or one whose head is lost."""
        head = Head(born=datetime.now(UTC).isoformat())
        if size == 0:
            return head
        last = _last_line(self._file, size)
        found = read_seal(last)
        if found is not None and fits(last, key=self._key):
            head.seq, head.hash = found.seq, found.hash
        head.size = size
        if read_at(self._file, size - 1, size=1) != b"\n":
            return self._torn(head, start=size - len(last), size=size)
        return self._tell(head, "the file of the chain's head was missing")

    def _adopted(self, head: Head, size: int) -> Head:
        """The head after lines that were written whole before their writer died."""
        start = head.size
        for line in _whole(self._file, start=start, end=size).splitlines(keepends=True):
            found = read_seal(line[:-1]) if line.endswith(b"\n") else None
            if found is None or found.seq != head.seq + 1 or found.prev != head.hash:
                if not line.endswith(b"\n"):
                    return self._torn(head, start=start, size=size)
                head.size = size
                return self._tell(head, "there are lines here that this trace has not written")
            head.seq, head.hash = found.seq, found.hash
            start += len(line)
            head.size = start
        return head

    def _torn(self, head: Head, *, start: int, size: int) -> Head:
        """End the part of a line that a crash left, and bind it to the line that tells of it."""
        torn = _whole(self._file, start=start, end=size)
        head.size = self._ended(size)
        told = {"bytes": len(torn), "sha256": sha256(torn).hexdigest()}
        return self._tell(head, "the line before was cut off when its writer ended", torn=told)

    def _ended(self, size: int) -> int:
        """The length of the file, once its last line has an end."""
        if size == 0 or read_at(self._file, size - 1, size=1) == b"\n":
            return size
        self._put(b"\n")
        return size + 1

    def _tell(self, head: Head, why: str, *, torn: dict[str, Any] | None = None) -> Head:
        return self._write(head, self._mend(why, torn))

    def _write(self, head: Head, body: bytes) -> Head:
        line, sealed = seal_line(body, seq=head.seq + 1, prev=head.hash, key=self._key)
        size = os.fstat(self._file).st_size
        try:
            self._put(line)
        except OSError:
            os.ftruncate(self._file, size)  # the lock is ours, and so are these bytes
            raise
        head.seq, head.hash, head.size = sealed.seq, sealed.hash, size + len(line)
        head.write(self._lock)
        return head

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        if self._sync:
            os.fsync(self._file)

    # Files -------------------------------------------------------------------------------------------

    def _is_due(self, head: Head, more: int) -> bool:
        limits = self._limits
        if head.size == 0:
            return False
        if limits.size is not None and head.size + more > limits.size:
            return True
        return limits.age is not None and _age(head.born) >= limits.age

    def _rotate(self, head: Head) -> Head:
        older = rotated(self.path, head.file + 1)
        os.close(self._file)
        try:
            self.path.rename(older)
            if spill_of(self.path).exists():
                spill_of(self.path).rename(spill_of(older))
        finally:
            self._file = self._open()
        return self._begun(head)

    def _begun(self, head: Head) -> Head:
        """The head of the file after one that is full; files beyond what is kept go."""
        head.file += 1
        head.size, head.born = 0, datetime.now(UTC).isoformat()
        last = 0 if self._limits.keep is None else head.file - self._limits.keep
        if last > 0 and rotated(self.path, last).exists():
            with rotated(self.path, last).open("rb") as file:
                found = read_seal(_last_line(file.fileno(), os.fstat(file.fileno()).st_size))
            if found is not None:
                head.first_seq, head.first_prev = found.seq + 1, found.hash
        head.write(self._lock)
        # Only now, and the lines before their values: whenever this ends, what is there can be explained.
        self._prune(last)
        return head

    def _prune(self, last: int) -> None:
        for old, folder in numbered(self.path, last=last):
            old.unlink(missing_ok=True)
            for spilled in folder.glob("*"):
                spilled.unlink(missing_ok=True)
            for spilled in folder.glob(".*"):
                spilled.unlink(missing_ok=True)
            if folder.exists():
                folder.rmdir()

    def _spill(self, digest: str, data: bytes) -> None:
        folder = self.path.with_name(self.path.name + SPILL)
        folder.mkdir(mode=0o700, exist_ok=True)
        target = folder / digest
        if target.exists():
            return
        half = folder / f".{digest}"  # the lock is ours: nobody else writes here
        number = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, PRIVATE)
        with os.fdopen(number, "wb") as file:
            file.write(data)
        half.rename(target)


def _age(born: str) -> float:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(born)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _whole(file: int, *, start: int, end: int) -> bytes:
    parts: list[bytes] = []
    while start < end:
        part = read_at(file, start, size=min(_BLOCK, end - start))
        if not part:
            break
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def _last_line(file: int, size: int) -> bytes:
    """The last line without its LF, whole or not."""
    end = size - 1 if size and read_at(file, size - 1, size=1) == b"\n" else size
    start, data = end, b""
    while start > 0:
        step = max(0, start - _BLOCK)
        data = _whole(file, start=step, end=start) + data
        start = step
        at = data.rfind(b"\n")
        if at >= 0:
            return data[at + 1 :]
    return data
