"""Frames of WebSocket (RFC 6455, section 5), as a client writes and reads them.

Bytes in, bytes out: where they come from is not known here. No extension is spoken.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.errors import PeerFault
from dragoman.jsonrpc.framing import TooLong

CONTINUATION: Final = 0x0
TEXT: Final = 0x1
BINARY: Final = 0x2
CLOSE: Final = 0x8
PING: Final = 0x9
PONG: Final = 0xA

_FINAL: Final = 0x80
_RESERVED: Final = 0x70
_MASKED: Final = 0x80
_CONTROL: Final = 0x8
_SHORT: Final = 125  # the longest payload of a control frame, and whose length is in the second byte
_TWO_BYTES: Final = 126
_EIGHT_BYTES: Final = 127
_HEAD: Final = 4096  # bytes that are kept of a message that is too long


class Frame(NamedTuple):
    """A whole message (TEXT, BINARY), or a control frame."""

    kind: int
    payload: bytes


def encode(kind: int, payload: bytes, *, mask: bytes) -> bytes:
    """One frame of a client, which masks what it sends; `mask` are four random bytes (section 5.3)."""
    size = len(payload)
    if size <= _SHORT:
        head = bytes((_FINAL | kind, _MASKED | size))
    elif size < 1 << 16:
        head = bytes((_FINAL | kind, _MASKED | _TWO_BYTES)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FINAL | kind, _MASKED | _EIGHT_BYTES)) + size.to_bytes(8, "big")
    over = (mask * (size // 4 + 1))[:size]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(over, "big")
    return head + mask + masked.to_bytes(size, "big")


class Frames:
    """Reads what a server sends. A message of more than `limit` bytes is told of once and not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._opcode = 0
        self._final = False
        self._left = -1  # bytes of the frame under way that are still to come; -1 between frames
        self._kind = CONTINUATION  # of the message under way
        self._parts = bytearray()  # of it, as far as it is kept
        self._size = 0
        self._control = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame | TooLong]:
        """Take in the next bytes; yields what is complete.

        Raises:
            PeerFault: what came breaks the protocol, so that the connection has to be failed.
        """
        self._buffer += data
        while self._left >= 0 or self._begin():
            taken = bytes(self._buffer[: self._left])
            del self._buffer[: self._left]
            self._left -= len(taken)
            self._take(taken)
            if self._left > 0:
                return
            self._left = -1
            if (frame := self._end()) is not None:
                yield frame

    def _begin(self) -> bool:
        """Read the head of a frame, once all of it is there."""
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        first, second = buffer[0], buffer[1]
        more = {_TWO_BYTES: 2, _EIGHT_BYTES: 8}.get(second & 0x7F, 0)
        if len(buffer) < 2 + more:
            return False
        size = int.from_bytes(buffer[2 : 2 + more], "big") if more else second
        self._opcode, self._final = first & 0xF, bool(first & _FINAL)
        if first & _RESERVED or second & _MASKED:
            raise PeerFault("a WebSocket frame has a bit set that no server sets here", stage="call")
        self._check(size)
        del buffer[: 2 + more]
        self._left = size
        return True

    def _check(self, size: int) -> None:
        """Whether such a frame may come now (RFC 6455, 5.4 and 5.5)."""
        opcode = self._opcode
        if opcode & _CONTROL:
            well = opcode in (CLOSE, PING, PONG) and self._final and size <= _SHORT
        elif opcode == CONTINUATION:
            well = self._kind != CONTINUATION
        else:
            well = opcode in (TEXT, BINARY) and self._kind == CONTINUATION
        if not well:
            raise PeerFault(f"a WebSocket frame (opcode {opcode}) that may not come here", stage="call")

    def _take(self, data: bytes) -> None:
        if self._opcode & _CONTROL:
            self._control += data
            return
        if self._opcode != CONTINUATION:
            self._kind = self._opcode
        self._size += len(data)
        self._parts += data if self._size <= self._limit else data[:_HEAD]
        if self._size > self._limit:
            del self._parts[_HEAD:]

    def _end(self) -> Frame | TooLong | None:
        """A frame is complete: the control frame, or the message if it was its last one."""
        if self._opcode & _CONTROL:
            payload, self._control = bytes(self._control), bytearray()
            return Frame(self._opcode, payload)
        if not self._final:
            return None
        kind, size, parts = self._kind, self._size, bytes(self._parts)
        self._kind, self._size, self._parts = CONTINUATION, 0, bytearray()
        return Frame(kind, parts) if size <= self._limit else TooLong(size, parts[:_HEAD])
