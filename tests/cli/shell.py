"""Runs the program as a shell would, and servers for it to meet."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

TIME_LIMIT = 60

SERVER = '''
from dataclasses import dataclass
from typing import Annotated, Literal

from dragoman import Context, ImageContent, ResourceLink, Server, TextContent, ToolError
from dragoman.server import File, Image

server = Server("sums", version="2.1.0", title="Sums", instructions="Add things.")


@dataclass
class Point:
    x: int
    y: int


@server.tool(annotations={"readOnlyHint": True, "idempotentHint": True})
def add(a: int, b: int = 0) -> int:
    """Add two numbers.

    The second line is not for a table.
    """
    return a + b


@server.tool
def echo(text: str, times: int = 1, colour: Literal["red", "blue"] = "red", tags: list[str] = []) -> str:
    return "\\n".join([text] * times + tags)


@server.tool(annotations={"destructiveHint": True})
def fail(reason: str = "no reason") -> str:
    """Always fails."""
    raise ToolError(reason)


@server.tool
def point(point: Point) -> Point:
    """Give a point back."""
    return point


@server.tool
def picture(count: int = 1):
    """Pictures."""
    return [TextContent(text="look:"), *[Image(b"\\x89PNG" + bytes([n]), format="png") for n in range(count)]]


@server.tool
def document():
    """A link and a file."""
    return [ResourceLink(uri="file:///a.txt", name="a"), File(b"\\x00\\x01", format="pdf")]


@server.tool
def nothing() -> None:
    """Answers nothing."""


@server.tool
async def slow(ctx: Context) -> str:
    """Reports progress, and logs."""
    await ctx.report_progress(1, 4, "first")
    await ctx.info("half way")
    await ctx.report_progress(4, 4, "last")
    return "done"


@server.tool
def steering() -> str:
    """Text that would \\x1b[31msteer a terminal."""
    return "a\\x1b[2Jb\\u202ec"
'''


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)


def dragoman(*words: str, cwd: Path, stdin: str | None = None, env: dict[str, str] | None = None) -> Done:
    """Run `dragoman` with these words."""
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", *words],
        cwd=cwd,
        env=env,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        encoding="utf-8",
        timeout=TIME_LIMIT,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)
