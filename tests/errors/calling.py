"""Provokes what can be said of a connection that works, or worked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman import Client, ClientGroup, Server, SyncClient
from dragoman.client.member import Retry
from dragoman.errors import DeadlineError, ResourceNotFound, ToolError
from dragoman.transports.child import ChildTransport
from dragoman.transports.http_base import HttpOptions
from tests.client.scripted import OLD, Fail, Scripted, stateless
from tests.drivers.wire import Wire
from tests.errors.caught import Said, at, of
from tests.errors.starting import script
from tests.faults.sockets import sockets, well
from tests.faults.test_http import greets
from tests.http_client.server import Asked, serving

BROKEN = Path(__file__).parent.parent / "faults" / "broken.py"
HELD = (
    "import sys, json, os, subprocess\n"
    "for line in sys.stdin:\n"
    "    m = json.loads(line)\n"
    "    if m['method'] == 'initialize':\n"
    "        r = {'protocolVersion': '2025-11-25', 'capabilities': {},\n"
    "             'serverInfo': {'name': 'x', 'version': '1'}}\n"
    "        print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
    "    elif m['method'] == 'tools/call':\n"
)


def broken(**options: Any) -> Client:
    return Client([sys.executable, str(BROKEN)], name="broken", protocol=OLD, **options)


async def programs(folder: Path) -> list[Said]:
    """A program that ends, falls silent or says what is none."""
    found: list[Said] = []
    names = ("dies_before", "dies_during", "closes_stdout", "half_a_line", "bad_byte")
    for name in names:
        async with broken() as client:
            found.append(
                await of(client.call_tool(name, idle_timeout=0.2 if name == "half_a_line" else 20.0))
            )
    async with broken() as client:
        found.append(await of(client.call_tool("half_a_line", timeout=0.2)))
    child = "        subprocess.Popen(['sleep', '60']); os._exit(0)\n"
    stdin = "        os.close(0)\n        import time; time.sleep(60)\n"
    for ending in (child, stdin):
        async with Client(script(folder, HELD + ending), protocol=OLD, max_restarts=0) as client:
            found.append(await of(_until_lost(client)))
    client = broken()
    await client.connect()
    waiting = asyncio.create_task(of(client.call_tool("half_a_line")))
    await asyncio.sleep(0)
    await client.close()
    return [*found, await waiting, await of(client.ping()), await of(client.connect())]


async def _until_lost(client: Client) -> None:
    """Write until the program's closed input is noticed."""
    while True:
        with suppress(DeadlineError):
            await client.call_tool("t", {"x": "y" * 100_000}, idle_timeout=0.2)


async def misuse(folder: Path) -> list[Said]:
    """A client used in a way that cannot be."""
    del folder
    server = Server("here", version="1")
    found = [await of(Client(server).ping())]
    child = ChildTransport([sys.executable, "-c", "input()"], on_stderr=lambda _: None)
    found.append(await of(Wire(child).ask("ping")))
    async with Client(server) as client:
        found += [
            await of(client.call_tool("t", {"x": object()})),
            await of(client.call_tool("t", timeout=-1)),
            await of(client.call_tool("t", order_id="A-1042")),
            at(client.__enter__),
            await of(asyncio.to_thread(asyncio.run, client.ping())),
        ]
    sync = SyncClient(server)
    found += [at(sync.ping), await of(sync.__aenter__())]
    async with ClientGroup({"gone": ["no-such-program"]}, retry=Retry(first=9, most=9)) as group:
        found += [
            await of(group.call_tool("mcp__gone__x")),
            await of(group.add("gone", server)),
            at(lambda: group["here"]),
            at(lambda: group["gone"]),
        ]
    return [*found, await of(group.connect())]


Step = Callable[[Asked], Awaitable[None]]


async def called(step: Step, **options: Any) -> Said:
    """What a call comes to that is answered so over HTTP."""
    async with serving(greets(step)) as server:
        async with Client(server.url, protocol=OLD, **options) as client:
            return await of(client.call_tool("t", idle_timeout=0.5))


def status(number: int, body: bytes = b"", kind: str | None = "text/plain", extra: str = "") -> Step:
    async def step(asked: Asked) -> None:
        await asked.reply(number, body, kind=kind, extra=extra)

    return step


def cut(where: str) -> Step:
    async def step(asked: Asked) -> None:
        if where == "stream":
            await asked.stream()
        elif where == "reset":
            asked.reset()
            return
        elif where:
            await asked.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
        asked.drop()

    return step


