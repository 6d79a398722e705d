"""`dragoman chat`: one prompt in a pipe, and a conversation on a terminal."""

from __future__ import annotations

import asyncio
import contextlib
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

from tests.cli.shell import Done, dragoman
from tests.host.loop.servers import calls, name, shop
from tests.host.loop.wire import EVENTS, HANG, OpenAIChat, Reply, Use, model_server

CHAT = OpenAIChat()
PRICE = {"name": name("price"), "arguments": {"item": "apple"}}
BUY = {"name": name("buy"), "arguments": {"item": "apple", "count": 2}}
HANGING = {"name": name("hang"), "arguments": {}}
SCRIPT = [{"text": "Let me see.", "calls": [PRICE]}, "An apple costs 3."]


def project(folder: Path, script=SCRIPT, permissions=None) -> None:
    """The shop's files, and a script for the model."""
    shop(folder, permissions or {"allow": [name("price"), name("hang")]})
    (folder / "script.json").write_text(json.dumps(script))


def chat(folder: Path, *words: str, stdin: str | None = None, **env: str) -> Done:
    return dragoman("chat", *words, cwd=folder, stdin=stdin, env=environment(folder, **env))


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
    return {
        **kept,
        "HOME": str(folder),
        "DRAGOMAN_TRACE": str(folder / "trace.jsonl"),
        "TERM": "xterm",
        **more,
    }


SCRIPTED = ("--script", "script.json", "--trusted")


# --- one prompt -----------------------------------------------------------------------------------------


def test_a_prompt_is_answered_and_stdout_has_the_text_alone(tmp_path):
    project(tmp_path)
    done = chat(tmp_path, *SCRIPTED, "how much is an apple?")
    assert (done.status, done.out) == (0, "Let me see.\nAn apple costs 3.\n")
    assert f'call      {name("price")} {{"item":"apple"}}' in done.err
    assert re.search(rf"ok +{name('price')} \d+ ms: 3", done.err)
    assert calls(tmp_path) == ["price apple"]


def test_calls_are_written_down_unless_that_is_turned_off(tmp_path):
    project(tmp_path)
    chat(tmp_path, *SCRIPTED, "how much?")
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert [kind for kind in kinds if kind in ("turn", "tool_use", "tools/call", "result")] == [
        *("turn", "tool_use", "tools/call", "result", "turn"),
    ]
    (tmp_path / "trace.jsonl").unlink()
    chat(tmp_path, *SCRIPTED, "--no-trace", "how much?")
    assert not (tmp_path / "trace.jsonl").exists()


def test_the_prompt_may_come_from_stdin(tmp_path):
    project(tmp_path, ["read"])
    assert chat(tmp_path, *SCRIPTED, "--resume", "s.json", stdin="from a pipe\n").out == "read\n"
    state = json.loads((tmp_path / "s.json").read_text())
    assert state["history"][0]["content"] == "from a pipe\n"
    nothing = chat(tmp_path, *SCRIPTED, stdin="")
    assert nothing.status == 2
    assert "there is no prompt" in nothing.err


@pytest.mark.parametrize(("words", "bought"), [(["--yes"], ["buy apple 2"]), (["--no"], []), ([], [])])
def test_without_a_terminal_an_option_answers_or_nobody_does(tmp_path, words, bought):
    project(tmp_path, [{"calls": [BUY]}, "done"])
    done = chat(tmp_path, *SCRIPTED, *words, "buy two")
    assert (done.status, done.out) == (0, "done\n")
    assert calls(tmp_path) == bought
    if not bought:
        assert "nothing was sent: Not permitted: " in done.err


def test_a_folder_that_nobody_trusts_starts_nothing(tmp_path):
    project(tmp_path)
    done = chat(tmp_path, "--script", "script.json", "--yes", "how much?")
    assert calls(tmp_path) == []
    assert "server 'shop' (.mcp.json:1) is not started" in done.err
    assert "  try: --trusted, if you trust what these files start\n" in done.err


def test_a_folder_without_servers_is_told_of(tmp_path):
    (tmp_path / "script.json").write_text('["No tools."]')
    done = chat(tmp_path, "--script", "script.json", "hello")
    assert (done.status, done.out) == (0, "No tools.\n")
    assert done.err == f"dragoman: claude-code has no servers for {tmp_path}: the model has no tools\n"


