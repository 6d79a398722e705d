"""Everything that can be wrong with a request, and exactly how it is answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.http.things import things
from tests.http.wire import (
    BASE,
    CAPABILITIES,
    INITIALIZE,
    META,
    PROTOCOL,
    Request,
    open_session,
    post,
    routed,
    rpc,
    stateless,
)

LIST = stateless("tools/list")
CALL = stateless("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
V999 = stateless("tools/list", **{PROTOCOL: "v999.0.0"})
OLD = {**BASE, "mcp-protocol-version": "2025-11-25"}


def without(message: dict[str, Any], key: str) -> dict[str, Any]:
    meta = {k: v for k, v in message["params"]["_meta"].items() if k != key}
    return {**message, "params": {**message["params"], "_meta": meta}}


# name, headers, body, HTTP status, JSON-RPC code, id of the error ("absent": no such member)
ABSENT = "absent"
STATELESS: list[tuple[str, dict[str, str], Any, int, int | None, Any]] = [
    ("bad JSON", routed(LIST), b'{"jsonrpc": "2.0",', 400, -32700, None),
    ("no body", routed(LIST), b"", 400, -32700, None),
    (
        "bad UTF-8",
        routed(LIST),
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":"\xff"}}',
        400,
        -32700,
        None,
    ),
    (
        "nested too deep",
        routed(LIST),
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":' + b"[" * 200 + b"]" * 200 + b"}}",
        400,
        -32700,
        1,
    ),
    ("a number for a message", routed(LIST), b"7", 400, -32600, None),
    ("text for a message", routed(LIST), b'"tools/list"', 400, -32600, None),
    ("no jsonrpc", routed(LIST), {"id": 1, "method": "tools/list"}, 400, -32600, 1),
    ("jsonrpc 1.0", routed(LIST), {**LIST, "jsonrpc": "1.0"}, 400, -32600, 1),
    ("method is a number", routed(LIST), {**LIST, "method": 7}, 400, -32600, 1),
    ("no method", routed(LIST), {"jsonrpc": "2.0", "id": 1}, 400, -32600, 1),
    ("params is text", routed(LIST), {**LIST, "params": "x"}, 400, -32600, 1),
    ("params is an array", routed(LIST), {**LIST, "params": [1]}, 400, -32602, 1),
    ("id is an object", routed(LIST), {**LIST, "id": {}}, 400, -32600, None),
    ("id is true", routed(LIST), {**LIST, "id": True}, 400, -32600, None),
    ("id is null", routed(LIST), {**LIST, "id": None}, 400, -32600, None),
    ("id is a fraction", routed(LIST), {**LIST, "id": 1.5}, 400, -32600, 1.5),
    ("method and result", routed(LIST), {**LIST, "result": {}}, 400, -32600, 1),
    ("a batch", routed(LIST), [LIST, LIST], 400, -32600, None),
    ("an empty batch", routed(LIST), [], 400, -32600, None),
    ("a response", routed(LIST), {"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600, ABSENT),
    ("a broken response", routed(LIST), {"jsonrpc": "2.0", "id": 1, "error": 7}, 400, -32600, 1),
    ("no _meta", routed(LIST), rpc("tools/list", {}), 400, -32602, 1),
    ("no params", routed(LIST), rpc("tools/list"), 400, -32602, 1),
    ("_meta is text", routed(LIST), rpc("tools/list", {"_meta": "x"}), 400, -32602, 1),
    ("no version in _meta", routed(LIST), without(LIST, PROTOCOL), 400, -32602, 1),
    ("no capabilities in _meta", routed(LIST), without(LIST, CAPABILITIES), 400, -32602, 1),
    ("capabilities is text", routed(LIST), stateless("tools/list", **{CAPABILITIES: "x"}), 400, -32602, 1),
    ("version is a number", routed(LIST), stateless("tools/list", **{PROTOCOL: 7}), 400, -32602, 1),
    ("unknown version in both", routed(V999, mcp_protocol_version="v999.0.0"), V999, 400, -32022, 1),
    ("unknown version in _meta alone", routed(V999), V999, 400, -32020, 1),
    (
        "unknown version in the header alone",
        routed(LIST, mcp_protocol_version="v999.0.0"),
        LIST,
        400,
        -32020,
        1,
    ),
    (
        "unknown version in the header, no _meta",
        routed(LIST, mcp_protocol_version="v999.0.0"),
        rpc("tools/list"),
        400,
        -32022,
        1,
    ),
    (
        "a handshake's version in the header",
        routed(LIST, mcp_protocol_version="2025-11-25"),
        LIST,
        400,
        -32020,
        1,
    ),
    ("no version header", routed(LIST, mcp_protocol_version=None), LIST, 400, -32020, 1),
    ("no version at all, a stateless method", BASE, rpc("server/discover"), 400, -32020, 1),
    ("no Mcp-Method", routed(LIST, mcp_method=None), LIST, 400, -32020, 1),
    ("wrong Mcp-Method", routed(LIST, mcp_method="prompts/list"), LIST, 400, -32020, 1),
    ("Mcp-Method in capitals", routed(LIST, mcp_method="TOOLS/LIST"), LIST, 400, -32020, 1),
    ("no Mcp-Name", routed(CALL, mcp_name=None), CALL, 400, -32020, 1),
    ("wrong Mcp-Name", routed(CALL, mcp_name="subtract"), CALL, 400, -32020, 1),
    ("Mcp-Name in bad Base64", routed(CALL, mcp_name="=?base64?YWRk!?="), CALL, 400, -32020, 1),
    ("initialize", routed(INITIALIZE), stateless("initialize", INITIALIZE["params"]), 404, -32601, 1),
    ("ping", routed(stateless("ping")), stateless("ping"), 404, -32601, 1),
    ("an unknown method", routed(stateless("unknown/method")), stateless("unknown/method"), 404, -32601, 1),
    (
        "an unknown tool",
        routed(CALL, mcp_name="nope"),
        stateless("tools/call", {"name": "nope"}),
        400,
        -32602,
        1,
    ),
    ("no tool name", routed(CALL), stateless("tools/call", {}), 400, -32602, 1),
    ("tool name is a number", routed(CALL), stateless("tools/call", {"name": 7}), 400, -32602, 1),
    (
        "failure inside the server",
        routed(CALL, mcp_name="broken"),
        stateless("tools/call", {"name": "broken"}),
        200,
        -32603,
        1,
    ),
    ("no content type", routed(LIST, content_type=None), LIST, 415, -32600, ABSENT),
    ("text/plain", routed(LIST, content_type="text/plain"), LIST, 415, -32600, ABSENT),
    (
        "another charset",
        routed(LIST, content_type="application/json; charset=latin-1"),
        LIST,
        415,
        -32600,
        ABSENT,
    ),
    ("compressed", routed(LIST, content_encoding="gzip"), LIST, 415, -32600, ABSENT),
    ("accepts HTML", routed(LIST, accept="text/html"), LIST, 406, -32600, ABSENT),
    ("accepts JSON alone", routed(LIST, accept="application/json"), LIST, 406, -32600, ABSENT),
    ("accepts streams alone", routed(LIST, accept="text/event-stream"), LIST, 406, -32600, ABSENT),
    ("accepts no JSON", routed(LIST, accept="application/json;q=0, */*"), LIST, 406, -32600, ABSENT),
    ("a foreign Host", routed(LIST, host="evil.example.com"), LIST, 421, -32600, ABSENT),
    ("no Host", routed(LIST, host=None), LIST, 400, -32600, ABSENT),
    ("a foreign Origin", routed(LIST, origin="http://evil.example.com"), LIST, 403, -32600, ABSENT),
    ("Origin null", routed(LIST, origin="null"), LIST, 403, -32600, ABSENT),
    ("a body over the limit", routed(LIST), b" " * 5000, 413, -32600, ABSENT),
    ("a length over the limit", routed(LIST, content_length="999999999"), LIST, 413, -32600, ABSENT),
    ("headers over the limit", routed(LIST, x_filler="x" * 40_000), LIST, 431, -32600, ABSENT),
]


async def check(headers: Any, body: Any, status: int, code: int | None, id_: Any) -> Any:
    app = things().server.asgi(max_body=4096)
    answer = await post(app, body, headers)
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.code == code, answer
    error = answer.json
    if id_ is ABSENT:
        assert "id" not in error
    else:
        assert error["id"] == id_
        assert type(error["id"]) is type(id_)
    assert error["error"]["message"]
    assert "a secret" not in answer.body.decode()
    assert not app.sessions, "a refused request must leave no session behind"
    return answer


@pytest.mark.parametrize(
    ("headers", "body", "status", "code", "id_"),
    [row[1:] for row in STATELESS],
    ids=[row[0] for row in STATELESS],
)
async def test_bad_request(headers: Any, body: Any, status: int, code: int | None, id_: Any) -> None:
    await check(headers, body, status, code, id_)


SESSIONLESS: list[tuple[str, dict[str, str], Any, int, int | None, Any]] = [
    ("no session", OLD, rpc("tools/list"), 400, -32600, 1),
    ("no session, no version", BASE, rpc("tools/list"), 400, -32600, 1),
    ("ping without a session", OLD, rpc("ping"), 400, -32600, 1),
    ("an unknown session", {**OLD, "mcp-session-id": "nope"}, rpc("tools/list"), 404, -32600, 1),
    ("initialize in an unknown session", {**OLD, "mcp-session-id": "nope"}, INITIALIZE, 404, -32600, 1),
    ("initialize without params", OLD, rpc("initialize"), 200, -32602, 1),
    (
        "initialize with an unknown version header",
        {**BASE, "mcp-protocol-version": "v999"},
        INITIALIZE,
        400,
        -32022,
        1,
    ),
    ("a notification without a session", OLD, rpc("notifications/initialized", id=None), 400, -32600, ABSENT),
    ("a response without a session", OLD, {"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600, ABSENT),
    ("a batch without a session", OLD, [rpc("ping")], 400, -32600, None),
    (
        "a session id given twice",
        [*OLD.items(), ("mcp-session-id", "a"), ("mcp-session-id", "b")],
        rpc("ping"),
        400,
        -32020,
        1,
    ),
    ("half of a stateless request", BASE, without(LIST, PROTOCOL), 400, -32020, 1),
]


@pytest.mark.parametrize(
    ("headers", "body", "status", "code", "id_"),
    [row[1:] for row in SESSIONLESS],
    ids=[row[0] for row in SESSIONLESS],
)
async def test_bad_request_without_a_session(
    headers: Any, body: Any, status: int, code: int | None, id_: Any
) -> None:
    await check(headers, body, status, code, id_)


IN_SESSION: list[tuple[str, dict[str, str], Any, int, int | None]] = [
    ("an unknown method", {}, rpc("unknown/method"), 200, -32601),
    ("a method of the newest revision alone", {}, rpc("server/discover"), 200, -32601),
    ("an unknown tool", {}, rpc("tools/call", {"name": "nope"}), 200, -32602),
    ("a second initialize", {}, INITIALIZE, 400, -32600),
    ("an unknown version", {"mcp-protocol-version": "v999"}, rpc("tools/list"), 400, -32022),
    (
        "a stateless version without _meta",
        {"mcp-protocol-version": "2026-07-28"},
        rpc("tools/list"),
        400,
        -32602,
    ),
    ("a batch", {}, [rpc("ping")], 400, -32600),
    ("an answer to nothing", {}, {"jsonrpc": "2.0", "id": 99, "result": {}}, 400, -32600),
    ("bad JSON", {}, b"{", 400, -32700),
    ("null for an id", {}, {**rpc("ping"), "id": None}, 200, -32600),
]


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"), [row[1:] for row in IN_SESSION], ids=[row[0] for row in IN_SESSION]
)
async def test_bad_request_in_a_session(headers: dict[str, str], body: Any, status: int, code: int) -> None:
    app = things().server.asgi()
    session = await open_session(app)
    answer = await post(app, body, {**session, **headers})
    assert (answer.status, answer.code) == (status, code), answer
    assert len(app.sessions) == 1


@pytest.mark.parametrize("header", ["mcp-method", "mcp-name", "mcp-protocol-version"])
async def test_a_header_given_twice_with_different_values(header: str) -> None:
    headers = [*routed(CALL).items(), (header, "other")]
    answer = await check(headers, CALL, 400, -32020, 1)
    assert header in answer.json["error"]["message"].lower()


async def test_a_header_given_twice_with_the_same_value_is_one() -> None:
    answer = await post(things().server.asgi(), CALL, [*routed(CALL).items(), ("mcp-name", "add")])
    assert answer.status == 200


async def test_unsupported_version_says_what_is_supported() -> None:
    app = things().server.asgi()
    discover = stateless("server/discover")
    supported = (await post(app, discover)).json["result"]["supportedVersions"]
    answer = await post(app, V999, routed(V999, mcp_protocol_version="v999.0.0"))
    assert answer.json["error"]["data"] == {"supported": supported, "requested": "v999.0.0"}


async def test_mismatch_names_header_value_and_body_value() -> None:
    answer = await post(things().server.asgi(), CALL, routed(CALL, mcp_name="foo"))
    assert (
        answer.json["error"]["message"]
        == "Header mismatch: Mcp-Name header value 'foo' does not match body value 'add'"
    )


async def test_denied_host_names_value_list_and_fix() -> None:
    answer = await post(
        things().server.asgi(allowed_hosts=["mcp.example.com"]), LIST, routed(LIST, host="evil.example.com")
    )
    assert answer.status == 421
    data = answer.json["error"]["data"]
    assert data["received"] == "evil.example.com"
    assert data["allowed"] == ["mcp.example.com"]
    assert "DRAGOMAN_ALLOWED_HOSTS" in data["fix"]


@pytest.mark.parametrize("id_", [0, -7, "7", "", 2**53, "é"])
async def test_error_echoes_the_id_with_its_type(id_: Any) -> None:
    message = {**stateless("unknown/method"), "id": id_}
    answer = await post(things().server.asgi(), message)
    assert answer.json["id"] == id_
    assert type(answer.json["id"]) is type(id_)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_stateless_revisions_have_post_alone(verb: str) -> None:
    app = things().server.asgi()
    answer = await Request(app, verb, {**BASE, "mcp-protocol-version": "2026-07-28"}).answer()
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "HEAD", "TRACE"])
async def test_other_verbs(verb: str) -> None:
    answer = await Request(things().server.asgi(), verb, BASE).answer()
    assert answer.status == 405
    assert answer.headers["allow"] == "POST, GET, DELETE, OPTIONS"


@pytest.mark.parametrize(
    ("verb", "headers", "status"),
    [
        ("GET", {}, 400),
        ("DELETE", {}, 400),
        ("GET", {"mcp-session-id": "nope"}, 404),
        ("DELETE", {"mcp-session-id": "nope"}, 404),
        ("GET", {"mcp-protocol-version": "v999"}, 400),
    ],
)
async def test_get_and_delete_need_a_session(verb: str, headers: dict[str, str], status: int) -> None:
    answer = await Request(things().server.asgi(), verb, {**BASE, **headers}).answer()
    assert answer.status == status


async def test_session_id_means_nothing_to_a_stateless_request() -> None:
    answer = await post(things().server.asgi(), CALL, routed(CALL, mcp_session_id="nope"))
    assert answer.status == 200
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    "accept", ["*/*", "application/*, text/*", "TEXT/EVENT-STREAM , application/json;q=0.5", None]
)
async def test_acceptable(accept: str | None) -> None:
    assert (await post(things().server.asgi(), LIST, routed(LIST, accept=accept))).status == 200


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "Application/JSON", 'application/json;charset="UTF-8"'],
)
async def test_content_types_that_are_json(content_type: str) -> None:
    assert (await post(things().server.asgi(), LIST, routed(LIST, content_type=content_type))).status == 200


async def test_body_in_pieces() -> None:
    text = json.dumps(CALL).encode()
    answer = await post(things().server.asgi(), [text[:10], b"", text[10:]], routed(CALL))
    assert answer.json["result"]["structuredContent"] == {"result": 3}


async def test_body_over_the_limit_is_not_read_to_its_end() -> None:
    app = things().server.asgi(max_body=100)
    request = Request(app, "POST", routed(LIST), body=[b"x" * 80, b"x" * 80, b"never read"])
    assert (await request.answer()).status == 413
    assert len(request._incoming) == 1


async def test_client_gone_while_it_sends_its_body() -> None:
    app = things().server.asgi()
    request = Request(app, "POST", routed(LIST), body=[b"{", b"}"])
    request._incoming[1] = {"type": "http.disconnect"}
    await request.task
    assert request.sent == []


async def test_duplicate_members_are_read_alike_by_check_and_tool() -> None:
    text = json.dumps(CALL).replace('"name": "add"', '"name": "broken", "name": "add"')
    answer = await post(things().server.asgi(), text.encode(), routed(CALL))
    assert answer.json["result"]["structuredContent"] == {"result": 3}
    assert (await post(things().server.asgi(), text.encode(), routed(CALL, mcp_name="broken"))).code == -32020


def test_meta_is_what_the_specification_asks_for() -> None:
    assert set(META) == {
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
    }


@pytest.mark.parametrize("raised", [SystemExit(3), asyncio.CancelledError(), ValueError("inside")])
async def test_whatever_breaks_inside_is_answered_and_the_server_goes_on(raised: BaseException) -> None:
    broken = things()

    @broken.server.middleware("tools/list")
    async def break_down(call: Any, proceed: Any) -> Any:
        raise raised

    app = broken.server.asgi()
    message = stateless("tools/list")
    answer = await post(app, message, routed(message))
    assert (answer.status, answer.json["error"]) == (200, {"code": -32603, "message": "Internal error"})
    other = stateless("server/discover")
    assert (await post(app, other, routed(other))).status == 200
