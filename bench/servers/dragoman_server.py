"""Our own entrant: two tools that work, and as many more as `--tools` says. `--plain`: not `async`."""

from __future__ import annotations

import sys

from dragoman import Server

server = Server("bench", version="1.0.0")

if "--plain" in sys.argv:

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @server.tool
    def echo(text: str) -> str:
        """Return the text."""
        return text

else:

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @server.tool
    async def echo(text: str) -> str:
        """Return the text."""
        return text


def option(name: str, default: int) -> int:
    words = sys.argv
    return int(words[words.index(name) + 1]) if name in words else default


def more(index: int):
    async def tool(a: int, b: str = "x") -> str:
        return b

    tool.__name__ = tool.__qualname__ = f"tool_{index}"
    tool.__doc__ = f"Generated tool number {index}: does something with a and b."
    return tool


for number in range(option("--tools", 2) - 2):
    server.add_tool(more(number))

if __name__ == "__main__":
    if "--http" in sys.argv:
        server.run("http", port=option("--http", 0), max_body=64 << 20)
    else:
        server.run()
