"""The faulty server over stdio: one message a line, written at once or later."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

from .faults import NEW
from .kernel import FLOOD, LATE, LISTEN, NOTICE, STALL, Kernel, Message, hang, killed


class Stdio:
    """One message a line; the faults are methods, by name."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._later: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Until the end of stdin."""
        if self._kernel.revision != NEW:
            self._kernel.listeners[""] = self._tell  # all of a session hear what it says by itself
        reader = asyncio.StreamReader(limit=1 << 24)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            message = json.loads(line)
            if message.get("method") == "notifications/cancelled":
                self._kernel.listeners.pop(message["params"]["requestId"], None)
            if "id" not in message or "method" not in message:
                continue
            if message["method"] == "tools/call":
                self._call(message)
            elif message["method"] == LISTEN and self._kernel.revision == NEW:
                self._write(self._kernel.acknowledge(message) + b"\n")
                self._kernel.listeners[message["id"]] = self._tell
            else:
                self._write(self._kernel.answer(message) + b"\n")

    def _tell(self, message: bytes) -> None:
        self._write(message + b"\n")

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def _call(self, message: Message) -> None:
        fault = self._kernel.fault(message)
        self._kernel.work(message)
        if fault == "list changed":
            self._kernel.changed()
        answer = self._kernel.answer(message, fault)
        line = answer + b"\n"
        shaped = {
            "flood": (NOTICE + b"\n") * FLOOD + line,
            "garbage": b"Server ready!\n{not json\n\n[]\n" + line,
            "half a line": line[: len(line) // 2] + b"\n",
            "bad byte": line.replace(b'"text": "', b'"text": "\xff'),
            "wrong id": self._kernel.answer({**message, "id": message["id"] + 1_000_000}) + b"\n" + line,
            "twice": line * 2,
            "id as text": self._kernel.answer({**message, "id": str(message["id"])}) + b"\n",
            "CRLF and BOM": b"\xef\xbb\xbf" + answer + b"\r\n",
            "silent": b"",
        }
        if fault in ("slow", "late"):
            pause = LATE if fault == "late" else 0.05 + message["id"] % 20 / 20
            self._later.add(task := asyncio.create_task(self._after(pause, line)))
            task.add_done_callback(self._later.discard)
        elif fault in shaped:
            self._write(shaped[fault])
        else:
            self._break(fault, line)

    async def _after(self, pause: float, line: bytes) -> None:
        await asyncio.sleep(pause)
        self._write(line)

    def _break(self, fault: str, line: bytes) -> None:
        """What the whole server suffers; and what breaks nothing."""
        if fault == "killed":
            killed()
        elif fault == "dies during":
            self._write(line[: len(line) // 2])
            os._exit(4)
        elif fault == "hangs":
            hang()
        elif fault == "closes stdout":
            os.close(1)
            hang()
        elif fault == "stall":
            time.sleep(STALL)
        self._write(line)
        if fault == "dies after":
            os._exit(5)
