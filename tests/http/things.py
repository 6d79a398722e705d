"""A server with one tool for each thing that HTTP has to carry."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from dragoman import Context, Server
from dragoman.model import CallToolResult, TextContent

Region = Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]
Size = Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Size"})]
Dry = Annotated[bool, Meta(extra_json_schema={"x-mcp-header": "Dry"})]


@dataclass
class Things:
    """The server, and what its tools report and wait for."""

    server: Server
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    thread_entered: threading.Event = field(default_factory=threading.Event)
    thread_cancelled: threading.Event = field(default_factory=threading.Event)
    asked: list[Any] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)


def things(**options: Any) -> Things:  # noqa: C901  # a list of tools, one after the other
    server = Server("things", version="1.0", **options)
    self = Things(server)

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def deploy(region: Region, size: Size = 0, dry: Dry = False) -> str:
        return region

    @server.tool
    async def wait(ctx: Context) -> str:
        """Wait for the gate."""
        self.entered.set()
        self.thread_entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            self.thread_cancelled.set()
            raise
        self.finished.set()
        return "done"

    @server.tool
    async def tell(ctx: Context, steps: int = 3, text: str = "") -> str:
        """Report progress, all at once."""
        for step in range(steps):
            ctx.report_progress(step, steps, text or None)
        return "told"

    @server.tool
    async def tell_and_wait(ctx: Context) -> str:
        """Report progress, then wait for the gate."""
        ctx.report_progress(1, 2)
        return await wait(ctx)

    @server.tool
    def tell_from_thread(ctx: Context) -> str:
        """Report progress from a worker thread."""
        for step in range(3):
            ctx.report_progress(step)
        return "told"

    @server.tool
    async def flood(ctx: Context, size: int) -> str:
        """Send more than fits into a queue."""
        for step in range(64):
            ctx.report_progress(step, None, "x" * (size // 64))
        return await wait(ctx)

    @server.tool
    async def look(ctx: Context) -> str:
        """Note what the request was."""
        self.seen.append((ctx.headers, ctx._call.channel.client))
        return "seen"

    @server.tool
    async def add_tool() -> str:
        """Change the list of tools."""

        async def more() -> str:
            return "more"

        server.add_tool(more)
        return "added"

    @server.tool
    async def ask(question: str) -> str:
        """Answered by the layer below."""
        return question

    @server.middleware("tools/call")
    async def asking(call: Any, proceed: Any) -> Any:
        if call.params.name != "ask":
            return await proceed(call)
        question = {"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}}
        answer = msgspec.json.decode(await call.channel.ask("elicitation/create", question))
        self.asked.append(answer)
        return CallToolResult(content=[TextContent(text=answer["action"])])

    @server.tool
    async def broken() -> str:
        """Fails inside the server, by the layer below."""
        return ""

    @server.middleware("tools/call")
    async def breaking(call: Any, proceed: Any) -> Any:
        if call.params.name == "broken":
            raise ZeroDivisionError("a secret")
        return await proceed(call)

    return self
