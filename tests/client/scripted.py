"""A transport whose other end is a function of the test: what the client sends is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ClosedError
from dragoman.jsonrpc.message import ErrorObject, Notification, Request, Response, decode
from dragoman.revisions import Revision
from dragoman.transports.base import OnNotification, OnRequest, Outgoing, Tap

NEW, OLD = "2026-07-28", "2025-11-25"


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


class Fail(Exception):
    """Raised by a script: answer with this JSON-RPC error."""

    def __init__(self, code: int, message: str = "no", data: Any = UNSET) -> None:
        super().__init__(message)
        self.error = ErrorObject(code, message, UNSET if data is UNSET else raw(data))


@dataclass
class Heard:
    """One request as it was sent."""

    id: Any
    method: str
    params: dict[str, Any]
    outgoing: Outgoing

    @property
    def meta(self) -> dict[str, Any]:
        return self.params.get("_meta", {})


Script = Callable[["Scripted", Heard], Awaitable[Any]]


@dataclass
class Scripted:
    """See `dragoman.transports.base.Transport`."""

    script: Script
    shared: bool = True
    name: str = "scripted"
    heard: list[Heard] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    cancelled: list[Any] = field(default_factory=list)
    agreed_on: list[str] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    tap: Tap | None = None

    async def open(self, on_notification: OnNotification, on_request: OnRequest) -> None:
        self.opened += 1
        self.on_notification = on_notification
        self.on_request = on_request
        self._end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def exchange(self, outgoing: Outgoing, on_notification: OnNotification | None = None) -> Response:
        if self.closed:
            raise ClosedError("closed", server=self.name, stage="call")
        message = decode(outgoing.frame)
        assert isinstance(message, Request), message
        assert b"\n" not in outgoing.frame
        assert (message.id, message.method) == (outgoing.id, outgoing.method)
        params = msgspec.json.decode(message.params) if message.params else {}
        heard = Heard(message.id, message.method, params, outgoing)
        self.heard.append(heard)
        work = asyncio.ensure_future(self.script(self, heard))
        try:
            await asyncio.wait({work, self._end}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.cancelled.append(outgoing.id)
            work.cancel()
            await asyncio.wait({work})
            raise
        if not work.done():
            work.cancel()
            await asyncio.wait({work})
            raise ClosedError("closed", server=self.name, stage="call")
        try:
            result = work.result()
        except Fail as exc:
            return Response(message.id, Raw(b""), exc.error)
        return Response(message.id, result if isinstance(result, Raw) else raw(result), None)

    async def notify(self, frame: bytes, revision: Revision | None) -> None:
        message = decode(frame)
        assert isinstance(message, Notification)
        self.notices.append(message.method)

    def agreed(self, revision: Revision) -> None:
        self.agreed_on.append(revision.version)

    async def close(self) -> None:
        self.closed += 1
        if self.opened and not self._end.done():
            self._end.set_result(None)

    def facts(self) -> Mapping[str, Any]:
        return {"transport": "scripted", "stderr_tail": ("last words",)}

    # For scripts and tests

    def say(self, method: str, params: Any = None) -> None:
        self.on_notification(Notification(method, Raw(b"") if params is None else raw(params)))

    def progress(self, heard: Heard, progress: float, **more: Any) -> None:
        token = heard.meta["progressToken"]
        self.say("notifications/progress", {"progressToken": token, "progress": progress, **more})

    async def ask(self, method: str, params: Any = None, id_: Any = "s1") -> dict[str, Any]:
        frame = await self.on_request(Request(method, id_, Raw(b"") if params is None else raw(params)))
        return msgspec.json.decode(frame)

    def of(self, method: str) -> list[Heard]:
        return [heard for heard in self.heard if heard.method == method]


def discover_result(**changes: Any) -> dict[str, Any]:
    return {
        "resultType": "complete",
        "supportedVersions": [NEW],
        "capabilities": {"tools": {}},
        "instructions": "be kind",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
        **changes,
    }


def initialize_result(version: str = OLD, **changes: Any) -> dict[str, Any]:
    return {
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "scripted", "version": "1"},
        "instructions": "be kind",
        **changes,
    }


def stateless(calls: Script | None = None, **hello: Any) -> Script:
    """A 2026-07-28 server; `calls` answers everything but `server/discover`."""

    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "server/discover":
            return discover_result(**hello)
        if calls is None or heard.method == "initialize":
            raise Fail(-32601, f"Method not found: {heard.method}")
        return await calls(transport, heard)

    return script


def handshake(calls: Script | None = None, version: str = OLD, **hello: Any) -> Script:
    """A 2025-11-25 server; `calls` answers everything but `initialize` and `ping`."""

    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "initialize":
            return initialize_result(version, **hello)
        if heard.method == "ping":
            return {}
        if calls is None or heard.method == "server/discover":
            raise Fail(-32601, f"Method not found: {heard.method}")
        return await calls(transport, heard)

    return script


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def text(value: str = "done", **more: Any) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": value}], **more}
