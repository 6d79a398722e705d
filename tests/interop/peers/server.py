"""One server for four Python packages: python server.py mcp2|mcp1|fastmcp3|fastmcp4 stdio|http

Runs in the peer's own environment and knows nothing of the package under test. Over HTTP it prints its
port on stdout, and a line on stderr for each request that it answered.
"""

import asyncio
import socket
import sys
from typing import Annotated

from pydantic import BaseModel

KIND, TRANSPORT = sys.argv[1:]

if KIND == "mcp2":
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver import MCPServer as Server
elif KIND == "mcp1":
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server
else:
    from fastmcp import Context
    from fastmcp import FastMCP as Server

server = Server("peer")
stopped = 0


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
async def fail() -> str:
    """Always fails."""
    raise ValueError("nothing works today")


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Report progress, then end."""
    for step in range(count):
        await ctx.report_progress(step + 1, count)
    return "done"


@server.tool()
async def wait(ctx: Context) -> str:
    """Say that it began, and never end."""
    global stopped
    await ctx.report_progress(0, 1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        stopped += 1
        raise
    return "never"


@server.tool()
async def waits_stopped() -> int:
    """How many calls of `wait` were cancelled."""
    return stopped


today = "rain"


@server.resource("notes://today")
def note() -> str:
    return today


@server.resource("notes://{day}/weather")
def weather(day: str) -> str:
    return f"{day}: sun"


@server.prompt()
def greet(who: str) -> str:
    return f"Say hello to {who}."


async def more() -> str:
    """There once `change` was called."""
    return "more"


@server.tool()
async def change(ctx: Context) -> str:
    """Write another note and add a tool, and tell of it."""
    global today
    today = "snow"
    if KIND == "mcp2":
        server.add_tool(more)
        await ctx.notify_tools_changed()
        await ctx.notify_resource_updated("notes://today")
    elif KIND.startswith("fastmcp"):
        if KIND == "fastmcp3":
            from mcp.types import ToolListChangedNotification
        else:
            from mcp_types import ToolListChangedNotification

        server.tool(more)
        await ctx.send_notification(ToolListChangedNotification())
    return "changed"


class Booking(BaseModel):
    day: str
    people: int = 2


if KIND == "mcp2":
    from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
    from mcp.types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent

    def person() -> Elicit[Booking]:
        return Elicit("Which table?", Booking)

    Table = Annotated[Booking, Resolve(person)]

    def model(table: Table) -> Sample:
        words = TextContent(type="text", text=f"Say something on {table.people} people.")
        return Sample([SamplingMessage(role="user", content=words)], max_tokens=10)

    def project() -> ListRoots:
        return ListRoots()

    @server.tool()
    async def book(
        table: Table,
        said: Annotated[CreateMessageResult, Resolve(model)],
        roots: Annotated[ListRootsResult, Resolve(project)],
    ) -> str:
        """Ask the person, then the model, then for the roots."""
        return f"{table.day}, {table.people}, {said.content.text}, {roots.roots[0].uri}"

else:
    from mcp.types import SamplingMessage, TextContent

    @server.tool()
    async def book(ctx: Context) -> str:
        """Ask the person, then the model, then for the roots."""
        table = (await ctx.elicit("Which table?", Booking)).data
        words = TextContent(type="text", text=f"Say something on {table.people} people.")
        said = await ctx.session.create_message([SamplingMessage(role="user", content=words)], max_tokens=10)
        roots = await ctx.session.list_roots()
        return f"{table.day}, {table.people}, {said.content.text}, {roots.roots[0].uri}"


def told(app):
    """The app, with a line on stderr for each response that begins."""

    async def outer(scope, receive, send):
        async def noted(message):
            if message["type"] == "http.response.start":
                print(scope["method"], message["status"], file=sys.stderr, flush=True)
            await send(message)

        await app(scope, receive, noted if scope["type"] == "http" else send)

    return outer


def serve_http():
    import uvicorn

    app = server.http_app(path="/mcp") if KIND.startswith("fastmcp") else server.streamable_http_app()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        print("port", listener.getsockname()[1], flush=True)
        config = uvicorn.Config(told(app), log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if TRANSPORT == "http":
    serve_http()
elif KIND.startswith("fastmcp"):
    server.run(show_banner=False, log_level="warning")
else:
    server.run("stdio")
