"""MCP over the standard streams of this process, server side.

Owns file descriptors 0 and 1 from `Streams.claim()` on: whatever else prints goes to stderr, and
nothing else can read the protocol's bytes. Works on pipes, sockets, terminals and regular files.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable

import msgspec

from dragoman.jsonrpc.framing import Lines, TooLong
from dragoman.jsonrpc.message import DEFAULT, Limits, too_large
from dragoman.protocol.call import Kernel
from dragoman.transports.connection import ServerConnection
from dragoman.transports.standard import claim
from dragoman.transports.threads import THREADS

log = logging.getLogger("dragoman.server")

CHUNK = 64 * 1024  # what a pipe holds
HIGH_WATER = 4 * 1024 * 1024  # bytes that wait to be written before reading stops
HELD = 256 * 1024  # bytes that are written at once, whatever else this turn brings
DRAIN_SECONDS = 10.0
_PARTING = 1.0  # seconds in which answers that were there already leave, once the serving was cancelled
MAX_IN_FLIGHT = 1024
_WAITING = """\
dragoman: serving over stdio: a host starts this, and writes JSON-RPC messages to it; Ctrl-C ends it
  try: dragoman list or dragoman call with the file's path, or serve HTTP (--http 8000, run("http"))"""


class Streams(msgspec.Struct, frozen=True):
    """The process's own standard streams, moved out of everybody's reach."""

    reader: int
    writer: int

    @staticmethod
    def claim() -> Streams:
        """Take over descriptors 0 and 1.

        What is printed from here on, and what was printed but is still buffered, goes to stderr;
        reading stdin finds its end. Called by `dragoman run` before it imports the server's file.

        Raises:
            UsageError: one of them is closed.
        """
        return Streams(*claim())


