"""Our client, playing through what there is to do with a server; the outcome in the words of the tables."""

from __future__ import annotations

import asyncio
import math
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman import Client
from dragoman.errors import RemoteError
from tests.interop.processes import MARK, PATIENCE, Served, marked, serving
from tests.interop.roster import ODD, SERVERS, Call, Plan, ServerPeer, Transport
from tests.interop.wire import Wire

# What a server says of a session that was deleted.
ENDED = re.compile("DELETE 2|Received session termination request")


@dataclass
class Connected:
    """One server of others, and what passed between it and a client of ours."""

    peer: ServerPeer
    transport: Transport
    target: Any
    env: dict[str, str] | None
    mark: str
    served: Served | None = None
    wire: Wire = field(default_factory=lambda: Wire("client"))

    def client(self, protocol: str, **options: Any) -> Client:
        return Client(
            self.target,
            env=self.env,
            protocol=protocol,
            tap=self.wire.tap,
            connect_timeout=PATIENCE,
            **options,
        )


@asynccontextmanager
async def reached(name: str, transport: Transport, folder: Path) -> AsyncIterator[Connected]:
    """A server that can be connected to: a command line, or the URL of one that was started for it."""
    peer, mark = SERVERS[name], uuid.uuid4().hex
    command = peer.command(transport, folder)
    if transport == "stdio":
        yield Connected(peer, transport, command, {MARK: mark}, mark)
    else:
        with serving(command, mark=mark, ready=peer.ready, port_option=peer.port_option) as served:
            yield Connected(peer, transport, served.url, None, mark, served)
    assert marked(mark) == []


async def outcome(client: Client, connected: Connected, folder: Path) -> dict[str, str]:
    """Everything that a row of the table has, but for the end."""
    plan = connected.peer.plan
    tools = await client.list_tools()
    assert len(tools) == plan.tools, [tool.name for tool in tools]
    result = await call(client, plan.good, folder)
    assert plan.text in result.text
    assert (result.is_error, result.invalid) == (False, ())
    if plan.echo is not None:
        tool, argument, before = plan.echo
        assert (await client.call_tool(tool, {argument: ODD})).text == before + ODD
    if plan.fails is not None:
        failed = await call(client, plan.fails, folder)
        assert failed.is_error
        assert failed.text
    if plan.progress is not None:
        await progress(client, *plan.progress)
    found = {
        "revision": client.revision.version,
        "refused": await refusal(client, plan.refused),
        "unknown": await refusal(client, ("no_such_tool", {})),
        "cancelled": await cancelled(client, connected, folder=folder),
    }
    await client.ping()
    return found


async def call(client: Client, asked: Call, folder: Path, **options: Any) -> Any:
    return await client.call_tool(asked[0], placed(asked[1], folder), **options)


def placed(arguments: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    return {
        name: value.format(folder=folder) if isinstance(value, str) else value
        for name, value in arguments.items()
    }


async def refusal(client: Client, asked: Call) -> str:
    try:
        result = await client.call_tool(*asked)
    except RemoteError as exc:
        return str(exc.code)
    assert result.text, "a model can only act on words"
    return "isError" if result.is_error else f"taken: {result.text}"


async def progress(client: Client, asked: Call, expected: list[float]) -> None:
    seen: list[Any] = []
    await client.call_tool(*asked, progress=lambda now, total, message: seen.append((now, total)))
    assert seen == [(now, len(expected)) for now in expected]


async def cancelled(client: Client, connected: Connected, *, folder: Path) -> str:
    """Cancel a call that runs: did the server stop it, as far as it can say so?"""
    plan, wire = connected.peer.plan, connected.wire
    began = asyncio.Event()
    if plan.started == "progress":
        watch = {"progress": lambda *_: began.set()}
    else:
        wire.on_sent, watch = lambda method: began.set() if method == "tools/call" else None, {}
    task = asyncio.create_task(call(client, plan.long, folder, timeout=math.inf, **watch))
    await asyncio.wait_for(began.wait(), PATIENCE)
    task.cancel()
    await asyncio.wait({task}, timeout=PATIENCE)
    assert task.cancelled()
    # On a stateless HTTP exchange closing the response says it, and no message.
    said = wire.sent("notifications/cancelled")
    assert len(said) == (0 if connected.transport == "http" and not client.revision.handshake else 1)
    if said:
        assert said[0]["params"]["requestId"] == wire.sent("tools/call")[-1]["id"]
    return "sent" if plan.counter is None else await stopped(client, plan)


async def stopped(client: Client, plan: Plan) -> str:
    assert plan.counter is not None
    deadline = asyncio.get_running_loop().time() + 5
    while asyncio.get_running_loop().time() < deadline:
        if (await client.call_tool(plan.counter)).text == "1":
            return "stopped"
        await asyncio.sleep(0.02)
    return "ran on"


def ended(client: Client, connected: Connected) -> str:
    """How a connection ended; over HTTP once the server has gone, and said all it had to say."""
    if connected.served is None:
        return f"exit {client.facts()['exit_status']}"
    ends = [line for line in connected.served.said if ENDED.match(line)]
    return {0: "nothing to end", 1: "session deleted"}.get(len(ends), f"{ends}")
