"""A stdio server with as many tools as the command line says, without reflecting on each."""

from __future__ import annotations

import sys

from msgspec.structs import replace

from dragoman import Server

server = Server("many", version="1.0.0")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


[tool] = server.tools
for number in range(int(sys.argv[1]) - 1):
    server.kernel.tools.add(replace(tool, entry=replace(tool.entry, name=f"tool_{number}")))

if __name__ == "__main__":
    server.run()
