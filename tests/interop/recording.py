"""A server of ours with every frame that passes written down, on both transports."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from dragoman.transports.asgi import HttpApp
from dragoman.transports.serve import serve
from tests.interop.served import build
from tests.interop.wire import Wire


def logged(path: Path) -> tuple[Wire, str]:
    """The frames in a log of `tee.py`, and the exit status at its end."""
    wire, status = Wire("server"), "none"
    for line in path.read_bytes().split(b"\n"):
        if line[:1] in (b">", b"<"):
            wire.add("to_server" if line[:1] == b">" else "to_client", line[1:])
        elif line:
            status = line.decode().removeprefix("=")
    return wire, status


class Recorded:
    """An HTTP app of ours, seen from outside: frames in the order in which they passed, and statuses."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.name, self.path = app.name, app.path
        self.wire = Wire("server")
        self.answered: list[tuple[str, int]] = []

    def wind_down(self) -> None:
        self._app.wind_down()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, reply = bytearray(), Reply(self.wire)

        async def received() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                body.extend(message.get("body", b""))
                if body and not message.get("more_body"):
                    self.wire.add("to_server", bytes(body))
                    body.clear()
            return message

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.answered.append((scope["method"], message["status"]))
                reply.begin(dict(message["headers"]))
            else:
                reply.feed(message.get("body", b""), more=message.get("more_body", False))
            await send(message)

        await self._app(scope, received, sent)


class Reply:
    """The frames in one response: the events of a stream, or the body."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._streams = False
        self._buffer = b""

    def begin(self, headers: dict[bytes, bytes]) -> None:
        self._streams = headers.get(b"content-type", b"").startswith(b"text/event-stream")

    def feed(self, data: bytes, *, more: bool) -> None:
        self._buffer += data
        if self._streams:
            *events, self._buffer = self._buffer.split(b"\n\n")
            for event in events:
                for found in re.finditer(rb"^data: (.+)$", event, re.MULTILINE):
                    self._wire.add("to_client", found[1])
        elif not more and self._buffer:
            self._wire.add("to_client", self._buffer)


@asynccontextmanager
async def serving_ours() -> AsyncIterator[tuple[str, Recorded]]:
    """Our server over HTTP at a free port: its URL, and what passes there."""
    app = Recorded(build().asgi())
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(app, port=0, bound=port.set_result))
    try:
        yield f"http://127.0.0.1:{await port}/mcp", app
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
