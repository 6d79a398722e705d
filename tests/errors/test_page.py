"""`docs/errors.md` against the code: its messages are said, and what is said stands there."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from dragoman import errors
from dragoman.jsonrpc import envelope
from dragoman.model import lifecycle
from dragoman.transports import http_fault, runner
from tests.errors import calling, serving, starting
from tests.errors.caught import Said
from tests.needs import ROOT

PAGE = (ROOT / "docs" / "errors.md").read_text()
SOURCES = sorted((ROOT / "src" / "dragoman").rglob("*.py"))
FOLDERS = {
    "programs that do not start": starting.programs,
    "addresses": starting.addresses,
    "agreeing": starting.agreeing,
    "targets and options": starting.targets,
    "programs": calling.programs,
    "misuse": calling.misuse,
    "http": calling.http,
    "results": calling.results,
    "tools": calling.tools,
    "sockets": calling.sockets_ending,
    "codes": serving.codes,
    "statuses": serving.statuses,
    "other codes": serving.others,
    "starts": serving.starts,
    "commands": serving.commands,
    "host": serving.host,
}


class Row(NamedTuple):
    kind: str
    message: str

    def fits(self, said: Said) -> bool:
        parts = map(re.escape, self.message.split("…"))
        return said.kind == self.kind and re.fullmatch(".*".join(parts), said.text, re.DOTALL) is not None


def rows() -> list[Row]:
    """The messages of the page, each with the class that its section's title names."""
    found: list[Row] = []
    kind = ""
    listing = False
    for line in PAGE.splitlines():
        if line.startswith("## "):
            kind = line.rpartition(": ")[2].strip("`")
        listing = line.startswith("| message |") or (listing and line.startswith("|"))
        if listing and line.startswith("| `"):
            found.append(Row(kind, line[3:].partition("` | ")[0]))
    return found


ROWS = rows()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory, pki: Path) -> dict[str, list[Said]]:
    found: dict[str, list[Said]] = {}
    for name, provoke in FOLDERS.items():
        folder = pki if name == "addresses" else tmp_path_factory.mktemp("errors")
        made = provoke(folder)
        found[name] = asyncio.run(made) if asyncio.iscoroutine(made) else made
    return found


def test_what_is_said_stands_on_the_page(everything) -> None:
    said = [one for found in everything.values() for one in found]
    missing = [one for one in said if not any(row.fits(one) for row in ROWS)]
    assert missing == []


def test_what_stands_on_the_page_is_said(everything) -> None:
    said = [one for found in everything.values() for one in found]
    unsaid = [row for row in ROWS if not any(row.fits(one) for one in said)]
    assert unsaid == []


def test_every_class_has_its_line() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.DragomanError)
    }
    assert classes - set(re.findall(r"`(\w+)(?:\(.*?\))?`", PAGE)) == {"DragomanError"}


def test_every_stage_has_its_line() -> None:
    stages = {"probe", "initialize"}  # set where the opening is at it
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "stage" and isinstance(node.value, ast.Constant):
                stages.add(node.value.value)
    table = PAGE[PAGE.index("| `stage` |") : PAGE.index("A call that failed was surely")]
    assert stages <= set(re.findall(r"`(\w+)`", table))


def test_every_code_has_its_line() -> None:
    codes = {
        value
        for module in (envelope, lifecycle, runner)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and -32800 < value <= -32000
    }
    assert len(codes) >= 10
    listed = {int(row.message.split()[0]) for row in ROWS if row.kind == "RemoteError"}
    assert codes <= listed


def test_every_status_that_has_a_hint_has_its_line() -> None:
    listed = {int(row.message.split()[1]) for row in ROWS if row.kind == "HttpError"}
    assert set(http_fault._HINTS) <= listed
