"""Framing on bytes: one message a line, or one message behind a Content-Length header.

Feed it bytes cut anywhere and take whole frames out, in time linear in their number. It refuses
to know what is inside a frame: a faulty one comes out as a record, and the stream goes on.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_HEADER: Final = 16 * 1024

_HEAD: Final = 1024
_LARGE: Final = 1024 * 1024


class TooLong(msgspec.Struct, frozen=True, gc=False):
    """A frame beyond the limit, given once and discarded.

    `size` counts the bytes seen so far (the announced length with Content-Length) and `head` holds
    the first ones, from which `message.too_large` may learn whose message it was.
    """

    size: int
    head: bytes = b""


class BadHeader(msgspec.Struct, frozen=True, gc=False):
    """A header block that does not say how long the message is; `reason` says why not."""

    reason: str


class Truncated(msgspec.Struct, frozen=True, gc=False):
    """The stream ended inside a message of `expected` bytes (0: inside its header)."""

    expected: int
    received: int


Frame: TypeAlias = bytes | TooLong | BadHeader | Truncated


def encode_line(payload: bytes) -> bytes:
    """The payload as a line. Raises ValueError if it holds a line feed: that would be two messages."""
    position = payload.find(b"\n")
    if position >= 0:
        raise ValueError(f"frame: expected one line, received a line feed (byte {position})")
    return payload + b"\n"


def encode_content_length(payload: bytes) -> bytes:
    """The payload behind its header; the length is in bytes."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(payload), payload)


