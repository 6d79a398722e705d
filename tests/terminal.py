"""Runs a command in a terminal of its own, as a person would see it."""

from __future__ import annotations

import os
import pty
import re
import select
from collections.abc import Mapping
from pathlib import Path

LIMIT = 60  # seconds without a word
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def in_terminal(command: str, folder: Path, *, env: Mapping[str, str], columns: int = 80) -> tuple[int, str]:
    """Exit status and output of a shell's command; `\\r\\n` of the terminal is a line end."""
    child, master = pty.fork()
    if child == 0:  # pragma: no cover  # another program from here on
        os.chdir(folder)
        os.execve("/bin/sh", ["sh", "-c", f"stty cols {columns}; {command}"], {"TERM": "xterm", **env})
    data = b""
    while select.select([master], [], [], LIMIT)[0]:
        try:
            part = os.read(master, 65536)
        except OSError:  # nobody has the terminal open any more
            break
        if not part:
            break
        data += part
    _, ended = os.waitpid(child, 0)
    os.close(master)
    return os.waitstatus_to_exitcode(ended), data.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    """The text without colours."""
    return _COLOUR.sub("", text)
