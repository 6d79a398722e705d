"""The official Python client 1: python client_mcp1.py URL|COMMAND... ; prints one JSON line.

It has no way to cancel a call but to send the notification by hand, as its users do.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client, types
from mcp.client.streamable_http import streamable_http_client

TARGET = sys.argv[1:]
heard = []
ODD = Path(os.environ["ODD"]).read_bytes().decode()


async def code(work):
    try:
        result = await work
    except McpError as exc:
        return str(exc.error.code)
    return "isError" if result.isError else "no error"


async def cancelled(session):
    """Start a call that never ends, take it back, and ask how many were stopped."""
    async with anyio.create_task_group() as group:

        async def began(*_):
            wanted = types.CancelledNotificationParams(requestId=session._request_id - 1, reason="enough")
            await session.send_notification(
                types.ClientNotification(types.CancelledNotification(params=wanted))
            )
            group.cancel_scope.cancel()

        async def wait():
            await session.call_tool("wait", {}, progress_callback=began)

        group.start_soon(wait)
    for _ in range(250):
        stopped = (await session.call_tool("waits_stopped", {})).content[0].text
        if stopped != "0":
            return stopped
        await anyio.sleep(0.02)
    return "0"


async def watched(session):
    """A call that ends when its last step was heard of."""
    seen, results, last = [], [], anyio.Event()

    async def step(progress, total, message):
        seen.append([progress, total, message])
        if progress == total:
            last.set()

    async def steps():
        results.append(await session.call_tool("steps", {"count": 3}, progress_callback=step))

    async with anyio.create_task_group() as group:
        group.start_soon(steps)
        await last.wait()
        await session.call_tool("heard", {})
    return seen, results[0]


async def echoed(session):
    """Ten calls at once with much odd text: how many came back as they went."""
    right = []

    async def echo(turn):
        result = await session.call_tool("echo", {"text": f"{turn}{ODD}"})
        if result.content[0].text == f"{turn}{ODD}":
            right.append(turn)

    async with anyio.create_task_group() as group:
        for turn in range(10):
            group.start_soon(echo, turn)
    return len(right)


async def changed(session):
    """Have the list of tools change until it is told."""
    for _ in range(250):
        await session.call_tool("change", {})
        if "notifications/tools/list_changed" in heard:
            return True
        await anyio.sleep(0.02)
    return False


async def form(context, asked):
    properties = asked.requestedSchema["properties"]
    assert properties["day"]["enum"] == ["friday", "saturday"]
    return types.ElicitResult(action="accept", content={"day": "saturday", "people": 4})


async def model(context, asked):
    assert asked.messages[0].content.text == "Say something on 4 people."
    words = types.TextContent(type="text", text="a model's word")
    return types.CreateMessageResult(role="assistant", model="none", content=words)


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///srv/project")])


HANDLERS = {
    "elicitation_callback": form,
    "sampling_callback": model,
    "list_roots_callback": roots,
}


async def note(message):
    heard.append(getattr(getattr(message, "root", None), "method", None))


async def main():
    if TARGET[0].startswith("http"):
        transport = streamable_http_client(TARGET[0])
    else:
        transport = stdio_client(StdioServerParameters(command=TARGET[0], args=TARGET[1:]))
    async with (
        transport as streams,
        ClientSession(streams[0], streams[1], message_handler=note, **HANDLERS) as session,
    ):
        hello = await session.initialize()
        tools = (await session.list_tools()).tools
        added = await session.call_tool("add", {"a": 2, "b": 3})
        order = await session.call_tool("order", {"order_id": "A-1042"})
        picture = await session.call_tool("picture", {})
        failed = await session.call_tool("fail", {})
        seen, done = await watched(session)
        found = {
            "revision": hello.protocolVersion,
            "server": hello.serverInfo.name,
            "instructions": hello.instructions,
            "tools": sorted(tool.name for tool in tools),
            "text": added.content[0].text,
            "structured": [added.structuredContent, order.structuredContent],
            "booked": (await session.call_tool("book", {})).content[0].text,
            "changed": await changed(session),
            "echoed": await echoed(session),
            "content": [block.type for block in picture.content],
            "failed": [failed.isError, failed.content[0].text],
            "refused": await code(session.call_tool("order", {"order_id": "1042"})),
            "unknown": await code(session.call_tool("no_such_tool", {})),
            "progress": seen,
            "done": done.content[0].text,
            "stopped": await cancelled(session),
        }
    print(json.dumps(found))


asyncio.run(main())
