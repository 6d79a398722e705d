"""What pages show of a terminal is what stands there: each capture is made again, in one of 80 columns.

    ```terminal            each `$ command` is run in a terminal of its own; below it is what it prints
    ```terminal status=5   the same, and each command must exit with 5 instead of 0
    ```json file=a.json    any block with a file's name is written there first, `~/` being the home

Colours are not compared, and times and ids of calls are always the same. The home is an empty folder, and
the project one in it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.docs.blocks import blocks, commands, fits
from tests.docs.test_pages import PAGES, page_id
from tests.needs import ROOT
from tests.terminal import in_terminal, plain

SHOWN = [page for page in PAGES if "```terminal" in page.read_text()]
COLUMNS = 80
# What is another one each time, in as many characters.
_TIME = (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "2030-01-31T18:00:00.000Z")
_CALL = (re.compile(r"\bcall [0-9a-f]{8}-(\d+)"), r"call 3f9c2a11-\1")


def test_there_are_captures() -> None:
    assert {page.name for page in SHOWN} >= {"config.md", "explain.md"}


@pytest.mark.parametrize("page", SHOWN, ids=page_id)
def test_captures_of_a_page(page: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    project = home / "project"
    project.mkdir(parents=True)
    (project / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page):
        if block.file:
            target = home / block.file[2:] if block.file.startswith("~/") else project / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
        if block.language != "terminal":
            continue
        wanted = next((int(word[7:]) for word in block.words if word.startswith("status=")), 0)
        for command in commands(block):
            status, output = on_a_terminal(command.command, project, home=home)
            seen = f"{page_id(page)}:{block.line}: $ {command.command}\nexit status {status}\n{output}"
            assert fits(command.expected, output.splitlines()), seen
            assert status == wanted, seen


def on_a_terminal(command: str, folder: Path, *, home: Path) -> tuple[int, str]:
    """Exit status and output of a command in a terminal, without colours, and with `~` for the home."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {"LANG": "C.UTF-8", **kept, "HOME": str(home), "PATH": path}
    status, output = in_terminal(command, folder, env=env, columns=COLUMNS)
    text = plain(output)
    for found, same in (_TIME, _CALL):
        text = found.sub(same, text)
    return status, text.replace(str(home), "~")
