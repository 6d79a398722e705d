"""Talking to an HTTP app in the tests: in process by ASGI messages, or over a real socket by hand."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from dragoman.protocol.sse import Parser
from dragoman.transports.asgi import HttpApp
from dragoman.transports.serve import serve

PROTOCOL = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META = {PROTOCOL: "2026-07-28", CAPABILITIES: {}}
BASE = {
    "host": "127.0.0.1",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
WAIT = 20.0


def rpc(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:  # noqa: A002  # the member's own name
    message = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        message["id"] = id
    if params is not None:
        message["params"] = params
    return message


def stateless(method: str, params: dict[str, Any] | None = None, id: Any = 1, **meta: Any) -> dict[str, Any]:  # noqa: A002  # the member's own name
    return rpc(method, {**(params or {}), "_meta": {**META, **meta}}, id)


def routed(message: dict[str, Any], **more: str | None) -> dict[str, str]:
    """The headers that 2026-07-28 asks for; `more` adds and replaces, None takes out."""
    headers: dict[str, Any] = {**BASE, "mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
    params = message.get("params", {})
    subject = params.get("uri") if message["method"] == "resources/read" else params.get("name")
    if subject is not None:
        headers["mcp-name"] = subject
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    return {name: value for name, value in headers.items() if value is not None}


INITIALIZE = rpc(
    "initialize",
    {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    },
)


def initialize(version: str) -> dict[str, Any]:
    return {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": version}}


def events(body: bytes) -> list[Any]:
    """The events of a stream that carry something; those without data only say where to go on from."""
    return [event for event in Parser().feed(body) if event.data]


def messages(body: bytes) -> list[Any]:
    """The messages of a stream in their order."""
    return [json.loads(event.data) for event in events(body)]


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> int | None:
        """The JSON-RPC error code; None for a result or an empty body."""
        return self.json["error"]["code"] if self.body and "error" in self.json else None

    @property
    def messages(self) -> list[Any]:
        """The messages of a stream in their order."""
        return messages(self.body)

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers} {self.body!r}>"


class Request:
    """One request to an app in this process, whose messages can be looked at as they come."""

    def __init__(
        self, app: Any, verb: str, headers: Any, *, body: bytes | list[bytes] = b"", **scope: Any
    ) -> None:
        pairs = headers.items() if isinstance(headers, dict) else headers
        self.scope = {
            "type": "http",
            "method": verb,
            "path": "/mcp",
            "root_path": "",
            "query_string": b"",
            "server": ("127.0.0.1", 8000),
            "client": ("127.0.0.1", 40000),
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
            **scope,
        }
        self._app = app
        parts = body if isinstance(body, list) else [body]
        self._incoming = [
            {"type": "http.request", "body": part, "more_body": index < len(parts) - 1}
            for index, part in enumerate(parts)
        ]
        self._gone = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self._news = asyncio.Condition()
        self.task = asyncio.get_running_loop().create_task(self._run())
        self.reads = True
        self._reading = asyncio.Event()
        self._reading.set()

    async def _run(self) -> None:
        await self._app(self.scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        if self._incoming:
            return self._incoming.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        await self._reading.wait()
        if self._gone.is_set():
            return  # as servers do it: there is nobody to send to
        self.sent.append(message)
        async with self._news:
            self._news.notify_all()

    def disconnect(self) -> None:
        self._gone.set()

    def stop_reading(self) -> None:
        self._reading.clear()

    async def until(self, text: bytes) -> None:
        """Wait until the body has `text` in it."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: text in self.body), WAIT)

    async def begun(self) -> None:
        """Wait until the response has begun."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: bool(self.sent)), WAIT)

    async def ended(self) -> None:
        """Wait until the response is complete; what the app does behind it may take longer."""
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(lambda: self.complete), WAIT)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    @property
    def complete(self) -> bool:
        return (
            bool(self.sent)
            and self.sent[-1]["type"] == "http.response.body"
            and not self.sent[-1].get("more_body")
        )

    async def answer(self) -> Answer:
        await asyncio.wait_for(self.task, WAIT)
        start = self.sent[0]
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, self.body)


async def post(app: Any, message: Any, headers: Any = None, **scope: Any) -> Answer:
    body = message if isinstance(message, bytes | list) and _raw(message) else json.dumps(message).encode()
    if headers is None:
        headers = routed(message)
    return await Request(app, "POST", headers, body=body, **scope).answer()


def _raw(message: Any) -> bool:
    return isinstance(message, bytes) or (bool(message) and isinstance(message[0], bytes))


async def open_session(app: HttpApp, version: str = "2025-11-25") -> dict[str, str]:
    """Shake hands; the headers for what follows."""
    answer = await post(app, initialize(version), BASE)
    assert answer.status == 200, answer
    headers = {**BASE, "mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": version}
    done = await post(app, rpc("notifications/initialized", id=None), headers)
    assert done.status == 202
    return headers


@contextmanager
def served(app: Any) -> Iterator[int]:
    """The app on a real socket, in a thread with a loop of its own; the port."""
    ready = threading.Event()
    state: dict[str, Any] = {}

    def bound(port: int) -> None:
        state["port"] = port
        ready.set()

    async def main() -> None:
        state["loop"] = asyncio.get_running_loop()
        state["task"] = asyncio.current_task()
        with suppress(asyncio.CancelledError):
            await serve(app, port=0, bound=bound, grace=2)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(WAIT)
    try:
        yield state["port"]
    finally:
        state["loop"].call_soon_threadsafe(state["task"].cancel)
        thread.join(WAIT)
        assert not thread.is_alive()


class Wire:
    """One connection, by hand: so that it can be cut, left unread, or watched event by event."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self._file = self._socket.makefile("rb")
        self.port = port
        self.status = 0
        self.headers: dict[str, str] = {}
        self._parser = Parser()
        self._events: list[Any] = []

    def request(self, verb: str, message: Any = None, headers: Any = None, path: str = "/mcp") -> Wire:
        body = b"" if message is None else json.dumps(message).encode()
        given = {**(headers if headers is not None else routed(message)), "host": f"127.0.0.1:{self.port}"}
        lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        self._socket.sendall(
            "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode("latin-1") + body
        )
        return self

    def head(self) -> int:
        """Read the head of the response; its status."""
        self.status = int(self._file.readline().split()[1])
        self.headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        return self.status

    def chunk(self) -> bytes:
        """One chunk of a streamed body; empty at its end, or when the connection ends."""
        size = self._file.readline()
        if not size:
            return b""
        data = self._file.read(int(size, 16))
        self._file.readline()
        return data

    def event(self) -> Any:
        """The next message of a stream; None at its end."""
        while not self._events:
            data = self.chunk()
            if not data:
                return None
            self._events += [event for event in self._parser.feed(data) if event.data]
        return json.loads(self._events.pop(0).data)

    def answer(self) -> Answer:
        """A whole response."""
        self.head()
        if self.headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self.chunk, b""))
        else:
            body = self._file.read(int(self.headers.get("content-length", 0)))
        return Answer(self.status, self.headers, body)

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
