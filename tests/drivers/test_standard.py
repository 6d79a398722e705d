"""A server whose standard streams are closed, or are what no server can read or write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.drivers.stdio import SERVER, call

TIME_LIMIT = 60
PRINTS = """
import os, subprocess, sys
from dragoman import Server

server = Server("prints")

@server.tool
async def shout(text: str) -> str:
    print("printed", flush=True)
    os.write(1, b"written\\n")
    subprocess.run(["/bin/echo", "child"], check=True)
    subprocess.run("echo oops >&2", shell=True, check=True)
    return text

server.run()
"""


def shell(script: Path, redirected: str, *, given: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["/bin/sh", "-c", f'"$0" "$1" {redirected}', sys.executable, str(script)],
        input=given,
        capture_output=True,
        check=False,
        timeout=TIME_LIMIT,
    )


@pytest.mark.parametrize(
    ("redirected", "which"),
    [("<&-", "input"), (">&-", "output"), ("<&- >&-", "input")],
)
def test_a_closed_stream_is_named(redirected: str, which: str) -> None:
    done = shell(SERVER, redirected, given=b"")
    assert done.returncode == 1
    assert f"UsageError: standard {which} is closed" in done.stderr.decode()


def test_with_stderr_closed_what_is_printed_goes_nowhere(tmp_path: Path) -> None:
    script = tmp_path / "prints.py"
    script.write_text(PRINTS)
    given = json.dumps(call(1, "shout", text="hello")).encode() + b"\n"
    done = shell(script, "2>&-", given=given)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["result"]["structuredContent"] == {"result": "hello"}
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_input_that_cannot_be_read_ends_the_serving(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    unreadable = os.open(tmp_path / "file", os.O_WRONLY)
    try:
        done = subprocess.run(
            [sys.executable, str(SERVER)],
            stdin=unreadable,
            capture_output=True,
            check=False,
            timeout=TIME_LIMIT,
        )
    finally:
        os.close(unreadable)
    assert done.returncode == 0
    assert done.stdout == b""
    assert b"standard input cannot be read: Bad file descriptor" in done.stderr
