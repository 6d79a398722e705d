"""`dragoman doctor`, as a shell runs it, against real programs and servers."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Done, dragoman


def steps(done: Done, part: int = 0) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in done.value["result"]["parts"][part]["steps"]}


def test_a_server_that_is_well(place: Path) -> None:
    done = dragoman("doctor", "server.py", cwd=place)
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0] == "server.py"
    assert "  ok    protocol            2026-07-28, without a handshake" in lines
    found = steps(dragoman("doctor", "server.py", "--json", cwd=place))
    assert [found[name]["mark"] for name in ("start", "protocol", "stdout", "names", "cost")] == ["ok"] * 5


def test_a_server_that_ends(tmp_path: Path) -> None:
    program = "import sys; print('ready!'); print('no database', file=sys.stderr); sys.exit(3)"
    (tmp_path / "server.sh").write_text(f'exec {sys.executable} -c "{program}"\n')
    done = dragoman("doctor", "sh server.sh", "--json", cwd=tmp_path)
    assert done.status == 1
    found = steps(done)
    assert found["program"]["mark"] == "ok"
    assert "'ready!'" in found["stdout"]["text"]
    (failed,) = [step for step in found.values() if step["mark"] == "fail"]
    assert "exit status 3" in failed["text"]
    assert "'no database'" in failed["text"]


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = dragoman("doctor", "no-such-program", cwd=tmp_path)
    assert done.status == 1
    assert done.out.splitlines() == [
        "no-such-program",
        "  fail  program  no-such-program is not on PATH",
        "                 try: install it, or write its full path",
        "",
        "1 wrong",
    ]


def test_the_files_of_a_host(tmp_path: Path) -> None:
    entries = {"orders": {"command": "no-such"}, "bad": {"type": "http"}, "web": {"url": "${NOT_SET}"}}
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(json.dumps({"mcpServers": entries}, indent=1))
    home = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    done = dragoman("doctor", "--host", "cursor", "--trusted", "--json", cwd=tmp_path, env=home)
    assert done.status == 1
    parts = {part["title"]: part for part in done.value["result"]["parts"]}
    assert parts["orders"]["source"] == ".cursor/mcp.json:3"
    assert [step["name"] for step in parts["orders"]["steps"]] == ["program"]
    waits = dragoman("doctor", "--host", "cursor", cwd=tmp_path, env=home)
    told = " ".join(waits.out.split())
    assert "pending: a project's file: nobody has trusted the folder" in told
    assert "under MCP; --trusted looks at it now" in told


def test_a_host_without_files_is_not_called_well(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    done = dragoman("doctor", "--host", "codex", cwd=tmp_path, env=home)
    assert "warn  files  Codex has no files here" in done.out
    assert done.out.endswith("1 worth a look\n")


def test_a_tool_that_a_model_sees_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "from dragoman import Server\n\nserver = Server('a')\n\n@server.tool\ndef 찾기() -> str: return ''\n",
        encoding="utf-8",
    )
    done = dragoman("doctor", "server.py", "--json", cwd=tmp_path)
    step = steps(done)["names"]
    assert step["mark"] == "ok"
    assert "'찾기' is shown as mcp__server__" in step["text"]


@contextmanager
def http(answers: Mapping[str, tuple[int, dict[str, Any]]]) -> Generator[str]:
    """A server on loopback that answers each path as told, and 401 else."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path, (401, {}))
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class's name
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


METADATA = "/.well-known/oauth-protected-resource/mcp"


@pytest.mark.parametrize(
    ("metadata", "mark", "said"),
    [
        (None, "fail", ""),
        ({"authorization_servers": ["https://id.example"]}, "warn", "by https://id.example"),
        ({"authorization_servers": []}, "fail", "`authorization_servers` names none"),
        ({"authorization_servers": ["https://id"], "resource": "https://other"}, "fail", "`resource` is"),
    ],
)
def test_a_server_that_wants_to_know_who_calls(
    tmp_path: Path, metadata: dict[str, Any] | None, mark: str, said: str
) -> None:
    answers: dict[str, tuple[int, dict[str, Any]]] = {}
    with http(answers) as url:
        if metadata is not None:
            answers[METADATA] = (200, {"resource": url, **metadata})
        done = dragoman("doctor", url, "--json", cwd=tmp_path)
    step = steps(done)["sign-in"]
    assert step["mark"] == mark
    assert said in step["text"]
    assert step["fix"]


def test_entries_with_anything_in_them_are_each_told_of_and_show_no_secret(tmp_path: Path) -> None:
    entries = {
        "half": {"command": "ls", "args": ["\ud800"]},
        "header": {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X": "a\r\nb"}},
        "address": {"type": "http", "url": "https://[::1/"},
        "port": {"type": "http", "url": "https://127.0.0.1:99999999/"},
        "name": {"type": "http", "url": f"https://{'a' * 70}.example/"},
        "telling": {
            "command": sys.executable,
            "args": ["-c", "import os,sys; sys.exit(f'not with {os.environ[\"MY_TOKEN\"]}')"],
            "env": {"MY_TOKEN": "${GIVEN}"},
        },
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "GIVEN": "tops3cretvalue1234"}
    words = ("doctor", "--host", "claude-code", "--trusted")
    done = dragoman(*words, "--json", cwd=tmp_path, env=env)
    assert done.status == 1
    found = {part["title"]: part["steps"][-1] for part in done.value["result"]["parts"][1:]}
    assert {name: step["mark"] for name, step in found.items()} == dict.fromkeys(entries, "fail")
    assert "not with [hidden]" in found["telling"]["text"]
    assert "tops3cret" not in done.out
    assert dragoman(*words, cwd=tmp_path, env=env).status == 1
    assert dragoman("config", "--json", cwd=tmp_path, env=env).status == 0


def test_nothing_to_look_at(tmp_path: Path) -> None:
    done = dragoman("doctor", cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert done.status == 2
    assert "name a TARGET to look at" in done.err


def test_a_command_line_whose_quotes_do_not_close(tmp_path: Path) -> None:
    done = dragoman("doctor", "server 'x", cwd=tmp_path)
    assert done.status == 2
    assert "read as a command line, but No closing quotation" in done.err