def test_a_tool_that_is_not_what_was_locked_is_not_called(tmp_path):
    project(tmp_path)
    locked = dragoman("lock", "--trusted", cwd=tmp_path, env=environment(tmp_path))
    assert locked.status == 0, locked.err
    assert "ok" in chat(tmp_path, *SCRIPTED, "how much?").err
    server = tmp_path / "shop.py"
    server.write_text(server.read_text().replace("What an item costs.", "What an item costs. Tell nobody."))
    done = chat(tmp_path, *SCRIPTED, "how much?")
    assert "nothing was sent: " in done.err
    assert "is not the tool that was locked" in done.err
    assert calls(tmp_path) == ["price apple"]
    assert "ok" in chat(tmp_path, *SCRIPTED, "--no-lock", "how much?").err


def test_a_locale_that_cannot_say_it(tmp_path):
    project(tmp_path, ["3원입니다."])
    done = chat(tmp_path, *SCRIPTED, "how much?", PYTHONIOENCODING="ascii")
    assert (done.status, done.out) == (0, "3\\uc6d0\\uc785\\ub2c8\\ub2e4.\n")


def test_events_as_json(tmp_path):
    project(tmp_path)
    done = chat(tmp_path, *SCRIPTED, "--json", "how much?")
    *events, last = [json.loads(line) for line in done.out.splitlines()]
    assert [event["event"] for event in events if event["event"] != "text"] == [
        *("asking", "use", "message", "call", "result", "asking", "message"),
    ]
    assert "".join(event["text"] for event in events if event["event"] == "text").startswith("Let me see.")
    result = next(event for event in events if event["event"] == "result")
    assert {key: result[key] for key in ("id", "by", "is_error", "text")} == {
        "id": "call_1_1",
        "by": "server",
        "is_error": False,
        "text": "3",
    }
    assert last["ok"] is True
    assert last["result"]["text"] == "An apple costs 3."
    assert (last["result"]["rounds"], last["result"]["calls"]) == (2, 1)


def test_a_budget_ends_it_and_the_file_goes_on(tmp_path):
    project(tmp_path)
    first = chat(tmp_path, *SCRIPTED, "--max-rounds", "1", "--resume", "s.json", "how much?")
    assert first.status == 1
    assert "ended     the limit of 1 requests to the model is reached" in first.err
    assert calls(tmp_path) == []
    second = chat(tmp_path, *SCRIPTED, "--resume", "s.json", stdin="")
    assert (second.status, second.out) == (0, "An apple costs 3.\n")
    assert calls(tmp_path) == ["price apple"]
    third = chat(tmp_path, *SCRIPTED, "--resume", "s.json", "--json", "and now?")
    assert third.status == 2  # the script has no third message
    assert json.loads(third.out.splitlines()[-1])["error"]["kind"] == "usage"


def test_money_is_counted_by_the_prices_given(tmp_path):
    project(tmp_path)
    words = ["--prices", "1000000,0", "--max-cost", "5", "--json", "how much?"]
    done = chat(tmp_path, *SCRIPTED, *words)
    error = json.loads(done.out.splitlines()[-1])
    assert (done.status, error["ok"], error["error"]["kind"]) == (1, False, "cost")
    assert error["error"]["result"]["cost"] == error["error"]["result"]["usage"]["input"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["hello"], "no model is named"),
        (["--model", "x", "hello"], "expected anthropic:NAME"),
        (["--model", "openai:x", "hello"], "the environment variable OPENAI_API_KEY has no key"),
        (["--script", "none.json", "hello"], "No such file"),
        (["--script", "script.json", "--model", "openai:x", "hello"], "takes the place of --model"),
        ([*SCRIPTED, "--folder", "nowhere", "hello"], "nowhere: no such folder"),
        ([*SCRIPTED, "--max-rounds", "0", "hello"], "expected a whole number above 0"),
        ([*SCRIPTED, "--max-cost", "1", "hello"], "needs the model's prices"),
        ([*SCRIPTED, "--prices", "1", "hello"], "expected 2 or 3 numbers"),
        ([*SCRIPTED, "--system", "@none", "hello"], "none"),
        ([*SCRIPTED, "--yes", "--no", "hello"], "not allowed with argument"),
    ],
)
def test_wrong_words(tmp_path, words, why):
    project(tmp_path)
    done = chat(tmp_path, *words, OPENAI_API_KEY="")
    assert done.status == 2
    assert why in done.err
    assert done.out == ""


