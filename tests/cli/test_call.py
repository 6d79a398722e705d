"""`dragoman call`: what is printed where, what is saved, and with which status it ends."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pty
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import call as call_module
from dragoman.cli import failure
from dragoman.errors import UsageError
from tests.cli.shell import Done, dragoman
from tests.transcripts import player


def call(*words: str, cwd: Path, stdin: str | None = None) -> Done:
    return dragoman("call", "server.py", *words, cwd=cwd, stdin=stdin)


# --- what is printed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["add", "a=1", "b=2"], "3\n"),
        (["add", "a=1"], "1\n"),
        (["echo", "text=123"], "123\n"),
        (["echo", "text=서울", "times=2"], "서울\n서울\n"),
        (["echo", "--json", "text=x", "tags=b", "tags=c"], None),
        (["point", "point.x=1", "point.y=-2"], '{"x":1,"y":-2}\n'),
        (["point", 'point={"x": 1, "y": 2}'], '{"x":1,"y":2}\n'),
        (["add", "--args", '{"a": 1, "b": 2}'], "3\n"),
        (["add", "--args", '{"a": 1, "b": 2}', "b=5"], "6\n"),
        (["add", "a:=1", "b:=2"], "3\n"),
        (["nothing"], ""),
        (["document"], "[resource link: a, file:///a.txt]\n"),
    ],
)
@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_what_a_call_prints(words: list[str], out: str | None, protocol: str, place: Path) -> None:
    done = call(*words, "--protocol", protocol, cwd=place)
    assert (done.status, done.err) == (0, "")
    if out is None:
        assert done.value["result"]["content"] == [{"type": "text", "text": "x\nb\nc"}]
    else:
        assert done.out.startswith(out) if words == ["document"] else done.out == out


def test_args_from_a_file_and_from_stdin(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "args.json"
    file.write_text('{"text": "서울"}', encoding="utf-8")
    assert call("echo", "--args", f"@{file}", cwd=place).out == "서울\n"
    assert call("echo", "--args", "-", cwd=place, stdin='{"text": "from stdin"}').out == "from stdin\n"


def test_structured_content_alone_is_printed_as_json(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "from dragoman import CallToolResult, Server\n"
        "server = Server('s')\n"
        "@server.tool\n"
        "def data():\n"
        "    return CallToolResult(content=[], structured_content={'a': [1, 2]})\n"
    )
    done = call("data", cwd=tmp_path)
    assert json.loads(done.out) == {"a": [1, 2]}


def test_a_result_that_breaks_its_promise_is_printed_with_a_warning(tmp_path: Path) -> None:
    server = tmp_path / "liar.py"
    server.write_text(LIAR)
    command = f"{sys.executable} {server}"
    done = dragoman("call", command, "data", "a=1", cwd=tmp_path)
    assert (done.status, done.out) == (0, "kept\n")
    assert "warning: the result does not fit what the tool promised" in done.err
    value = dragoman("call", command, "data", "a=1", "--json", cwd=tmp_path).value
    assert value["result"]["structuredContent"] == {"n": "none"}
    assert len(value["result"]["invalid"]) == 1


LIAR = """
import json, sys

outputs = {"type": "object", "properties": {"n": {"type": "integer"}}}
tool = {"name": "data", "inputSchema": {"type": "object"}, "outputSchema": outputs}
fresh = {"ttlMs": 0, "cacheScope": "private"}
results = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {}, **fresh},
    "tools/list": {"tools": [tool], **fresh},
    "tools/call": {"content": [{"type": "text", "text": "kept"}], "structuredContent": {"n": "none"}},
}
for line in sys.stdin:
    request = json.loads(line)
    result = {"resultType": "complete", **results[request["method"]]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


# --- pictures and files -----------------------------------------------------------------------------


def test_what_is_no_text_is_described(place: Path) -> None:
    assert call("picture", cwd=place).out == "look:\n[image: image/png, 5 bytes; --output FILE saves it]\n"


def test_a_picture_is_saved(place: Path, tmp_path: Path) -> None:
    target = tmp_path / "chart.png"
    done = call("picture", "--output", str(target), cwd=place)
    assert (done.status, done.out) == (0, "")
    assert done.err == f"saved {target}: image, image/png, 5 bytes\n"
    assert target.read_bytes() == b"\x89PNG\x00"


def test_several_pictures_are_saved_with_numbers(place: Path, tmp_path: Path) -> None:
    call("picture", "count=2", "--output", str(tmp_path / "chart.png"), cwd=place)
    saved = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert saved == {"chart-1.png": b"\x89PNG\x00", "chart-2.png": b"\x89PNG\x01"}


def test_a_file_is_saved_and_text_where_there_is_nothing_else(place: Path, tmp_path: Path) -> None:
    call("document", "--output", str(tmp_path / "a.pdf"), cwd=place)
    call("add", "a=1", "--output", str(tmp_path / "a.txt"), cwd=place)
    assert (tmp_path / "a.pdf").read_bytes() == b"\x00\x01"
    assert (tmp_path / "a.txt").read_text() == "1\n"


def test_where_nothing_can_be_saved(place: Path, tmp_path: Path) -> None:
    done = call("picture", "--output", str(tmp_path / "none" / "a.png"), cwd=place)
    assert done.status == 2
    assert "dragoman: --output: " in done.err


# --- errors -----------------------------------------------------------------------------------------


def test_the_tool_said_error(place: Path) -> None:
    done = call("fail", "reason=out of paper", cwd=place)
    assert done == (1, "", "out of paper\n")


def test_the_tool_said_error_as_json(place: Path) -> None:
    done = call("fail", "reason=out of paper", "--json", cwd=place)
    error = done.value["error"]
    assert (done.status, done.value["ok"]) == (1, False)
    assert (error["kind"], error["message"]) == ("tool", "out of paper")
    assert error["result"]["isError"] is True
    assert error["result"]["content"] == [{"type": "text", "text": "out of paper"}]


def test_arguments_that_the_schema_refuses_name_field_and_values(place: Path) -> None:
    done = call("echo", "text=x", "colour=green", cwd=place)
    assert (done.status, done.out) == (1, "")
    assert 'colour: expected one of "red", "blue"; received "green"' in done.err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ehco", ": did you mean 'echo'?"),
        ("pic", ": did you mean 'picture'?"),
        ("zzz", "; there is " + ", ".join(f"t{n}" for n in range(10)) + " and 2 more"),
    ],
)
def test_names_that_are_offered_for_an_unknown_one(name: str, told: str) -> None:
    names = ["echo", "picture"] if name != "zzz" else [f"t{n}" for n in range(12)]
    assert call_module._others(name, names) == told


