"""`dragoman demo` as a person runs it: in a pipe, with an answer given, on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.needs import ROOT
from tests.spec.oracle import validate_frame

COMMAND = [sys.executable, "-m", "dragoman", "demo"]
RUNS = [("stdio", "2026-07-28"), ("stdio", "2025-11-25"), ("http", "2026-07-28"), ("http", "2025-11-25")]
SCENES = [
    "discovery",
    "a good call",
    "a call that the schema refuses",
    "a call that needs a yes",
    "a denied call",
    "a tool's own error",
    "an unknown tool",
    "an unknown tool, past the host",
    "the trace of the good call",
]
TIME_LIMIT = 60


def demo(*words: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it in a pipe, with nobody at a terminal."""
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "answered", "notes"), [(["--yes"], "yes", 4), (["--no"], "no", 0), ([], "no", 0)]
)
def test_every_outcome_is_the_expected_one(words, answered, notes):
    done = demo(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "all 36 outcomes were the expected ones" in done.stdout
    assert done.stdout.count(f"answered {answered}") == 4
    assert done.stdout.count('"name":"create_note","arguments"') == notes


# What each host makes of the order service, as its documentation has it: `decided` of four scenes.
BY_HOST = {
    "codex": {
        "stdio": [
            "the server's entry (examples/orders/.codex/config.toml:1)",
            # A tool that says that it only reads is not asked about in the mode `auto`.
            "approval mode 'auto': the tool says that it does no harm",
            (
                'ask mcp_servers.orders.tools.create_note.approval_mode = "prompt"; answered {word} '
                "(examples/orders/.codex/config.toml:9)"
            ),
            "'refund_order' is not among the tools of .codex/config.toml:1",
        ]
    },
    "cursor": {
        "editor": [
            "the server's entry (examples/orders/.cursor/mcp.json:3)",
            "allow orders:lookup_order (examples/orders/.cursor/permissions.json:3)",
            "no rule matches, so a person is asked; the answer was {word}",
            # The allowlist denies nothing: what is not on it is asked about, a refund too.
            "no rule matches, so a person is asked; the answer was {word}",
        ],
        "command line": [
            "the server's entry (examples/orders/.cursor/mcp.json:3)",
            "allow Mcp(orders:lookup_order) (examples/orders/.cursor/cli.json:3)",
            "no rule matches, so a person is asked; the answer was {word}",
            "deny Mcp(orders:refund_order) (examples/orders/.cursor/cli.json:4)",
        ],
    },
}
# The tools that go over the wire, of look-up, note and refund.
SENT_WITH_YES = {"stdio": [1, 1, 0], "editor": [1, 1, 1], "command line": [1, 1, 0]}


@pytest.mark.parametrize("host", BY_HOST)
@pytest.mark.parametrize("word", ["yes", "no"])
def test_each_host_gives_its_own_decisions_from_its_own_files(host, word):
    done = demo("--host", host, f"--{word}")
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.split(
        r"^== (.+), revision (\S+) =+$", done.stdout.partition("== outcomes")[0], flags=re.MULTILINE
    )
    runs = list(zip(parts[1::3], parts[2::3], parts[3::3], strict=True))
    assert {surface for surface, _, _ in runs} == set(BY_HOST[host])
    for surface, revision, text in runs:
        assert revision in ("2026-07-28", "2025-11-25")
        decided = re.findall(r"^  decided   (.+)$", text, flags=re.MULTILINE)
        wanted = [line.format(word=word) for line in BY_HOST[host][surface]]
        assert [decided[place] for place in (0, 1, 3, 4)] == wanted
        sent = [
            text.count(f'"name":"{tool}","arguments":{{"order_id":"A-1042"')
            for tool in ("lookup_order", "create_note", "refund_order")
        ]
        # The look-up stands in the trace that is shown too.
        expected = SENT_WITH_YES[surface] if word == "yes" else [1, 0, 0]
        assert [min(count, 1) for count in sent] == expected


def test_a_host_that_is_not_played_is_usage():
    done = demo("--host", "notepad")
    assert done.returncode == 2
    assert "claude-code" in done.stderr


def test_a_pipe_gets_plain_text_in_which_every_scene_has_what_decided():
    done = demo("--no")
    assert "\x1b" not in done.stdout
    for title in SCENES:
        assert done.stdout.count(f"\n{title}  [as expected]") == len(RUNS)
    for line in (
        "the server's entry (examples/orders/.mcp.json:3)",
        "allow mcp__orders__lookup_order (examples/orders/.claude/settings.json:3)",
        "ask mcp__orders__create_note; answered no (examples/orders/.claude/settings.json:4)",
        "deny mcp__orders__refund_order (examples/orders/.claude/settings.json:5)",
    ):
        assert line in done.stdout
    found = re.search(r'inputSchema#/properties/order_id/pattern ".*" \((\S+):(\d+)\)', done.stdout)
    line = (ROOT / found[1]).read_text("utf-8").splitlines()[int(found[2]) - 1]
    assert r'pattern=r"^[A-Z]-\d{4}$"' in line


def test_what_is_shown_was_on_the_wire_in_the_shape_of_its_revision():
    done = demo("--yes", "--json")
    assert done.returncode == 0
    envelope = json.loads(done.stdout)
    assert envelope["ok"] is True
    runs = envelope["result"]["runs"]
    assert [(run["transport"], run["revision"]) for run in runs] == RUNS
    for run in runs:
        assert [scene["title"] for scene in run["scenes"]] == SCENES
        methods = {}
        for scene in run["scenes"]:
            for frame in scene["frames"]:
                body, way = frame["frame"], "to_server" if frame["direction"] == "out" else "to_client"
                if "method" in body and "id" in body:
                    methods[body["id"]] = body["method"]
                validate_frame(run["revision"], body, methods.get(body.get("id")), way, exact=True)
        by_title = {scene["title"]: scene for scene in run["scenes"]}
        for title in ("a call that the schema refuses", "a denied call", "an unknown tool"):
            assert by_title[title]["frames"] == []
        for title in ("a good call", "a call that needs a yes", "a tool's own error"):
            assert [frame["direction"] for frame in by_title[title]["frames"]] == ["out", "in"]
        lines = by_title["the trace of the good call"]["lines"]
        assert [line["kind"] for line in lines] == ["tool_use", "tools/call", "result"]
        assert lines[1]["request"] == by_title["a good call"]["frames"][0]["frame"]


def test_it_runs_from_anywhere_and_whatever_the_reader_has_in_the_environment(tmp_path):
    (tmp_path / "settings.json").write_text('{"permissions": {"deny": ["*"]}}')
    done = demo(
        cwd=tmp_path,
        ORDERS_DB=str(tmp_path / "orders.db"),
        CLAUDE_CONFIG_DIR=str(tmp_path),
        PYTHONUTF8="0",
        LC_ALL="C",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "orders.db").exists()


def test_without_the_example_it_says_where_it_looked(tmp_path):
    example = tmp_path / "examples" / "orders"
    example.mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", BROKEN.format(place=str(example))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert "the order service is not there" in done.stderr
    assert str(example) in done.stderr
    assert "Traceback" not in done.stderr


BROKEN = """
import sys
from pathlib import Path
from dragoman.cli.demo import example
from dragoman.cli.main import main
example._PLACES = (Path({place!r}),)
sys.exit(main(["demo"]))
"""


def test_from_elsewhere_places_are_told_from_the_example_s_own_folder(tmp_path):
    done = demo("--host", "codex", "--no", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = next(line for line in done.stdout.splitlines() if line.startswith("  files    "))
    assert folder.endswith("/orders")
    assert "(.codex/config.toml:9)\n" in done.stdout
    assert done.stdout.count(folder.split()[-1]) == 1


@pytest.mark.parametrize("words", [["--yes", "--no"], ["--maybe"], ["now"], ["--ful"], ["--host", "zed"]])
def test_words_that_mean_nothing_are_usage(words):
    done = demo(*words)
    assert done.returncode == 2
    assert "dragoman demo: " in done.stderr
    assert "try: dragoman demo --help" in done.stderr


# --- on a terminal ----------------------------------------------------------------------------------------


def on_terminal(*words: str, answers: str = "", columns: int = 0, **env: str) -> tuple[int, str]:
    """Run it with a terminal for all three streams; each prompt is answered by the next character."""
    pid, fd = pty.fork()
    if pid == 0:
        if columns:
            termios.tcsetwinsize(0, (40, columns))
        os.chdir(ROOT)
        environment = {**os.environ, "TERM": "xterm", **env}
        environment = {name: value for name, value in environment.items() if value != "-"}
        os.execvpe(COMMAND[0], [*COMMAND, *words], environment)
    text, waiting, end = b"", list(answers), time.monotonic() + TIME_LIMIT
    seen = 0
    try:
        while time.monotonic() < end:
            if not select.select([fd], [], [], 1.0)[0]:
                continue
            try:
                data = os.read(fd, 65536)
            except OSError:  # the terminal is gone with the program
                break
            if not data:
                break
            text += data
            prompts = text.count(b"[N]o: ")
            while seen < prompts:
                seen += 1
                os.write(fd, (waiting.pop(0) if waiting else "").encode() + b"\n")
    finally:
        os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, text.decode()


PROMPT = "Allow it? [y]es, [a]lways in this demo, [N]o: "


def test_a_terminal_is_asked_each_time_and_gets_colours():
    status, text = on_terminal(answers="ynYx", NO_COLOR="-")
    assert status == 0
    assert text.count(PROMPT) == 4
    assert text.count("answered yes") == 2
    assert text.count("answered no") == 2
    assert "\x1b[32mas expected\x1b[0m" in text
    asked = text.partition(PROMPT)[0].rpartition("The model wants")[2]
    assert "create_note on orders" in asked
    assert ".claude/settings.json:4" in asked


def test_ctrl_c_at_the_question_ends_it_and_leaves_nothing():
    mark = f"dragoman-demo-{os.getpid()}-{time.monotonic_ns()}"
    status, text = on_terminal(answers="\x03", DEMO_MARK=mark)
    assert status == 130
    assert text.count(PROMPT) == 1
    assert "Traceback" not in text
    assert [pid for pid in running() if mark.encode() in environment_of(pid)] == []


def running() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]


def environment_of(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "environ").read_bytes()
    except OSError:  # gone meanwhile, or not ours
        return b""


ESCAPE = re.compile(r"\x1b\[\d+m")


def test_a_narrow_terminal_gets_each_message_in_a_line_unless_all_is_asked_for():
    status, text = on_terminal("--yes", columns=60)
    assert status == 0
    lines = ESCAPE.sub("", text).splitlines()
    assert '  -> sent   tools/call 3 {"name":"lookup_order","arguments…' in lines
    sent = [place for place, line in enumerate(lines) if line.startswith(("  -> sent", "  <- came"))]
    assert len(sent) > 40
    assert all(len(lines[place]) < 60 for place in sent)
    assert not any(lines[place + 1].startswith(" " * 12) for place in sent)  # no second line
    assert any("--full shows them whole" in line for line in lines)
    status, text = on_terminal("--yes", "--full", columns=60)
    assert status == 0
    whole = "".join(line[12:] for line in ESCAPE.sub("", text).splitlines() if line.startswith(" " * 12))
    assert '"io.modelcontextprotocol/clientCapabilities":{}' in whole


def test_always_is_asked_once():
    status, text = on_terminal(answers="a")
    assert status == 0
    assert text.count(PROMPT) == 1
    assert text.count("answered yes") == 4


@pytest.mark.parametrize(
    ("words", "env"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})]
)
def test_no_colours_where_they_are_not_wanted(words, env):
    status, text = on_terminal("--no", *words, **{"NO_COLOR": "-", **env})
    assert status == 0
    assert "\x1b" not in text
    assert PROMPT not in text
