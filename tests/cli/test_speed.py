"""How soon an answer is there: a command line that takes a second is not used."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

LIMIT = 0.4  # seconds for a call, where the interpreter alone takes
BARE = 0.05
TRIES = 7


def fastest(command: list[str], cwd: Path) -> float:
    """Seconds of the fastest of a few runs: what else runs on the machine only ever adds."""
    seconds = []
    for _ in range(TRIES):
        start = time.perf_counter()
        subprocess.run(command, cwd=cwd, capture_output=True, check=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


@pytest.mark.alone
def test_a_call_of_a_tool_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "from dragoman import Server\n"
        "server = Server('sums')\n"
        "@server.tool\n"
        "def add(a: int, b: int) -> int:\n"
        "    return a + b\n"
    )
    bare = fastest([sys.executable, "-c", "pass"], tmp_path)
    call = fastest([sys.executable, "-m", "dragoman", "call", "server.py", "add", "a=1", "b=2"], tmp_path)
    assert call < LIMIT * max(1.0, bare / BARE), f"{call:.3f} s, where the interpreter takes {bare:.3f} s"


@pytest.mark.alone
@pytest.mark.parametrize("words", [["--version"], ["call", "--help"]])
def test_what_needs_no_server(words: list[str], tmp_path: Path) -> None:
    bare = fastest([sys.executable, "-c", "import argparse"], tmp_path)
    told = fastest([sys.executable, "-m", "dragoman", *words], tmp_path)
    assert told < 3 * bare, f"{told:.3f} s, where argparse alone takes {bare:.3f} s"
