"""What a server holds: after its first call, for a large message, for each open stream."""

from __future__ import annotations

import contextlib
import sys

import pytest

from bench.entrants import SERVERS
from bench.wire import ADD, Http, Stdio, memory

OURS = [sys.executable, str(SERVERS / "dragoman_server.py")]
PAYLOAD = 10_000_000


def test_after_the_first_call_at_most_32_mebibytes() -> None:
    with Stdio(OURS) as server:
        server.hello()
        server.call("tools/call", ADD)
        assert memory(server.pid)[1] <= 32 * 1024


def test_a_large_echo_over_stdio_takes_at_most_six_times_its_size() -> None:
    with Stdio(OURS) as server:
        server.hello()
        server.call("tools/call", ADD)
        before = memory(server.pid)[1]
        server.echo("x" * PAYLOAD)
        assert (memory(server.pid)[1] - before) * 1024 <= 6 * PAYLOAD


def test_a_large_echo_over_http_takes_at_most_six_times_its_size() -> None:
    pytest.importorskip("uvicorn", reason="uvicorn serves HTTP")
    with Http(OURS) as server:
        server.call("tools/call", ADD)
        before = memory(server.pid)[1]
        server.call("tools/call", {"name": "echo", "arguments": {"text": "x" * PAYLOAD}})
        assert (memory(server.pid)[1] - before) * 1024 <= 6 * PAYLOAD


def test_an_open_listen_stream_takes_at_most_20_kibibytes() -> None:
    count = 400
    with Http(OURS) as server, contextlib.ExitStack() as opened:
        server.load(0.3, 64)  # what grows once has grown
        before = memory(server.pid)[0]
        for number in range(count):
            opened.enter_context(server.listen(number + 1))
        server.call("tools/call", ADD)
        assert (memory(server.pid)[0] - before) / count <= 20
