"""A machine of its own for a test: a project, a home, the files of the system, and a server to be asked."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from dragoman.host import Host, Machine

SERVER = """
import asyncio, os, sys, time
from pathlib import Path
from dragoman import Context, Server

if len(sys.argv) > 1:
    Path(sys.argv[1]).open("a").write(f"{os.getpid()}\\n")  # it ran

server = Server("service", version="1")
READS = {"readOnlyHint": True, "openWorldHint": False}

@server.tool(annotations=READS)
def look(what: str = "x") -> str:
    return what

@server.tool
def change(amount: int = 0) -> str:
    return "changed"

@server.tool(annotations={"destructiveHint": True})
def drop() -> str:
    return "dropped"

@server.tool(annotations=READS)
def environment() -> dict[str, str]:
    return dict(os.environ)

@server.tool(annotations=READS)
def pid() -> int:
    return os.getpid()

@server.tool(annotations=READS)
def where() -> str:
    return os.getcwd()

@server.tool(annotations=READS)
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"

@server.tool(annotations=READS, inline=True)
def busy(seconds: float) -> str:
    time.sleep(seconds)  # and hears nothing meanwhile
    return "done"

@server.tool(annotations=READS)
def big(characters: int) -> str:
    return "word " * (characters // 5)

@server.tool(annotations=READS, meta={"anthropic/maxResultSizeChars": 200_000})
def roomy(characters: int) -> str:
    return "word " * (characters // 5)

@server.tool(annotations=READS, meta={"anthropic/alwaysLoad": True}, description="d" * 3000)
def always() -> str:
    return ""

@server.tool(annotations=READS)
def die() -> None:
    os._exit(7)

@server.tool(annotations=READS)
async def wish(ctx: Context) -> str:
    answer = await ctx.elicit("Which one?", {"type": "object", "properties": {"one": {"type": "string"}}})
    return f"{answer.action}: {answer.data}"

server.run()
"""

ENV = {"PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", "/")}


class Place:
    """Files by name: `project/...`, `home/...`, `root/...`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        for name in ("project", "home", "root"):
            (self.folder / name).mkdir()
        self.project = self.folder / "project"
        self.server = self.folder / "server.py"
        self.server.write_text(SERVER)
        self.ran = self.folder / "ran"

    def write(self, name: str, content: Any) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def machine(self, **env: str) -> Machine:
        return Machine(self.project, self.folder / "home", {**ENV, **env}, "linux", root=self.folder / "root")

    def host(self, name: str, *, env: dict[str, str] | None = None, **options: Any) -> Host:
        return Host.from_files(host=name, machine=self.machine(**(env or {})), **options)

    @property
    def entry(self) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(self.server), str(self.ran)]}

    @property
    def toml(self) -> str:
        """The same entry for Codex, at the end of which more members may be added."""
        return (
            f'[mcp_servers.service]\ncommand = "{sys.executable}"\nargs = ["{self.server}", "{self.ran}"]\n'
        )

    @property
    def starts(self) -> list[int]:
        """The processes that were started of the server."""
        return [int(line) for line in self.ran.read_text().split()] if self.ran.exists() else []


def use(tool: str, name: str = "mcp__service__{}", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name.format(tool), "input": arguments}


def content(path: Path) -> str | None:
    """The text of a file, None where it is gone."""
    return path.read_text() if path.exists() else None


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o777


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
