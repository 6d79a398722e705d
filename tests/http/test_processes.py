"""Two real processes on one SQLite file, requests going to either; and one of them killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.protocol.sse import Parser
from tests.http.wire import BASE, INITIALIZE, WAIT, Answer, Wire, rpc

SCRIPT = """
import asyncio, sys
from dragoman import Context, Server
from dragoman.stores.sqlite import SQLiteStore
server = Server("orders", secret="correct horse battery staple")

@server.tool
async def where() -> str:
    return sys.argv[2]

@server.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("sure?", {"type": "object", "properties": {}})
    return f"{answer.action} in {sys.argv[2]}"

@server.tool
async def poll(ctx: Context) -> str:
    ctx.close_sse_stream(10)
    return f"done in {sys.argv[2]}"

server.run("http", port=0, store=SQLiteStore(sys.argv[1], keys=server.keys))
"""


class Process(NamedTuple):
    child: subprocess.Popen[str]
    port: int

    def ask(self, verb: str, headers: dict[str, str], message: Any = None) -> Answer:
        with Wire(self.port) as wire:
            return wire.request(verb, message, headers).answer()

    def call(self, headers: dict[str, str], name: str) -> Answer:
        return self.ask("POST", headers, rpc("tools/call", {"name": name, "arguments": {}}, id=7))

    def open_session(self) -> dict[str, str]:
        opened = self.ask("POST", BASE, INITIALIZE)
        headers = {**BASE, "mcp-session-id": opened.headers["mcp-session-id"]}
        assert self.ask("POST", headers, rpc("notifications/initialized", id=None)).status == 202
        return headers


@contextmanager
def process(store: Path, name: str) -> Iterator[Process]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    line = [sys.executable, "-c", SCRIPT, str(store), name]
    child = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert child.stderr is not None
        said = child.stderr.readline()
        assert said.startswith("dragoman: serving orders"), said
        yield Process(child, int(said.rpartition(":")[2].partition("/")[0]))
    finally:
        child.terminate()
        _, rest = child.communicate(timeout=WAIT)
        assert "Traceback" not in rest, rest


@contextmanager
def two(path: Path) -> Iterator[tuple[Process, Process]]:
    with ExitStack() as stack:
        store = path / "sessions.db"
        one, two = [stack.enter_context(process(store, name)) for name in ("one", "two")]
        yield one, two


def text(message: Any) -> str:
    return message["result"]["content"][0]["text"]


def test_requests_of_one_session_go_to_either(tmp_path: Path) -> None:
    with two(tmp_path) as (one, other):
        session = one.open_session()
        assert [text(each.call(session, "where").json) for each in (one, other, one)] == ["one", "two", "one"]
        with Wire(one.port) as wire:
            wire.request("POST", rpc("tools/call", {"name": "ask", "arguments": {}}, id=8), session)
            assert wire.head() == 200
            asked = wire.event()
            assert asked["method"] == "elicitation/create"
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
            assert other.ask("POST", session, reply).status == 202
            assert text(wire.event()) == "decline in one"
        closed = one.call(session, "poll")
        parser = Parser()
        parser.feed(closed.body)
        assert parser.retry == 10
        again = other.ask("GET", {**session, "last-event-id": str(parser.last_id)})
        assert text(again.messages[-1]) == "done in one"
        assert other.ask("DELETE", session).status == 204
        assert one.call(session, "where").status == 404


def test_a_process_that_is_killed_takes_no_session_with_it(tmp_path: Path) -> None:
    with two(tmp_path) as (one, other):
        session = one.open_session()
        closed = one.call(session, "poll")
        parser = Parser()
        parser.feed(closed.body)
        # The answer was kept before anybody came for it.
        first = one.ask("GET", {**session, "last-event-id": str(parser.last_id)})
        one.child.kill()
        one.child.wait(WAIT)
        assert text(other.call(session, "where").json) == "two"
        again = other.ask("GET", {**session, "last-event-id": str(parser.last_id)})
        assert again.messages == first.messages
        assert text(again.messages[-1]) == "done in one"
