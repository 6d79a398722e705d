"""Provokes what a server of this package answers, and what its start and the command line say."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from dragoman import Client, Context, Refusal, Server
from dragoman.errors import ResourceNotFound
from dragoman.host import Host
from dragoman.jsonrpc import Exchange, Service
from dragoman.transports.runner import Options
from dragoman.transports.stream import connect_stream, serve_stream
from tests.client.scripted import Fail, Scripted, handshake
from tests.errors.caught import Said, at, of
from tests.http.wire import (
    BASE,
    META,
    Answer,
    Request,
    initialize,
    open_session,
    post,
    routed,
    rpc,
    stateless,
)

OLD = "2025-11-25"


def server() -> Server:
    made = Server("here", version="1")

    @made.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @made.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Which?", str))

    @made.tool
    async def stop() -> str:
        raise Refusal(-32001, "not today", {"when": "tomorrow"})

    @made.prompt
    async def poem(about: str) -> str:
        return about

    @made.resource("orders://{name}")
    async def order(name: str) -> str:
        raise ResourceNotFound(f"no order {name}")

    @made.resource("broken://it")
    async def broken() -> str:
        raise RuntimeError("secret")

    return made


def read(answer: Answer) -> list[Said]:
    """The status and the error of an answer."""
    body = answer.messages[-1] if answer.headers.get("content-type") == "text/event-stream" else answer.json
    error = body["error"]
    text = f"{error['code']} {error['message']}"
    said = Said("RemoteError", text)
    return [said] if answer.status == 200 else [said, Said("HTTP", f"{answer.status} {error['message']}")]


async def codes(folder: Path) -> list[Said]:
    """Errors in answers to requests."""
    del folder
    app = server().asgi(max_body=2000)
    call = stateless("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    ask = stateless("tools/call", {"name": "ask", "arguments": {}})
    answers = [
        await post(app, b"{no", routed(call)),
        await post(app, b"[]", routed(call)),
        await post(app, {**call, "jsonrpc": "1.0"}),
        await post(app, {**call, "id": 1.5}),
        await post(app, stateless("no/such")),
        await post(app, stateless("tools/call", {"name": "none", "arguments": {}})),
        await post(app, stateless("tools/call", {"name": 7}), routed(call)),
        await post(app, stateless("prompts/get", {"name": "none"})),
        await post(app, stateless("prompts/get", {"name": "poem"})),
        await post(app, stateless("resources/read", {"uri": "orders://7"})),
        await post(app, stateless("resources/read", {"uri": "broken://it"})),
        await post(app, stateless("tools/list", {"cursor": "x"})),
        await post(app, stateless("tools/call", {"name": "stop", "arguments": {}})),
        await post(app, ask),
        await post(app, {**ask, "params": {**ask["params"], "requestState": "x"}}),
        await post(app, rpc("tools/list", {"_meta": {**META, next(iter(META)): "1999-01-01"}}), routed(call)),
        await post(app, call, routed(call, mcp_method="tools/list")),
        await post(app, call, routed(call, mcp_method=None)),
        await post(app, call, routed(call, mcp_name="none")),
        await post(app, call, routed(call, mcp_protocol_version=None)),
        await post(app, call, routed(call, mcp_protocol_version="1999-01-01")),
        await post(app, rpc("tools/list", {}), BASE),
    ]
    return [said for answer in answers for said in read(answer)]


async def statuses(folder: Path) -> list[Said]:
    """Requests that HTTP or sessions refuse."""
    del folder

    def nobody(_: Any) -> str:
        raise Refusal(-32600, "who are you?")

    app = server().asgi(max_body=2000)
    call = stateless("tools/list")
    sitting = await open_session(app)
    lost = {**sitting, "mcp-session-id": "gone"}
    answers = [
        await Request(app, "PUT", BASE).answer(),
        await post(app, call, routed(call, accept="text/html")),
        await post(app, call, routed(call, content_type="text/plain")),
        await post(app, call, routed(call, content_encoding="gzip")),
        await post(app, b" " * 3000, routed(call)),
        await post(app, call, routed(call, host="far.example")),
        await post(app, call, routed(call, origin="https://far.example")),
        await post(app, call, routed(call, x="y" * 200_000)),
        await post(app, call, path="/elsewhere"),
        await post(server().asgi(authenticate=nobody), call),
        await post(app, rpc("tools/list", {}), lost),
        await post(app, initialize(OLD), sitting),
        await post(app, {"jsonrpc": "2.0", "id": 5, "result": {}}, sitting),
        await Request(app, "GET", {**sitting, "accept": "text/html"}).answer(),
    ]
    return [said for answer in answers for said in read(answer) if said.kind == "HTTP"]


def starts(folder: Path) -> list[Said]:
    """Servers that cannot listen."""
    del folder
    made = server()
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        taken = held.getsockname()[1]
        return [
            at(lambda: made.run("http", host="127.0.0.1", port=taken)),
            at(lambda: made.run("http", host="127.0.0.1", port=70000)),
            at(lambda: made.run("carrier pigeon")),
        ]


def command(folder: Path, *words: str) -> Said:
    """The first line that a command writes to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *words],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode, done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("dragoman")]
    assert lines, done.stderr
    return Said("dragoman", lines[0].partition(": ")[2])


