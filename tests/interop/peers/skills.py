"""Skills of FastMCP 4: python skills.py serve FOLDER stdio|http, or python skills.py use MODE URL|COMMAND...

Runs in the peer's own environment and knows nothing of the package under test. Over HTTP it prints its port
on stdout; as a client it prints one JSON line.
"""

import asyncio
import json
import socket
import sys
from pathlib import Path


def serve(folder, transport):
    from fastmcp import FastMCP
    from fastmcp.skills.provider import SkillsDirectoryProvider

    server = FastMCP("peer", providers=[SkillsDirectoryProvider(Path(folder))])
    if transport == "stdio":
        server.run(show_banner=False, log_level="warning")
        return
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        print("port", listener.getsockname()[1], flush=True)
        app = server.http_app(path="/mcp")
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


async def use(target):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport
    from fastmcp.skills import SkillsClientExtension

    opened = target[0] if target[0].startswith("http") else StdioTransport(target[0], target[1:])
    async with Client(opened, extensions=[SkillsClientExtension()]) as client:
        listed = await client.list_skills()
        skill = await client.read_skill(listed[0].uri)
        files = {path: len(data) for path, data in skill.files.items()}
        found = {
            "revision": client.protocol_version,
            "listed": [entry.uri for entry in listed],
            "frontmatter": skill.frontmatter.root,
            "files": files,
        }
    print(json.dumps(found))


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    asyncio.run(use(sys.argv[3:]))
