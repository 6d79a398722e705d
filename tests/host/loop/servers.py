"""A project with one small server, for runs of the loop over a real host."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dragoman.host import Host

SERVER = '''
import asyncio
from dataclasses import dataclass
from pathlib import Path

from dragoman import Context, Server, ToolError

server = Server("shop", instructions="Ask for the price first.")


@dataclass
class Paper:
    colour: str


LOG = Path(__file__).with_name("calls.log")
waiting: dict[str, asyncio.Event] = {}


def note(text: str) -> None:
    with LOG.open("a") as file:
        file.write(text + "\\n")


@server.tool(annotations={"readOnlyHint": True})
def price(item: str) -> int:
    """What an item costs."""
    note(f"price {item}")
    return {"apple": 3, "pear": 4}.get(item, 0)


@server.tool
def buy(item: str, count: int = 1) -> str:
    """Buy an item."""
    note(f"buy {item} {count}")
    return f"bought {count} {item}"


@server.tool
def broken() -> str:
    """Never works."""
    raise ToolError("the till is closed")


@server.tool
async def wrap(ctx: Context) -> str:
    """Wrap it up."""
    answer = await ctx.elicit("Which paper?", Paper)
    note(f"wrap {answer.action}")
    return answer.action if answer.data is None else f"in {answer.data.colour}"


@server.tool
async def meet(me: str, other: str) -> str:
    """Ends once the other one is there too."""
    waiting.setdefault(me, asyncio.Event()).set()
    await waiting.setdefault(other, asyncio.Event()).wait()
    note(f"met {me}")
    return f"{me} met {other}"


@server.tool
async def hang() -> str:
    """Never ends."""
    note("hang")
    await asyncio.Event().wait()


@server.tool(annotations={"readOnlyHint": True})
async def hang_reading() -> str:
    """Never ends, and does nothing."""
    note("hang_reading")
    await asyncio.Event().wait()


server.run()
'''

ALLOWED = {"allow": ["mcp__shop"]}


def name(tool: str) -> str:
    """A tool's name as the model sees it."""
    return f"mcp__shop__{tool}"


def shop(folder: Path, permissions=ALLOWED, **options) -> Host:
    """The host of a project whose one server is the shop."""
    (folder / "shop.py").write_text(SERVER, encoding="utf-8")
    entry = {"command": sys.executable, "args": ["shop.py"]}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    (folder / ".claude").mkdir(exist_ok=True)
    (folder / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}))
    return Host.from_files(folder, user=False, trusted=True, approve=True, **options)


def calls(folder: Path) -> list[str]:
    """What the server was asked to do, in order."""
    log = folder / "calls.log"
    return log.read_text().splitlines() if log.exists() else []
