"""Section 7 of the JSON-RPC 2.0 specification: each of its examples, request and answer as printed there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.jsonrpc import Service


@pytest.fixture
def service() -> Service:
    service = Service(details=False)

    @service.method
    def subtract(minuend: int, subtrahend: int) -> int:
        return minuend - subtrahend

    @service.method("sum")
    def add(*numbers: int) -> int:
        return sum(numbers)

    @service.method
    def get_data() -> list[Any]:
        return ["hello", 5]

    for name in ("update", "notify_hello", "notify_sum"):
        service.method(name)(lambda *values: None)
    return service


EXAMPLES = {
    "positional parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}',
        '{"jsonrpc": "2.0", "result": 19, "id": 1}',
    ),
    "positional parameters, the other order": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2}',
        '{"jsonrpc": "2.0", "result": -19, "id": 2}',
    ),
    "named parameters": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        '{"jsonrpc": "2.0", "result": 19, "id": 3}',
    ),
    "named parameters, the other order": (
        '{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        '{"jsonrpc": "2.0", "result": 19, "id": 4}',
    ),
    "a notification": ('{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', ""),
    "a notification of an unknown method": ('{"jsonrpc": "2.0", "method": "foobar"}', ""),
    "call of a method that is not there": (
        '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}',
        '{"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "1"}',
    ),
    "invalid JSON": (
        '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
        '{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}',
    ),
    "an invalid request object": (
        '{"jsonrpc": "2.0", "method": 1, "params": "bar"}',
        '{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}',
    ),
    "a batch of invalid JSON": (
        """[
  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
  {"jsonrpc": "2.0", "method"
]""",
        '{"jsonrpc": "2.0", "error": {"code": -32700, "message": "Parse error"}, "id": null}',
    ),
    "an empty array": (
        "[]",
        '{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}',
    ),
    "a batch that is invalid but not empty": (
        "[1]",
        '[{"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}]',
    ),
    "an invalid batch": (
        "[1,2,3]",
        """[
  {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
  {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
  {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null}
]""",
    ),
    "a mixed batch": (
        """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
    ]""",
        """[
        {"jsonrpc": "2.0", "result": 7, "id": "1"},
        {"jsonrpc": "2.0", "result": 19, "id": "2"},
        {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Invalid Request"}, "id": null},
        {"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": "5"},
        {"jsonrpc": "2.0", "result": ["hello", 5], "id": "9"}
    ]""",
    ),
    "a batch of notifications": (
        """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]""",
        "",
    ),
}


@pytest.mark.parametrize(("sent", "answered"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_example(service: Service, sent: str, answered: str) -> None:
    answer = service.dispatch(sent.encode())
    assert (json.loads(answer) if answer else "") == (json.loads(answered) if answered else "")


@pytest.mark.parametrize(("sent", "answered"), EXAMPLES.values(), ids=EXAMPLES.keys())
def test_details_only_add_data(sent: str, answered: str, service: Service) -> None:
    """What a service says by default differs in `error.data` and in nothing else."""
    talkative = Service()
    talkative._methods.update(service._methods)
    answer = json.loads(talkative.dispatch(sent.encode()) or '""')
    for item in answer if isinstance(answer, list) else [answer]:
        if "error" in item:
            assert item["error"].pop("data")
    assert answer == (json.loads(answered) if answered else "")
