"""File descriptors as asyncio streams: pipes, sockets, terminals, and regular files too.

It also moves the process's standard streams out of reach of `print`, so that a program may serve on
them. It refuses to know what the bytes mean.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from io import BufferedWriter, RawIOBase

from dragoman.jsonrpc.framing import Lines
from dragoman.jsonrpc.service import Service
from dragoman.transports.runner import Options
from dragoman.transports.standard import claim
from dragoman.transports.stream import Framing, Reader, Writer, serve_stream


async def serve_stdio(service: Service, *, framing: Framing = Lines, options: Options | None = None) -> None:
    """Serve on stdin and stdout until stdin ends; what the program prints goes to stderr.

    Raises:
        UsageError: one of the two is closed.
    """
    reader_fd, writer_fd = claim()
    reader, writer = await open_fds(reader_fd, writer_fd)
    await serve_stream(service, reader, writer, framing=framing, options=options)


async def open_fds(reader_fd: int, writer_fd: int) -> tuple[Reader, Writer]:
    """A reader and a writer over two descriptors; closing the writer closes both."""
    reader, close_reader = await _open_reader(reader_fd)
    writer = await _open_writer(writer_fd)
    return reader, _Both(writer, close_reader)


async def _open_reader(fd: int) -> tuple[Reader, Callable[[], None]]:
    file = os.fdopen(fd, "rb", 0)
    if not _pollable(fd):
        return _FileReader(file), file.close
    stream = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stream), file)
    return stream, transport.close


async def _open_writer(fd: int) -> Writer:
    if not _pollable(fd):
        return _FileWriter(os.fdopen(fd, "wb"))
    loop = asyncio.get_running_loop()
    # The protocol of a reader, because it is the one that has what a writer needs: `drain`.
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(fd, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _pollable(fd: int) -> bool:
    """Whether the loop can wait for it. A regular file is always ready, and /dev/null too."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


class _Both:
    """A writer that takes its reader along when it closes."""

    def __init__(self, writer: Writer, close_reader: Callable[[], None]) -> None:
        self._writer = writer
        self._close_reader = close_reader
        self.transport: asyncio.WriteTransport | None = getattr(writer, "transport", None)

    def write(self, data: bytes, /) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()
        self._close_reader()

    async def wait_closed(self) -> None:
        await self._writer.wait_closed()


class _FileReader:
    def __init__(self, file: RawIOBase) -> None:
        self._file = file

    async def read(self, n: int, /) -> bytes:
        await asyncio.sleep(0)  # a file is always ready: let what it started run on
        return self._file.read(n) or b""


class _FileWriter:
    def __init__(self, file: BufferedWriter) -> None:
        self._file = file

    def write(self, data: bytes, /) -> None:
        self._file.write(data)

    async def drain(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    async def wait_closed(self) -> None:
        """Nothing: `close` has written everything."""
