"""The program itself: help, version, wrong words, and that it loads no more than it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman as package
from dragoman.cli import demo_parsers
from dragoman.cli.demo.cases import CASES
from dragoman.cli.main import COMMANDS, main
from tests.cli.shell import dragoman
from tests.needs import ROOT
from tests.needs import dragoman as program


def loaded(words: list[str]) -> set[str]:
    """The modules that are loaded once a command is done."""
    code = (
        "import sys, io\n"
        "from dragoman.cli.main import main\n"
        "keep, sys.stdout = sys.stdout, io.StringIO()\n"
        f"main({words!r})\n"
        "print(*sys.modules, file=keep)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], *[[name, "--help"] for name in COMMANDS]])
def test_help_and_version_load_neither_the_protocol_nor_an_event_loop(words: list[str]) -> None:
    assert not {
        "asyncio",
        "msgspec",
        "dragoman.errors",
        "dragoman.client",
        "dragoman.server",
        "rich",
    } & loaded(words)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dragoman {package.__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command_and_every_exit_status(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    text = capsys.readouterr().out
    for name, what in COMMANDS.items():
        assert f"  {name:8}   {what}" in text
    for meaning in (
        "0 done",
        "1 the tool said error",
        "2 usage",
        "3 protocol error",
        "4 could not connect",
        "5 denied",
    ):
        assert meaning in text


def test_without_a_command_the_help_is_shown_and_that_is_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    assert "usage: dragoman COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("name", list(COMMANDS))
@pytest.mark.parametrize("form", [[None, "--help"], [None, "-h"], ["help", None], ["--help", None]])
def test_help_of_a_command_has_examples(
    name: str, form: list[str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name if word is None else word for word in form]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: dragoman {name} ")
    assert f"examples:\n  dragoman {name} " in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cal"], "unknown command 'cal': did you mean 'call'?"),
        (["xyzzy"], "unknown command 'xyzzy': there are run, list, call"),
        (["--verbose"], "unknown option '--verbose'"),
        (["list"], "the following arguments are required: TARGET"),
        (["call", "server.py"], "the following arguments are required: TOOL"),
        (["call", "server.py", "add", "--wrong"], "unrecognized arguments: --wrong"),
        (["list", "a", "b"], "unrecognized arguments: b"),
        (
            ["list", "server.py", "--timeout", "never"],
            "--timeout: expected seconds above 0, received 'never'",
        ),
        (["list", "server.py", "--timeout", "-1"], "--timeout"),
        (["list", "server.py", "--timeout", "inf"], "--timeout: expected seconds above 0"),
        (["list", "server.py", "--js"], "unrecognized arguments: --js"),
        (["call", "server.py", "add", "--log", "loud"], "invalid choice: 'loud'"),
        (["call", "server.py", "add", "--log", "wraning"], "did you mean 'warning'?"),
        (
            ["call", "server.py", "add", "--arg", "{}"],
            "unrecognized arguments: --arg {}; did you mean '--args'?",
        ),
        (["list", "server.py", "--protcol=auto"], "did you mean '--protocol'?"),
        (["config", "--host", "claude"], "did you mean 'claude-code'?"),
        (["demo", "--host", "curser"], "did you mean 'cursor'?"),
        (["config", "exprot", "--to", "codex"], "unknown verb 'exprot': did you mean 'export'?"),
        (["trace", "shwo"], "unknown verb 'shwo': did you mean 'show'?"),
        (["server.py"], "unknown command 'server.py': did you mean 'list server.py'?"),
        (["https://a.example/mcp"], "did you mean 'list https://a.example/mcp'?"),
        (["serve", "server.py"], "unknown command 'serve': did you mean 'run'?"),
        (["list", "npx", "-y", "some-server"], "-y some-server; a command line is one TARGET, in quotes"),
        (["call", "server.py", "add", "--left=1"], "--left=1; arguments are written key=value"),
        (["explain", "a:b", "--timeout", "-1"], "--timeout: expected seconds above 0, received '-1'"),
        (["doctor", "server.py", "--timeout", "0"], "--timeout: expected seconds above 0, received '0'"),
        (["--hlep"], "unknown option '--hlep': did you mean '--help'?"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert "  try: dragoman" in told.err


def test_every_command_has_its_section_on_the_page_of_the_command_line() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    titles = {word for line in page.splitlines() if line.startswith("## ") for word in line[3:].split(", ")}
    assert set(COMMANDS) <= titles


def test_a_file_whose_name_is_near_a_verb_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shows").write_text("")
    monkeypatch.chdir(tmp_path)
    main(["trace", "shows"])
    assert "unknown verb" not in capsys.readouterr().err


def test_the_hosts_of_the_demo_are_those_of_its_cases() -> None:
    assert tuple(CASES) == demo_parsers.HOSTS


def test_a_header_that_is_none_is_not_repeated_since_it_may_be_a_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "http://127.0.0.1:1/", "--header", "Bearer-hunter2"]) == 2
    assert "hunter2" not in "".join(capsys.readouterr())


def test_wrong_words_with_json_are_an_envelope_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "--json", "server.py"]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "error": {"kind": "usage", "message": "the following arguments are required: TOOL"},
    }


def test_the_installed_program_needs_no_activated_environment(place: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place)}
    done = subprocess.run(
        [program(), "call", "server.py", "add", "a=1", "b=2"],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_a_reader_that_has_seen_enough_is_no_accident(place: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "list", "server.py"],
        cwd=place,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_output_that_the_encoding_cannot_say_is_escaped(place: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = dragoman("call", "server.py", "echo", "text=서울", cwd=place, env=environment)
    assert (done.status, done.out) == (0, "\\uc11c\\uc6b8\n")


def test_the_server_of_a_file_is_started_once_and_left_behind_never(tmp_path: Path) -> None:
    """It is started before the client is loaded; the client takes that very process."""
    (tmp_path / "server.py").write_text(
        "import os\n"
        "with open('starts', 'a') as file:\n"
        "    print(os.getpid(), file=file)\n"
        "from dragoman import Server\n"
        "server = Server('a')\n"
    )
    for words, status in (
        (["list", "server.py"], 0),
        (["list", "server.py:server"], 0),
        (["call", "server.py", "x"], 3),
    ):
        assert dragoman(*words, cwd=tmp_path).status == status
    # Here the client is never made: what was started has to end all the same.
    assert dragoman("list", "server.py", "--header", "A:b", cwd=tmp_path).status == 2
    started = [int(line) for line in (tmp_path / "starts").read_text().split()]
    assert len(started) in (3, 4)  # the last one may have been ended before it came to that line
    for pid in started:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_lies_in_the_current_folder_does_not_get_in_the_way_of_a_server(
    place: Path, tmp_path: Path
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('shadowed')")
    done = subprocess.run(
        [program(), "call", str(place / "server.py"), "add", "a=1", "b=2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)
