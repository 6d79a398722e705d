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
from tests.errors import calling, more, registering, serving, starting
from tests.errors.caught import Said
from tests.errors.written import written
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
    "verbs": more.verbs,
    "files": more.files,
    "handlers": more.handlers,
    "wires": more.wires,
    "what takes its time": more.longer,
    "skills": more.skills,
    "what is not installed": more.missing,
    "closed stdin": serving.closed,
    "making servers": registering.servers,
    "adding tools": registering.tools,
    "adding resources": registering.resources,
    "running in a loop": registering.loops,
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


# Messages of the client and the transports that are not on the page, and why.
NOT_LISTED = {
    "…: …": "another message with its place before it",
    "URL: …": "another message with its place before it",
    "…: there is no way to the client": "what a server's own function is told when its client has left",
    "resources are read while a tool, a prompt or a resource is called": "the same, where it was kept",
    "lifespan: expected an async context manager, received …": "a line of the log; calls end with -32603",
    "there is a … … already: give it another name, or remove the other": "listed for a tool",
    "a … needs a name: @server.…(..., name=...)": "listed for a prompt",
    "there is no … … to replace": "not reached by what a user calls",
    "the connection … …": "listed with the words that it is put together from",
    "server %r gave the cursor %r twice: its list of %s is cut there": "a line of the log",
    "server %r: a malformed entry of its list of %s is left out: %s": "a line of the log",
}
# Those who drive a transport, a connection or a stream by themselves read the code beside it.
BY_HAND = frozenset(
    """
    this transport has been opened before|this transport has not been opened|it is open already
    id … is already in use by a request that is not answered yet
    id … is already in use, or there are more than … requests at once
    a message on this transport is one line|it was closed from this side|the connection is closed
    the connection was closed|the reply was given up|this connection is not free|this connection is not open
    the result of … does not fit: …|the answer is none: …
    the caller cannot be asked for …: an HTTP answer carries nothing else
    """.strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("layer", ["client", "transports", "server"])
def test_what_stands_in_the_code_stands_on_the_page(layer: str) -> None:
    by_hand = {message.strip() for message in BY_HAND}
    rows = [re.compile(".*".join(map(re.escape, _bare(row.message).split("…"))), re.DOTALL) for row in ROWS]
    unlisted = [
        one
        for one in written(ROOT / "src" / "dragoman" / layer)
        if one.message not in NOT_LISTED
        and one.message not in by_hand
        # What differs may be any of the words that a row has in its place, so the two are held against each
        # other the other way round too.
        and not any(row.fullmatch(_bare(one.message)) for row in rows)
        and not any(_pattern(one.message).fullmatch(_bare(row.message)) for row in ROWS)
    ]
    assert unlisted == []


def _bare(message: str) -> str:
    return message.replace("'…'", "…")


def _pattern(message: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, _bare(message).split("…"))), re.DOTALL)
