"""The client of the official Python SDK."""

from __future__ import annotations

import asyncio
import json

from mcp import Client, StdioServerParameters
from measure import measure, target


async def main() -> None:
    transport, place = target()
    if transport == "stdio":
        command, *arguments = json.loads(place)
        place = StdioServerParameters(command=command, args=arguments)
    async with Client(place, mode="2026-07-28") as client:

        async def call() -> None:
            result = await client.call_tool("add", {"a": 3, "b": 4})
            assert result.structured_content["result"] == 7

        await measure(call)


asyncio.run(main())
