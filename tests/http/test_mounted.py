"""Inside other apps: any path, both spellings, no redirect, no lifespan, several servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from dragoman import Server
from tests.http.things import things
from tests.http.wire import WAIT, Request, open_session, post, routed, stateless

LIST = stateless("tools/list")
ADD = stateless("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})


def named(name: str) -> Server:
    server = Server(name)

    @server.tool
    async def who() -> str:
        return name

    return server


async def who(app: Any, path: str) -> str:
    answer = await post(app, stateless("tools/call", {"name": "who"}), path=path)
    assert answer.status == 200, answer
    return answer.json["result"]["structuredContent"]["result"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_alone(path: str) -> None:
    assert await who(named("one").asgi(), path) == "one"


@pytest.mark.parametrize(
    ("own", "path", "status"),
    [
        ("/mcp", "/", 404),
        ("/mcp", "/mcpx", 404),
        ("/mcp", "/mcp/x", 404),
        ("/", "/", 200),
        ("", "/", 200),
        ("a/b/", "/a/b", 200),
    ],
)
async def test_paths(own: str, path: str, status: int) -> None:
    answer = await post(named("one").asgi(own), LIST, path=path)
    assert answer.status == status
    if status == 404:
        assert "/mcp" in answer.json["error"]["message"], "it says where the endpoint is"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_starlette_at_the_root(path: str) -> None:
    app = Starlette(
        routes=[Route("/health", lambda _: PlainTextResponse("ok")), Mount("/", named("one").asgi())]
    )
    assert await who(app, path) == "one"
    assert (await Request(app, "GET", {"host": "localhost"}, path="/health").answer()).body == b"ok"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_fastapi_at_the_root(path: str) -> None:
    app = FastAPI()

    @app.get("/health")
    async def health() -> str:
        return "ok"

    app.mount("/", named("one").asgi())
    assert await who(app, path) == "one"
    assert (await Request(app, "GET", {"host": "localhost"}, path="/health").answer()).body == b'"ok"'


@pytest.mark.parametrize("make", [Starlette, FastAPI])
@pytest.mark.parametrize("path", ["/tools/mcp", "/tools/mcp/", "/tools/"])
async def test_mounted_below_a_path(make: Any, path: str) -> None:
    app = make()
    app.mount("/tools", named("one").asgi())
    assert await who(app, path) == "one"


@pytest.mark.parametrize("make", [Starlette, FastAPI])
async def test_mounted_at_its_own_path(make: Any) -> None:
    app = make()
    app.mount("/mcp", named("one").asgi())
    assert await who(app, "/mcp/") == "one"


async def test_as_a_route() -> None:
    app = Starlette(routes=[Route("/mcp", named("one").asgi())])
    assert await who(app, "/mcp") == "one"


@pytest.mark.parametrize("make", [Starlette, FastAPI])
async def test_several_servers_in_one_app(make: Any) -> None:
    app = make()
    app.mount("/one", named("one").asgi())
    app.mount("/two", named("two").asgi())
    app.mount("/", named("rest").asgi())
    assert [await who(app, path) for path in ("/one/mcp", "/two/mcp", "/mcp")] == ["one", "two", "rest"]


async def test_sessions_of_two_servers_are_apart() -> None:
    one, two = named("one").asgi(), named("two").asgi()
    app = Starlette(routes=[Mount("/one", one), Mount("/two", two)])
    session = await open_session(one)
    call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert (await post(app, call, session, path="/one/mcp")).status == 200
    assert (await post(app, call, session, path="/two/mcp")).status == 404


async def test_path_of_a_server_that_leaves_the_mount_out() -> None:
    """Some servers give `path` without `root_path` before it."""
    assert (
        await who(lambda scope, *rest: named("one").asgi()({**scope, "root_path": "/api"}, *rest), "/mcp")
        == "one"
    )


async def test_below_other_middleware() -> None:
    async def plain(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-seen"] = "yes"
        return response

    it = things()
    app = Starlette(
        routes=[Mount("/", it.server.asgi())], middleware=[Middleware(BaseHTTPMiddleware, dispatch=plain)]
    )
    assert (await post(app, ADD)).headers["x-seen"] == "yes"
    told = await post(app, stateless("tools/call", {"name": "tell"}, progressToken="t"))
    assert len(told.messages) == 4
    message = stateless("tools/call", {"name": "wait"})
    call = Request(app, "POST", routed(message), body=_json(message))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    call.disconnect()
    await asyncio.wait_for(it.cancelled.wait(), WAIT)
    call.task.cancel()
    with pytest.raises((asyncio.CancelledError, RuntimeError)):
        await call.task


def _json(message: Any) -> bytes:
    return json.dumps(message).encode()


async def test_below_the_cors_middleware_of_the_app() -> None:
    app = Starlette(
        routes=[Mount("/", named("one").asgi(allowed_origins=["https://app.example.com"]))],
        middleware=[Middleware(CORSMiddleware, allow_origins=["https://app.example.com"])],
    )
    answer = await post(app, LIST, routed(LIST, origin="https://app.example.com"))
    assert answer.headers["access-control-allow-origin"] == "https://app.example.com"


async def test_lifespan_is_answered_and_ends_what_is_open() -> None:
    it = things()
    app = it.server.asgi()
    await open_session(app)
    incoming = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return incoming.pop(0)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await app({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not app.sessions


async def test_websockets_are_refused() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await things().server.asgi()({"type": "websocket", "path": "/mcp"}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_one_app_on_one_loop_after_another() -> None:
    """As test clients use apps: each request on a loop of its own."""
    app = things().server.asgi()

    async def first() -> dict[str, str]:
        return await open_session(app)

    async def second() -> None:
        stream = Request(app, "GET", session)
        await stream.until(b"")
        stream.disconnect()
        await stream.answer()

    session = asyncio.run(first())
    asyncio.run(second())
    assert asyncio.run(post(app, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, session)).status == 200
