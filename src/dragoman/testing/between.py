"""A recorder in between: a server over stdio toward a host, and the host of the server that is recorded.

To a program it hands bytes on as they are, so that whatever either side does wrong is seen by the other
and recorded. To an HTTP server it is a bridge. It refuses to answer anything itself.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Final

from dragoman.jsonrpc.framing import Lines
from dragoman.testing.bridge import Bridge
from dragoman.testing.cassette import Direction, Recorder
from dragoman.transports.base import Transport
from dragoman.transports.pipes import Writer
from dragoman.transports.spawn import Child
from dragoman.transports.stdio import Streams

_CHUNK: Final = 64 * 1024
_GRACE: Final = (2.0, 2.0)  # seconds from the end of its input to TERM, and from there to KILL
_LAST_WORDS: Final = 2.0  # seconds for what an ended program left in its pipes


class _Side:
    """What one side says, cut into lines for the recorder; called from one thread."""

    def __init__(self, direction: Direction, record: Callable[[Direction, bytes], None]) -> None:
        self._direction: Direction = direction
        self._record = record
        self._lines = Lines()

    def feed(self, data: bytes) -> None:
        """Bytes as they came."""
        for line in self._lines.feed(data):
            self._record(self._direction, line if isinstance(line, bytes) else line.head)

    def eof(self) -> None:
        """No more come."""
        for line in self._lines.eof():
            self._record(self._direction, line if isinstance(line, bytes) else line.head)


def _pump(source: int, sink: int, *, side: _Side | None) -> None:
    """Hand bytes on until the source ends or nobody takes them; blocks."""
    with suppress(OSError):
        while data := os.read(source, _CHUNK):
            if side is not None:
                side.feed(data)
            left = memoryview(data)
            while left:
                left = left[os.write(sink, left) :]
    if side is not None:
        side.eof()


class _Pump:
    """A thread that pumps, and a future for its end. `closes` is closed then."""

    def __init__(self, source: int, sink: int, *, side: _Side | None, closes: IO[bytes] | None) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._loop = asyncio.get_running_loop()
        self._ends = source, sink
        self._side = side
        self._closes = closes
        threading.Thread(target=self._run, name="dragoman-record", daemon=True).start()

    def _run(self) -> None:
        _pump(*self._ends, side=self._side)
        if self._closes is not None:
            with suppress(OSError):
                self._closes.close()
        with suppress(RuntimeError):  # the loop is closed: a signal ended it
            self._loop.call_soon_threadsafe(self._finish)

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def record_program(child: Child, recorder: Recorder, *, streams: Streams) -> int:
    """Stand between the standard streams and a program until either ends; returns its exit status.

    The program is ended with its input, or by the signal that ends this one, which makes 128 and its
    number the status.
    """
    for fd in (streams.reader, streams.writer):
        os.set_blocking(fd, True)
    child.watch(_GRACE)
    lock = threading.Lock()

    def record(direction: Direction, frame: bytes) -> None:
        with lock:  # two threads write one file
            recorder(direction, frame)

    stopped = _on_signal()
    try:
        incoming = _Pump(streams.reader, child.stdin.fileno(), side=_Side("out", record), closes=child.stdin)
        outgoing = _Pump(child.stdout.fileno(), streams.writer, side=_Side("in", record), closes=None)
        errors = _Pump(child.stderr.fileno(), 2, side=None, closes=None)
        await _first(child.exited, incoming.done, stopped)
        # Without its input a server ends by itself; if it takes too long, the host will say so.
        await _first(child.exited, stopped)
        if child.status is not None:
            await asyncio.wait([outgoing.done, errors.done], timeout=_LAST_WORDS)
        return await _ended(child, stopped)
    finally:
        child.kill()


async def _first(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


async def _ended(child: Child, stopped: asyncio.Future[int]) -> int:
    await child.end((0.0, _GRACE[1]))
    if stopped.done():
        return 128 + stopped.result()
    status = child.status or 0
    return status if status >= 0 else 128 - status


def _on_signal() -> asyncio.Future[int]:
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop, number)
    return stopped


async def record_transport(transport: Transport, recorder: Recorder, *, streams: Streams) -> int:
    """Stand between the standard streams and a server behind a transport until the input ends; returns 0.

    Raises:
        UsageError, ConnectError: as the transport's `open`.
    """
    transport.tap = recorder
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end() -> None:
        if not ended.done():
            ended.set_result(None)

    with os.fdopen(streams.writer, "wb", 0) as pipe:
        output = Writer(pipe, end)
        bridge = Bridge(transport, output.send)
        await bridge.open()
        stopped = _on_signal()
        _Source(streams.reader, bridge.receive, ended=end)
        await _first(ended, stopped)
        if not stopped.done():
            await bridge.drain()
        await bridge.close()
        await output.drained()
        output.close()
    return 128 + stopped.result() if stopped.done() else 0


class _Source:
    """A thread that reads lines, which are taken in the event loop."""

    def __init__(self, fd: int, take: Callable[[bytes], None], *, ended: Callable[[], None]) -> None:
        self._fd = fd
        self._take = take
        self._ended = ended
        self._lines = Lines()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, name="dragoman-record", daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError, RuntimeError):  # the loop is closed: a signal ended it
            while data := os.read(self._fd, _CHUNK):
                self._loop.call_soon_threadsafe(self._feed, data)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended)

    def _feed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            if isinstance(line, bytes):
                self._take(line)
