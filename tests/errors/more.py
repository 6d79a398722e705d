"""Provokes what is rarer: listening, files of servers, the older transports, handlers that call back."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dragoman import Client, ClientGroup, Server, SyncClient
from dragoman.client import member
from dragoman.client.member import Retry
from dragoman.errors import ClosedError
from dragoman.extensions.tasks import Tasks
from dragoman.server.layers import Telemetry
from dragoman.transports.http_base import HttpOptions
from dragoman.transports.ws_client import WebSocketTransport
from tests.client.scripted import OLD, Scripted, handshake, initialize_result, stateless, text, tool
from tests.client.test_skills import MANIFEST, NAME, ROOT, Shop
from tests.drivers.wire import until
from tests.errors.calling import called, cut
from tests.errors.caught import Said, at, of, said
from tests.errors.starting import connect
from tests.faults.sockets import sockets
from tests.faults.test_http import greets
from tests.http_client.server import Asked, serving


async def verbs(folder: Path) -> list[Said]:
    """Verbs that this server or this revision does not have."""
    del folder
    here = Server("here", version="1")

    @here.tool
    async def plain() -> str:
        return ""

    @here.resource("notes://today")
    async def today() -> str:
        return ""

    asked = {"resultType": "input_required", "requestState": "s"}

    async def again(_transport: Any, heard: Any) -> Any:
        return asked

    async with Client(here) as client:
        found = [
            await of(client.call_tool("plain", {"x": math.nan})),
            await of(client.list_skills()),
            at(lambda: client.listen(resources="notes://today")),
        ]
    async with Client(Scripted(handshake()), protocol=OLD) as client:
        found += [await of(client.listen(prompts=True).__aenter__()), await of(client.request("no/such"))]
    async with Client(Scripted(stateless(again))) as client:
        found.append(await of(client.call_tool("t", timeout=0.2)))
    async with ClientGroup({"a": here, "b": here}) as group:
        found += [
            await of(group.read_resource("notes://today")),
            await of(group.read_resource("notes://no")),
            await of(group.get_prompt("none")),
        ]
    return [*found, at(lambda: Retry(first=0))]


async def longer(folder: Path) -> list[Said]:
    """What takes its time to be said."""
    del folder
    pages = 0

    async def endless(_transport: Any, heard: Any) -> Any:
        nonlocal pages
        pages += 1
        if heard.method == "subscriptions/listen":
            await asyncio.sleep(60)
        return {"resultType": "complete", "tools": [], "nextCursor": str(pages), "ttlMs": 0}

    offered = {"tools": {"listChanged": True}}
    async with Client(Scripted(stateless(endless, capabilities=offered)), idle_timeout=0.3) as client:
        found = [await of(client.listen(tools=True).__aenter__()), await of(client.list_tools())]

    async def mute(_transport: Any, heard: Any) -> Any:
        if heard.method == "initialize":
            return initialize_result()
        if heard.method == "tools/list":
            return {"tools": [tool("t")]}
        if heard.method == "tools/call":
            raise ClosedError("gone", server="s", stage="call")
        return await asyncio.sleep(60)

    with patch.object(member, "_PING", 0.1):
        async with ClientGroup({"s": Scripted(mute)}, retry=None, protocol=OLD) as group:
            await of(group.call_tool("mcp__s__t"))
            await until(lambda: group.servers["s"].error)
            found.append(said(group.servers["s"].error))
    server = Server("here", version="1", extensions=[Tasks()])

    @server.tool(task=True)
    async def slow() -> str:
        await asyncio.sleep(60)
        return ""

    async with Client(server, tasks=True) as client:
        found += [await of(client.call_tool("slow", timeout=0.3)), await of(client.subscribe("a://b"))]
    return found


async def skills(folder: Path) -> list[Said]:
    """Skills of another server, and of one that shows no folders."""
    del folder
    one, other = Shop(), Shop()
    other.capabilities = {"resources": {}, "extensions": {NAME: {}}}
    async with Client(one.transport, name="one") as first, Client(other.transport, name="other") as second:
        skill = await first.load_skill(MANIFEST)
        return [
            await of(second.read_skill(skill, "references/STYLE.md")),
            await of(second.read_directory(ROOT)),
        ]


async def missing(folder: Path) -> list[Said]:
    """Packages that are not installed."""
    del folder
    with patch.dict(sys.modules, {"httptools": None, "uvicorn": None, "opentelemetry": None}):
        return [
            await connect("http://127.0.0.1:1/"),
            await asyncio.to_thread(lambda: at(lambda: Server("s", version="1").run("http", port=0))),
            at(Telemetry),
        ]


def files(folder: Path) -> list[Said]:
    """Files of servers that cannot be used."""
    found: list[Said] = []
    for number, content in enumerate(
        ("{no", "{}", json.dumps({"mcpServers": 7}), json.dumps({"mcpServers": {"": {}}}))
    ):
        path = folder / f"{number}.json"
        path.write_text(content)
        found.append(at(lambda path=path: ClientGroup(path)))
    return found


def handlers(folder: Path) -> list[Said]:
    """A client without await that its own handler calls."""
    del folder
    server = Server("here", version="1")
    found: list[Said] = []

    @server.tool
    async def loud(ctx: Any = None) -> str:
        return ""

    def hear(*_: Any) -> None:
        found.extend([at(client.ping), at(client.close)])

    async def noisy(transport: Any, heard: Any) -> Any:
        transport.progress(heard, 1)
        return text()

    client = SyncClient(Scripted(stateless(noisy)), progress_handler=hear)
    with client:
        client.call_tool("t")
    return found


async def upgrade(asked: Asked) -> None:
    await asked.raw(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")


async def heavy(asked: Asked) -> None:
    await asked.raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000)


async def old(asked: Asked) -> None:
    if asked.method != "GET":
        await asked.reply(405)
        return
    await asked.stream()
    await asked.send(b"event: endpoint\ndata: https://far.example/x\n\n")
    await asked.gone()


async def none(asked: Asked) -> None:
    await asked.stream()
    await asked.send(b"data: 1\n\n")
    await asked.gone()


async def session(asked: Asked) -> None:
    hello = {"protocolVersion": OLD, "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    await asked.result(hello, extra="Mcp-Session-Id: \xe9\r\n")


async def promised(asked: Asked) -> None:
    if asked.method == "GET":
        await asked.reply(405)
        return
    await asked.stream()
    await asked.send(b"id: 1\nretry: 1\ndata: \n\n")
    asked.drop()


async def resumed(asked: Asked) -> None:
    await (greets(promised) if asked.method == "POST" else promised)(asked)


async def bits(socket: Any, message: Any) -> None:
    await socket.raw(b"\xf1\x01x")


async def wires(folder: Path) -> list[Said]:
    """What HTTP, event streams and WebSocket can break besides."""
    del folder

    found = [await called(upgrade), await called(heavy), await called(cut("body"))]
    async with serving(old) as server:
        found.append(await connect({"type": "sse", "url": server.url}))
    async with serving(none) as server:
        found.append(await connect({"type": "sse", "url": server.url}))
    async with serving(session) as server:
        found.append(await connect(server.url, protocol=OLD))
    async with serving(resumed) as server, Client(server.url, protocol=OLD, retry_for=0.0) as client:
        found.append(await of(client.call_tool("t", idle_timeout=5)))

    async with sockets(bits) as server, Client(server.url) as client:
        found.append(await of(client.call_tool("t")))
    return [
        *found,
        at(lambda: WebSocketTransport("http://h/")),
        await connect("http://h:99999/"),
        await connect(f"http://{'a' * 70}.example/"),
        await connect("https://far.example/", http=HttpOptions(proxy="http://h:99999")),
    ]
