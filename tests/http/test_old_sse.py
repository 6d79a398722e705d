"""The older transport, HTTP with SSE (2024-11-05), served beside Streamable HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from dragoman.protocol.sse import Event, Parser
from tests.http.things import Things, things
from tests.http.wire import BASE, WAIT, Request, Wire, initialize, post, rpc, served
from tests.spec.oracle import validate_frame

GET = {"host": BASE["host"], "accept": "text/event-stream"}
POST = {"host": BASE["host"], "content-type": "application/json", "accept": "application/json"}
INITIALIZED = rpc("notifications/initialized", id=None)


class Client:
    """A client of the old transport, by hand."""

    def __init__(self, app: Any, *, headers: dict[str, str] | None = None, **scope: Any) -> None:
        self._app = app
        self._headers = headers or {}
        self._scope = scope
        self.stream = Request(app, "GET", {**GET, **self._headers}, **{"path": "/sse", **scope})

    @property
    def events(self) -> list[Event]:
        return [event for event in Parser().feed(self.stream.body) if isinstance(event, Event)]

    @property
    def messages(self) -> list[Any]:
        return [json.loads(event.data) for event in self.events if event.event == "message"]

    async def endpoint(self) -> str:
        await self.stream.until(b"\n\n")
        first = self.events[0]
        assert first.event == "endpoint"
        return first.data.decode()

    async def send(self, message: Any, headers: dict[str, str] | None = None) -> int:
        path, _, query = (await self.endpoint()).partition("?")
        scope = {**self._scope, "path": path, "query_string": query.encode()}
        given = {**POST, **self._headers} if headers is None else headers
        return (await post(self._app, message, given, **scope)).status

    async def ask(self, message: Any) -> Any:
        assert await self.send(message) == 202
        await self.stream.until(b'"id":%s' % json.dumps(message["id"]).encode())
        [answer] = [m for m in self.messages if m.get("id") == message["id"] and "method" not in m]
        return answer

    async def shake(self, version: str = "2024-11-05") -> Any:
        answer = await self.ask(initialize(version) | {"id": "hello"})
        assert await self.send(INITIALIZED) == 202
        return answer

    async def close(self) -> None:
        self.stream.disconnect()
        await self.stream.answer()


def old(**options: Any) -> tuple[Things, Any]:
    it = things()
    return it, it.server.asgi(**{"sse_path": "/sse", **options})


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25"])
async def test_a_conversation(version: str) -> None:
    _, app = old()
    client = Client(app)
    hello = await client.shake(version)
    assert hello["result"]["protocolVersion"] == version
    answer = await client.ask(rpc("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, id=7))
    assert answer["result"]["content"][0]["text"] == "3"
    validate_frame(version, json.dumps(answer).encode(), "tools/call", "to_client", exact=True)
    assert client.stream.sent[0]["status"] == 200
    headers = dict(client.stream.sent[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream"
    await client.close()


async def test_progress_questions_and_changes_come_on_the_one_stream() -> None:
    it, app = old()
    client = Client(app)
    await client.shake("2025-06-18")
    await client.ask(rpc("tools/call", {"name": "tell", "_meta": {"progressToken": "t"}}, id=7))
    assert await client.send(rpc("tools/call", {"name": "ask", "arguments": {"question": "?"}}, id=8)) == 202
    await client.stream.until(b"elicitation/create")
    [asked] = [m for m in client.messages if m.get("method") == "elicitation/create"]
    assert await client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}) == 202
    await client.stream.until(b'"id":8')
    it.server.notify_tools_changed()
    await client.stream.until(b"tools/list_changed")
    methods = [m.get("method") for m in client.messages]
    assert "notifications/progress" in methods
    assert it.asked == [{"action": "accept"}]
    await client.close()


async def test_a_cancelled_call() -> None:
    it, app = old()
    client = Client(app)
    await client.shake()
    await client.send(rpc("tools/call", {"name": "wait"}, id=7))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await client.send(rpc("notifications/cancelled", {"requestId": 7}, id=None))
    await asyncio.wait_for(it.cancelled.wait(), WAIT)
    await client.close()


async def test_the_end_of_the_stream_ends_everything() -> None:
    it, app = old()
    client = Client(app)
    await client.shake()
    await client.send(rpc("tools/call", {"name": "wait"}, id=7))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await client.close()
    assert it.cancelled.is_set()
    assert not app.old.connections
    assert not it.server.kernel.hub.links
    assert await client.send(rpc("ping")) == 404


async def test_winding_down_ends_the_stream_in_order() -> None:
    _, app = old()
    client = Client(app)
    await client.shake()
    app.wind_down()
    await client.stream.answer()
    assert client.stream.complete


async def test_bad_messages_are_answered_on_the_stream() -> None:
    _, app = old()
    client = Client(app)
    await client.shake()
    assert await client.send(b"{") == 202
    await client.stream.until(b"-32700")
    assert (await client.ask(rpc("nope", id=9)))["error"]["code"] == -32601
    await client.close()


@pytest.mark.parametrize(
    ("verb", "path", "headers", "status"),
    [
        ("POST", "/messages", POST, 404),
        ("GET", "/messages", GET, 405),
        ("POST", "/sse", POST, 405),
        ("DELETE", "/sse", GET, 405),
        ("GET", "/sse", {**GET, "host": "evil.example.com"}, 421),
        ("GET", "/sse", {**GET, "origin": "http://evil.example.com"}, 403),
        ("OPTIONS", "/sse", GET, 204),
    ],
)
async def test_other_requests(verb: str, path: str, headers: Any, status: int) -> None:
    _, app = old()
    assert (await Request(app, verb, headers, path=path).answer()).status == status


async def test_posts_are_looked_at_first() -> None:
    _, app = old(max_body=1000)
    client = Client(app)
    await client.shake()
    assert await client.send(rpc("ping", {"x": "y" * 2000})) == 413
    assert await client.send(rpc("ping"), {**POST, "content-type": "text/plain"}) == 415
    await client.close()


async def test_it_is_not_there_unless_it_is_asked_for() -> None:
    app = things().server.asgi()
    assert (await Request(app, "GET", GET, path="/sse").answer()).status == 404


def test_it_needs_a_path_of_its_own() -> None:
    with pytest.raises(ValueError, match="/mcp"):
        old(sse_path="/mcp")


async def test_both_transports_side_by_side() -> None:
    _, app = old()
    client = Client(app)
    await client.shake()
    assert (await post(app, initialize("2025-11-25"), BASE)).status == 200
    await client.close()


async def test_below_a_mount_the_endpoint_is_where_it_is() -> None:
    _, app = old(sse_path="/events/sse")
    outer = Starlette(routes=[Mount("/shop", app)])
    client = Client(outer, path="/shop/events/sse")
    assert (await client.endpoint()).startswith("/shop/events/messages?session=")
    client._scope = {}
    assert (await client.shake())["result"]["protocolVersion"] == "2024-11-05"
    await client.close()


async def test_no_more_connections_than_there_may_be() -> None:
    _, app = old(max_sessions=1)
    client = Client(app)
    await client.endpoint()
    assert (await Request(app, "GET", GET, path="/sse").answer()).status == 503
    await client.close()


async def test_a_connection_answers_to_whoever_opened_it() -> None:
    _, app = old(authenticate=lambda headers: headers.get("x-user"))
    client = Client(app, headers={"x-user": "anna"})
    await client.shake()
    await client.ask(rpc("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, id=7))
    for thief in ({}, {"x-user": "bert"}):
        assert await client.send(rpc("ping", id=8), {**POST, **thief}) == 404
    await client.close()


def test_on_a_real_socket() -> None:
    _, app = old()
    with served(app) as port, Wire(port) as stream, Wire(port) as posts:
        stream.request("GET", None, GET, path="/sse")
        assert stream.head() == 200
        parser = Parser()
        [endpoint] = parser.feed(stream.chunk())
        where = endpoint.data.decode()
        assert posts.request("POST", initialize("2024-11-05"), POST, path=where).answer().status == 202
        [event] = parser.feed(stream.chunk())
        assert json.loads(event.data)["result"]["protocolVersion"] == "2024-11-05"
