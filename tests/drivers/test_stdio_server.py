"""A server on the standard streams of a real process."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.stdio import (
    META,
    NS,
    PATIENCE,
    SERVER,
    ServerProcess,
    call,
    initialize,
    request,
    stateless,
)
from tests.spec.oracle import validate_frame

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def text(answer: Any) -> str:
    return answer["result"]["content"][0]["text"]


def test_one_process_serves_both_kinds_of_request_side_by_side() -> None:
    with ServerProcess() as server:
        server.send(
            stateless("d", "server/discover"),
            initialize("i"),
            INITIALIZED,
            call(1, "add", a=1, b=2),
            request(2, "tools/call", {"name": "add", "arguments": {"a": 3, "b": 4}}),
        )
        answers = server.answers(["d", "i", 1, 2])
        validate_frame("2026-07-28", answers["d"], "server/discover", "to_client", exact=True)
        validate_frame("2025-11-25", answers["i"], "initialize", "to_client", exact=True)
        validate_frame("2026-07-28", answers[1], "tools/call", "to_client", exact=True)
        validate_frame("2025-11-25", answers[2], "tools/call", "to_client", exact=True)
        assert answers["d"]["result"]["supportedVersions"] == ["2026-07-28"]
        assert answers["i"]["result"]["protocolVersion"] == "2025-11-25"
        assert (text(answers[1]), text(answers[2])) == ("3", "7")
        assert answers[1]["result"]["resultType"] == "complete"
        assert "resultType" not in answers[2]["result"]


@pytest.mark.parametrize("asked", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_initialize_is_answered_with_the_revision_that_was_asked_for(asked: str) -> None:
    with ServerProcess() as server:
        answer = server.ask(initialize(0, asked))
        validate_frame(asked, answer, "initialize", "to_client", exact=True)
        assert answer["result"]["protocolVersion"] == asked
        listed = server.ask(request(1, "tools/list"))
        validate_frame(asked, listed, "tools/list", "to_client", exact=True)
        called = server.ask(request(2, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}))
        validate_frame(asked, called, "tools/call", "to_client", exact=True)
        assert text(called) == "2"


@pytest.mark.parametrize("asked", ["1999-01-01", "2026-07-28", "nonsense"])
def test_initialize_with_another_revision_is_answered_with_the_newest_handshake(asked: str) -> None:
    with ServerProcess() as server:
        assert server.ask(initialize(0, asked))["result"]["protocolVersion"] == "2025-11-25"


def test_everything_printed_goes_to_stderr_and_stdin_is_out_of_reach() -> None:
    with ServerProcess("--print", env={"PYTHONUNBUFFERED": ""}) as server:
        assert text(server.ask(call(1, "chatter"))) == "read 0 characters of stdin"
        assert text(server.ask(call(2, "add", a=1, b=1))) == "2"
        server.close_input()
        assert server.rest() == []
        for printed in (b"A BANNER", b"PRINTED", b"WRITTEN", b"RAW", b"FROM A CHILD"):
            assert printed in server.stderr


def test_the_wire_is_utf_8_and_lf_whatever_the_locale() -> None:
    with ServerProcess(env={"PYTHONIOENCODING": "cp1252", "LC_ALL": "C", "PYTHONUTF8": "0"}) as server:
        server.send(call(1, "echo", text="서울 — \u2028 €"))
        line = server.line()
        assert b"\r" not in line
        assert text(json.loads(line.decode("utf-8"))) == "서울 — \u2028 €"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_end_with_lf_or_crlf(end: bytes) -> None:
    with ServerProcess() as server:
        server.write(json.dumps(call(1, "add", a=2, b=2)).encode() + end)
        assert text(server.read()) == "4"


def test_a_message_may_come_in_any_pieces() -> None:
    with ServerProcess() as server:
        for byte in json.dumps(call(1, "echo", text="한글"), ensure_ascii=False).encode() + b"\n":
            server.write(bytes([byte]))
        assert text(server.read()) == "한글"


def test_a_slow_tool_stalls_nothing_and_answers_come_as_they_are_ready() -> None:
    with ServerProcess() as server:
        server.send(call("slow", "hold"))
        server.said(b"holding")
        assert text(server.ask(call("quick", "add", a=1, b=1))) == "2"
        server.send(initialize(7))
        assert server.read()["id"] == 7
        assert server.ask(request(8, "ping"))["result"] == {}
        server.send(call("go", "release"))
        assert text(server.answers(["slow", "go"])["slow"]) == "released"


@pytest.mark.parametrize("tool", ["wait_for_ever", "hold"])
def test_a_cancelled_request_is_answered_by_silence(tool: str) -> None:
    with ServerProcess() as server:
        server.send(call(1, tool))
        server.said(b"waiting" if tool == "wait_for_ever" else b"holding")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        if tool == "wait_for_ever":
            server.said(b"stopped")
        server.send(call(2, "release"))
        assert server.read()["id"] == 2
        server.close_input()
        assert server.rest() == []


def test_a_request_cancelled_in_the_same_burst_is_silent_and_its_id_free_again() -> None:
    with ServerProcess() as server:
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        server.send(call(1, "add", a=1, b=1), cancelled, call(2, "add", a=2, b=2))
        assert server.read()["id"] == 2
        assert text(server.ask(call(1, "add", a=3, b=3))) == "6"


@pytest.mark.parametrize(
    "params", [{}, {"requestId": None}, {"requestId": 1.5}, {"requestId": "nobody"}, [], {"requestId": {}}]
)
def test_a_cancellation_that_says_nothing_is_passed_over(params: Any) -> None:
    with ServerProcess() as server:
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        assert text(server.ask(call(2, "add", a=1, b=1))) == "2"


def test_an_id_in_use_is_refused_and_the_first_request_goes_on() -> None:
    with ServerProcess() as server:
        server.send(call(1, "hold"))
        server.said(b"holding")
        server.send(call(1, "add", a=1, b=1))
        refused = server.read()
        assert (refused["id"], refused["error"]["code"]) == (1, -32600)
        server.send(call(2, "release"))
        assert text(server.answers([1, 2])[1]) == "released"


def test_7_and_the_string_7_are_different_requests() -> None:
    with ServerProcess() as server:
        server.send(call(7, "add", a=7, b=0), call("7", "add", a=70, b=0))
        answers = server.answers([7, "7"])
        assert (text(answers[7]), text(answers["7"])) == ("7", "70")


def test_progress_and_logs_only_for_those_who_asked() -> None:
    with ServerProcess() as server:
        asked = stateless(
            1,
            "tools/call",
            {"name": "steps", "arguments": {"count": 3}},
            progressToken=0,
            **{NS + "logLevel": "info"},
        )
        silent = call(2, "steps", count=3)
        server.send(asked)
        seen = [server.read() for _ in range(7)]
        for frame in seen[:-1]:
            validate_frame("2026-07-28", frame, None, "to_client", exact=True)
        progress = [m["params"] for m in seen if m.get("method") == "notifications/progress"]
        assert [(p["progressToken"], p["progress"], p["total"]) for p in progress] == [
            (0, 0, 3),
            (0, 1, 3),
            (0, 2, 3),
        ]
        assert progress[2]["message"] == "단계 2"
        logs = [m["params"] for m in seen if m.get("method") == "notifications/message"]
        assert [entry["data"] for entry in logs] == [{"step": 0}, {"step": 1}, {"step": 2}]
        assert seen[-1]["id"] == 1
        assert server.ask(silent)["id"] == 2
        server.close_input()
        assert server.rest() == []


def test_a_session_sets_its_log_level_once() -> None:
    with ServerProcess() as server:
        server.ask(initialize())
        server.ask(request(1, "tools/call", {"name": "steps", "arguments": {"count": 1}}))
        assert server.ask(request(2, "logging/setLevel", {"level": "warning"}))["result"] == {}
        server.send(request(3, "tools/call", {"name": "steps", "arguments": {"count": 1}}))
        assert server.read()["id"] == 3
        server.ask(request(4, "logging/setLevel", {"level": "debug"}))
        server.send(request(5, "tools/call", {"name": "steps", "arguments": {"count": 1}}))
        entry = server.read()
        assert entry["method"] == "notifications/message"
        validate_frame("2025-11-25", entry, None, "to_client", exact=True)


# The end -----------------------------------------------------------------------------------------


def test_at_the_end_of_input_what_is_owed_is_answered_and_the_exit_status_is_0() -> None:
    with ServerProcess() as server:
        server.send(*(call(i, "echo", text=str(i)) for i in range(50)))
        server.close_input()
        assert sorted(m["id"] for m in server.rest()) == list(range(50))
        assert server.wait() == 0


def test_a_last_line_without_an_end_is_a_message() -> None:
    with ServerProcess() as server:
        server.write(json.dumps(call(1, "add", a=1, b=1)).encode())
        server.close_input()
        assert [text(m) for m in server.rest()] == ["2"]


def test_an_open_subscription_is_ended_gracefully_and_holds_nothing_up() -> None:
    with ServerProcess() as server:
        server.send(stateless("s", "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        first = server.read()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        validate_frame("2026-07-28", first, None, "to_client", exact=True)
        server.close_input()
        (last,) = server.rest()
        validate_frame("2026-07-28", last, "subscriptions/listen", "to_client", exact=True)
        assert last["result"]["_meta"][NS + "subscriptionId"] == "s"
        assert server.wait() == 0


def test_regular_files_on_both_ends(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    frames = [call(i, "add", a=i, b=1) for i in range(200)]
    source.write_bytes(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
    with source.open("rb") as stdin, target.open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, str(SERVER)],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answers = {m["id"]: m for m in map(json.loads, target.read_bytes().splitlines())}
    assert {i: int(text(answers[i])) for i in range(200)} == {i: i + 1 for i in range(200)}


def test_no_input_at_all_ends_at_once() -> None:
    done = subprocess.run(
        [sys.executable, str(SERVER)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_a_client_that_stops_reading_and_goes_away_leaves_no_server_behind() -> None:
    with ServerProcess() as server:
        assert server.process.stdout is not None
        server.send(call(1, "wait_for_ever"))
        server.said(b"waiting")
        server.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it may have seen so already, and be gone
            server.send(call(2, "add", a=1, b=1))
        assert server.wait() == 0


@pytest.mark.parametrize("number", [15, 2])
def test_a_signal_stops_the_server_whatever_its_tools_are_doing(number: int) -> None:
    with ServerProcess() as server:
        server.send(call(1, "wait_for_ever"), call(2, "hold"))
        server.said(b"waiting")
        server.said(b"holding")
        server.process.send_signal(number)
        assert server.wait() == 0


# Limits ------------------------------------------------------------------------------------------


def test_both_pipes_full_is_no_deadlock() -> None:
    with ServerProcess() as server:
        count, size = 40, 200_000  # 8 MB each way, far beyond what pipes hold
        body = b"".join(json.dumps(call(i, "echo", text="y" * size)).encode() + b"\n" for i in range(count))
        server.write(body)
        answers = server.answers(range(count))
        assert all(len(text(answer)) == size for answer in answers.values())


def test_a_client_that_does_not_read_stops_being_read() -> None:
    with ServerProcess() as server:
        assert server.process.stdin is not None
        import os

        fd = server.process.stdin.fileno()
        os.set_blocking(fd, False)
        frame = json.dumps(call("x", "big", size=1_000_000)).encode()
        sent = 0
        try:
            while sent < 100_000:  # each is owed a megabyte: reading on would take 100 GB
                line = frame.replace(b'"x"', str(sent).encode(), 1) + b"\n"
                sent += os.write(fd, line) == len(line)
        except BlockingIOError:
            pass
        assert 0 < sent < 100_000


def test_more_requests_than_may_be_in_flight_wait_their_turn() -> None:
    with ServerProcess() as server:
        server.send(*(call(i, "add", a=i, b=0) for i in range(5000)))
        answers = server.answers(range(5000))
        assert all(int(text(answers[i])) == i for i in range(5000))


def test_nothing_of_one_connection_is_known_to_a_stateless_request() -> None:
    with ServerProcess() as server:
        server.ask(initialize())
        bare = {
            "name": "add",
            "arguments": {"a": 1, "b": 1},
            "_meta": {NS + "protocolVersion": META[NS + "protocolVersion"]},
        }
        refused = server.ask(request(1, "tools/call", bare))
        assert refused["error"]["code"] == -32602
        assert "clientCapabilities" in refused["error"]["message"]


def test_a_call_that_heeds_no_cancellation_does_not_keep_the_process(tmp_path: Path) -> None:
    script = tmp_path / "stubborn.py"
    script.write_text(
        "import asyncio, os\n"
        "from dragoman import Server\n"
        "server = Server('stubborn')\n"
        "@server.tool\n"
        "async def stubborn() -> None:\n"
        "    os.write(2, b'working')\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.sleep(60)\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "server.run()\n"
    )
    with ServerProcess(script=script) as server:
        server.send(call(1, "stubborn"))
        server.said(b"working")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
