"""A real server process and its two pipes, for tests: send bytes, read lines, with a bound on time."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 30.0  # seconds that a test waits at the most for what has to come

NS = "io.modelcontextprotocol/"
META = {
    NS + "protocolVersion": "2026-07-28",
    NS + "clientInfo": {"name": "test", "version": "1"},
    NS + "clientCapabilities": {},
}
SERVER = Path(__file__).with_name("served.py")


def request(id_: Any, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """A request of a session, or before one."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": id_, "method": method}
    return frame if params is None else frame | {"params": params}


def stateless(id_: Any, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """A 2026-07-28 request; `meta` is added to `_meta`."""
    return request(id_, method, {**(params or {}), "_meta": META | meta})


def initialize(id_: Any = 0, version: str = "2025-11-25") -> dict[str, Any]:
    """The first request of a session."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return request(id_, "initialize", params)


def call(id_: Any, name: str, **arguments: Any) -> dict[str, Any]:
    """A stateless `tools/call`."""
    return stateless(id_, "tools/call", {"name": name, "arguments": arguments})


class ServerProcess:
    """`python served.py [flags]` with pipes on 0, 1 and 2."""

    def __init__(self, *flags: str, script: Path = SERVER, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(script), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=os.environ | (env or {}),
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._out = self.process.stdout.fileno()
        self._err = self.process.stderr.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)
        self._buffer = b""
        self.stderr = b""
        self.ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._selector.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def write(self, data: bytes) -> None:
        """All of `data`; what the server says meanwhile is read, so that neither side can block the other."""
        assert self.process.stdin is not None
        fd = self.process.stdin.fileno()
        os.set_blocking(fd, False)
        deadline = time.monotonic() + PATIENCE
        view = memoryview(data)
        while view:
            assert time.monotonic() < deadline, "the server does not read"
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                self._pump(0.01)

    def send(self, *messages: dict[str, Any] | list[Any]) -> None:
        """Messages, a line each, in one write."""
        self.write(b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages))

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _pump(self, timeout: float) -> bool:
        events = self._selector.select(timeout)
        for key, _ in events:
            data = os.read(key.fd, 1 << 20)
            if not data:
                self._selector.unregister(key.fd)
                self.ended = self.ended or key.fd == self._out
            elif key.fd == self._out:
                self._buffer += data
            else:
                self.stderr += data
        return bool(events)

    def line(self) -> bytes:
        """The next line of stdout, without its end."""
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._buffer:
            assert not self.ended, f"the server ended; stderr: {self.stderr.decode()}"
            assert time.monotonic() < deadline, f"no answer; stderr: {self.stderr.decode()}"
            self._pump(0.5)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def read(self) -> Any:
        """The next message."""
        return json.loads(self.line())

    def answers(self, ids: Iterable[Any]) -> dict[Any, Any]:
        """The answers to these ids, in whatever order they come; other messages are passed over."""
        wanted, found = set(ids), {}
        while wanted:
            message = self.read()
            if message.get("id") in wanted:
                found[message["id"]] = message
                wanted.discard(message["id"])
        return found

    def ask(self, message: dict[str, Any]) -> Any:
        """Send one request and read its answer."""
        self.send(message)
        return self.answers([message["id"]])[message["id"]]

    def said(self, text: bytes) -> None:
        """Wait until stderr has `text`."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.stderr:
            assert time.monotonic() < deadline, f"never said {text!r}: {self.stderr.decode()}"
            self._pump(0.5)

    def rest(self) -> list[Any]:
        """Everything that is still to come, until the server ends."""
        deadline = time.monotonic() + PATIENCE
        while self._selector.get_map():
            assert time.monotonic() < deadline, f"the server does not end; stderr: {self.stderr.decode()}"
            self._pump(0.5)
        lines, self._buffer = self._buffer.splitlines(), b""
        return [json.loads(line) for line in lines]

    def wait(self) -> int:
        """The exit status."""
        return self.process.wait(PATIENCE)
