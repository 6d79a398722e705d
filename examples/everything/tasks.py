"""The part of the everything server that goes on when its request is answered: calls that become tasks.

A client that knows the extension gets a handle at once, and asks for the rest when it likes; to every other
client the same tools answer when they are done. `failing_job` runs as a task only.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from asking import Name  # type: ignore[import-not-found]  # it lies beside this file

from dragoman import Context, Refusal, Server, ToolError
from dragoman.extensions.tasks import arguments, demand
from dragoman.protocol.call import Call


def greet(name: str) -> str:
    """Greets at once: not every tool needs a task."""
    return f"Hello, {name}!"


async def slow_compute(seconds: float, label: str, ctx: Context) -> str:
    """Takes its time, says how far it is, and can be cancelled."""
    for second in range(int(seconds)):
        await ctx.report_progress(second, seconds, f"{label}: second {second + 1} of {seconds:g}")
        await asyncio.sleep(1)
    await asyncio.sleep(seconds % 1)
    return f"{label}: computed for {seconds:g} seconds"


async def failing_job() -> str:
    """Fails as tools fail: the task is completed, and its result says so."""
    await asyncio.sleep(1)
    raise ToolError("The job could not be done: this tool never can")


async def protocol_error_job() -> str:
    """Fails as requests fail: the task has failed, and has no result."""
    await asyncio.sleep(0.2)
    raise Refusal(-32603, "The machinery behind this tool is broken, as this tool is there to show")


async def confirm_delete(filename: str, ctx: Context) -> str:
    """Asks before it deletes (nothing, really)."""
    answer = await ctx.elicit(f"Really delete {filename}?", {"type": "object", "properties": CONFIRM})
    if not answer.data or not answer.data["confirm"]:
        return f"Kept {filename}"
    return f"Deleted {filename}"


CONFIRM = {"confirm": {"type": "boolean", "description": "Delete it for good", "default": False}}


async def multi_input(ctx: Context) -> str:
    """Asks two things at once, and waits for both."""
    name, sure = await ctx.gather(
        ctx.elicit("What is your name?", Name, key="user_name"),
        ctx.elicit("Are you sure?", {"type": "object", "properties": CONFIRM}, key="sure"),
    )
    return f"{name.data.name if name.data else 'Nobody'} says {sure.action}"


async def once_named(call: Call) -> Literal["required"]:
    """Asks for a name first, while the client waits; the rest is a task."""
    demand(call)
    await Context(call).elicit("What is your name?", Name, key="user_name")
    return "required"


async def test_tool_with_task(ctx: Context) -> str:
    """Asks in its call, goes on as a task, and still knows the answer."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    await asyncio.sleep(0.2)
    return f"Hello, {answer.data.name if answer.data else 'whoever you are'}, from a task!"


def takes_long(call: Call) -> bool:
    """Whether a call is worth a task: the server decides, call by call."""
    seconds = arguments(call).get("seconds")
    return not isinstance(seconds, (int, float)) or seconds >= 1


def add_to(server: Server) -> None:
    """Make tools of all these."""
    server.add_tool(greet)
    server.add_tool(slow_compute, task=takes_long)
    server.add_tool(failing_job, task="required")
    server.add_tool(protocol_error_job, task=True)
    server.add_tool(confirm_delete, task=True)
    server.add_tool(multi_input, task=True)
    server.add_tool(test_tool_with_task, task=once_named)
