"""A server whose tasks leave a trace of each thing they do: `survivor.py STORE LEDGER GATE`.

It is killed in their middle, started again, and must neither lose a task nor do a thing twice. Tasks
pass from their first step to their second when the file GATE is there.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dragoman import Context, Server
from dragoman.extensions.tasks import Tasks

STORE, LEDGER, GATE = sys.argv[1:]
LEASE = 1.0

server = Server("survivor", extensions=[Tasks(STORE, lease=LEASE, poll=0.05)])


def enter(line: str) -> str:
    """One line in the ledger, whole whoever else writes."""
    ledger = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{line}\n".encode())
    os.close(ledger)
    return line


def gate() -> bool:
    return Path(GATE).exists()


@server.tool(task="required")
async def work(number: int, ctx: Context) -> str:
    """Two effects, each in a step."""
    first = await ctx.step("first", enter, f"{number} first")
    await ctx.report_progress(1, 2, "half")
    while not gate():  # noqa: ASYNC110  # the test, in another process, opens it
        await asyncio.sleep(0.01)
    second = await ctx.step("second", enter, f"{number} second")
    return f"{first}, {second}"


@server.tool(task="required")
async def ask(number: int, ctx: Context) -> str:
    """An effect, a question, an effect."""
    first = await ctx.step("first", enter, f"{number} first")
    answer = await ctx.elicit("Go on?", bool, key="on")
    second = await ctx.step("second", enter, f"{number} second")
    return f"{first}, {answer.data}, {second}"


if __name__ == "__main__":
    server.run()