FILES = {
    "none.py": "x = 1\n",
    "two.py": "from dragoman import Server\na = Server('a', version='1')\nb = Server('b', version='1')\n",
    "raises.py": "import no_such_module\n",
    "ends.py": "import sys\nsys.exit(0)\n",
    "sums.py": "from dragoman import Server\nserver = Server('s', version='1')\n"
    "@server.tool\nasync def add(a: int, b: int) -> int:\n    return a + b\n"
    "made = 7\ndef fails():\n    raise RuntimeError('no')\n",
    "plain.txt": "no program\n",
    "servers.json": '{"mcpServers": {}}',
}


def commands(folder: Path) -> list[Said]:
    """What the command line says."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    lines = [
        "lits",
        "run nowhere.py",
        "run .",
        "run none.py",
        "run two.py",
        "run sums.py:other",
        "run plain.txt",
        "run raises.py",
        "run ends.py",
        "run sums.py --http somewhere",
        "call sums.py add a=1 b:=x",
        "call sums.py add a",
        "call sums.py add --args 7",
        "call sums.py nothing",
        "call sums.py add a=1 b=2 b=3",
        "call sums.py add a=2 a.b=1",
        "call sums.py add --args {",
        "run sums.py:add",
        "run sums.py:made",
        "run sums.py:fails",
        "run sums.py --http ::1:80",
        "call sums.py",
        "mock",
        "trace shwo",
        "call sums.py add --arg {}",
        "list npx some-server",
        "config --host claude",
        "list sums.py --timeout 0",
        "config nowhere",
        "list servers.json",
        "doctor",
        "lock",
        "list http://127.0.0.1:1/mcp --timeout 0.1",
    ]
    return [command(folder, *line.split()) for line in lines]


def closed(folder: Path) -> list[Said]:
    """A server over stdio without a stdin."""
    (folder / "sums.py").write_text(FILES["sums.py"])
    line = f"{sys.executable} -m dragoman run sums.py <&-"
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return [Said("dragoman", done.stderr.splitlines()[0].partition(": ")[2])]


async def others(folder: Path) -> list[Said]:
    """Codes that only some revisions have, or only the client meets."""
    del folder
    app = server().asgi()
    unknown = {**META, next(iter(META)): "1999-01-01"}
    call = rpc("tools/list", {"_meta": unknown})
    sitting = await open_session(app)
    found = [
        *read(await post(app, call, routed(call, mcp_protocol_version="1999-01-01"))),
        *read(await post(app, rpc("resources/read", {"uri": "orders://7"}), sitting)),
        *read(await post(app, rpc("initialize", {"protocolVersion": 1}), BASE)),
    ]

    async def pages(_transport: Any, heard: Any) -> Any:
        raise Fail(-32042, "a page has to be opened first") if heard.method == "tools/call" else Fail(-32601)

    async with Client(Scripted(handshake(pages))) as client:
        found.append(await of(client.call_tool("t")))
    return [*found, await crowd()]


async def crowd() -> Said:
    """One request more than a stream takes, while it waits for answers itself."""
    service, asking = Service(), asyncio.Event()

    @service.method
    async def ask_back(exchange: Exchange) -> Any:
        return await exchange.request("name")

    @service.method
    async def name() -> str:
        asking.set()
        await asyncio.get_running_loop().create_future()
        return ""

    left, right = socket.socketpair()
    near, far = await asyncio.open_connection(sock=left), await asyncio.open_connection(sock=right)
    serving = asyncio.create_task(serve_stream(service, *far, options=Options(max_in_flight=1)))
    async with await connect_stream(*near, service=service) as peer:
        first = asyncio.ensure_future(peer.request("ask_back"))
        await asking.wait()
        refused = await of(peer.request("ask_back"))
        first.cancel()
        await asyncio.wait({first})
    await serving
    return refused


async def host(folder: Path) -> list[Said]:
    """What a host says of its files, and of calls that it does not make."""
    listed = {
        "orders": {"command": sys.executable, "args": ["-m", "dragoman", "run", "sums.py"]},
        "vague": {"url": "https://example.com/mcp"},
        "silent": {"command": "server", "env": {"KEY": "${NO_SUCH_KEY}"}},
        "gone": {"command": "no-such-program"},
    }
    (folder / "sums.py").write_text(FILES["sums.py"])
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": listed}))
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text("{no")
    rules = {"permissions": {"deny": ["mcp__orders__add"]}}
    (folder / ".claude" / "settings.local.json").write_text(json.dumps(rules))
    found: list[Said] = []
    async with Host.from_files(folder, user=False, ask=None, approve=True) as made:
        found += [Said("Problem", problem.text) for problem in made.problems]
        found += [Said("Session", session.why) for session in made.sessions.values() if session.why]
        for name in ("mcp__orders__add", "mcp__orders__none", "mcp__gone__x"):
            use = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {"a": 1, "b": 2}}
            result = await made.call(use)
            content = result["content"]
            found.append(Said("tool_result", content if isinstance(content, str) else content[0]["text"]))
    return found
