"""The server that the driver tests run: tools that wait, print, fill pipes and get cancelled."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

from dragoman import Context, Server

server = Server("served", version="1.0")
gate = threading.Event()


@server.tool
async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@server.tool
def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool
async def wait_for_ever() -> str:
    """Never answer; tell on stderr when it begins and when it is stopped."""
    print("waiting", file=sys.stderr, flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("stopped", file=sys.stderr, flush=True)
    return "never"


@server.tool
def hold() -> str:
    """Block a worker thread until `release` is called."""
    print("holding", file=sys.stderr, flush=True)
    gate.wait()
    return "released"


@server.tool
async def release() -> str:
    """Let `hold` go on."""
    gate.set()
    return "ok"


@server.tool
def chatter() -> str:
    """Print in every way there is."""
    print("PRINTED")
    sys.stdout.write("WRITTEN\n")
    sys.stdout.flush()
    os.write(1, b"RAW\n")
    subprocess.run([sys.executable, "-c", "print('FROM A CHILD')"], check=True)
    return f"read {len(sys.stdin.read())} characters of stdin"


@server.tool
def big(size: int) -> str:
    """Answer with `size` characters."""
    return "x" * size


@server.tool
async def steps(count: int, ctx: Context) -> str:
    """Report progress and log, `count` times."""
    for step in range(count):
        ctx.report_progress(step, count, f"단계 {step}")
        await ctx.info({"step": step})
        await asyncio.sleep(0)
    return "done"


if __name__ == "__main__":
    if "--print" in sys.argv:
        print("A BANNER, not yet flushed", end="\n")
    server.run()
