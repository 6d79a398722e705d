"""`dragoman run`: which server of a file is served, and what is said where there is none."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Server
from dragoman.cli.run import address
from dragoman.errors import UsageError
from tests.cli.shell import TIME_LIMIT, dragoman

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER = (
    json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}) + "\n"
)
MAKE = "from dragoman import Server\n"


def served(text: str, target: str = "server.py", *, cwd: Path, more: tuple[str, ...] = ()) -> str:
    """The name of the server that `dragoman run` serves."""
    (cwd / "server.py").write_text(MAKE + text)
    done = dragoman("run", target, *more, cwd=cwd, stdin=DISCOVER)
    assert (done.status, len(done.out.splitlines())) == (0, 1), done.err
    result: dict[str, Any] = json.loads(done.out)["result"]
    return str(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"])


def refused(text: str, target: str = "server.py", *, cwd: Path) -> str:
    """What is said about a file that is not served; nothing of it may be on stdout."""
    (cwd / "server.py").write_text(MAKE + text)
    done = dragoman("run", target, cwd=cwd)
    assert (done.status, done.out) == (2, "")
    return done.err


@pytest.mark.parametrize(
    ("text", "target", "name"),
    [
        ("server = Server('a')\nother = Server('b')", "server.py", "a"),
        ("mcp = Server('a')\nother = Server('b')", "server.py", "a"),
        ("app = Server('a')\nother = Server('b')", "server.py", "a"),
        ("only = Server('a')\nalias = only", "server.py", "a"),
        ("a = Server('a')\nb = Server('b')", "server.py:b", "b"),
        ("class Box: pass\nbox = Box()\nbox.inner = Server('a')", "server.py:box.inner", "a"),
        ("def make(): return Server('made')", "server.py:make", "made"),
    ],
)
def test_the_server_that_is_served(text: str, target: str, name: str, tmp_path: Path) -> None:
    assert served(text, target, cwd=tmp_path) == name


def test_what_stands_under_the_main_guard_is_not_run(tmp_path: Path) -> None:
    assert (
        served("server = Server('a')\nif __name__ == '__main__':\n    raise SystemExit(9)", cwd=tmp_path)
        == "a"
    )


def test_a_file_that_serves_by_itself_is_served_all_the_same(tmp_path: Path) -> None:
    assert served("server = Server('a')\nserver.run()", cwd=tmp_path) == "a"


def test_prints_of_the_file_are_not_on_the_wire(tmp_path: Path) -> None:
    prints = "import os, sys\nprint('hello')\nos.write(1, b'raw\\n')\nsys.stdout.write('no end')\n"
    assert served(f"{prints}server = Server('a')", cwd=tmp_path) == "a"


def test_who_starts_it_by_hand_is_told_that_it_waits_for_a_host(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        MAKE + "server = Server('a')\nif __name__ == '__main__': server.run()"
    )
    for words in (["-m", "dragoman", "run", "server.py"], ["server.py"]):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=tmp_path,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        try:
            assert process.stderr is not None
            told = process.stderr.readline() + process.stderr.readline()
            assert b"serving over stdio: a host starts this" in told
            assert b"try: dragoman list" in told
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=TIME_LIMIT)
            assert (process.returncode, out) == (0, b"")
        finally:
            process.kill()
            process.wait()
            os.close(ours)


def test_the_file_reads_an_empty_stdin_and_not_the_protocol(tmp_path: Path) -> None:
    assert served("import sys\nserver = Server('got:' + sys.stdin.read())", cwd=tmp_path) == "got:"


def test_words_after_the_file_are_its_arguments(tmp_path: Path) -> None:
    text = "import sys\nserver = Server(' '.join(sys.argv))"
    assert served(text, cwd=tmp_path, more=("--", "--database", "x.db")) == "server.py --database x.db"


def test_the_folder_of_the_file_is_on_the_path_wherever_it_is_started(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "neighbour.py").write_text("NAME = 'neighbour'")
    (inner / "main.py").write_text(MAKE + "import neighbour\nserver = Server(neighbour.NAME)")
    done = dragoman("run", "inner/main.py", cwd=tmp_path, stdin=DISCOVER)
    assert '"name":"neighbour"' in done.out


def test_a_neighbour_that_imports_the_file_gets_the_same_module(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text("import server\nserver.server.kernel.mark = True")
    text = "server = Server('a')\nimport tools\nassert server.kernel.mark"
    assert served(text, cwd=tmp_path) == "a"


def test_a_file_named_like_a_module_of_the_standard_library_is_served(tmp_path: Path) -> None:
    (tmp_path / "calendar.py").write_text(MAKE + "server = Server('a')")
    assert '"name":"a"' in dragoman("run", "calendar.py", cwd=tmp_path, stdin=DISCOVER).out


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a = Server('a')\nb = Server('b')", "server.py", "which server? there are a, b\n  try: server.py:a"),
        ("x = 1", "server.py", "there is no dragoman Server in it\n"),
        ("import json\nserver = json.JSONDecoder()", "server.py", "server is a json.decoder.JSONDecoder"),
        (
            "mcp = [1]",
            "server.py",
            'a list\n  try: for one of another library: dragoman list "python server.py"',
        ),
        ("a = Server('a')", "server.py:b", "nothing called 'b'; there is a"),
        ("b = 5", "server.py:b", "b is a int, not a dragoman Server"),
        ("def make(): return 5", "server.py:make", "make is a int, not a dragoman Server"),
        ("", "other.py", "other.py: no such file"),
        ("", ".", "a folder, not a file"),
    ],
)
def test_files_without_a_server(text: str, target: str, message: str, tmp_path: Path) -> None:
    assert message in refused(text, target, cwd=tmp_path)


def test_a_text_file_is_no_python_file(tmp_path: Path) -> None:
    (tmp_path / "server.txt").write_text("")
    done = dragoman("run", "server.txt", cwd=tmp_path)
    assert done.status == 2
    assert "expected a Python file, whose name ends in .py" in done.err


def test_an_exception_is_shown_with_the_frames_of_the_file_alone(tmp_path: Path) -> None:
    told = refused("def inner():\n    return 1 / 0\n\ninner()", cwd=tmp_path)
    assert told.startswith("Traceback (most recent call last):\n")
    assert told.count("  File ") == 2
    assert "importlib" not in told
    assert "ZeroDivisionError: division by zero" in told
    assert told.endswith("dragoman: server.py cannot be imported\n")


def test_a_tool_that_cannot_be_is_shown_where_the_file_has_it(tmp_path: Path) -> None:
    told = refused("server = Server('a')\n@server.tool\ndef bad(*args): ...\n", cwd=tmp_path)
    assert told.count("  File ") == 1
    assert 'server.py", line 3' in told or 'server.py", line 4' in told


def test_a_syntax_error_has_its_line_and_no_frames(tmp_path: Path) -> None:
    told = refused("x = (\n", cwd=tmp_path)
    assert 'server.py", line 2' in told
    assert "SyntaxError: '(' was never closed" in told
    assert "Traceback" not in told


def test_a_file_that_ends_the_program_is_told(tmp_path: Path) -> None:
    assert "server.py ended the program while it was imported: SystemExit(0)" in refused(
        "raise SystemExit(0)", cwd=tmp_path
    )


def test_a_factory_that_raises_is_shown_with_its_frames(tmp_path: Path) -> None:
    told = refused("def make():\n    raise KeyError('x')", "server.py:make", cwd=tmp_path)
    assert told.count("  File ") == 1
    assert told.endswith("KeyError: 'x'\ndragoman: server.py: make() raised\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        ("localhost:0", ("localhost", 0)),
        (":80", ("127.0.0.1", 80)),
        ("80", ("127.0.0.1", 80)),
        ("[::1]:80", ("::1", 80)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)
def test_an_address(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("text", ["", "localhost", "localhost:", "a:b", "a:65536", "a:-1", "::1:80", "a:٣"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="--http"):
        address(text)


def test_a_port_that_is_taken(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = dragoman("run", "server.py", "--http", f"127.0.0.1:{port}", "--json", cwd=place)
    assert done.status == 4
    assert done.value["error"]["kind"] == "connect"
    assert f"cannot listen on 127.0.0.1:{port}" in done.value["error"]["message"]
    assert "another program listens there" in done.value["error"]["hint"]


def test_an_address_of_another_machine(place: Path) -> None:
    done = dragoman("run", "server.py", "--http", "203.0.113.9:0", cwd=place)  # TEST-NET-3, nobody's
    assert done.status == 4
    assert "try: an address of this machine" in done.err


@pytest.mark.parametrize("port", [-1, 65536, 80000])
def test_a_port_that_cannot_be(port: int) -> None:
    with pytest.raises(UsageError, match=f"port: expected a number from 0 to 65535, received {port}"):
        Server("s").run("http", port=port)
