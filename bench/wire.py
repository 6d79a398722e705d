"""Raw drivers that cost little: pipes by `os.read` and `os.write`, HTTP by plain sockets, load by `epoll`.

Everything stays on this machine: servers listen on 127.0.0.1, and all loads are bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
ADD = {"name": "add", "arguments": {"a": 3, "b": 4}}
CHUNK = 64 * 1024  # what a pipe holds: to ask for more costs the driver ten times as much as the reading
PATIENCE = 300.0  # seconds: the slowest peer with ten thousand tools

# Both ways of running a server from compiled files: what users have, and a benchmark has to have.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def request(
    number: int, method: str, params: dict[str, Any] | None = None, *, stateless: bool = True
) -> bytes:
    """One request, without a line end."""
    params = {**(params or {}), "_meta": META} if stateless else params or {}
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(body, separators=(",", ":")).encode()


def template(method: str, params: dict[str, Any]) -> tuple[bytes, bytes]:
    """What stands before and after the id, so that the driver need not encode while it measures."""
    before, after = request(987654321, method, params).split(b"987654321")
    return before, after


def cpu(pid: int) -> float:
    """Seconds of processor time that all threads of a process have used."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:  # the thread ended meanwhile
            continue
    return total / 1e9


def memory(pid: int) -> tuple[int, int]:
    """Resident KiB of a process: now, and at its peak."""
    now = peak = 0
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            now = int(line.split()[1])
        elif line.startswith("VmHWM"):
            peak = int(line.split()[1])
    return now, peak


@contextlib.contextmanager
def one_processor(*pids: int) -> Iterator[None]:
    """Keep this process and those on one processor.

    Whoever takes turns needs but one, and whether the scheduler wakes the other side on the same
    processor or on another makes a difference of a factor of two that is none of the entrants' making.
    """
    allowed = os.sched_getaffinity(0)
    everybody = [0, *pids]
    try:
        for pid in everybody:
            _keep(pid, {max(allowed)})
        yield
    finally:
        for pid in everybody:
            _keep(pid, allowed)


def _keep(pid: int, processors: set[int]) -> None:
    threads = [int(task.name) for task in Path(f"/proc/{pid or os.getpid()}/task").iterdir()]
    for thread in threads:
        with contextlib.suppress(OSError):  # it ended meanwhile
            os.sched_setaffinity(thread, processors)


