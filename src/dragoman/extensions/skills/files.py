"""One file of a skill: read as it is, measured, and shown as a resource. It knows no skills and no links."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.extensions.skills.wire import uri_of
from dragoman.model import BlobResourceContents, ResourceContents, TextResourceContents
from dragoman.model.skills_extension import MAX_BYTES
from dragoman.server.mime import BINARY, TEXT, is_text, of_name

Stamp = tuple[int, int, int, int, int]

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class File(msgspec.Struct, frozen=True):
    """What is known of one file. `path` is its place among the skills, `place` that on the disk."""

    path: str
    place: str
    stamp: Stamp
    size: int
    digest: str
    mime_type: str

    @property
    def uri(self) -> str:
        """What it is read by."""
        return uri_of(self.path)

    @property
    def modified(self) -> str:
        """When it last changed, as ISO 8601."""
        return datetime.fromtimestamp(self.stamp[3] // 10**9, UTC).isoformat().replace("+00:00", "Z")

    @property
    def changed_ns(self) -> int:
        """The later of the times at which it, or what is said of it, changed."""
        return max(self.stamp[3], self.stamp[4])


def stamp_of(info: os.stat_result) -> Stamp:
    """What tells one state of a file from the next without reading it."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def read(place: str) -> tuple[bytes, Stamp]:
    """The bytes of a plain file, at most one more than a skill may have.

    Raises:
        OSError: it cannot be read, or is a link, a folder or a device.
    """
    number = os.open(place, _FLAGS)
    with open(number, "rb", buffering=0) as file:  # noqa: PTH123  # by its number, not its name
        info = os.fstat(number)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(0, "no plain file")
        data = bytearray()
        while len(data) <= MAX_BYTES and (part := file.read(MAX_BYTES + 1 - len(data))):
            data += part
    return bytes(data), stamp_of(info)


def measure(path: str, place: str) -> tuple[File, bytes]:
    """A file and its bytes. Raises OSError."""
    data, stamp = read(place)
    kind = of_name(path.rpartition("/")[2]) or (BINARY if _text(data) is None else TEXT)
    return File(path, place, stamp, size=len(data), digest=digest(data), mime_type=kind), data


def digest(data: bytes) -> str:
    """As entries of skills have it."""
    return f"sha256:{sha256(data).hexdigest()}"


def contents(file: File, data: bytes) -> ResourceContents:
    """As `resources/read` answers: text only where the text is the very same bytes."""
    text = _text(data) if is_text(file.mime_type) else None
    if text is None:
        return BlobResourceContents.of(file.uri, data, mime_type=file.mime_type)
    return TextResourceContents(uri=file.uri, mime_type=file.mime_type, text=text)


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
