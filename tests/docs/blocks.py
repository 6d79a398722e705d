"""Fenced blocks of Markdown files, and what their info strings ask for.

    ```python              compiled; its imports from dragoman must resolve
    ```python file=a.py    the same, and written to that file in the page's scratch folder
    ```python run          the same, and run there; a following ```text output block must be its output
    ```console             each `$ command` is run there; the lines below it must be its output
    ```console status=5    the same, and each command must exit with 5 instead of 0
    ```console no-run      only shown

In expected output a line `...` stands for any number of lines, and `...` at the end of a line for the
rest of it. Blocks of one page share one scratch
folder and run in their order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)$")


@dataclass
class Block:
    """One fenced block: `line` is that of its first fence, counted from 1."""

    path: Path
    line: int
    language: str
    words: list[str]
    text: str
    output: str | None = None

    @property
    def file(self) -> str | None:
        return next((word.removeprefix("file=") for word in self.words if word.startswith("file=")), None)


@dataclass
class Command:
    """One `$ command` of a console block and the output below it."""

    command: str
    expected: list[str] = field(default_factory=list)


def blocks(path: Path) -> list[Block]:
    """The blocks of a page; a fence that is never closed is a ValueError that names its line."""
    found: list[Block] = []
    lines = path.read_text().splitlines()
    index = 0
    while index < len(lines):
        opening = FENCE.match(lines[index])
        index += 1
        if opening is None:
            continue
        start = index
        closing = re.compile(rf"^ *{opening['fence']}`* *$")
        while index < len(lines) and not closing.match(lines[index]):
            index += 1
        if index == len(lines):
            raise ValueError(f"{path}:{start}: the block is never closed")
        indent = len(opening["indent"])
        text = "".join(f"{line[indent:]}\n" for line in lines[start:index])
        index += 1
        language, *words = opening["info"].split() or [""]
        block = Block(path, start, language, words, text)
        if language == "text" and "output" in words and found:
            found[-1].output = text
        found.append(block)
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a console block; a trailing backslash continues a command."""
    found: list[Command] = []
    continued = False
    for line in block.text.splitlines():
        if continued:
            found[-1].command += "\n" + line
        elif line.startswith("$ "):
            found.append(Command(line[2:]))
        elif found:
            found[-1].expected.append(line)
        else:
            raise ValueError(f"{block.path}:{block.line}: a console block starts with a `$ command`")
        continued = found[-1].command.endswith("\\") and not found[-1].expected
    return found


def _pattern(line: str) -> str:
    if line.strip() == "...":
        return "(?:.*\n)*"
    line = line.rstrip()
    return (re.escape(line[:-3]) + ".*" if line.endswith("...") else re.escape(line)) + "\n"


def fits(expected: list[str], actual: list[str]) -> bool:
    """Whether the output is the expected one, where `...` stands for any number of lines."""
    pattern = "".join(map(_pattern, expected))
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in actual)) is not None
