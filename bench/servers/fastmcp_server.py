"""FastMCP."""

from __future__ import annotations

import argparse

from fastmcp import FastMCP

parser = argparse.ArgumentParser()
parser.add_argument("--http", type=int, default=0)
parser.add_argument("--tools", type=int, default=2)
options = parser.parse_args()
server = FastMCP("bench")


@server.tool
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
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
    server.tool(more(number))

if options.http:
    server.run(
        transport="http",
        host="127.0.0.1",
        port=options.http,
        path="/mcp",
        show_banner=False,
        log_level="warning",
        uvicorn_config={"access_log": False},
    )
else:
    server.run(show_banner=False, log_level="warning")
