"""A stdio server that counts how many functions of the package it enters; its tool `entered` tells."""

from __future__ import annotations

import dis
import sys
from collections import Counter
from functools import cache
from types import CodeType, FrameType
from typing import Any

import dragoman
from dragoman import Server

PACKAGE = dragoman.__file__.removesuffix("__init__.py")
counts: Counter[str] = Counter()
server = Server("counted", version="1.0.0")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def entered() -> dict[str, int]:
    """How often each function of the package was entered so far."""
    return dict(counts)


@cache
def start(code: CodeType) -> int:
    """Where a function begins; later `RESUME`s come after a yield or an await and enter nothing anew."""
    return next(step.offset for step in dis.get_instructions(code) if step.opname == "RESUME")


def count(frame: FrameType, event: str, argument: Any) -> None:
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(PACKAGE) and frame.f_lasti <= start(code):
        counts[f"{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname}"] += 1


if __name__ == "__main__":
    sys.setprofile(count)
    server.run()
