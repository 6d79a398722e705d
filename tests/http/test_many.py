"""A thousand listeners and two hundred sessions at once on one process: what each costs, and what stays."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.protocol.sse import Parser
from tests.http.wire import BASE, INITIALIZE, Answer, routed, rpc, stateless

LISTENERS = 1000
SESSIONS = 200
KIB_EACH = 20  # for an open stream, with all that the HTTP server keeps for a connection
CHANGES = 3
WAIT = 60.0

SCRIPT = """
import gc, os
from dragoman import Server
server = Server("many")

@server.tool
async def facts() -> dict[str, int]:
    gc.collect()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {
        "rss": pages * os.sysconf("SC_PAGE_SIZE"),
        "subscriptions": len(server.kernel.hub.subscriptions),
        "links": len(server.kernel.hub.links),
        "exchanges": len(app.open_exchanges) - 1,
        "sessions": len(app.sessions),
        "events": app.sessions.events.count,
    }

@server.tool
async def change() -> str:
    server.notify_tools_changed()
    return "told"

app = server.asgi(keep_alive=3600.0)
from dragoman.transports.serve import run_http
run_http(app, port=0)
"""
LISTEN = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


@contextmanager
def serving() -> Iterator[int]:
    path = os.pathsep.join([str(Path(__file__).parents[2] / "src")])
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert child.stderr is not None
    try:
        line = child.stderr.readline()
        assert line.startswith("dragoman: serving many"), line
        yield int(line.rpartition(":")[2].partition("/")[0])
    finally:
        child.terminate()
        child.communicate(timeout=WAIT)


class Stream:
    """One open response, and the methods of the messages on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._parser = Parser()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.methods: list[str] = []

    async def head(self) -> None:
        self.status = int((await self._reader.readline()).split()[1])
        while line := (await self._reader.readline()).strip():
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()

    async def until(self, method: str, count: int) -> None:
        while self.methods.count(method) < count:
            await self._chunk()

    async def _chunk(self) -> None:
        size = int(await self._reader.readline(), 16)
        data = await self._reader.readexactly(size)
        await self._reader.readline()
        self.methods += [json.loads(event.data)["method"] for event in self._parser.feed(data) if event.data]

    async def answer(self) -> Answer:
        await self.head()
        body = await self._reader.readexactly(int(self.headers.get("content-length", 0)))
        return Answer(self.status, self.headers, body)

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def ask(port: int, verb: str, headers: dict[str, str], message: Any = None) -> Stream:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b"" if message is None else json.dumps(message).encode()
    lines = [f"{verb} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)
    return Stream(reader, writer)


async def answer(port: int, verb: str, headers: dict[str, str], message: Any = None) -> Answer:
    stream = await ask(port, verb, headers, message)
    try:
        return await stream.answer()
    finally:
        await stream.close()


async def tool(port: int, name: str) -> Any:
    message = stateless("tools/call", {"name": name, "arguments": {}})
    return (await answer(port, "POST", routed(message), message)).json["result"].get("structuredContent")


async def listener(port: int) -> Stream:
    stream = await ask(port, "POST", routed(LISTEN), LISTEN)
    await stream.head()
    await stream.until("notifications/subscriptions/acknowledged", 1)
    return stream


async def session(port: int) -> tuple[dict[str, str], Stream]:
    opened = await answer(port, "POST", BASE, INITIALIZE)
    headers = {**BASE, "mcp-session-id": opened.headers["mcp-session-id"]}
    done = await answer(port, "POST", headers, rpc("notifications/initialized", id=None))
    assert done.status == 202
    stream = await ask(port, "GET", headers)
    await stream.head()
    assert stream.status == 200
    return headers, stream


async def some(number: int, make: Any) -> list[Any]:
    """So many of them, a few at a time."""
    found: list[Any] = []
    for start in range(0, number, 50):
        found += await asyncio.gather(*[make() for _ in range(min(50, number - start))])
    return found


async def crowd(port: int, listeners: int, sessions: int) -> dict[str, int]:
    """Open them all, tell them of changes, close them all; what the server was like with all of them."""
    streams = await some(listeners, lambda: listener(port))
    seats = await some(sessions, lambda: session(port))
    streams += [stream for _, stream in seats]
    facts: dict[str, int] = await tool(port, "facts")
    assert (facts["subscriptions"], facts["links"], facts["sessions"]) == (listeners, sessions, sessions)
    for _ in range(CHANGES):
        await tool(port, "change")
    method = "notifications/tools/list_changed"
    await asyncio.gather(*[stream.until(method, CHANGES) for stream in streams])
    await tool(port, "change")  # whatever came twice has come by now
    await asyncio.gather(*[stream.until(method, CHANGES + 1) for stream in streams])
    assert {stream.methods.count(method) for stream in streams} == {CHANGES + 1}
    await asyncio.gather(*[stream.close() for stream in streams])
    for headers, _ in seats:
        assert (await answer(port, "DELETE", headers)).status == 204
    return facts


async def quiet(port: int) -> dict[str, int]:
    """The server when it has noticed that everybody is gone."""
    async with asyncio.timeout(WAIT):
        while True:
            facts: dict[str, int] = await tool(port, "facts")
            if not any(facts[name] for name in ("subscriptions", "links", "exchanges", "sessions", "events")):
                return facts


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="/proc is missing: memory is read from it")
async def test_a_thousand_listeners_and_two_hundred_sessions() -> None:
    with serving() as port:
        await crowd(port, 50, 50)  # what is loaded and made once is there from now on
        before = await quiet(port)
        full = await crowd(port, LISTENERS, SESSIONS)
        each = (full["rss"] - before["rss"]) / 1024 / (LISTENERS + SESSIONS)
        assert each <= KIB_EACH, f"{each:.1f} KiB for each stream"
        # The allocator comes to rest within a few rounds; what grows after that is a leak.
        after = []
        for _ in range(6):
            await crowd(port, LISTENERS, SESSIONS)
            after.append((await quiet(port))["rss"])
        grown = (after[-1] - after[2]) / 1024 / (LISTENERS + SESSIONS) / 3
        assert grown <= 0.5, f"{grown:.2f} KiB stay of each stream"
