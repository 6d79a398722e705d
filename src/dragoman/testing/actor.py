"""The process behind a scripted server: it plays the steps it was given, and looks at nothing else.

Started as a program of its own, with the standard library alone, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

MISMATCH = 97  # the exit status of a script whose client did not do what it expects


class Actor:
    """Plays steps on descriptors 0, 1 and 2: `[name, {argument: value}]` each, by `ScriptedServer`."""

    def __init__(self, log: str | None = None) -> None:
        self._pending = b""
        self._back: bytes | None = None  # a line that was read, for the next step
        self._asked: list[Any] = []  # ids of the requests that were expected, in order
        self._log = log

    def play(self, steps: list[tuple[str, dict[str, Any]]]) -> None:
        """All steps, and then nothing more until the input ends."""
        for name, arguments in steps:
            getattr(self, f"do_{name}")(**arguments)
        self.do_hang()

    # What comes in -------------------------------------------------------------------------------

    def _line(self) -> bytes | None:
        if self._back is not None:
            line, self._back = self._back, None
            return line
        while b"\n" not in self._pending:
            data = os.read(0, 1 << 16)
            if not data:
                return None
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        if self._log is not None:
            with open(self._log, "ab") as file:  # noqa: PTH123  # loading pathlib takes time
                file.write(line + b"\n")
        return line

    def _message(self, wanted: str) -> dict[str, Any]:
        line = self._line()
        if line is None:
            self._stop(f"expected {wanted}; the input ended")
        try:
            message: Any = json.loads(line or b"")
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self._stop(f"expected {wanted}; received {line!r}")
        return message  # type: ignore[no-any-return]  # it was just looked at

    def _stop(self, text: str) -> None:
        os.write(2, f"script: {text}\n".encode())
        sys.exit(MISMATCH)

    def do_expect(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Wait for a request or notification; other notifications are passed over, other requests end it."""
        while True:
            message = self._message(method)
            said = message.get("method")
            if said == method:
                break
            if said is None or "id" in message:
                self._stop(f"expected {method}; received {said or 'an answer'}")
        given: dict[str, Any] = message.get("params") or {}
        for name, value in (params or {}).items():
            if given.get(name) != value:
                self._stop(f"expected {method} with {name} = {value!r}; received {given.get(name)!r}")
        if "id" in message:
            self._asked.append(message["id"])

    def do_serve(self, methods: dict[str, Any]) -> None:
        """Answer requests from a table, until one of another method comes: the next step has it."""
        while True:
            line = self._line()
            if line is None:
                sys.exit(0)
            message: Any = json.loads(line)
            method = message.get("method")
            if "id" in message and method not in methods:
                self._back = line
                return
            if "id" in message:
                self._send({"jsonrpc": "2.0", "id": message["id"], **methods[method]})

    # What goes out -------------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        self._write(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(1, left) :]
            except BrokenPipeError:
                sys.exit(0)

    def _id(self, to: int) -> Any:
        try:
            return self._asked[to]
        except IndexError:
            self._stop(f"nothing was expected that could be answered (to={to})")

    def do_answer(self, body: dict[str, Any], to: int = -1) -> None:
        """Answer a request that was expected: the last one, or another by its place."""
        self._send({"jsonrpc": "2.0", "id": self._id(to), **body})

    def do_say(self, text: str, times: int = 1) -> None:
        """Bytes as they are (latin-1), `$id` in them replaced by the id of the last request."""
        if "$id" in text:
            text = text.replace("$id", json.dumps(self._id(-1)))
        for _ in range(times):
            self._write(text.encode("latin-1"))

    def do_complain(self, text: str) -> None:
        """Write to stderr."""
        os.write(2, text.encode())

    # How it goes on ------------------------------------------------------------------------------

    def do_pause(self, seconds: float) -> None:
        """Do nothing for a while."""
        time.sleep(seconds)

    def do_hang(self, stubborn: bool = False) -> None:
        """Do nothing more: until the input ends, or until it is killed."""
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while stubborn:
            time.sleep(3600)
        while self._line() is not None:
            pass
        sys.exit(0)

    def do_close(self, stream: str) -> None:
        """Close one of the standard streams."""
        os.close({"stdin": 0, "stdout": 1, "stderr": 2}[stream])

    def do_exit(self, status: int = 0) -> None:
        """End."""
        os._exit(status)

    def do_kill(self, number: int = 9) -> None:
        """End by a signal."""
        os.kill(os.getpid(), number)


if __name__ == "__main__":
    script = json.loads(sys.argv[1])
    Actor(script["log"]).play(script["steps"])
