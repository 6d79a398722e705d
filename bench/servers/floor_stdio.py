"""The floor over stdio: bare asyncio, one protocol that splits lines, one write for what came together."""

from __future__ import annotations

import asyncio
import os
import sys

from answers import answer


class Lines(asyncio.Protocol):
    def __init__(self, done: asyncio.Future, writer: asyncio.WriteTransport) -> None:
        self.done = done
        self.writer = writer
        self.rest: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        if lines and self.rest:
            lines[0] = b"".join([*self.rest, lines[0]])
            self.rest.clear()
        if rest:
            self.rest.append(rest)
        answers = [found for line in lines if (found := answer(line)) is not None]
        if answers:
            answers.append(b"")
            self.writer.write(b"\n".join(answers))

    def connection_lost(self, exc: Exception | None) -> None:
        self.done.set_result(None)


async def main() -> None:
    loop = asyncio.get_running_loop()
    done = loop.create_future()
    output = os.fdopen(1, "wb", 0)
    writer, _ = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, output)
    reader, _ = await loop.connect_read_pipe(lambda: Lines(done, writer), sys.stdin)
    reader.max_size = 64 * 1024  # what a pipe holds: a floor that reads asyncio's 256 KiB is no floor
    await done


asyncio.run(main())