class Output:
    """Lines out, one write a turn of the loop; says when the other side is not reading."""

    def __init__(self, fd: int, *, on_drained: Callable[[], None], on_lost: Callable[[], None]) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self.held = False  # until `flush`
        self._pipe: asyncio.WriteTransport | None = None
        self._on_drained = on_drained
        self._on_lost = on_lost
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.congested = False  # more waits to be written than should
        self._later: deque[bytes | memoryview] = deque()  # until it does not
        self.lost = False

    async def open(self) -> None:
        """Register with the loop; a regular file is written to directly, since it never blocks."""
        if _pollable(self._fd):
            pipe = os.fdopen(self._fd, "wb", 0)
            self._pipe, _ = await self._loop.connect_write_pipe(lambda: _OutputProtocol(self), pipe)
            self._pipe.set_write_buffer_limits(high=HIGH_WATER, low=HIGH_WATER // 4)

    def write(self, frame: bytes) -> None:
        """Queue one message; it leaves with all others of this turn of the loop."""
        if not self._parts and not self.held:
            self._loop.call_soon(self.flush)
        self._parts.append(frame)
        self._size += len(frame)
        if self._size > HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is queued."""
        parts = self._parts
        if not parts:
            return
        self._parts = []
        self._size = 0
        if self.lost:
            return
        large = parts.pop() if len(parts[-1]) > HELD else b""
        parts.append(b"")
        self._write(b"\n".join(parts))
        if large:
            self._write_large(large)

    def _write_large(self, data: bytes) -> None:
        # Neither joined with the rest nor given to the pipe as a whole: each would be one more copy.
        view = memoryview(data)
        for start in range(0, len(view), HIGH_WATER):
            self._write(view[start : start + HIGH_WATER])
        self._write(b"\n")

    def _write(self, data: bytes | memoryview) -> None:
        if self._pipe is None:
            self._write_file(data)
        elif self.congested:
            self._later.append(data)
        else:
            self._pipe.write(data)

    def _write_file(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            self.gone()

    def pause(self) -> None:
        """The buffer is full."""
        self.congested = True

    def resume(self) -> None:
        """The buffer has room again."""
        self.congested = False
        while self._later and not self.congested:
            self._write(self._later.popleft())
        if not self.congested:
            self._on_drained()

    def gone(self) -> None:
        """Nobody reads any more."""
        self.lost = True
        self.congested = False
        self._later.clear()
        if not self._closed.done():
            self._closed.set_result(None)
        self._on_lost()

    async def close(self, timeout: float) -> None:
        """Write what is left, for at most `timeout` seconds."""
        self.flush()
        if self._pipe is not None and not self.lost:
            while self._later:
                self._pipe.write(self._later.popleft())
            self._pipe.close()
            await asyncio.wait([self._closed], timeout=timeout)
            if not self._closed.done():
                self._pipe.abort()


class _OutputProtocol(asyncio.BaseProtocol):
    def __init__(self, output: Output) -> None:
        self._output = output

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._output.gone()


class _Session(asyncio.Protocol):
    """One serving of the standard streams: the input, whose protocol it is, the connection, the output."""

    def __init__(self, kernel: Kernel, streams: Streams, *, limits: Limits, max_in_flight: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._streams = streams
        self._limits = limits
        self._lines = Lines(limits.max_bytes)
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._paused = False
        self._backlog: deque[bytes | TooLong] = deque()
        self._file_room = threading.Event()
        self._file_room.set()
        self._ahead = threading.Semaphore(4)  # chunks of a file that were read and not yet worked off
        self._reading = True
        self._stopped = False
        self.gate: asyncio.ReadTransport | None = None
        self.output = Output(streams.writer, on_drained=self._regulate, on_lost=self.ended)
        self.connection = ServerConnection(
            kernel,
            self.output.write,
            limits=limits,
            max_in_flight=max_in_flight,
            on_room=self._regulate,
            congested=lambda: self.output.congested,
        )

    async def open(self) -> None:
        await self.output.open()
        fd = self._streams.reader
        if _pollable(fd):
            pipe = os.fdopen(fd, "rb", 0)
            await self._loop.connect_read_pipe(lambda: self, pipe)
        else:
            threading.Thread(target=self._read_file, name="dragoman-stdin", daemon=True).start()

    def _read_file(self) -> None:
        """Regular files cannot be polled: a thread reads them, no faster than they are worked off."""
        try:
            while data := os.read(self._streams.reader, CHUNK):
                self._file_room.wait()
                self._ahead.acquire()
                self._loop.call_soon_threadsafe(self._feed_file, data)
        except OSError as exc:
            log.error("standard input cannot be read: %s", exc.strerror)
        with contextlib.suppress(RuntimeError):  # the loop is closed: a signal ended the serving
            self._loop.call_soon_threadsafe(self.ended)

    def _feed_file(self, data: bytes) -> None:
        self._ahead.release()
        self.data_received(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The input is open."""
        assert isinstance(transport, asyncio.ReadTransport)
        self.gate = transport
        if hasattr(transport, "max_size"):
            # asyncio asks for four times as much, which the allocator takes from the system and gives
            # back with each call: a quarter of the time of one.
            transport.max_size = CHUNK  # pyright: ignore[reportAttributeAccessIssue]  # asyncio's own

    def data_received(self, data: bytes) -> None:
        """Take bytes as they came; what is answered at once leaves in one write."""
        self.output.held = True
        try:
            self._work(self._lines.feed(data))
        finally:
            self.output.held = False
            self.output.flush()

    def eof_received(self) -> None:
        """The input is at its end."""
        self.ended()

    def connection_lost(self, exc: Exception | None) -> None:
        """The input is at its end, or broken."""
        self.ended()

    def _work(self, frames: list[bytes | TooLong]) -> None:
        backlog, connection, output = self._backlog, self.connection, self.output
        for index, frame in enumerate(frames):
            if backlog or ((connection.full or output.congested) and self._full()):
                backlog.extend(frames[index:])
                self._regulate()
                return
            if isinstance(frame, bytes):
                connection.receive(frame)
            else:
                self._too_long(frame)

    def _take(self, frame: bytes | TooLong) -> None:
        if isinstance(frame, bytes):
            self.connection.receive(frame)
        else:
            self._too_long(frame)

    def _full(self) -> bool:
        if self.connection.link.pending:
            return False  # a tool waits for the client's answer, which has to be read
        return self.connection.full or self.output.congested

    def _too_long(self, frame: TooLong) -> None:
        self.connection.refuse(too_large(frame.size, self._limits.max_bytes, head=frame.head))

    def _regulate(self) -> None:
        """Stop reading while too much is in flight or unread by the client; go on when there is room."""
        backlog = self._backlog
        while backlog and not self._full():
            self._take(backlog.popleft())
        blocked = bool(backlog) or self._full()
        if blocked != self._paused:
            self._paused = blocked
            self._file_room.clear() if blocked else self._file_room.set()
            if self.gate is not None and not self.gate.is_closing():
                self.gate.pause_reading() if blocked else self.gate.resume_reading()
        if not blocked and not self._reading:
            self.ended()

    def ended(self) -> None:
        """The input is at its end, or nobody reads the output."""
        if self._reading:
            self._reading = False
            self._work(self._lines.eof())
        if self._backlog and not self.output.lost:
            return  # more was read than is worked off: the end comes after it
        if not self._done.done():
            self._done.set_result(None)

    async def run(self, drain: float) -> None:
        await self._done
        if self.output.lost:
            await self.connection.cancel()
        else:
            await self.connection.drain(0.0 if self._stopped else drain)
            await self.output.close(drain)

    def heed_signals(self) -> None:
        """Let SIGTERM and SIGINT end the serving."""
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                self._loop.add_signal_handler(number, self._interrupted)

    def _interrupted(self) -> None:
        self._stopped = True
        if not self._done.done():
            self._done.set_result(None)


async def serve_stdio(
    kernel: Kernel,
    *,
    streams: Streams | None = None,
    limits: Limits = DEFAULT,
    max_in_flight: int = MAX_IN_FLIGHT,
    drain: float = DRAIN_SECONDS,
) -> None:
    """Serve the standard streams inside a running event loop until the input ends, or until cancelled.

    At the end of the input, answers that are owed are finished for at most `drain` seconds. Signals are
    the program's own. Both streams are closed afterwards.
    """
    session = _Session(
        kernel, Streams.claim() if streams is None else streams, limits=limits, max_in_flight=max_in_flight
    )
    await session.open()
    try:
        await session.run(drain)
    except asyncio.CancelledError:
        await session.connection.cancel()
        await session.output.close(_PARTING)
        raise
    finally:
        if session.gate is not None:
            session.gate.close()


def run_stdio(kernel: Kernel, *, streams: Streams | None = None) -> None:
    """Serve the standard streams and end the process's serving life; returns when it is over."""
    # Before there is a loop: where a standard stream is closed, a descriptor of the loop's takes its number.
    claimed = Streams.claim() if streams is None else streams
    gc.freeze()  # what is loaded stays: the collector need not look at it again, least of all at the end
    asyncio.run(_serve(kernel, claimed))


async def _serve(kernel: Kernel, streams: Streams) -> None:
    session = _Session(kernel, streams, limits=DEFAULT, max_in_flight=MAX_IN_FLIGHT)
    await session.open()
    session.heed_signals()
    if os.isatty(streams.reader):
        print(_WAITING, file=sys.stderr, flush=True)  # noqa: T201  # a person sits there, and would wait too
    await session.run(DRAIN_SECONDS)
    if session.connection.stubborn or THREADS.working:
        # What is left cannot be stopped: the loop would wait for a coroutine that heeds no cancellation,
        # and a tool in a thread must not go on while the interpreter is taken down.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(0)


def _pollable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    if stat.S_ISCHR(mode):
        return os.isatty(fd)  # /dev/null and the like cannot be polled
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