async def other_id(asked: Asked) -> None:
    await asked.reply(200, b'{"jsonrpc":"2.0","id":999,"result":{}}')


async def long(asked: Asked) -> None:
    await asked.reply(200, b"x" * 2000)


async def long_event(asked: Asked) -> None:
    await asked.stream()
    await asked.send(b"data: " + b"x" * 2000 + b"\n\n")
    await asked.end()


async def half_stream(asked: Asked) -> None:
    await asked.stream()
    await asked.end()


async def zipped(asked: Asked) -> None:
    await asked.reply(200, b"{}", extra="Content-Encoding: br\r\n")


async def http(folder: Path) -> list[Said]:
    """Statuses without an answer, and answers that are none."""
    del folder
    small = HttpOptions(max_body=1000)
    numbers = (400, 401, 403, 404, 405, 406, 407, 413, 415, 421, 429, 500, 502, 503, 504)
    found = [await called(status(number, b"no"), retry_for=0.0) for number in numbers]
    return [
        *found,
        await called(status(307, extra="Location: /mcp/\r\n")),
        await called(status(200, b"<!DOCTYPE html><p>Log in", "text/html")),
        await called(status(200, b"well", "text/plain")),
        await called(status(200, b"{no", "application/json")),
        *[await called(cut(where)) for where in ("", "body", "stream", "reset")],
        await called(half_stream),
        await called(other_id),
        await called(long, http=small),
        await called(long_event, http=small),
        await called(zipped),
    ]


async def results(folder: Path) -> list[Said]:
    """Results that are none, or that ask for what nobody answers."""
    del folder
    asks = {"method": "elicitation/create", "params": {"mode": "form", "message": "?", "requestedSchema": {}}}
    asks["params"]["requestedSchema"] = {"type": "object", "properties": {}}  # type: ignore[index]  # plain JSON
    required = {"resultType": "input_required", "inputRequests": {"a": asks}, "requestState": "s"}
    pages: list[int] = []

    async def calls(_transport, heard):
        name = heard.params.get("name")
        if heard.method == "tools/list":
            pages.append(1)
            return {"resultType": "complete", "tools": 7}
        if heard.method == "prompts/get":
            return {"resultType": "complete", "messages": 7}
        made = {
            "list": [1],
            "odd": {"resultType": "odd"},
            "asks": required,
            "malformed": {"resultType": "input_required", "inputRequests": 7},
        }
        if name in made:
            return made[name]
        raise Fail(-32602, f"Unknown tool: {name}")

    async with Client(Scripted(stateless(calls))) as client:
        found = [await of(client.call_tool(name)) for name in ("list", "odd", "asks", "malformed", "none")]
        found += [await of(client.list_tools()), await of(client.get_prompt("p"))]
    async with Client(Scripted(stateless(calls)), elicitation_handler=lambda _: {}, max_rounds=2) as client:
        found.append(await of(client.call_tool("asks")))
    return found


async def tools(folder: Path) -> list[Said]:
    """What tools and resources say for themselves."""
    del folder
    server = Server("here", version="1")

    @server.tool
    async def full() -> str:
        raise ToolError("the disk is full")

    @server.tool
    async def count(to: int) -> int:
        return to // 0

    @server.resource("orders://{name}")
    async def order(name: str) -> str:
        raise ResourceNotFound(f"no order {name}")

    async with Client(server) as client:
        return [
            await of(client.call_tool("full", check=True)),
            await of(client.call_tool("count", {"to": 1}, check=True)),
            await of(client.call_tool("count", {"to": "x"}, check=True)),
            await of(client.call_tool("count", check=True)),
            await of(client.call_tool("cuont")),
            await of(client.read_resource("orders://7")),
            await of(client.read_resource("nowhere://7")),
            await of(client.get_prompt("none")),
            await of(client.request("no/such")),
        ]


async def sockets_ending(folder: Path) -> list[Said]:
    """A WebSocket that ends in the middle of a call."""
    del folder

    async def ends(socket: Any, message: Any) -> None:
        if message["params"]["name"] == "t":
            await well(socket, message)
        else:
            await socket.raw(b"\x88\x08\x03\xf3broken")
            socket.writer.close()

    async with sockets(ends) as server, Client(server.url) as client:
        found = [await of(client.call_tool("ends"))]

    async def odd(socket: Any, message: Any) -> None:
        await socket.raw(b"\x83\x01x")

    async with sockets(odd) as server, Client(server.url) as client:
        found.append(await of(client.call_tool("ends")))
    return found
