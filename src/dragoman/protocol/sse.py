"""Server-sent events on bytes: one event out, any slicing of a stream in.

It follows the event stream format of the WHATWG HTML standard (section 9.2, "Server-sent events")
and refuses to know what an event's data says or when a stream is to be resumed.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from dragoman.jsonrpc.framing import MAX_BYTES, TooLong

_BOM: Final = b"\xef\xbb\xbf"
_HEAD: Final = 1024
_LINE_END: Final = re.compile(rb"\r\n|\r|\n")
_MAX_RETRY_DIGITS: Final = 10  # more than three years in milliseconds


class Event(msgspec.Struct, frozen=True, gc=False):
    """One dispatched event.

    `data` are its data lines joined by LF; a priming event has none (`b""`). `id` is the stream's last
    event id, which later events inherit, or None before the first. `event` is its type, None for the
    default one. `retry` is the reconnection time in milliseconds that this very event gave.
    """

    data: bytes
    id: str | None = None
    event: str | None = None
    retry: int | None = None


def encode_event(
    data: bytes,
    *,
    id: str | None = None,  # noqa: A002 - the field's own name
    retry: int | None = None,
    event: str | None = None,
) -> bytes:
    """One event, its closing blank line included; a line break in `data` starts a further data line.

    Raises:
        ValueError: `id` or `event` holds a line break (it would end the field), `id` a NUL (readers
            ignore such an id), or `retry` is negative.
    """
    if id is None and retry is None and event is None and b"\n" not in data and b"\r" not in data:
        return b"data: " + data + b"\n\n"
    lines: list[bytes] = []
    if event is not None:
        lines.append(b"event: " + _field("event", event))
    if id is not None:
        lines.append(b"id: " + _field("id", id))
    if retry is not None:
        if retry < 0:
            raise ValueError(f"retry: expected milliseconds from 0, received {retry}")
        lines.append(b"retry: %d" % retry)
    lines += [b"data: " + line for line in _LINE_END.split(data)]
    return b"\n".join(lines) + b"\n\n"


def _field(name: str, value: str) -> bytes:
    if any(char in value for char in "\r\n\0"):
        raise ValueError(f"{name}: expected no line break and no NUL, received {value!r}")
    return value.encode()


class Parser:
    """Bytes of one event stream in, cut anywhere; events out.

    Lines end at CR, LF or CRLF and nowhere else (U+2028 is text). A leading byte order mark, comments
    and unknown fields are passed over. An event whose data is beyond `max_bytes` comes out once as
    `TooLong`, and the stream goes on. What is incomplete when the stream ends is no event.

    `last_id` and `retry` (milliseconds) are what a reconnection goes by, events without data included.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_event",
        "_max",
        "_parts",
        "_retry",
        "_size",
        "_skipping",
        "_start",
        "last_id",
        "retry",
    )

    def __init__(self, max_bytes: int = MAX_BYTES, last_id: str | None = None) -> None:
        self.last_id = last_id
        self.retry: int | None = None
        self._max = max_bytes
        self._start: bytes | None = b""  # the first bytes while they may be a byte order mark; then None
        self._after_cr = False  # the last chunk ended in CR: a LF that follows belongs to that line end
        self._parts: list[bytes] = []  # the line that is not whole yet
        self._size = 0  # bytes of the line that is not whole yet and of the data so far
        self._skipping = False  # this event is beyond the limit and was reported
        self._data: list[bytes] = []
        self._event: str | None = None
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[Event | TooLong]:
        """Take bytes as they came; return the events that they complete, in order."""
        if self._start is not None:
            data = self._start + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._start = data
                return []
            self._start = None
            data = data.removeprefix(_BOM)
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()  # of bytes, this ends lines at CR, LF and CRLF alone
        rest = b"" if self._after_cr or data.endswith(b"\n") else lines.pop()
        events: list[Event | TooLong] = []
        for line in lines:
            self._line(self._whole(line), events)
        if rest:
            self._keep(rest, events)
        return events

    def _whole(self, line: bytes) -> bytes:
        if not self._parts:
            return line
        self._size -= sum(map(len, self._parts))
        self._parts.append(line)
        line = b"".join(self._parts)
        self._parts.clear()
        return line

    def _keep(self, rest: bytes, events: list[Event | TooLong]) -> None:
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > self._max + len(b"data: "):
            if not self._skipping:
                # Of a line that is let go only the beginning is put together: a copy of it could be large.
                events.append(self._overflow(b"".join(part[:_HEAD] for part in self._parts)[: 2 * _HEAD]))
            self._parts = [b":"]  # the rest of this line counts as a comment
            self._size = 1

    def _overflow(self, line: bytes) -> TooLong:
        head = self._data[0] if self._data else line.removeprefix(b"data:").removeprefix(b" ")
        fault = TooLong(self._size, head[:_HEAD])
        self._skipping = True
        self._data.clear()
        self._size = 0
        return fault

    def _line(self, line: bytes, events: list[Event | TooLong]) -> None:
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            if self._skipping:
                return
            self._size += len(value) + bool(self._data)
            self._data.append(value)
            if self._size > self._max:
                events.append(self._overflow(value))
        elif name == b"id":
            if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace")
        elif name == b"event":
            self._event = value.decode("utf-8", "replace") or None
        elif name == b"retry" and value.isdigit():
            self.retry = self._retry = int(value[:_MAX_RETRY_DIGITS])

    def _dispatch(self, events: list[Event | TooLong]) -> None:
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(Event(data, self.last_id, self._event, self._retry))
            self._data.clear()
        self._size = 0
        self._skipping = False
        self._event = None
        self._retry = None
