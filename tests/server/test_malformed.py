"""Bad input on a message stream, and the exact answer to each: nothing is dropped, nothing is guessed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman import Server
from dragoman.jsonrpc.message import Limits
from dragoman.transports.connection import ServerConnection
from tests.drivers.stdio import META, NS, initialize

ADD = b'{"name":"add","arguments":{"a":1,"b":2},"_meta":' + json.dumps(META).encode() + b"}"


def call(
    id_: bytes = b"1", params: bytes = ADD, *, method: bytes = b'"tools/call"', version: bytes = b'"2.0"'
) -> bytes:
    return b'{"jsonrpc":' + version + b',"id":' + id_ + b',"method":' + method + b',"params":' + params + b"}"


def with_meta(**changes: Any) -> bytes:
    """The good params with `_meta` changed; None takes a member out."""
    meta = {
        key: value
        for key, value in (META | {NS + k: v for k, v in changes.items()}).items()
        if value is not None
    }
    return json.dumps({"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}).encode()


def member(name: str, value: Any) -> bytes:
    """The good params with one member changed."""
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": META}
    return json.dumps(params | {name: value}).encode()


PARSE, INVALID, METHOD, PARAMS, VERSION = -32700, -32600, -32601, -32602, -32022

# (what is wrong, the bytes, code, id in the answer, what the answer says)
CASES: list[tuple[str, bytes, int, Any, str]] = [
    # No JSON
    ("words", b"hello", PARSE, None, "Parse error"),
    ("cut off", b'{"jsonrpc":"2.0","id":1,"method":"ping"', PARSE, None, "Parse error"),
    ("trailing comma", b'{"jsonrpc":"2.0","id":1,}', PARSE, None, "Parse error"),
    ("single quotes", b"{'jsonrpc':'2.0'}", PARSE, None, "Parse error"),
    ("two values", b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', PARSE, None, "Parse error"),
    ("NaN", call(params=b'{"name":"add","arguments":{"a":NaN}}'), PARSE, None, "Parse error"),
    ("control character in text", call(method=b'"to\tols"'), PARSE, None, "Parse error"),
    (
        "bad UTF-8 in the arguments",
        call(params=ADD.replace(b'"a":1', b'"a":"\xff\xfe"')),
        PARSE,
        None,
        "UTF-8",
    ),
    ("bad UTF-8 outside", b"\xff\xfe", PARSE, None, "UTF-8"),
    (
        "half a surrogate pair",
        call(params=ADD.replace(b'"a":1', b'"a":"\\ud800"')),
        PARSE,
        None,
        "Parse error",
    ),
    (
        "nested too deep",
        call(params=b'{"name":"add","arguments":' + b'{"a":' * 200 + b"1" + b"}" * 201),
        PARSE,
        1,
        "128",
    ),
    ("nested beyond all reading", b"[" * 100_000, PARSE, None, "Parse error"),
    ("too large", call(params=b'{"name":"' + b"x" * 200_000 + b'"}'), PARSE, 1, "100000"),
    # JSON, but no message
    ("a string", b'"hello"', INVALID, None, "Invalid Request"),
    ("a number", b"42", INVALID, None, "Invalid Request"),
    ("null", b"null", INVALID, None, "Invalid Request"),
    ("an empty object", b"{}", INVALID, None, "jsonrpc"),
    ("an empty batch", b"[]", INVALID, None, "batch"),
    ("no jsonrpc", b'{"id":1,"method":"ping"}', INVALID, 1, "jsonrpc"),
    ("jsonrpc 1.0", call(version=b'"1.0"'), INVALID, 1, "jsonrpc"),
    ("jsonrpc a number", call(version=b"2.0"), INVALID, 1, "jsonrpc"),
    ("no method", b'{"jsonrpc":"2.0","id":1}', INVALID, 1, "method"),
    ("method a number", call(method=b"5"), INVALID, 1, "method"),
    ("method null", call(method=b"null"), INVALID, 1, "method"),
    ("method a list", call(method=b"[]"), INVALID, 1, "method"),
    ("params text", call(params=b'"x"'), INVALID, 1, "params"),
    ("params a number", call(params=b"1"), INVALID, 1, "params"),
    ("params null", call(params=b"null"), INVALID, 1, "params"),
    ("params true", call(params=b"true"), INVALID, 1, "params"),
    ("id true", call(b"true"), INVALID, None, "id"),
    ("id an object", call(b"{}"), INVALID, None, "id"),
    ("id a list", call(b"[1]"), INVALID, None, "id"),
    ("method and result", b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', INVALID, 1, "result"),
    # A message, but not one that MCP has
    ("id null", call(b"null"), INVALID, None, "id must be a string or an integer"),
    ("id a fraction", call(b"1.5"), INVALID, 1.5, "id must be a string or an integer"),
    ("params a list", call(params=b"[1,2]"), PARAMS, 1, "object"),
    ("before the handshake", call(method=b'"tools/list"', params=b"{}"), INVALID, 1, "Not initialized"),
    ("a method that there is not", call(method=b'"nope"'), METHOD, 1, "nope"),
    ("a method of JSON-RPC itself", call(method=b'"rpc.discover"'), METHOD, 1, "rpc.discover"),
    ("a method in the wrong case", call(method=b'"Tools/Call"'), METHOD, 1, "Tools/Call"),
    ("a method with a NUL", call(method=b'"tools/call\\u0000"'), METHOD, 1, "Method not found"),
    ("a batch without a session", b"[" + call() + b"]", INVALID, None, "batches"),
    ("no protocolVersion", call(params=with_meta(protocolVersion=None)), PARAMS, 1, "protocolVersion"),
    (
        "no clientCapabilities",
        call(params=with_meta(clientCapabilities=None)),
        PARAMS,
        1,
        "clientCapabilities",
    ),
    ("protocolVersion a number", call(params=with_meta(protocolVersion=2026)), PARAMS, 1, "protocolVersion"),
    (
        "clientCapabilities a list",
        call(params=with_meta(clientCapabilities=[])),
        PARAMS,
        1,
        "clientCapabilities",
    ),
    ("clientInfo without version", call(params=with_meta(clientInfo={"name": "x"})), PARAMS, 1, "clientInfo"),
    ("an unknown log level", call(params=with_meta(logLevel="loud")), PARAMS, 1, "logLevel"),
    ("an unknown revision", call(params=with_meta(protocolVersion="2099-01-01")), VERSION, 1, "2099-01-01"),
    (
        "a revision with a handshake",
        call(params=with_meta(protocolVersion="2025-11-25")),
        VERSION,
        1,
        "2025-11-25",
    ),
    ("_meta a list", call(params=member("_meta", [])), PARAMS, 1, "_meta"),
    ("name a number", call(params=member("name", 5)), PARAMS, 1, "name"),
    ("no name", call(params=json.dumps({"_meta": META}).encode()), PARAMS, 1, "name"),
    ("an unknown tool", call(params=member("name", "nope")), PARAMS, 1, "Unknown tool: nope"),
    ("requestState a number", call(params=member("requestState", 5)), PARAMS, 1, "requestState"),
    ("requestState made up", call(params=member("requestState", "abc")), PARAMS, 1, "requestState"),
    ("inputResponses a list", call(params=member("inputResponses", [])), PARAMS, 1, "inputResponses"),
    (
        "cursor a number",
        call(method=b'"tools/list"', params=json.dumps({"cursor": 1, "_meta": META}).encode()),
        PARAMS,
        1,
        "cursor",
    ),
    (
        "cursor made up",
        call(method=b'"tools/list"', params=json.dumps({"cursor": "x", "_meta": META}).encode()),
        PARAMS,
        1,
        "cursor",
    ),
    (
        "initialize without params",
        b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
        PARAMS,
        1,
        "protocolVersion",
    ),
    (
        "initialize with a number",
        call(method=b'"initialize"', params=b'{"protocolVersion":1}'),
        PARAMS,
        1,
        "protocolVersion",
    ),
    (
        "initialize without a handshake",
        call(method=b'"initialize"', params=json.dumps({"_meta": META}).encode()),
        METHOD,
        1,
        "2026-07-28",
    ),
]

# What is answered by a tool result, since a model can act on it
ARGUMENTS: list[tuple[str, Any, str]] = [
    ("a wrong type", {"a": "1", "b": 2}, "a: expected an integer"),
    ("a missing one", {"a": 1}, "b"),
    ("an unknown one", {"a": 1, "b": 2, "c": 3}, "c"),
    ("null", {"a": None, "b": 2}, "a: expected an integer"),
    ("a fraction", {"a": 1.5, "b": 2}, "a: expected an integer"),
    ("a list", [1, 2], "an object"),
    ("text", "a=1", "an object"),
    ("a number", 5, "an object"),
]

# What is owed no answer, whatever is in it
SILENT: list[tuple[str, bytes]] = [
    ("an unknown notification", b'{"jsonrpc":"2.0","method":"notifications/nope"}'),
    ("a request's method without an id", b'{"jsonrpc":"2.0","method":"tools/call","params":{}}'),
    ("an answer to nothing", b'{"jsonrpc":"2.0","id":99,"result":{}}'),
    ("an error for nothing", b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}'),
    ("a broken answer", b'{"jsonrpc":"2.0","id":99,"error":"x"}'),
    ("result and error", b'{"jsonrpc":"2.0","id":99,"result":{},"error":{"code":1,"message":"x"}}'),
    (
        "a cancellation of nothing",
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    ),
    ("a malformed cancellation", b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}'),
]


def serving() -> Server:
    server = Server("s", secret="a secret of sixteen bytes and more")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


async def answers(*frames: bytes) -> list[Any]:
    """Everything that one connection answers to these frames, and to a good call after them."""
    sent: list[Any] = []
    connection = ServerConnection(
        serving().kernel, lambda frame: sent.append(json.loads(frame)), limits=Limits(max_bytes=100_000)
    )
    for frame in frames:
        connection.receive(frame)
    await asyncio.sleep(0)
    await connection.drain(10.0)
    connection.receive(call(b'"after"'))
    await connection.drain(10.0)
    last = sent.pop()
    assert last["id"] == "after"
    assert last["result"]["structuredContent"] == {"result": 3}
    return sent


def test_there_are_many_of_them() -> None:
    assert len(CASES) + len(ARGUMENTS) + len(SILENT) >= 40


@pytest.mark.parametrize(
    ("frame", "code", "id_", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
async def test_each_bad_message_gets_its_error_and_hurts_no_other(
    frame: bytes, code: int, id_: Any, says: str
) -> None:
    (answer,) = await answers(frame)
    assert set(answer) == {"jsonrpc", "id", "error"}
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["code"] == code
    assert answer["id"] == id_
    assert type(answer["id"]) is type(id_)
    assert says in json.dumps(answer["error"], ensure_ascii=False)


@pytest.mark.parametrize(
    ("arguments", "says"), [case[1:] for case in ARGUMENTS], ids=[case[0] for case in ARGUMENTS]
)
async def test_arguments_that_do_not_fit_are_a_result(arguments: Any, says: str) -> None:
    (answer,) = await answers(call(params=member("arguments", arguments)))
    assert answer["id"] == 1
    assert answer["result"]["isError"] is True
    assert says in answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("frame", [case[1] for case in SILENT], ids=[case[0] for case in SILENT])
async def test_what_is_owed_no_answer_gets_none(frame: bytes) -> None:
    assert await answers(frame) == []


async def test_of_duplicate_members_the_last_one_counts_for_everybody() -> None:
    params = ADD.replace(b'"name":"add"', b'"name":"nope","name":"add"').replace(b'"a":1', b'"a":9,"a":4')
    (answer,) = await answers(call(params=params, method=b'"nope","method":"tools/call"'))
    assert answer["result"]["structuredContent"] == {"result": 6}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_revisions_without_batches_refuse_them(version: str) -> None:
    opened, refused = await answers(json.dumps(initialize(0, version)).encode(), b"[" + call() + b"]")
    assert opened["id"] == 0
    assert (refused["id"], refused["error"]["code"]) == (None, INVALID)
    assert version in refused["error"]["message"]


async def test_the_revision_with_batches_answers_them_in_one() -> None:
    ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    batch = b"[" + b",".join([ping % 1, note, b"1", ping % 2]) + b"]"
    opened, answered = await answers(json.dumps(initialize(0, "2025-03-26")).encode(), batch)
    assert opened["result"]["protocolVersion"] == "2025-03-26"
    assert sorted((a["id"] or 0, "result" in a) for a in answered) == [(0, False), (1, True), (2, True)]
    assert len(await answers(json.dumps(initialize(0, "2025-03-26")).encode(), b"[" + note + b"]")) == 1
