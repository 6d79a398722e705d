"""Answers larger than any pipe arrive whole and in order, however slowly they are read."""

from __future__ import annotations

import json
import sys
import threading

from bench.entrants import SERVERS
from bench.wire import ADD, Stdio, request

OURS = [sys.executable, str(SERVERS / "dragoman_server.py")]


def test_what_follows_a_large_answer_waits_for_its_end() -> None:
    text = "0123456789" * 2_000_000
    with Stdio(OURS) as server:
        server.hello()
        frames = [
            request(1000, "tools/call", {"name": "echo", "arguments": {"text": text}}),
            *(request(number, "tools/call", ADD) for number in range(1001, 1051)),
            request(1051, "tools/call", {"name": "echo", "arguments": {"text": text[::-1]}}),
            request(1052, "tools/call", ADD),
        ]
        sender = threading.Thread(target=server.send, args=(b"\n".join(frames),))
        sender.start()
        answers = {}
        for _ in frames:
            answer = json.loads(server.line())
            answers[answer["id"]] = answer["result"]["structuredContent"]["result"]
        sender.join()
    assert list(answers) == list(range(1000, 1053))
    assert answers.pop(1000) == text
    assert answers.pop(1051) == text[::-1]
    assert set(answers.values()) == {7}


def test_a_large_answer_that_is_read_after_the_input_ended_is_whole() -> None:
    text = "x" * 12_000_000
    with Stdio(OURS) as server:
        server.send(request(1, "tools/call", {"name": "echo", "arguments": {"text": text}}))
        server.process.stdin.close()
        answer = json.loads(server.line())
        assert answer["result"]["structuredContent"]["result"] == text
        assert server.process.wait(10) == 0
