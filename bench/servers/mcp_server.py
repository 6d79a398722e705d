"""The official Python SDK, its high-level server."""

from __future__ import annotations

import argparse

from mcp.server.mcpserver import MCPServer

parser = argparse.ArgumentParser()
parser.add_argument("--http", type=int, default=0)
parser.add_argument("--tools", type=int, default=2)
options = parser.parse_args()
server = MCPServer("bench", log_level="WARNING")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


def more(index: int):
    def tool(a: int, b: str = "x") -> str:
        return b

    tool.__name__ = f"tool_{index}"
    tool.__doc__ = f"Generated tool number {index}: does something with a and b."
    return tool


for number in range(options.tools - 2):
    server.add_tool(more(number))

if options.http:
    import uvicorn

    app = server.streamable_http_app(max_request_body_size=64 << 20)
    uvicorn.run(app, host="127.0.0.1", port=options.http, log_level="warning", access_log=False)
else:
    server.run("stdio")
