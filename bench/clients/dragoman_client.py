"""Our own client."""

from __future__ import annotations

import asyncio
import json

from measure import measure, target

from dragoman import Client


async def main() -> None:
    transport, place = target()
    async with Client(json.loads(place) if transport == "stdio" else place) as client:

        async def call() -> None:
            result = await client.call_tool("add", {"a": 3, "b": 4})
            assert result.structured == {"result": 7}

        await measure(call)


asyncio.run(main())
