"""Provokes what can be said before a client and a server have agreed on anything."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman import Client, ClientGroup
from dragoman.transports.child import ChildTransport
from dragoman.transports.http_base import HttpOptions
from tests.client.scripted import NEW, OLD, Fail, Scripted, handshake, initialize_result, stateless
from tests.errors.caught import Said, at, of
from tests.faults.sockets import sockets
from tests.http_client.tls import proxying, server_context


async def connect(target: Any, **options: Any) -> Said:
    """What is said where this is connected to."""

    async def begin() -> None:
        await Client(target, **{"retry_for": 0.0, **options}).connect()

    return await of(begin())


def script(folder: Path, text: str) -> list[str]:
    """A program of that text."""
    path = folder / f"program{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    return [sys.executable, str(path)]


async def programs(folder: Path) -> list[Said]:
    """Programs that do not start."""
    plain = folder / "plain.txt"
    plain.write_text("no program\n")
    odd = folder / "odd"
    odd.write_text("no program\n")
    odd.chmod(0o755)
    orphan = folder / "orphan"
    orphan.write_text("#!/no/such/interpreter\n")
    orphan.chmod(0o755)
    return [
        await connect(["no-such-program"]),
        await connect(["./no-such-file"]),
        await connect(["no such program"]),
        await connect([str(plain)]),
        await connect([str(folder)]),
        await connect([str(orphan)]),
        await connect([str(odd)]),
        await connect([sys.executable], cwd=folder / "nowhere"),
        await connect([sys.executable], env={"A=B": "c"}),
        await connect(["a\0b"]),
        await connect([sys.executable], env={"A": 7}),
        at(lambda: ChildTransport([])),
    ]


async def listening(answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]):
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"hello there\r\n\r\n")
    writer.close()


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def addresses(pki: Path) -> list[Said]:
    """Addresses at which nobody is, or somebody else."""
    found: list[Said] = []
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        free = held.getsockname()[1]
        found.append(await connect(f"http://127.0.0.1:{free}/mcp"))
        proxy = HttpOptions(proxy=f"http://127.0.0.1:{free}")
        found.append(await connect("http://far.example/mcp", http=proxy))
    found.append(await connect("http://no-such-host.invalid/mcp"))
    odd, port = await listening(nonsense)
    quiet, still = await listening(silence)
    async with odd, quiet, proxying(407) as closed, sockets(tls=server_context(pki)) as secure:
        found += [
            await connect(f"http://127.0.0.1:{port}/mcp"),
            await connect(f"https://127.0.0.1:{port}/mcp"),
            await connect(f"ws://127.0.0.1:{port}/mcp"),
            await connect(f"https://127.0.0.1:{still}/mcp", http=HttpOptions(connect_timeout=0.1)),
            await connect(secure.url.replace("wss", "https")),
            await connect("https://far.example/", http=HttpOptions(proxy=f"http://127.0.0.1:{closed.port}")),
            await connect("wss://far.example/", http=HttpOptions(proxy=f"http://127.0.0.1:{port}")),
        ]
    async with sockets(accept=lambda _: b"HTTP/1.1 101 X\r\nSec-WebSocket-Accept: x\r\n\r\n") as server:
        found.append(await connect(server.url))
    other = b"HTTP/1.1 101 X\r\nSec-WebSocket-Protocol: other\r\nSec-WebSocket-Accept: "
    async with sockets(accept=lambda token: other + token + b"\r\n\r\n") as server:
        found.append(await connect(server.url))
    return found


def scripted(answer: Any) -> Scripted:
    """A server that answers everything so; an exception is raised."""

    async def script(_transport, heard):
        made = answer(heard)
        if isinstance(made, Exception):
            raise made
        return await made if asyncio.iscoroutine(made) else made

    return Scripted(script)


async def agreeing(folder: Path) -> list[Said]:
    """Servers with which no revision can be agreed on."""
    never = "import sys\nfor line in sys.stdin: pass\n"
    shaking = (
        "import sys, json\nfor line in sys.stdin:\n    m = json.loads(line)\n"
        "    if m['method'] == 'server/discover': print(json.dumps({'jsonrpc': '2.0', 'id': m['id'],"
        " 'error': {'code': -32601, 'message': 'no'}}), flush=True)\n"
    )
    unsupported = Fail(-32022, "Unsupported", {"supported": ["1999-01-01"], "requested": NEW})
    hello = {"protocolVersion": 1}
    contrary = Fail(-32022, "Unsupported", {"supported": [NEW], "requested": NEW})
    return [
        await connect(script(folder, never), connect_timeout=0.3, protocol=NEW),
        await connect(script(folder, shaking), connect_timeout=3.0),
        await connect(script(folder, "import sys\nsys.exit('no database')\n")),
        await connect(scripted(lambda _: Fail(-32601, "Method not found"))),
        await connect(Scripted(handshake()), protocol=NEW),
        await connect(scripted(lambda heard: unsupported)),
        await connect(scripted(lambda heard: contrary), protocol=NEW),
        await connect(Scripted(stateless()), protocol=OLD),
        await connect(scripted(lambda heard: hello if heard.method == "initialize" else Fail(-1))),
        await connect(Scripted(handshake(version="1999-01-01"))),
        await connect(scripted(lambda heard: initialize_result("2024-11-05")), protocol=OLD),
    ]


async def targets(folder: Path) -> list[Said]:
    """What is no target, and options that cannot be."""
    server = folder / "server.py"
    server.write_text("")
    entry = {"command": "x"}
    wrong: list[Any] = [
        *(7, "localhost:8000/mcp", "'unclosed", f"{server} --port 1", str(folder / "no.py"), []),
        *({"mcpServers": {"a": entry, "b": entry}}, {**entry, "url": "http://h/"}, {"args": []}),
        *({**entry, "type": "http"}, {"url": "http://h/", "type": "carrier pigeon"}, {"url": 7}),
        *({"command": 7}, "ftp://h/", "http://", "http://exa mple/"),
    ]
    return [
        *(at(lambda target=target: Client(target)) for target in wrong),
        at(lambda: Client("cat", headers={"a": "b"})),
        at(lambda: Client("cat", speed=1)),
        at(lambda: Client("cat", protocol="1999-01-01")),
        at(lambda: Client("cat", timeout=0)),
        at(lambda: Client("cat", retry_for=-1)),
        at(lambda: Client("cat", max_restarts=-1)),
        at(lambda: Client("cat", max_rounds=0)),
        at(lambda: Client("cat", cache="always")),
        at(lambda: Client("http://h/", headers={"a b": "c"})),
        at(lambda: Client("http://h/", headers={"Mcp-Method": "c"})),
        at(lambda: Client("http://h/", headers={"a": "b\nc"})),
        await connect("https://127.0.0.1/", http=HttpOptions(verify="/no/such.pem")),
        await connect("https://127.0.0.1/", http=HttpOptions(cert="/no/such.pem")),
        await connect("https://far.example/", http=HttpOptions(proxy="socks5://p:1")),
        at(lambda: ClientGroup("/no/such/mcp.json")),
        at(lambda: ClientGroup("7")),
    ]
