"""The official Python client 2: python client_mcp2.py MODE URL|COMMAND... ; prints one JSON line."""

import asyncio
import json
import os
import sys
from pathlib import Path

import anyio
from mcp import Client, MCPError, StdioServerParameters, types

MODE, *TARGET = sys.argv[1:]
heard = []
ODD = Path(os.environ["ODD"]).read_bytes().decode()


async def code(work):
    try:
        result = await work
    except MCPError as exc:
        return str(exc.code)
    return "isError" if result.is_error else "no error"


async def watched(client):
    """A call that ends when its last step was heard of."""
    seen, results, last = [], [], anyio.Event()

    async def step(progress, total, message):
        seen.append([progress, total, message])
        if progress == total:
            last.set()

    async def steps():
        results.append(await client.call_tool("steps", {"count": 3}, progress_callback=step))

    async with anyio.create_task_group() as group:
        group.start_soon(steps)
        await last.wait()
        await client.call_tool("heard", {})
    return seen, results[0]


async def echoed(client):
    """Ten calls at once with much odd text: how many came back as they went."""
    right = []

    async def echo(turn):
        result = await client.call_tool("echo", {"text": f"{turn}{ODD}"})
        if result.content[0].text == f"{turn}{ODD}":
            right.append(turn)

    async with anyio.create_task_group() as group:
        for turn in range(10):
            group.start_soon(echo, turn)
    return len(right)


async def changed(client):
    """Have the list of tools change until it is told."""
    if client.protocol_version == "2026-07-28":
        async with client.listen(tools_list_changed=True) as listening:
            await client.call_tool("change", {})
            async for event in listening:
                return type(event).__name__ == "ToolsListChanged"
    for _ in range(250):
        await client.call_tool("change", {})
        if "notifications/tools/list_changed" in heard:
            return True
        await anyio.sleep(0.02)
    return False


async def form(context, asked):
    properties = asked.requested_schema["properties"]
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
    heard.append(getattr(message, "method", None))


async def main():
    http = TARGET[0].startswith("http")
    target = TARGET[0] if http else StdioServerParameters(command=TARGET[0], args=TARGET[1:])
    async with Client(target, mode=MODE, message_handler=note, **HANDLERS) as client:
        tools = (await client.list_tools()).tools
        added = await client.call_tool("add", {"a": 2, "b": 3})
        order = await client.call_tool("order", {"order_id": "A-1042"})
        picture = await client.call_tool("picture")
        failed = await client.call_tool("fail")
        seen, done = await watched(client)
        async with anyio.create_task_group() as group:

            async def began(*_):
                group.cancel_scope.cancel()

            async def wait():
                await client.call_tool("wait", progress_callback=began)

            group.start_soon(wait)
        stopped = "0"
        for _ in range(250):
            stopped = (await client.call_tool("waits_stopped")).content[0].text
            if stopped != "0":
                break
            await anyio.sleep(0.02)
        found = {
            "revision": client.protocol_version,
            "server": client.server_info and client.server_info.name,
            "instructions": client.instructions,
            "tools": sorted(tool.name for tool in tools),
            "text": added.content[0].text,
            "structured": [added.structured_content, order.structured_content],
            "booked": (await client.call_tool("book", {})).content[0].text,
            "changed": await changed(client),
            "echoed": await echoed(client),
            "content": [block.type for block in picture.content],
            "failed": [failed.is_error, failed.content[0].text],
            "refused": await code(client.call_tool("order", {"order_id": "1042"})),
            "unknown": await code(client.call_tool("no_such_tool")),
            "progress": seen,
            "done": done.content[0].text,
            "stopped": stopped,
        }
    print(json.dumps(found))


asyncio.run(main())
