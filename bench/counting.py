"""Instructions by valgrind: a measure that does not move with the load of the machine.

A process is run twice, with few and with many calls; the difference is what calls cost. A fixed
hash seed makes the two runs alike.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from typing import IO

from . import wire

VALGRIND = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
COUNT = re.compile(r"I\s+refs:\s+([\d,]+)")


def available() -> bool:
    return shutil.which("valgrind") is not None


def stdio(command: list[str], calls: int, *, tools: int = 2, stateless: bool = True, depth: int = 1) -> int:
    """Instructions of a whole life: start, one answer, `calls` calls of a tool, and the end.

    Calls are sent `depth` at once, and the next so many when all of these are answered.
    """
    wire.ENVIRONMENT["PYTHONHASHSEED"] = "0"
    try:
        with tempfile.TemporaryFile() as said:
            whole = ["valgrind", *VALGRIND, *command]
            with wire.Stdio(whole, tools=tools, stderr=said, stateless=stateless) as server:
                server.hello()
                for _ in range(calls // depth):
                    server.burst(depth)
                server.process.stdin.close()
                server.process.wait(wire.PATIENCE)
            return _count(said)
    finally:
        del wire.ENVIRONMENT["PYTHONHASHSEED"]


def _count(said: IO[bytes]) -> int:
    said.seek(0)
    text = said.read().decode(errors="replace")
    found = COUNT.findall(text)
    if not found:
        raise RuntimeError(f"valgrind gave no count: {text[-500:]}")
    return int(found[-1].replace(",", ""))


def per_call(command: list[str], few: int, many: int, *, stateless: bool = True, depth: int = 1) -> float:
    """Instructions of one call, once what the first calls set up is there."""
    low, high = (stdio(command, calls, stateless=stateless, depth=depth) for calls in (few, many))
    return (high - low) / (many - few)
