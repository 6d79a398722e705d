"""A server and the frames it sends, without a process: bytes go in, parsed JSON comes out."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Self

from dragoman import Server
from dragoman.transports.connection import ServerConnection
from tests.drivers.stdio import call, initialize, request, stateless
from tests.spec.oracle import validate_frame

PATIENCE = 20.0


class Pair:
    """One connection to `server`; every frame it sends is held against the schema of `revision`."""

    def __init__(self, server: Server, revision: str = "2026-07-28") -> None:
        self.server = server
        self.revision = revision
        self.frames: list[dict[str, Any]] = []
        self._arrived = asyncio.Event()
        self.connection = ServerConnection(server.kernel, self._take)
        self._methods: dict[Any, str] = {}
        self._next = 0
        self._fault: AssertionError | None = None

    async def __aenter__(self) -> Self:
        if self.revision != "2026-07-28":
            await self.ask("initialize", initialize(version=self.revision)["params"])
            self.tell("notifications/initialized")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.connection.cancel()
        if self._fault is not None:
            raise self._fault

    def _take(self, frame: bytes) -> None:
        message = json.loads(frame)
        self.frames.append(message)
        self._arrived.set()
        try:
            assert b"\n" not in frame
            validate_frame(self.revision, message, self._methods, "to_client", exact=True)
        except AssertionError as exc:
            self._fault = self._fault or exc

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        """A notification."""
        frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        self.connection.receive(json.dumps(frame if params is None else frame | {"params": params}).encode())

    def send(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> int:
        """A request in the way of the pair's revision; its id."""
        self._next += 1
        if self.revision == "2026-07-28":
            frame = stateless(self._next, method, params, **meta)
        else:
            frame = request(self._next, method, ({**(params or {}), "_meta": meta} if meta else params))
        self._methods[self._next] = method
        self.connection.receive(json.dumps(frame).encode())
        return self._next

    async def answer(self, id_: int) -> dict[str, Any]:
        """The answer to that request."""
        async with asyncio.timeout(PATIENCE):
            while self._fault is None:
                for frame in self.frames:
                    if frame.get("id") == id_ and "method" not in frame:
                        return frame
                self._arrived.clear()
                await self._arrived.wait()
        raise self._fault

    async def ask(self, method: str, params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """Send a request and await its answer."""
        return await self.answer(self.send(method, params, **meta))

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of a tool."""
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments})
        assert "result" in answer, answer
        return answer["result"]

    async def said(self, count: int) -> None:
        """Wait until the server has sent that many frames."""
        async with asyncio.timeout(PATIENCE):
            while len(self.frames) < count:
                self._arrived.clear()
                await self._arrived.wait()


def text(result: dict[str, Any]) -> str:
    """The text of a result that is one text block."""
    (block,) = result["content"]
    assert block["type"] == "text"
    return block["text"]


__all__ = ["Pair", "call", "text"]