class Lines:
    """Newline-delimited frames: a line ends at LF, loses one CR before it, and may not be blank.

    U+2028, U+0085 and a lone CR end no line. A frame is at most `max_bytes` long, line end apart.
    """

    encode = staticmethod(encode_line)

    __slots__ = ("_max", "_parts", "_size", "_skipping")

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._parts: list[bytes | bytearray] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Take bytes as they came; return the frames that they complete, in order."""
        frames: list[bytes | TooLong] = []
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines:
            if self._skipping:
                del lines[0]
                self._skipping = False
            elif self._parts:
                self._parts.append(lines[0])
                lines[0] = b"".join(self._parts)
                self._parts.clear()
            # Only a line that began in an earlier chunk, or a huge chunk, can be beyond the limit.
            crowded = self._size + len(data) > self._max
            self._size = 0
            frames += [self._bounded(line) for line in lines] if crowded else lines
            if b"\r" in data or data[:1] == b"\n":
                frames = [_without_cr(frame) for frame in frames]
            if not all(map(bytes.strip, lines)):
                frames = [frame for frame in frames if not _blank(frame)]
        if rest and not self._skipping:
            frames += self._keep(rest)
        return frames

    def eof(self) -> list[bytes | TooLong]:
        """The stream ended: a last line without a line end is a frame."""
        frames = self.feed(b"\n") if self._parts or self._skipping else []
        self._size = 0
        return frames

    def _keep(self, rest: bytes) -> list[bytes | TooLong]:
        parts = self._parts
        self._size += len(rest)
        if self._size <= _LARGE:
            parts.append(rest)
        elif parts and type(parts[-1]) is bytearray:
            parts[-1] += rest
        else:
            # Many small pieces would leave a hole in memory as large as the line when they are let go.
            parts[:] = [bytearray(b"".join(parts)) + rest]
        # One byte more may still be the CR of a line end.
        if self._size <= self._max + 1:
            return []
        fault = TooLong(self._size, b"".join(part[:_HEAD] for part in parts)[:_HEAD])
        parts.clear()
        self._size = 0
        self._skipping = True
        return [fault]

    def _bounded(self, line: bytes) -> bytes | TooLong:
        size = len(line) - line.endswith(b"\r")
        return line if size <= self._max else TooLong(size, line[:_HEAD])


def _without_cr(frame: bytes | TooLong) -> bytes | TooLong:
    return frame.removesuffix(b"\r") if isinstance(frame, bytes) else frame


def _blank(frame: bytes | TooLong) -> bool:
    return not frame or (isinstance(frame, bytes) and frame.isspace())


# Compiled, and kept by `re`, when first used: a server that starts needs none of them.
_BLOCK_END: Final = rb"\r?\n\r?\n"
_LENGTH_LINE: Final = rb"(?i)content-length[ \t]*:[ \t]*[0-9]{1,19}[ \t]*\r?\n"
_LENGTH_LINE_MAX: Final = 128
_DIGITS_MAX: Final = 19


class ContentLength:
    """Frames behind a header block, as the Language Server Protocol writes them.

    Header names are ASCII in any case, lines end in CRLF or LF, and only `Content-Length` counts.
    After a block that does not give the length, everything up to the next `Content-Length` line is
    passed over.
    """

    encode = staticmethod(encode_content_length)

    __slots__ = ("_header", "_max", "_need", "_parts", "_searching", "_size")

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max = max_bytes
        self._header = b""  # the header block so far, at most MAX_HEADER bytes
        self._searching = False  # for a Content-Length line, after a block without one
        self._size = -1  # bytes in the message that is being read; -1: its header is being read
        self._need = 0  # how many of them are still to come
        self._parts: list[bytes] | None = None  # its bytes so far; None: they are passed over

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes as they came; return the frames that they complete, in order."""
        frames: list[Frame] = []
        position = 0
        while position < len(data):
            if self._size >= 0:
                position = self._body(data, position, frames=frames)
            elif self._searching:
                position = self._search(data, position)
            else:
                position = self._block(data, position, frames=frames)
        return frames

    def eof(self) -> list[Frame]:
        """The stream ended: a message that is incomplete comes out as `Truncated`."""
        frames: list[Frame] = []
        if self._size >= 0 and self._parts is not None:
            frames.append(Truncated(self._size, self._size - self._need))
        elif self._header and not self._searching:
            frames.append(Truncated(0, len(self._header)))
        self._header, self._searching, self._size, self._parts = b"", False, -1, None
        return frames

    def _body(self, data: bytes, start: int, *, frames: list[Frame]) -> int:
        piece = data[start : start + self._need]
        self._need -= len(piece)
        if self._parts is not None:
            self._parts.append(piece)
        if self._need == 0:
            if self._parts is not None:
                frames.append(piece if len(self._parts) == 1 else b"".join(self._parts))
            self._size, self._parts = -1, None
        return start + len(piece)

    def _block(self, data: bytes, start: int, *, frames: list[Frame]) -> int:
        # A header is short: reading it again with each piece costs at most MAX_HEADER a piece, and
        # a piece of one byte adds one line end at most.
        known = len(self._header)
        block = self._header + data[start : start + MAX_HEADER]
        if not known:
            bare = block.lstrip(b"\r\n")
            start += len(block) - len(bare)
            block = bare
        end = re.compile(_BLOCK_END).search(block, max(0, known - 3))
        if end is not None:
            self._header = b""
            self._begin(_length(block[: end.start()]), frames)
            return start + end.end() - known
        if len(block) > MAX_HEADER:
            frames.append(BadHeader(f"header of more than {MAX_HEADER} bytes"))
            self._header, self._searching = b"", True
            return start + len(block) - known
        self._header = block
        return start + len(block) - known

    def _search(self, data: bytes, start: int) -> int:
        known = len(self._header)
        text = self._header + data[start:]
        found = re.compile(_LENGTH_LINE).search(text)
        if found is None:
            self._header = text[-_LENGTH_LINE_MAX:]
            return len(data)
        self._header, self._searching = b"", False
        # The line is read once more, as the start of a block: it may lie in the earlier piece.
        if found.start() >= known:
            return start + found.start() - known
        self._header = text[found.start() : known]
        return start

    def _begin(self, length: int | str, frames: list[Frame]) -> None:
        if isinstance(length, str):
            frames.append(BadHeader(length))
            self._searching = True
        elif length == 0:
            frames.append(b"")
        else:
            self._size = self._need = length
            self._parts = [] if length <= self._max else None
            if length > self._max:
                frames.append(TooLong(length))


def _length(block: bytes) -> int | str:
    """The length that a header block gives, or what is wrong with it."""
    values: set[bytes] = set()
    for line in block.split(b"\n"):
        name, colon, value = line.removesuffix(b"\r").partition(b":")
        if not colon or not line.isascii():
            return f"header line {_quoted(line)}: expected ASCII text `Name: value`"
        if name.strip().lower() == b"content-length":
            values.add(value.strip())
    if len(values) != 1:
        received = " and ".join(sorted(map(_quoted, values))) or "none"
        return f"Content-Length: expected one value, received {received}"
    value = values.pop()
    if not value.isdigit() or len(value) > _DIGITS_MAX:
        return f"Content-Length: expected a number of bytes, received {_quoted(value)}"
    return int(value)


def _quoted(text: bytes) -> str:
    return '"' + text[:60].decode("ascii", "backslashreplace").strip() + '"'
