"""On real sockets, with the ASGI server that `run("http")` uses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConnectError
from dragoman.transports.serve import run_http
from tests.http.things import things
from tests.http.wire import BASE, INITIALIZE, WAIT, Wire, routed, rpc, served, stateless

ADD = stateless("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
LISTEN = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


def test_many_requests_on_one_connection() -> None:
    with served(things().server.asgi()) as port, Wire(port) as wire:
        for _ in range(3):
            answer = wire.request("POST", ADD).answer()
            assert answer.json["result"]["structuredContent"] == {"result": 3}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_both_spellings(path: str) -> None:
    with served(things().server.asgi()) as port, Wire(port) as wire:
        assert wire.request("POST", ADD, path=path).answer().status == 200


def test_rebinding() -> None:
    with served(things().server.asgi()) as port:
        for host, origin, status in [
            ("evil.example.com", "http://evil.example.com", 421),
            (f"127.0.0.1:{port}", "http://evil.example.com", 403),
            (f"127.0.0.1:{port}", f"http://127.0.0.1:{port}", 200),
            (f"localhost:{port}", f"http://localhost:{port}", 200),
        ]:
            with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as plain:
                body = json.dumps(INITIALIZE).encode()
                plain.sendall(
                    f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n"
                    f"Content-Type: application/json\r\nAccept: */*\r\n"
                    f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                assert int(plain.makefile("rb").readline().split()[1]) == status


def test_stream_event_by_event() -> None:
    it = things()
    with served(it.server.asgi()) as port, Wire(port) as wire:
        wire.request("POST", stateless("tools/call", {"name": "tell_and_wait"}, progressToken="t"))
        assert wire.head() == 200
        assert wire.headers["content-type"] == "text/event-stream"
        assert wire.event()["method"] == "notifications/progress"
        wire.close()
        assert it.thread_cancelled.wait(WAIT), "a closed stream is a cancellation"


def test_closed_connection_cancels_a_call_that_sent_nothing() -> None:
    it = things()
    with served(it.server.asgi()) as port:
        with Wire(port) as wire:
            wire.request("POST", stateless("tools/call", {"name": "wait"}))
            assert it.thread_entered.wait(WAIT)
        assert it.thread_cancelled.wait(WAIT)


def test_closed_connection_does_not_cancel_in_a_session() -> None:
    it = things()
    app = it.server.asgi()
    with served(app) as port, Wire(port) as wire:
        session = wire.request("POST", INITIALIZE, BASE).answer().headers["mcp-session-id"]
        headers = {**BASE, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        assert wire.request("POST", rpc("notifications/initialized", id=None), headers).answer().status == 202
        with Wire(port) as other:
            other.request("POST", rpc("tools/call", {"name": "wait"}, id=7), headers)
            assert it.thread_entered.wait(WAIT)
        assert wire.request("POST", rpc("ping"), headers).answer().json["result"] == {}
        assert not it.thread_cancelled.is_set()
        assert app.sessions[session].calls
        cancel = rpc("notifications/cancelled", {"requestId": 7}, id=None)
        assert wire.request("POST", cancel, headers).answer().status == 202
        assert it.thread_cancelled.wait(WAIT)


def test_changes_on_two_listen_streams_and_on_a_session() -> None:
    it = things()
    with served(it.server.asgi()) as port, Wire(port) as one, Wire(port) as two, Wire(port) as wire:
        for listener in (one, two):
            listener.request("POST", LISTEN)
            assert listener.head() == 200
            assert listener.event()["method"] == "notifications/subscriptions/acknowledged"
        assert wire.request("POST", stateless("tools/call", {"name": "add_tool"})).answer().status == 200
        for listener in (one, two):
            assert listener.event()["method"] == "notifications/tools/list_changed"


def test_unread_stream_ends_and_the_server_goes_on() -> None:
    it = things()
    with served(it.server.asgi(max_queue=1024 * 1024)) as port, Wire(port) as slow, Wire(port) as wire:
        message = stateless(
            "tools/call", {"name": "flood", "arguments": {"size": 64 * 1024 * 1024}}, progressToken="t"
        )
        slow.request("POST", message)
        assert it.thread_cancelled.wait(WAIT)
        assert wire.request("POST", ADD).answer().status == 200


def test_shutdown_ends_streams_and_leaves_nothing_behind() -> None:
    it = things()
    app = it.server.asgi()
    with served(app) as port:
        listener = Wire(port).request("POST", LISTEN)
        listener.head()
        assert listener.event()["method"] == "notifications/subscriptions/acknowledged"
    assert listener.event()["result"]["resultType"] == "complete"
    assert listener.event() is None
    listener.close()
    assert not app.open_exchanges


SCRIPT = """
import asyncio, sys
from dragoman import Server
server = Server("orders")
@server.tool
async def wait() -> str:
    print("waiting", file=sys.stderr, flush=True)
    await asyncio.sleep(3600)
    return "never"
server.run("http", host=sys.argv[1], port=int(sys.argv[2]))
"""


def start(host: str = "127.0.0.1", port: int = 0) -> tuple[Any, str]:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, host, str(port)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )
    assert child.stderr is not None
    return child, child.stderr.readline()


@pytest.mark.parametrize(("number", "busy"), [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_signals_stop_the_program_in_bounded_time(number: signal.Signals, busy: bool) -> None:
    child, line = start()
    try:
        assert line.startswith("dragoman: serving orders at http://127.0.0.1:")
        assert line.endswith("/mcp\n")
        port = int(line.rpartition(":")[2].partition("/")[0])
        with Wire(port) as call, Wire(port) as listener:
            listener.request("POST", LISTEN)
            listener.head()
            if busy:
                call.request("POST", stateless("tools/call", {"name": "wait"}))
                assert child.stderr.readline() == "waiting\n"
            child.send_signal(number)
            assert child.wait(WAIT) == 0
            messages = [listener.event(), listener.event()]
            assert messages[1]["result"]["resultType"] == "complete"
        assert child.stdout.read() == ""
    finally:
        child.kill()
        child.communicate()


def test_open_address_is_told_in_a_warning() -> None:
    child, line = start("0.0.0.0")
    try:
        assert "not a loopback address" in line
        assert "allowed_hosts" in line
    finally:
        child.kill()
        child.communicate()


def test_taken_port_is_a_clear_error() -> None:
    with served(things().server.asgi()) as port, pytest.raises(ConnectError, match=f"127.0.0.1:{port}"):
        run_http(things().server.asgi(), port=port)


def test_upgrade_to_a_websocket_is_refused() -> None:
    headers = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version": "13",
    }
    with served(things().server.asgi()) as port, Wire(port) as wire:
        assert wire.request("GET", None, headers).answer().status in (400, 403)


def test_calls_from_many_threads() -> None:
    results: list[int] = []

    def run(port: int) -> None:
        with Wire(port) as wire:
            results.extend(wire.request("POST", ADD, routed(ADD)).answer().status for _ in range(20))

    with served(things().server.asgi()) as port:
        threads = [threading.Thread(target=run, args=(port,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
    assert results == [200] * 160
