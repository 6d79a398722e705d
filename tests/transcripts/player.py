"""Plays a golden transcript against a real server and holds every frame against it and the schema.

A transcript is a file of JSON lines under `golden/`, written from the specification:

    {"note": "..."}                    why the next lines are as they are
    {"to_server": {...}}               a frame to send; over HTTP, `headers` replaces those derived from it
    {"to_client": {...}}               the next frame that comes back; over HTTP, `status` (200) and `type`
                                       (application/json) are those of the response it comes in

Over HTTP, `headers` of a line that is sent have to be the ones that the client derives by itself, too.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.needs import ROOT
from tests.spec.oracle import validate_frame

GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = ROOT / "examples"
TIME_LIMIT = 30.0

# The member of the params that the header `Mcp-Name` repeats, by method.
SUBJECTS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

Frame = dict[str, Any]


def transcript(name: str) -> list[Frame]:
    """The lines of `golden/<name>.jsonl`, without the notes."""
    lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, lines) if "note" not in line]


def exact(frame: Any) -> str:
    """A frame as text, equal for equal values only: 15 and 15.0 differ, the order of members is free."""
    return json.dumps(frame, sort_keys=True, ensure_ascii=False)


class Log:
    """What passed, checked frame by frame: results need the method that they answer."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self.methods: dict[Any, str] = {}

    def sent(self, frame: Frame) -> None:
        if "id" in frame:
            self.methods[frame["id"]] = frame["method"]
        validate_frame(self.revision, frame, None, "to_server", exact=True)

    def received(self, frame: Frame, expected: Frame) -> None:
        assert exact(frame) == exact(expected)
        validate_frame(self.revision, frame, self.methods.get(frame.get("id")), "to_client", exact=True)


# --- stdio ------------------------------------------------------------------------------------------


@contextmanager
def child(command: Sequence[str], cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program with pipes, which has to end by itself at the end of input: status 0, no word on stderr."""
    process = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        yield process
        rest, errors = process.communicate(timeout=TIME_LIMIT)
        assert (rest, errors.decode(), process.returncode) == (b"", "", 0)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def play_stdio(name: str, revision: str, command: Sequence[str], cwd: Path) -> None:
    """Send each line when the one before it is answered; a line is a frame, and nothing else is on stdout."""
    log = Log(revision)
    with child(command, cwd) as process:
        for line in transcript(name):
            if "to_server" in line:
                log.sent(line["to_server"])
                process.stdin.write(json.dumps(line["to_server"], ensure_ascii=False).encode() + b"\n")
                process.stdin.flush()
            else:
                log.received(json.loads(process.stdout.readline()), line["to_client"])


# --- HTTP -------------------------------------------------------------------------------------------


@contextmanager
def http_server(command: Sequence[str], cwd: Path) -> Iterator[tuple[str, int, str]]:
    """A program that serves HTTP on a free port and says so on stderr: host, port and path."""
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        said = process.stderr.readline().strip()
        assert " at http://" in said, said
        host, _, path = said.rpartition(" at http://")[2].partition("/")
        yield host.partition(":")[0], int(host.partition(":")[2]), f"/{path}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIME_LIMIT) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def derived(frame: Frame, revision: str) -> dict[str, str]:
    """The headers of a request, as its revision has them (Streamable HTTP: Request Headers)."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if frame["method"] == "initialize":
        return headers
    headers["mcp-protocol-version"] = revision
    if "_meta" in frame.get("params", {}):
        headers["mcp-method"] = frame["method"]
        subject = SUBJECTS.get(frame["method"])
        if subject is not None:
            headers["mcp-name"] = frame["params"][subject]
    return headers


def events(body: bytes) -> list[Frame]:
    """The frames of a stream, one `data:` line each; comments and priming events carry none."""
    assert b"\r" not in body
    blocks = [block.split("\n") for block in body.decode("utf-8").split("\n\n") if block]
    data = [[line.removeprefix("data: ") for line in block if line.startswith("data: ")] for block in blocks]
    return [json.loads(lines[0]) for lines in data if lines and lines[0]]


def play_http(name: str, revision: str, address: tuple[str, int, str]) -> None:
    """POST each frame, and read all that comes back before the next one."""
    host, port, path = address
    log = Log(revision)
    lines = transcript(name)
    connection = http.client.HTTPConnection(host, port, timeout=TIME_LIMIT)
    session: dict[str, str] = {}
    while lines:
        line = lines.pop(0)
        frame = line["to_server"]
        log.sent(frame)
        headers = line.get("headers") or derived(frame, revision)
        body = json.dumps(frame, ensure_ascii=False).encode()
        connection.request("POST", path, body, {**headers, **session})
        response = connection.getresponse()
        received = response.read()
        if frame["method"] == "initialize":
            session["mcp-session-id"] = response.headers["mcp-session-id"]
            assert session["mcp-session-id"].isprintable()
        if "id" not in frame:
            assert (response.status, received) == (202, b"")
            continue
        first = lines[0]
        kind = first.get("type", "application/json")
        assert (response.status, response.headers["content-type"]) == (first.get("status", 200), kind)
        frames = [json.loads(received)] if kind == "application/json" else events(received)
        expected = []
        while lines and "to_client" in lines[0]:
            expected.append(lines.pop(0)["to_client"])
        assert len(frames) == len(expected)
        for got, wanted in zip(frames, expected, strict=True):
            log.received(got, wanted)
    connection.close()


# --- the examples -----------------------------------------------------------------------------------


def example(name: str) -> str:
    """The server file of an example."""
    return str(EXAMPLES / name / "server.py")


def run_command(file: str, *words: str) -> list[str]:
    """`dragoman run` of this very interpreter."""
    return [sys.executable, "-m", "dragoman", "run", file, *words]


def quiet_environment() -> dict[str, str]:
    """The environment without what changes output."""
    return {**os.environ, "NO_COLOR": "1", "COLUMNS": "100"}