def test_hints_name_the_options_of_the_command(tmp_path: Path) -> None:
    silent = f"{sys.executable} -c 'import sys; sys.stdin.read()'"
    assert "try: a larger --timeout" in dragoman("list", silent, "--timeout", "0.3", cwd=tmp_path).err
    hint = failure.lines(UsageError("no", hint="protocol='auto', which speaks any revision"))[1]
    assert hint == "  try: --protocol auto, which speaks any revision"


def test_an_unknown_tool(place: Path) -> None:
    done = call("ad", "a=1", cwd=place)
    assert (done.status, done.out) == (3, "")
    assert "no tool 'ad': did you mean 'add'?\n" in done.err
    assert "the server answered with error -32602" in done.err
    value = call("ad", "--json", cwd=place).value
    assert (value["error"]["kind"], value["error"]["code"]) == ("protocol", -32602)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["server.py", "add", "a"], "argument 'a': expected key=value or key:=JSON"),
        (["server.py", "add", "--args", "[1]"], "--args: expected a JSON object, received array"),
        (["server.py", "add", "--args", "@nowhere.json"], "--args: @nowhere.json: No such file or directory"),
        (["server.py", "add", "a=1", "a=2"], "argument 'a' is given twice"),
        (["server.py", "add", "--protocol", "1999-01-01"], "protocol: expected 'auto' or one of 2024-11-05"),
        (["nowhere.py", "add"], "target 'nowhere.py': no such file"),
        (["localhost:8000", "add"], "target 'localhost:8000': an address without a scheme"),
        (["ftp://localhost/", "add"], "expected http or https"),
        (['{"command": 5', "add"], "a configuration entry that is no JSON object"),
        (['{"args": []}', "add"], "needs `command` or `url`"),
        (["server.py", "add", "--header", "A:b"], "headers: of no use for a program"),
    ],
)
def test_usage(words: list[str], message: str, place: Path) -> None:
    done = dragoman("call", *words, cwd=place)
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert "Traceback" not in done.err
    value = dragoman("call", *words, "--json", cwd=place).value
    assert (value["ok"], value["error"]["kind"]) == (False, "usage")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["server.py", "add", '{"a": 1}'], 'try: --args \'{"key": "value"}\' for all of them as JSON'),
        (["server.py", "add", "--args", "@absent.json"], "--args: @absent.json: No such file or directory"),
        (["servers.json", "add"], "servers.json is a file with servers; expected one server"),
        (["server", "add"], "try: server.py, which is a file here"),
        (["run.sh", "add"], "try: ./run.sh, which is a file here"),
    ],
)
def test_what_many_would_write(words: list[str], told: str, place: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text((place / "server.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "servers.json").write_text('{"mcpServers": {}}')
    (tmp_path / "run.sh").write_text("exit 1\n")
    done = dragoman("call", *words, cwd=tmp_path)
    assert done.status in (2, 4)
    assert told in done.err


def test_a_server_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("import nowhere_to_be_found\n")
    done = call("add", cwd=tmp_path)
    assert (done.status, done.out) == (2, "")
    # Once: the file is not started again in the hope that it likes another question better.
    assert done.err.count("ModuleNotFoundError: No module named 'nowhere_to_be_found'") == 1
    assert f"  try: install what has 'nowhere_to_be_found' for {sys.executable}" in done.err
    assert "the server ended" not in done.err  # what adds nothing
    assert done.err.count("server.py cannot be imported") == 1
    error = call("add", "--json", cwd=tmp_path).value["error"]
    assert (error["kind"], error["message"]) == ("usage", "server.py cannot be imported")
    assert error["hint"].startswith("install what has 'nowhere_to_be_found'")
    assert any("ModuleNotFoundError" in line for line in error["stderr_tail"])


def test_a_file_without_a_server_is_a_matter_of_usage(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("x = 1\n")
    for command in (["list"], ["discover"], ["call", "add"]):
        done = dragoman(command[0], "server.py", *command[1:], cwd=tmp_path)
        assert (done.status, done.out) == (2, "")
        assert done.err.splitlines() == [
            "dragoman: server.py: there is no dragoman Server in it",
            "  try: server = Server(...)",
        ]


def test_another_program_that_ends_with_2_did_not_come_up(place: Path) -> None:
    done = dragoman("list", f"{sys.executable} -c 'raise SystemExit(2)'", cwd=place)
    assert done.status == 4
    assert "the server ended (exit status 2)" in done.err


def test_a_program_that_does_not_exist(place: Path) -> None:
    done = dragoman("call", "no-such-program --flag", "add", cwd=place)
    assert done.status == 4
    assert "'no-such-program'" in done.err
    assert done.err.endswith("\n  try: give the program's full path, or change PATH\n")


def test_nobody_listens_there(place: Path) -> None:
    done = dragoman("call", "http://127.0.0.1:1/mcp", "add", "--json", cwd=place)
    assert (done.status, done.value["error"]["kind"]) == (4, "connect")


def test_a_limit_that_runs_out(tmp_path: Path) -> None:
    silent = f"{sys.executable} -c 'import sys; sys.stdin.read()'"
    done = dragoman("call", silent, "add", "--timeout", "0.3", "--json", cwd=tmp_path)
    assert (done.status, done.value["error"]["kind"]) == (4, "deadline")


@contextlib.contextmanager
def web(status: int, body: bytes = b"", kind: str = "text/plain") -> Iterator[tuple[str, list[Any]]]:
    """An HTTP server that answers everything alike; its address, and the headers of the requests."""
    seen: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", [401, 403])
def test_denied(status: int, place: Path) -> None:
    with web(status) as (url, seen):
        done = dragoman("call", url, "add", "--header", "Authorization: Bearer hunter2", "--json", cwd=place)
    assert (done.status, done.value["error"]["kind"]) == (5, "denied")
    assert done.value["error"]["http_status"] == status
    assert seen[0]["authorization"] == "Bearer hunter2"
    assert "hunter2" not in done.out + done.err


def test_a_web_page_is_no_endpoint(place: Path) -> None:
    with web(200, b"<html>hello</html>", "text/html") as (url, _):
        done = dragoman("call", url, "add", cwd=place)
    assert done.status in (3, 4)
    assert "Traceback" not in done.err


def test_over_http(place: Path) -> None:
    command = player.run_command("server.py", "--http", "127.0.0.1:0")
    with player.http_server(command, place) as (host, port, path):
        for protocol in ("auto", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"):
            words = ["call", f"http://{host}:{port}{path}", "echo", "text=서울", "--protocol", protocol]
            assert dragoman(*words, cwd=place) == (0, "서울\n", "")


def test_a_configuration_entry(place: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "dragoman", "run", "server.py"]}
    assert dragoman("call", json.dumps(entry), "add", "a=1", "b=2", cwd=place).out == "3\n"


# --- progress, logs, terminals ----------------------------------------------------------------------


def test_progress_is_not_shown_where_there_is_no_terminal_and_logs_only_on_demand(place: Path) -> None:
    assert call("slow", cwd=place) == (0, "done\n", "")
    assert call("slow", "--log", "info", cwd=place) == (0, "done\n", "info: half way\n")
    assert call("slow", "--log", "error", cwd=place) == (0, "done\n", "")
    assert call("slow", "--log", "info", "--protocol", "2025-11-25", cwd=place).err == "info: half way\n"


def on_a_terminal(*words: str, cwd: Path) -> str:
    """What a terminal of 80 columns shows, stdout and stderr in one."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", *words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], player.TIME_LIMIT)[0]:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the last one who had the terminal open is gone
            break
        shown += chunk
    os.close(ours)
    assert process.wait(player.TIME_LIMIT) == 0
    return shown.decode().replace("\r\n", "\n")


def test_progress_is_a_bar_on_a_terminal_and_gone_when_the_result_comes(place: Path) -> None:
    shown = on_a_terminal("call", "server.py", "slow", cwd=place)
    bar = "\r\x1b[K[######..................]  25% first"
    assert shown == f"{bar}\r\x1b[K[########################] 100% last\r\x1b[Kdone\n"


def test_a_servers_text_cannot_steer_a_terminal(place: Path) -> None:
    assert on_a_terminal("call", "server.py", "steering", cwd=place) == "a\\x1b[2Jb\\u202ec\n"
    assert call("steering", cwd=place).out == "a\x1b[2Jb\u202ec\n"
    assert "\x1b" not in dragoman("list", "server.py", cwd=place).out


def test_a_table_is_cut_at_the_terminals_edge(place: Path) -> None:
    lines = on_a_terminal("list", "server.py", cwd=place).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert any(line.endswith("…") for line in lines)
