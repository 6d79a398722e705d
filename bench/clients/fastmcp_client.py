"""The client of FastMCP."""

from __future__ import annotations

import asyncio
import json

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from measure import measure, target


async def main() -> None:
    transport, place = target()
    if transport == "stdio":
        command, *arguments = json.loads(place)
        way = StdioTransport(command=command, args=arguments)
    else:
        way = StreamableHttpTransport(place)
    async with Client(way, mode="2026-07-28") as client:

        async def call() -> None:
            result = await client.call_tool("add", {"a": 3, "b": 4})
            assert result.structured_content["result"] == 7

        await measure(call)


asyncio.run(main())
