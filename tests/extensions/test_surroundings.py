"""Tasks among the other things that a server has: what handlers are supplied with, and servers in servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from dragoman import Context, Depends, Server, Tasks
from dragoman.stores import MemoryStore
from tests.extensions.talk import served
from tests.server.pair import text


async def test_a_task_has_what_every_handler_has() -> None:
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[dict[str, str]]:
        yield {"database": "connected"}
        events.append("disconnected")

    async def connection(ctx: Context) -> AsyncIterator[str]:
        yield f"{ctx.lifespan['database']}"
        events.append("given back")

    server = Server("test", lifespan=lifespan, extensions=[Tasks(MemoryStore())])
    server.add_resource("test://text", "text of a resource", name="text")

    @server.tool(task=True)
    async def work(supplied: Annotated[str, Depends(connection)], ctx: Context) -> dict[str, Any]:
        read = await ctx.read_resource("test://text")
        return {
            "supplied": supplied,
            "read": str(read),
            "client": ctx.client_info.name if ctx.client_info else "",
        }

    async with served(server) as talk:
        task = await talk.until(await talk.begin("work"))
        assert events == ["given back"]
    assert events == ["given back", "disconnected"]
    found = task["result"]["structuredContent"]
    assert (found["supplied"], found["client"]) == ("connected", "test")
    assert "text of a resource" in found["read"]


async def test_a_tool_of_a_mounted_server_is_a_task_of_the_outer_one() -> None:
    inner = Server("inner", extensions=[Tasks(MemoryStore())])

    @inner.tool(task="required")
    async def work(ctx: Context) -> str:
        return f"Hello, {(await ctx.elicit('Name?', str, key='name')).data}"

    outer = Server("outer", extensions=[Tasks(MemoryStore())])
    outer.mount(inner, prefix="in_")
    async with served(outer) as talk:
        task_id = await talk.begin("in_work")
        await talk.until(task_id, "input_required")
        await talk.answer_task(task_id, name="Ada")
        assert text((await talk.until(task_id))["result"]) == "Hello, Ada"