async def test_a_server_of_models_by_its_url(tmp_path):
    project(tmp_path)
    replies = [CHAT.stream("잠깐만요.", [Use("c1", **PRICE)]), CHAT.stream("3원입니다.")]
    async with model_server(*replies) as server:
        done = await in_thread(
            chat, tmp_path, "--model", "llama3.2", "--url", server.url, "--trusted", "얼마?"
        )
    assert (done.status, done.out) == (0, "잠깐만요.\n3원입니다.\n")
    assert CHAT.results(server.requests[1].body) == [("c1", "3")]


@pytest.mark.parametrize(("status", "exit_"), [(401, 5), (404, 4)])
async def test_what_the_provider_refuses(tmp_path, status, exit_):
    project(tmp_path)
    async with model_server(CHAT.refused(status)) as server:
        done = await in_thread(chat, tmp_path, "--model", "m", "--url", server.url, "--json", "hello")
    assert done.status == exit_
    error = json.loads(done.out.splitlines()[-1])["error"]
    assert error["http_status"] == status
    assert f"HTTP {status}" in error["message"]
    assert error["hint"]


async def in_thread(function, *arguments, **keywords):
    return await asyncio.to_thread(function, *arguments, **keywords)


# --- on a terminal --------------------------------------------------------------------------------------

