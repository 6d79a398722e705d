"""Our client, playing through what there is to do with a server; the outcome in the words of the tables."""

from __future__ import annotations

import asyncio
import math
import re
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from msgspec import UNSET

from dragoman import Client
from dragoman.errors import RemoteError, UsageError
from dragoman.jsonrpc.message import METHOD_NOT_FOUND
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
    page: str
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
    told = {variable: value.format(folder=folder) for variable, value in peer.environment.items()}
    with pages(folder) as page:
        if transport == "stdio":
            yield Connected(peer, transport, command, {MARK: mark, **told}, mark, page)
        else:
            with serving(
                command, mark=mark, ready=peer.ready, port_option=peer.port_option, host=peer.host
            ) as served:
                yield Connected(peer, transport, served.url, None, mark, page, served)
    assert marked(mark) == []


@contextmanager
def pages(folder: Path) -> Iterator[str]:
    """The folder as a web server of this machine shows it: the URL of hello.txt."""
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hello.txt"
        finally:
            server.shutdown()
            thread.join()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the parameter's own name
        pass


async def outcome(client: Client, connected: Connected, folder: Path) -> dict[str, str]:
    """Everything that a row of the table has, but for the end."""
    plan = connected.peer.plan
    ask = Asking(client, folder, connected.page)
    tools = await client.list_tools()
    assert len(tools) == plan.tools, [tool.name for tool in tools]
    if plan.good is not None:
        result = await ask.call(plan.good)
        assert plan.text in result.text, result
        assert (result.is_error, result.invalid) == (False, ())
    if plan.echo is not None:
        tool, argument, before = plan.echo
        assert (await client.call_tool(tool, {argument: ODD})).text == before + ODD
    if plan.fails is not None:
        failed = await ask.call(plan.fails)
        assert failed.is_error, failed.text
        assert failed.text
    if plan.progress is not None:
        await progress(client, *plan.progress)
    await looked_through(ask, plan)
    only_listed = plan.long is None
    found = {
        "revision": client.revision.version,
        "refused": "-" if plan.refused is None else await refusal(client, plan.refused),
        "unknown": "-" if only_listed else await refusal(client, ("no_such_tool", {})),
        "cancelled": "-" if only_listed else await cancelled(ask, connected),
        "told": await told(ask, plan),
    }
    await client.ping()
    return found


@dataclass
class Asking:
    """A client, and what stands for {folder} and {page} in what is asked."""

    client: Client
    folder: Path
    page: str

    async def call(self, asked: Call, **options: Any) -> Any:
        return await self.client.call_tool(asked[0], self.placed(asked[1]), **options)

    def placed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: value.format(folder=self.folder, page=self.page) if isinstance(value, str) else value
            for name, value in arguments.items()
        }


async def looked_through(ask: Asking, plan: Plan) -> None:
    """Resources, templates and prompts: listed, read, filled in."""
    client = ask.client
    if client.capabilities.resources is not UNSET:
        assert len(await client.list_resources()) == plan.resources
        assert len(await client.list_resource_templates()) == plan.templates
    for uri, text in plan.reads:
        (contents,) = (await client.read_resource(uri)).contents
        assert text in contents.data().decode(), contents
    if client.capabilities.prompts is not UNSET:
        assert len(await client.list_prompts()) == plan.prompts
    if plan.prompt is not None:
        (name, arguments), text = plan.prompt
        messages = (await client.get_prompt(name, ask.placed(arguments))).messages
        assert any(text in getattr(message.content, "text", "") for message in messages), messages


async def told(ask: Asking, plan: Plan) -> str:
    """The kinds of changes that the server tells of, out of all that it could: "-" if it offers none."""
    if plan.change is None or plan.watched is None:
        return "-"
    try:
        listening = await ask.client.listen(tools=True, resources=[plan.watched]).established()
    except UsageError:
        return "-"
    except RemoteError as exc:
        if exc.code != METHOD_NOT_FOUND:
            raise
        return "-"
    result = await ask.call(plan.change)
    assert not result.is_error, result.text
    heard: set[str] = set()
    offered = {"tools" if what == "tools" else "resource" for what in listening.heard}
    expected = offered & ({"tools", "resource"} if plan.adds else {"resource"})
    async with listening, asyncio.timeout(PATIENCE):
        while heard != expected:
            change = await anext(listening)
            assert change.uri in (None, plan.watched)
            heard.add(change.kind)
    if plan.still is not None:
        await ask.call(plan.still)
    if plan.watched == "notes://today" and "resource" in heard:
        assert (await ask.client.read_resource(plan.watched)).contents[0].text == "snow"
    return ", ".join(kind for kind in ("tools", "resource") if kind in heard)


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


async def cancelled(ask: Asking, connected: Connected) -> str:
    """Cancel a call that runs: did the server stop it, as far as it can say so?"""
    plan, wire, client = connected.peer.plan, connected.wire, ask.client
    assert plan.long is not None
    loop = asyncio.get_running_loop()

    def give_up(*_: Any) -> None:
        loop.call_soon(task.cancel)

    def sent(method: str) -> None:
        if plan.started == "sent" and method == "tools/call":
            give_up()

    wire.on_sent = sent
    watch = {"progress": give_up} if plan.started == "progress" else {}
    # On a stateless HTTP exchange closing the response says it, and no message.
    quiet = connected.transport == "http" and not client.revision.handshake
    for _ in range(50):
        task = asyncio.create_task(ask.call(plan.long, timeout=math.inf, **watch))
        await asyncio.wait({task}, timeout=PATIENCE)
        assert task.cancelled()
        said = wire.sent("notifications/cancelled")
        if quiet or said:
            break  # else its answer was there already, and there is nothing to tell
    assert len(said) == (0 if quiet else 1)
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
    if not connected.peer.tells:
        return "-"
    ends = [line for line in connected.served.said if ENDED.match(line)]
    return {0: "nothing to end", 1: "session deleted"}.get(len(ends), f"{ends}")
