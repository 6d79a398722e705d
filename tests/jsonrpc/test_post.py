"""JSON-RPC over HTTP POST, called as an ASGI server calls it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman.jsonrpc import Exchange, Limits, Service
from dragoman.transports.post import HttpService

JSON = [(b"Content-Type", b"application/json; charset=utf-8")]


async def call(
    app: HttpService,
    *parts: bytes,
    method: str = "POST",
    headers: list[tuple[bytes, bytes]] = JSON,
    stay: asyncio.Event | None = None,
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Post `parts` as one body; the caller disconnects when `stay` is set, or never. Status 0: no answer."""
    events: list[dict[str, Any]] = [
        {"type": "http.request", "body": part, "more_body": n + 1 < len(parts)}
        for n, part in enumerate(parts)
    ]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if events:
            return events.pop(0)
        await (stay or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)

    scope = {"type": "http", "method": method, "path": "/", "headers": headers}
    await app(scope, receive, send)
    if not sent:
        return 0, {}, b""
    start, body = sent
    assert (start["type"], body["type"]) == ("http.response.start", "http.response.body")
    return start["status"], dict(start["headers"]), body["body"]


@pytest.fixture
def service() -> Service:
    service = Service(limits=Limits(max_bytes=1000))

    @service.method
    def add(a: int, b: int) -> int:
        return a + b

    @service.method
    async def later(exchange: Exchange) -> bool:
        await asyncio.sleep(0)
        return exchange.notify("progress")

    @service.method
    async def ask(exchange: Exchange) -> Any:
        return await exchange.request("name")

    return service


def test_an_answer(service: Service) -> None:
    frame = b'{"jsonrpc":"2.0","id":"x","method":"add","params":[1,2]}'
    status, headers, body = asyncio.run(call(HttpService(service), frame[:20], frame[20:]))
    assert (status, body) == (200, b'{"jsonrpc":"2.0","id":"x","result":3}')
    assert headers == {b"content-type": b"application/json", b"content-length": str(len(body)).encode()}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"later"}', {"id": 1, "result": False}),
        (b"{", {"id": None, "error": -32700}),
        (b"", {"id": None, "error": -32700}),
        (b"[]", {"id": None, "error": -32600}),
        (b'{"jsonrpc":"2.0","id":1,"method":"gone"}', {"id": 1, "error": -32601}),
        (b'{"jsonrpc":"2.0","id":1,"method":"add"}', {"id": 1, "error": -32602}),
        (b'{"jsonrpc":"2.0","id":1,"method":"ask"}', {"id": 1, "error": -32603}),
    ],
)
def test_errors_are_answers_too(service: Service, body: bytes, answer: dict[str, Any]) -> None:
    status, _, sent = asyncio.run(call(HttpService(service), body))
    got = json.loads(sent)
    assert status == 200
    assert {
        "id": got["id"],
        **({"error": got["error"]["code"]} if "error" in got else {"result": got["result"]}),
    } == answer


@pytest.mark.parametrize(
    "body",
    [
        b'{"jsonrpc":"2.0","method":"add","params":[1,2]}',
        b'[{"jsonrpc":"2.0","method":"later"},{"jsonrpc":"2.0","method":"gone"}]',
        b'{"jsonrpc":"2.0","id":1,"result":1}',
    ],
)
def test_nothing_owed_is_204(service: Service, body: bytes) -> None:
    assert asyncio.run(call(HttpService(service), body)) == (204, {}, b"")


def test_a_batch(service: Service) -> None:
    body = (
        b'[{"jsonrpc":"2.0","id":1,"method":"later"},{"jsonrpc":"2.0","id":2,"method":"add","params":[1,1]},'
        b'{"jsonrpc":"2.0","method":"later"},7]'
    )
    _, _, sent = asyncio.run(call(HttpService(service), body))
    assert [(item["id"], item.get("result")) for item in json.loads(sent)] == [
        (1, False),
        (2, 2),
        (None, None),
    ]


def test_a_body_beyond_the_limit_is_413_with_the_id(service: Service) -> None:
    body = b'{"jsonrpc":"2.0","id":5,"method":"add","params":["' + b"x" * 1000
    status, _, sent = asyncio.run(call(HttpService(service), body, b"y" * 1000, b"z" * 1000))
    answer = json.loads(sent)
    assert (status, answer["id"], answer["error"]["code"]) == (413, 5, -32700)
    assert answer["error"]["data"].startswith("message too large: expected at most 1000 bytes, received ")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_405(service: Service, method: str) -> None:
    status, headers, body = asyncio.run(call(HttpService(service), b"", method=method))
    assert (status, headers[b"allow"]) == (405, b"POST")
    assert body.decode() == f"JSON-RPC is served by POST: expected POST, received {method}\n"


@pytest.mark.parametrize(
    "media_type", [b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data", b""]
)
def test_what_a_web_page_can_send_unasked_is_415(service: Service, media_type: bytes) -> None:
    status, _, _ = asyncio.run(
        call(
            HttpService(service),
            b'{"jsonrpc":"2.0","id":1,"method":"add"}',
            headers=[(b"content-type", media_type)],
        )
    )
    assert status == 415


def test_a_caller_that_goes_away_cancels_its_work() -> None:
    service, gone, ended = Service(), asyncio.Event(), []

    @service.method
    async def forever() -> None:
        gone.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    body = b'{"jsonrpc":"2.0","id":1,"method":"forever"}'
    assert asyncio.run(call(HttpService(service), body, stay=gone)) == (0, {}, b"")
    assert ended == [True]


def test_a_caller_that_goes_away_within_its_body(service: Service) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        raise AssertionError(event)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": JSON}
    asyncio.run(HttpService(service)(scope, receive, send))


def test_lifespan_needs_no_wiring(service: Service) -> None:
    events = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return events.pop(0)

    async def send(event: Any) -> None:
        sent.append(event["type"])

    asyncio.run(HttpService(service)({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_websocket_is_closed(service: Service) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(event: Any) -> None:
        sent.append(event)

    asyncio.run(HttpService(service)({"type": "websocket"}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1000}]