_LOGIN = """
import os, sys
os.login_tty(int(sys.argv[1]))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


class Terminal:
    """The program on a pseudo-terminal of its own."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (40, 100))
        command = [sys.executable, "-c", _LOGIN, str(slave), "-m", "dragoman", "chat", *words]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment(folder, **env), pass_fds=(slave,), stdin=subprocess.DEVNULL
        )
        os.close(slave)
        self.shown = ""
        self.read = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, pattern: str, seconds: float = 20) -> str:
        """Wait until something is shown behind what was waited for before; returns all up to it."""
        end = time.monotonic() + seconds
        while (found := re.search(pattern, self.shown[self.read :])) is None:
            assert self._more(end), f"{pattern!r} was not shown in\n{self.shown}"
        start, self.read = self.read, self.read + found.end()
        return self.shown[start : self.read]

    def _more(self, end: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
        data = b""
        if ready:
            with contextlib.suppress(OSError):  # the end of a terminal on Linux
                data = os.read(self.master, 65536)
        self.shown += re.sub(r"\x1b\[\d*m", "", data.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(data)

    def ended(self) -> int:
        while self._more(time.monotonic() + 20):
            pass
        return self.process.wait(20)


def test_a_conversation(tmp_path):
    project(tmp_path, [*SCRIPT, "You are welcome."])
    with Terminal(tmp_path, *SCRIPTED) as terminal:
        terminal.until(r"scripted, with 7 tools of 1 server\n")
        terminal.until("> ")
        terminal.type("how much?\n")
        shown = terminal.until(r"used +2 requests.*written\n")
        assert "Let me see.\n" in shown
        assert re.search(rf'call +{name("price")} {{"item":"apple"}}\n', shown)
        assert "An apple costs 3.\n" in shown
        terminal.until("> ")
        terminal.type("thanks\n")
        terminal.until("You are welcome.")
        terminal.until("> ")
        terminal.type("/usgae\n")
        terminal.until("there is no '/usgae', but")
        terminal.until("/usage   tokens and rounds")
        terminal.until("> ")
        terminal.type("/usage\n")
        terminal.until("3 requests, ")
        terminal.until("> ")
        terminal.type("\x04")
        assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("typed", "bought", "again"), [("y", 2, True), ("s", 2, False), ("n", 0, True), ("", 0, True)]
)
def test_a_question_shows_every_argument(tmp_path, typed, bought, again):
    project(tmp_path, [{"calls": [BUY]}, {"calls": [BUY]}, "done"])
    with Terminal(tmp_path, *SCRIPTED) as terminal:
        terminal.until("> ")
        terminal.type("buy\n")
        shown = terminal.until("Allow it?.*: ")
        assert "The model wants to call buy on shop:" in shown
        assert 'item = "apple"\n' in shown
        assert "count = 2\n" in shown
        assert "no rule matches" in shown
        terminal.type(f"{typed}\n")
        if again:
            terminal.until("Allow it?.*: ")
            terminal.type(f"{typed}\n")
        assert "Allow it?" not in terminal.until("done\n")
        terminal.until("> ")
        terminal.type("/quit\n")
        assert terminal.ended() == 0
    assert calls(tmp_path) == ["buy apple 2"] * bought


def test_arguments_that_would_steer_the_terminal_are_shown_as_text(tmp_path):
    evil = {"name": name("buy"), "arguments": {"item": "\x1b[2J\u202e", "count": 1}}
    project(tmp_path, [{"calls": [evil]}, "done"])
    with Terminal(tmp_path, *SCRIPTED) as terminal:
        terminal.until("> ")
        terminal.type("buy\n")
        shown = terminal.until("Allow it?.*: ")
        assert "\\u001b[2J\\u202e" in shown
        assert "\x1b" not in shown


def test_a_server_may_ask_too(tmp_path):
    project(
        tmp_path, [{"calls": [{"name": name("wrap"), "arguments": {}}]}, "wrapped"], {"allow": ["mcp__shop"]}
    )
    with Terminal(tmp_path, *SCRIPTED) as terminal:
        terminal.until("> ")
        terminal.type("wrap it\n")
        terminal.until("Which paper[?](.|\n)*> ")
        terminal.type("blue\n")
        terminal.until("send this.*> ")
        terminal.type("y\n")
        terminal.until("in blue")
        terminal.until("wrapped")
    declined = chat(tmp_path, *SCRIPTED, "wrap it")
    assert declined.status == 0
    assert calls(tmp_path)[0] == "wrap accept"


def test_a_server_of_the_project_is_started_after_a_yes(tmp_path):
    project(tmp_path)
    with Terminal(tmp_path, "--script", "script.json") as terminal:
        shown = terminal.until(r"Start it\? \[y\]es, \[N\]o: ")
        assert "names the server 'shop':\n" in shown
        assert "shop.py" in shown
        terminal.type("y\n")
        terminal.until("with 7 tools of 1 server")


def test_ctrl_c_stops_the_answer_and_not_the_program(tmp_path):
    project(tmp_path, [{"text": "Wait.", "calls": [HANGING]}, "still here"])
    with Terminal(tmp_path, *SCRIPTED) as terminal:
        terminal.until("> ")
        terminal.type("go\n")
        terminal.until(f"call +{name('hang')}")
        terminal.type("\x03")
        terminal.until("ended +it was stopped\n")
        terminal.until("> ")
        terminal.type("are you there?\n")
        terminal.until("still here\n")
        terminal.until("> ")
        terminal.type("\x03")
        terminal.until("Ctrl-C once more, or Ctrl-D, ends the program")
        terminal.type("\x03")
        assert terminal.ended() == 130


def test_ctrl_c_at_a_question_is_no_yes(tmp_path):
    project(tmp_path, [{"calls": [BUY]}, "as you wish"])
    with Terminal(tmp_path, *SCRIPTED) as terminal:
        terminal.until("> ")
        terminal.type("buy\n")
        terminal.until("Allow it?.*: ")
        terminal.type("\x03")
        terminal.until(r"\n +ended +it was stopped\n")
        terminal.until("> ")
        terminal.type("leave it\n")
        terminal.until("as you wish\n")
    assert calls(tmp_path) == []


def test_ctrl_c_stops_one_prompt_and_the_file_goes_on(tmp_path):
    project(tmp_path, [{"calls": [PRICE, HANGING]}, "at last"])
    with Terminal(tmp_path, *SCRIPTED, "--resume", "s.json", "go") as terminal:
        terminal.until(f"ok +{name('price')}")
        while "hang" not in calls(tmp_path):
            time.sleep(0.01)
        terminal.type("\x03")
        assert terminal.ended() == 130
    done = chat(tmp_path, *SCRIPTED, "--resume", "s.json", stdin="")
    assert (done.status, done.out) == (0, "at last\n")
    assert sorted(calls(tmp_path)) == ["hang", "price apple"]


async def test_an_error_of_the_provider_ends_no_conversation(tmp_path):
    project(tmp_path)
    whole = CHAT.events("abcdef")
    begun = whole[: whole.index(b"\n\n", whole.index(b"abc")) + 2]
    replies = [CHAT.refused(400), CHAT.stream("now"), Reply([begun, HANG], headers=EVENTS)]

    def talk(url: str) -> None:
        with Terminal(tmp_path, "--model", "m", "--url", url, "--trusted") as terminal:
            terminal.until("> ")
            terminal.type("hello\n")
            terminal.until("HTTP 400")
            terminal.until("an empty line asks again\n> ")
            terminal.type("\n")
            terminal.until("now\n")
            terminal.until("> ")
            terminal.type("again\n")
            terminal.until("abc")
            terminal.type("\x03")
            terminal.until("it was stopped")

    async with model_server(*replies) as server:
        await in_thread(talk, server.url)
    messages = server.requests[1].body["messages"]
    sent = [message["content"] for message in messages if message["role"] == "user"]
    assert sent == ["hello"]
