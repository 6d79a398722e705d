"""A server over WebSocket by the library `websockets`, which cuts its messages. Its port is on stdout."""

from __future__ import annotations

import asyncio
import json

from websockets.asyncio.server import serve

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "library", "version": "1"},
}


async def talk(socket) -> None:
    async for text in socket:
        message = json.loads(text)
        if "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "initialize":
            answer["result"] = HELLO
        elif message["method"] == "tools/call":
            arguments = message["params"]["arguments"]
            answer["result"] = {"content": [{"type": "text", "text": arguments["text"]}]}
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        data = json.dumps(answer)
        third = len(data) // 3
        await socket.send([data[:third], data[third : 2 * third], data[2 * third :]])


async def main() -> None:
    async with serve(talk, "127.0.0.1", 0, subprotocols=["mcp"], ping_interval=0.05, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
