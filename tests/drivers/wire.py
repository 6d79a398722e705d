"""A puppet server and the transport to it, as the tests of the child-process transport use them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from dragoman.jsonrpc.message import (
    Notification,
    Request,
    Response,
    encode_error,
    encode_notification,
    encode_request,
)
from dragoman.transports.base import OnRequest, Outgoing
from dragoman.transports.child import ChildLimits, ChildTransport

PUPPET = Path(__file__).with_name("puppet.py")
HOST = Path(__file__).with_name("host.py")
QUICK = ChildLimits(grace=(0.2, 0.2))


async def refuse(request: Request) -> bytes:
    return encode_error(request.id, -32601, "Method not found")


class Wire:
    """A transport with a counter of ids, and everything that came without being asked for."""

    def __init__(self, transport: ChildTransport) -> None:
        self.transport = transport
        self.notifications: list[Notification] = []
        self.stderr: list[str] = []
        self._last = 0

    def outgoing(self, method: str, params: object = None, **options: Any) -> Outgoing:
        self._last += 1
        frame = encode_request(self._last, method, {} if params is None else params)
        return Outgoing(self._last, method, frame, **options)

    async def ask(self, method: str, params: object = None, **options: Any) -> Response:
        return await self.transport.exchange(self.outgoing(method, params, **options))

    async def start(self, method: str, params: object = None, **options: Any) -> asyncio.Task[Response]:
        """A task whose request has been handed to the transport."""
        task = asyncio.create_task(self.ask(method, params, **options))
        await asyncio.sleep(0)
        return task

    async def call(self, method: str, params: object = None) -> Any:
        answer = await self.ask(method, params)
        assert answer.error is None, answer.error
        return json.loads(bytes(answer.result))

    async def tell(self, method: str, params: object) -> None:
        await self.transport.notify(encode_notification(method, params), None)

    async def seen(self) -> list[dict[str, Any]]:
        """Every message that the server has received, this question left out."""
        return [json.loads(line) for line in (await self.call("seen"))[:-1]]

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.transport.facts())


def puppet(*words: str, **options: Any) -> ChildTransport:
    options = {"limits": QUICK, "name": "puppet", **options}
    return ChildTransport([sys.executable, str(PUPPET), *words], **options)


@asynccontextmanager
async def opened(*words: str, on_request: OnRequest = refuse, **options: Any) -> AsyncIterator[Wire]:
    """A running puppet, closed at the end."""
    lines: list[str] = []
    transport = puppet(*words, **{"on_stderr": lines.append, **options})
    wire = Wire(transport)
    wire.stderr = lines
    await transport.open(wire.notifications.append, on_request)
    try:
        yield wire
    finally:
        await transport.close()


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def gone(*pids: int, seconds: float = 10.0) -> bool:
    """Whether all processes end within a time limit."""
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def children() -> set[int]:
    """The processes that this one has started and not reaped."""
    own = str(os.getpid())
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == own:
            found.add(int(path.parent.name))
    return found


def descriptors() -> dict[str, str]:
    """The open descriptors of this process and what they are."""
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[path.name] = str(path.readlink())
        except FileNotFoundError:
            continue  # the one of the listing itself
    return found


async def until(test: Any, seconds: float = 10.0) -> None:
    """Let the loop run until something is so."""
    async with asyncio.timeout(seconds):
        while not test():  # noqa: ASYNC110  # what is waited for sets no event
            await asyncio.sleep(0.001)
