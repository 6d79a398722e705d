"""`dragoman list` and `dragoman discover`: what is shown of a server."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.list import hints, kind, signature
from dragoman.cli.output import table, width
from dragoman.model import ToolAnnotations
from tests.cli.shell import TIME_LIMIT, dragoman
from tests.transcripts import player


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_list(protocol: str, place: Path) -> None:
    done = dragoman("list", "server.py", "--protocol", protocol, cwd=place)
    assert (done.status, done.err) == (0, "")
    head, add, echo, fail, *_ = done.out.splitlines()
    assert head.split() == ["TOOL", "ARGUMENTS", "HINTS", "DESCRIPTION"]
    assert add.split(maxsplit=4) == [
        "add",
        "a:integer",
        "[b:integer]",
        "read-only,idempotent",
        "Add two numbers.",
    ]
    assert "text:string [times:integer] [colour:red|blue] [tags:array]" in echo
    assert "destructive" in fail
    column = head.index("DESCRIPTION")
    assert add[column:] == "Add two numbers."
    assert fail[column:] == "Always fails."


def test_list_as_json_is_what_the_server_lists(place: Path) -> None:
    value = dragoman("list", "server.py", "--json", cwd=place).value
    assert value["ok"] is True
    tools = {tool["name"]: tool for tool in value["result"]["tools"]}
    assert tools["add"]["inputSchema"]["properties"]["b"] == {"type": "integer", "default": 0}
    assert tools["add"]["annotations"] == {"readOnlyHint": True, "idempotentHint": True}


def test_a_server_without_tools(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("from dragoman import Server\nserver = Server('bare')")
    assert dragoman("list", "server.py", cwd=tmp_path) == (0, "", "the server has no tools\n")
    assert dragoman("list", "server.py", "--json", cwd=tmp_path).value == {
        "ok": True,
        "result": {"tools": []},
    }


@pytest.mark.parametrize(
    ("protocol", "revision", "without", "by"),
    [
        ("auto", "2026-07-28", "2026-07-28", "not asked for; `--protocol 2025-11-25` does"),
        (
            "2025-11-25",
            "2025-11-25",
            "not asked for; `--protocol 2026-07-28` does",
            "2025-11-25, and maybe others",
        ),
        (
            "2024-11-05",
            "2024-11-05",
            "not asked for; `--protocol 2026-07-28` does",
            "2024-11-05, and maybe others",
        ),
    ],
)
def test_discover(protocol: str, revision: str, without: str, by: str, place: Path) -> None:
    done = dragoman("discover", "server.py", "--protocol", protocol, cwd=place)
    assert (done.status, done.err) == (0, "")
    facts, _, instructions = done.out.partition("\n\n")
    rows = {line[:17].rstrip(): line[19:] for line in facts.splitlines()}
    assert rows["server"].startswith("sums 2.1.0")
    assert rows["revision"] == revision
    assert (rows["without handshake"], rows["by handshake"]) == (without, by)
    assert "tools (listChanged)" in rows["capabilities"]
    assert instructions == "Add things.\n"


OLD_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        info = {"name": "o", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif "id" in asked:
        error = {"code": -32601, "message": "Method not found"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"""


def test_discover_of_a_server_that_refused_the_other_way(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(OLD_SERVER)
    done = dragoman("discover", f"{sys.executable} old.py", cwd=tmp_path)
    assert "\nwithout handshake  none\nby handshake       2025-06-18, and maybe others\n" in done.out


def test_discover_as_json(place: Path) -> None:
    result = dragoman("discover", "server.py", "--json", cwd=place).value["result"]
    assert result["protocolVersion"] == "2026-07-28"
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["serverInfo"] == {"name": "sums", "version": "2.1.0", "title": "Sums"}
    assert result["instructions"] == "Add things."
    assert result["ttlMs"] == 0


def test_over_http(place: Path) -> None:
    command = player.run_command("server.py", "--http", "127.0.0.1:0", "--path", "/sums")
    with player.http_server(command, place) as (host, port, path):
        assert path == "/sums"
        done = dragoman("discover", f"http://{host}:{port}{path}", "--json", cwd=place)
    assert done.value["result"]["serverInfo"]["name"] == "sums"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["integer", "null"]}, "integer|null"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer|null"),
        ({"enum": ["a", 1, None]}, "a|1|null"),
        ({"enum": list("abcdefgh")}, "a|b|c|d|e|f|…"),
        ({"const": 5}, "5"),
        ({"$ref": "#/$defs/P"}, "object"),
        ({"$ref": "#/$defs/Ring"}, "any"),
        ({"$ref": "#/nowhere"}, "any"),
        ({}, "any"),
        (True, "any"),
        ("nonsense", "any"),
    ],
)
def test_a_kind_in_a_word(schema: Any, expected: str) -> None:
    root = {"$defs": {"P": {"type": "object"}, "Ring": {"anyOf": [{"$ref": "#/$defs/Ring"}]}}}
    assert kind(schema, root) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}, "a:string [b:any]"),
        ({"type": "object"}, ""),
        ({"properties": 5, "required": 5}, ""),
    ],
)
def test_a_signature(schema: dict[str, Any], expected: str) -> None:
    assert signature(schema) == expected


def test_only_what_annotations_say_is_told() -> None:
    assert hints(ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)) == (
        "destructive,open-world"
    )
    assert hints(ToolAnnotations()) == ""


def test_wide_characters_take_two_columns() -> None:
    assert [width(text) for text in ("abc", "서울", "e\u0301", "ｱ")] == [3, 4, 1, 1]
    rows = table([("A", "B"), ("서울", "x"), ("ab", "y")])
    assert rows == ["A     B", "서울  x", "ab    y"]


@pytest.mark.parametrize(("colour", "head"), [("", "\x1b[2mTOOL"), ("1", "TOOL")])
def test_on_a_terminal_the_header_is_dim_unless_colours_are_off(place: Path, colour: str, head: str) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "NO_COLOR": colour}
    words = [sys.executable, "-m", "dragoman", "list", "server.py"]
    process = subprocess.Popen(words, cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=theirs)
    os.close(theirs)
    try:
        shown = os.read(ours, 4096).decode()
        assert process.wait(TIME_LIMIT) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert shown.startswith(head)


def test_a_cell_is_one_line_and_an_empty_column_is_left_out() -> None:
    assert table([("A", "B", "C"), ("a\nb\tc", "", "\x1b[1m")]) == ["A      C", "a b c  \\x1b[1m"]


def test_a_line_is_cut_by_columns_and_never_through_a_wide_character() -> None:
    assert table([("A",), ("서울서울",)], 6)[1] == "서울…"
    assert table([("A",), ("abcdef",)], 6)[1] == "abcdef"


def test_the_widest_columns_give_way_where_a_line_is_short() -> None:
    rows = [
        ("TOOL", "ARGUMENTS", "DESCRIPTION"),
        ("add", "a:integer b:integer c:integer", "Add three numbers."),
    ]
    assert table(rows, 60) == [
        "TOOL  ARGUMENTS                      DESCRIPTION",
        "add   a:integer b:integer c:integer  Add three numbers.",
    ]
    assert table(rows, 40) == [
        "TOOL  ARGUMENTS         DESCRIPTION",
        "add   a:integer b:int…  Add three numbe…",  # 40 columns
    ]
    assert all(width(line) <= 20 for line in table(rows, 20))