def median(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


class Stdio:
    """A server on pipes, spoken to without a handshake or (`stateless=False`) with one."""

    def __init__(
        self,
        command: list[str],
        *,
        tools: int = 2,
        stderr: Any = subprocess.DEVNULL,
        stateless: bool = True,
    ) -> None:
        self.stateless = stateless
        more = ["--tools", str(tools)] if tools != 2 else []
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            env=ENVIRONMENT,
        )
        self.pid = self.process.pid
        self.writer, self.reader = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.rest = b""
        self.number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, frame: bytes) -> None:
        left = memoryview(frame + b"\n")
        while left:
            left = left[os.write(self.writer, left) :]

    def line(self) -> bytes:
        """The next line; without copies of what is big."""
        parts = [self.rest]
        while b"\n" not in parts[-1]:
            if not select.select([self.reader], [], [], PATIENCE)[0]:
                raise TimeoutError(f"no answer within {PATIENCE:g} s")
            data = os.read(self.reader, CHUNK)
            if not data:
                raise EOFError(f"the server ended with status {self.process.wait(5)}")
            parts.append(data)
        line, _, self.rest = b"".join(parts).partition(b"\n")
        return line

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.number += 1
        self.send(request(self.number, method, params, stateless=self.stateless))
        while (answer := json.loads(self.line())).get("id") != self.number:
            continue
        if "result" not in answer:
            raise ValueError(f"no result: {answer}")
        return answer["result"]

    def burst(self, count: int) -> None:
        """So many calls of a tool at once, in one write."""
        numbers = range(self.number + 1, self.number + count + 1)
        self.number += count
        frames = [request(number, "tools/call", ADD, stateless=self.stateless) for number in numbers]
        self.send(b"\n".join(frames))
        left = set(numbers)
        while left:
            answer = json.loads(self.line())
            if "result" not in answer:
                raise ValueError(f"no result: {answer}")
            left.discard(answer["id"])

    def hello(self) -> None:
        """The first answer."""
        if self.stateless:
            self.call("server/discover")
        else:
            self.call("initialize", HELLO)
            self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def one_at_a_time(self, seconds: float) -> list[int]:
        """The nanoseconds of each call, next after last."""
        with one_processor(self.pid):
            return self._one_at_a_time(seconds)

    def _one_at_a_time(self, seconds: float) -> list[int]:
        before, after = template("tools/call", ADD)
        after += b"\n"
        times: list[int] = []
        write, read, clock = os.write, os.read, time.perf_counter_ns
        number, end, now = self.number, clock() + int(seconds * 1e9), 0
        while now < end:
            number += 1
            frame = before + b"%d" % number + after
            start = clock()
            write(self.writer, frame)
            data = read(self.reader, CHUNK)
            while not data.endswith(b"\n"):
                data += read(self.reader, CHUNK)
            now = clock()
            times.append(now - start)
        self.number = number
        return times

    def in_flight(self, seconds: float, depth: int = 64) -> float:
        """Calls a second with `depth` requests open all the time."""
        frame = b"%d".join(template("tools/call", ADD)) + b"\n"
        clock = time.perf_counter

        def frames(count: int) -> bytes:
            start = self.number + 1
            self.number += count
            return frame * count % tuple(range(start, start + count))

        os.write(self.writer, frames(depth))
        done, flying, start = 0, depth, clock()
        end = now = start
        end += seconds
        while now < end:
            data = os.read(self.reader, CHUNK)
            if not data:
                raise EOFError("the server ended")
            count = data.count(b"\n")
            done += count
            now = clock()
            if count and now < end:
                os.write(self.writer, frames(count))
            else:
                flying -= count
        while flying > 0:
            flying -= os.read(self.reader, CHUNK).count(b"\n")
        return done / (now - start)

    def echo(self, text: str) -> None:
        """Send a large text and take it back, writing and reading at once."""
        frame = request(1_000_000, "tools/call", {"name": "echo", "arguments": {"text": text}})
        writer = threading.Thread(target=self.send, args=(frame,))
        writer.start()
        size = len(self.line())
        writer.join()
        if size < len(text):
            raise ValueError(f"an echo of {size} bytes")

    def close(self) -> None:
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Http:
    """A server on a port of its own; `raw` sends one POST, `load` many."""

    def __init__(self, command: list[str], *, tools: int = 2) -> None:
        self.port = free_port()
        more = ["--tools", str(tools)] if tools != 2 else []
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([*command, "--http", str(self.port), *more], env=ENVIRONMENT, **quiet)
        self.pid = self.process.pid
        self.socket = self._connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> socket.socket:
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            try:
                return self.connect()
            except OSError:
                time.sleep(0.02)
        raise RuntimeError(f"the server did not begin to listen: {self.process.args}")

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def head(self, method: str, params: dict[str, Any], size: int) -> bytes:
        named = [f"Mcp-Name: {params['name']}"] if "name" in params else []
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {REVISION}",
            f"Mcp-Method: {method}",
            *named,
            f"Content-Length: {size}",
            "",
            "",
        ]
        return "\r\n".join(lines).encode()

    def call(self, method: str, params: dict[str, Any]) -> bytes:
        """One POST on the open connection; the body of its answer, which may be a stream's."""
        frame = request(7, method, params)
        self.socket.sendall(self.head(method, params, len(frame)) + frame)
        parts = [self.socket.recv(CHUNK)]
        while not whole(parts):
            data = self.socket.recv(CHUNK)
            if not data:
                raise EOFError("the server closed the connection")
            parts.append(data)
        answer = b"".join(parts)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise ValueError(f"no success: {answer[:300]!r}")
        return answer.partition(b"\r\n\r\n")[2]

    def listen(self, number: int) -> socket.socket:
        """Open one `subscriptions/listen` and wait until it is acknowledged."""
        params = {"notifications": {"toolsListChanged": True}}
        frame = request(number, "subscriptions/listen", params)
        connection = self.connect()
        connection.sendall(self.head("subscriptions/listen", params, len(frame)) + frame)
        data = b""
        while b"acknowledged" not in data:
            more = connection.recv(65536)
            if not more:
                raise EOFError(f"no stream: {data[:300]!r}")
            data += more
        return connection

    def load(self, seconds: float, connections: int) -> float:
        """Calls a second over so many connections, one request open on each."""
        before, after = template("tools/call", ADD)
        size = len(before) + 7 + len(after)
        before = self.head("tools/call", ADD, size) + before
        poll, sockets, parts = select.epoll(), {}, {}
        number = 1_000_000
        for _ in range(connections):
            connection = self.connect()
            sockets[connection.fileno()] = connection
            parts[connection.fileno()] = []
            poll.register(connection, select.EPOLLIN)
            number += 1
            connection.sendall(before + b"%d" % number + after)
        done, start = 0, time.perf_counter()
        now, end = start, start + seconds
        while now < end:
            for fd, _ in poll.poll(60):
                answer, connection = parts[fd], sockets[fd]
                answer.append(connection.recv(65536))
                if whole(answer):
                    if not answer[0].startswith(b"HTTP/1.1 200"):
                        raise ValueError(f"no success: {answer[0][:300]!r}")
                    answer.clear()
                    done += 1
                    number += 1
                    connection.sendall(before + b"%d" % number + after)
            now = time.perf_counter()
        for connection in sockets.values():
            connection.close()
        poll.close()
        return done / (now - start)

    def close(self) -> None:
        self.socket.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def whole(parts: list[bytes]) -> bool:
    """Whether these are all parts of a response."""
    first = parts[0]
    if not first:
        raise EOFError("the server closed the connection")
    end = first.find(b"\r\n\r\n")
    if end < 0:
        parts[:] = [b"".join(parts)]
        return False if parts[0] == first else whole(parts)
    head = first[:end].lower()
    found = head.find(b"content-length:")
    if found < 0:
        return parts[-1].endswith(b"0\r\n\r\n") or b"".join(parts[-2:]).endswith(b"0\r\n\r\n")
    length = int(head[found + 15 :].split(b"\r\n", 1)[0])
    return sum(map(len, parts)) >= end + 4 + length
