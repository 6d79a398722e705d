"""The servers of the soak: their names, how they are reached, and who starts those over HTTP again."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path
from typing import Final

from .faults import HTTP, NEW, OLD, STDIO, Draw

ROOT: Final = Path(__file__).parents[2]
KINDS: Final = tuple(product((STDIO, HTTP), (OLD, NEW)))


@dataclass(frozen=True)
class Place:
    """One server: its name, how it is reached, what it speaks and where it writes what it worked on."""

    name: str
    transport: str
    revision: str
    ledger: Path
    draw: Draw

    def command(self, *more: str) -> list[str]:
        """How it is started."""
        words = [self.transport, self.revision, self.name, str(self.ledger), *more]
        return [sys.executable, "-m", "tools.soak.served", *words]


def places(number: int, folder: Path) -> list[Place]:
    """So many servers, of all kinds in turn."""
    found: list[Place] = []
    for place in range(number):
        transport, revision = KINDS[place % len(KINDS)]
        name = f"{transport}-{revision[:4]}-{place // len(KINDS) + 1}"
        found.append(Place(name, transport, revision, folder / name, Draw(transport, revision)))
    return found


class Keeper:
    """Keeps one server over HTTP going at one port: where it ends, it is started again after a while."""

    def __init__(self, place: Place, rng: random.Random) -> None:
        self._place = place
        self._rng = rng
        self._port = 0
        self._first = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None
        self.starts = 0

    async def start(self) -> str:
        """Start it; returns its URL."""
        self._running = asyncio.create_task(self._run())
        await self._first.wait()
        return f"http://127.0.0.1:{self._port}/mcp"

    async def _run(self) -> None:
        for start in count(1):
            process = await asyncio.create_subprocess_exec(
                *self._place.command(str(self._port)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=ROOT,
            )
            self._process, self.starts = process, start
            assert process.stdout is not None
            self._port = int(await process.stdout.readline() or self._port)
            self._first.set()
            await process.wait()
            await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def stop(self) -> None:
        """End it for good."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            if process.stdin is not None:
                process.stdin.close()
                with suppress(ConnectionError):
                    await process.stdin.wait_closed()
