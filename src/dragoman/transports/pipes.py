"""Bytes through the pipes of a child process, without blocking: a writer, a reader, a tail of text lines.

It refuses to know what the bytes mean and whose process is at the other end.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import os
from collections import deque
from collections.abc import Callable
from typing import IO, Final

log = logging.getLogger("dragoman")

CHUNK: Final = 64 * 1024  # what a pipe holds
HIGH_WATER: Final = 1024 * 1024  # bytes that wait to be written before senders are asked to wait
_LOW_WATER: Final = HIGH_WATER // 4
_VECTOR: Final = 512  # buffers in one call of writev; the system takes at least 1024
_DRAINS: Final = 64


class Writer:
    """Whole lines into a pipe: at once when asked to, else one write a turn of the loop.

    `on_lost` is called once when nobody reads the pipe any more; later lines go nowhere.
    """

    def __init__(self, pipe: IO[bytes], on_lost: Callable[[], None]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._queue: list[bytes | memoryview] = []
        self.size = 0  # bytes that wait to be written
        self._scheduled = False
        self._blocked = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.lost = False
        self.tap: Callable[[bytes], None] | None = None  # sees every line as it is queued
        os.set_blocking(self._fd, False)

    @property
    def full(self) -> bool:
        """Whether more waits to be written than should: await `room()` first."""
        return self.size > HIGH_WATER

    def send(self, frame: bytes, *, now: bool = False) -> None:
        """Queue one line; `now` writes without waiting for others of this turn of the loop."""
        if self.lost:
            return
        if self.tap is not None:
            self.tap(frame)
        if len(frame) < CHUNK:
            self._queue.append(frame + b"\n")
        else:
            self._queue += (frame, b"\n")  # no copy of what is big
        self.size += len(frame) + 1
        if self._blocked:
            return
        if now:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    async def room(self) -> None:
        """Wait until much of what was queued is written, or the pipe is gone."""
        while self.full and not self.lost:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    async def drained(self) -> None:
        """Wait until everything is written, or the pipe is gone."""
        while self.size and not self.lost:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def close(self) -> None:
        """Close the pipe; what is still queued is lost."""
        if not self._pipe.closed:
            self._stop()
            self._pipe.close()

    def _flush(self) -> None:
        self._scheduled = False
        queue = self._queue
        if not queue or self.lost:
            return
        try:
            if len(queue) == 1:
                written = os.write(self._fd, queue[0])
            else:
                written = os.writev(self._fd, queue[:_VECTOR])
        except BlockingIOError:
            written = 0
        except OSError:
            self._stop()
            self._on_lost()
            return
        self._advance(written)

    def _advance(self, written: int) -> None:
        self.size -= written
        if self.size:
            self._cut(written)
            if not self._blocked:
                self._blocked = True
                self._loop.add_writer(self._fd, self._flush)
        else:
            self._queue.clear()
            if self._blocked:
                self._blocked = False
                self._loop.remove_writer(self._fd)
        if self._waiters and self.size <= _LOW_WATER:
            self._wake()

    def _cut(self, written: int) -> None:
        queue = self._queue
        whole = 0
        while written and written >= len(queue[whole]):
            written -= len(queue[whole])
            whole += 1
        del queue[:whole]
        if written:
            queue[0] = memoryview(queue[0])[written:]

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _stop(self) -> None:
        self.lost = True
        self._queue.clear()
        self.size = 0
        if self._blocked:
            self._blocked = False
            self._loop.remove_writer(self._fd)
        self._wake()


class Reader:
    """Bytes out of a pipe, handed to `take` as they come; `done` is set at the end of the stream."""

    def __init__(self, pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        self._pipe = pipe
        self._fd = pipe.fileno()
        self._loop = asyncio.get_running_loop()
        self._take = take
        self.done: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(self._fd, False)
        self._loop.add_reader(self._fd, self._ready)

    @property
    def ended(self) -> bool:
        """Whether the stream is at its end."""
        return self.done.done()

    def _ready(self) -> bool:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._take(data)
            return True
        self.close()
        return False

    def drain(self) -> None:
        """Take what the pipe still holds, then close it."""
        for _ in range(_DRAINS):
            if self._pipe.closed or not self._ready():
                break
        self.close()

    def close(self) -> None:
        """Close the pipe, whatever it still holds."""
        if not self._pipe.closed:
            self._loop.remove_reader(self._fd)
            self._pipe.close()
            if not self.done.done():
                self.done.set_result(None)


class Tail:
    """Text lines out of bytes: each goes to `forward`, and the last few are kept.

    The bytes are read as UTF-8; what is none becomes U+FFFD. A line ends at LF only, and after 64 Ki
    characters without one.
    """

    def __init__(self, keep: int, forward: Callable[[str], None]) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._forward = forward
        self._rest = ""
        self._complained = False
        self._lines: deque[str] = deque(maxlen=keep)

    @property
    def lines(self) -> tuple[str, ...]:
        """The last lines, oldest first, each at most 1,000 characters of what was written."""
        return tuple(self._lines)

    def feed(self, data: bytes) -> None:
        """Take bytes as they came."""
        *lines, rest = (self._rest + self._decode(data)).split("\n")
        for line in lines:
            self._line(line)
        if len(rest) >= CHUNK:
            self._line(rest)
            rest = ""
        self._rest = rest

    def eof(self) -> None:
        """The stream ended: what is left is a line."""
        rest, self._rest = self._rest + self._decode(b"", True), ""
        if rest:
            self._line(rest)

    def _line(self, line: str) -> None:
        line = line.removesuffix("\r")
        if line:
            self._lines.append(line[:1000])
        try:
            self._forward(line)
        except Exception:
            if not self._complained:
                self._complained = True
                log.exception("a line of a server's stderr could not be passed on; this is said once")
