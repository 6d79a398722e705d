"""The oracle itself: it accepts what the specification allows and refuses what it forbids."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from tests.spec.oracle import REVISIONS, SpecViolation, definitions, methods, validate, validate_frame

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL: dict[str, Any] = {"name": "add", "arguments": {"a": 1}}
TEXT: dict[str, Any] = {"content": [{"type": "text", "text": "3"}]}


def request(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def answer(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def failure(code: int, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no", **more}}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_definition_compiles(revision: str) -> None:
    for name in definitions(revision):
        for exact in (False, True):
            with contextlib.suppress(SpecViolation):
                validate(revision, name, {}, exact=exact)


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_call_and_answer_with_handshake(revision: str) -> None:
    validate_frame(revision, request("tools/call", CALL), None, "to_server", exact=True)
    validate_frame(revision, answer(TEXT), "tools/call", "to_client", exact=True)
    validate_frame(revision, answer({}), "ping", "to_client", exact=True)
    validate_frame(revision, answer({}), "ping", "to_server", exact=True)


def test_call_and_answer_without_handshake() -> None:
    validate_frame(
        "2026-07-28", request("tools/call", {**CALL, "_meta": META}), None, "to_server", exact=True
    )
    validate_frame(
        "2026-07-28", answer({**TEXT, "resultType": "complete"}), "tools/call", "to_client", exact=True
    )


def test_bytes_and_text_are_parsed() -> None:
    validate_frame("2025-11-25", b'{"jsonrpc":"2.0","id":"x","method":"ping"}', None, "to_client")
    validate_frame("2025-11-25", '{"jsonrpc":"2.0","method":"notifications/initialized"}', None, "to_server")
    with pytest.raises(SpecViolation, match="NaN"):
        validate_frame("2025-11-25", b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}', "ping", "to_client")


@pytest.mark.parametrize(
    ("revision", "frame", "method", "direction", "why"),
    [
        ("2026-07-28", request("tools/call", CALL), None, "to_server", "_meta"),
        ("2026-07-28", answer(TEXT), "tools/call", "to_client", "resultType"),
        ("2026-07-28", request("ping", {}), None, "to_server", "no request 'ping'"),
        ("2026-07-28", request("roots/list", {}), None, "to_client", "no request 'roots/list'"),
        ("2025-11-25", request("server/discover", {}), None, "to_server", "server/discover"),
        ("2025-11-25", request("roots/list", {}), None, "to_server", "to server"),
        ("2025-06-18", answer({"content": [{"type": "txet"}]}), "tools/call", "to_client", "content"),
        ("2025-11-25", {"jsonrpc": "2.0", "id": None, "method": "ping"}, None, "to_server", "id"),
        ("2025-11-25", {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None, "to_server", "id"),
        ("2025-11-25", {"jsonrpc": "2.0", "id": 1}, None, "to_server", "exactly one"),
        ("2025-11-25", {**answer({}), **failure(1)}, "ping", "to_client", "exactly one"),
        ("2025-11-25", {"id": 1, "method": "ping"}, None, "to_server", "jsonrpc"),
        ("2025-11-25", failure(1.5), None, "to_client", "code"),  # type: ignore[arg-type]  # wrong on purpose
        ("2026-07-28", failure(-32022), None, "to_client", "data"),
        ("2026-07-28", failure(-32021, data={}), None, "to_client", "requiredCapabilities"),
        ("2025-11-25", failure(-32042), None, "to_client", "data"),
        ("2024-11-05", {"jsonrpc": "2.0", "error": {"code": 1, "message": ""}}, None, "to_client", "id"),
        ("2025-03-26", [], None, "to_server", "empty batch"),
        ("2025-06-18", [request("ping", {})], None, "to_server", "no batches"),
        ("2026-07-28", answer({"resultType": "input_required"}), "tools/call", "to_client", "neither"),
        (
            "2026-07-28",
            answer({"resultType": "input_required", "requestState": "s"}),
            "tools/list",
            "to_client",
            "cannot be answered",
        ),
        ("2026-07-28", answer({"resultType": "task"}), "tools/call", "to_client", "unknown resultType"),
    ],
)
def test_violation_is_named(revision: str, frame: Any, method: Any, direction: Any, why: str) -> None:
    with pytest.raises(SpecViolation, match=why):
        validate_frame(revision, frame, method, direction)


def test_result_needs_the_method_it_answers() -> None:
    with pytest.raises(ValueError, match="method"):
        validate_frame("2025-11-25", answer({}), None, "to_client")


def test_errors() -> None:
    validate_frame("2024-11-05", failure(-32601, data={"any": "thing"}), "tools/call", "to_client")
    # JSON-RPC 2.0, section 5: null where the id could not be read.
    for revision in REVISIONS:
        validate_frame(revision, {**failure(-32700), "id": None}, None, "to_client")
    validate_frame(
        "2026-07-28", failure(-32022, data={"supported": ["2026-07-28"], "requested": "x"}), None, "to_client"
    )


def test_batches_only_where_the_revision_has_them() -> None:
    calls = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {**request("tools/call", CALL), "id": 2}]
    validate_frame("2025-03-26", calls, None, "to_server")
    answers = [answer({}), {**answer(TEXT), "id": 2}]
    validate_frame("2025-03-26", answers, {1: "ping", 2: "tools/call"}, "to_client")
    with pytest.raises(SpecViolation, match="content"):
        validate_frame("2025-03-26", answers, {1: "tools/call", 2: "ping"}, "to_client")


def test_what_the_revision_does_not_define_passes_only_when_asked() -> None:
    frame = request("tasks/get", {"taskId": "t"})
    validate_frame("2026-07-28", frame, None, "to_server", others=True)
    validate_frame("2026-07-28", answer({"resultType": "task"}), "tools/call", "to_client", others=True)
    validate_frame("2026-07-28", answer({"resultType": "complete"}), "tasks/get", "to_client", others=True)
    with pytest.raises(SpecViolation, match="jsonrpc"):
        validate_frame("2026-07-28", {**frame, "jsonrpc": "1.0"}, None, "to_server", others=True)


@pytest.mark.parametrize(
    ("revision", "method", "result"),
    [
        ("2025-11-25", "tools/call", {**TEXT, "resultType": "complete"}),
        ("2025-11-25", "tools/list", {"tools": [], "ttlMs": 0}),
        (
            "2025-06-18",
            "tools/list",
            {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "icons": []}]},
        ),
        ("2025-03-26", "tools/call", {**TEXT, "structuredContent": {}}),
        ("2024-11-05", "prompts/list", {"prompts": [{"name": "p", "title": "P"}]}),
        (
            "2026-07-28",
            "tools/list",
            {
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
                "tools": [{"name": "t", "inputSchema": {"type": "object"}, "execution": {}}],
            },
        ),
    ],
)
def test_exact_refuses_members_of_other_revisions(revision: str, method: str, result: Any) -> None:
    validate_frame(revision, answer(result), method, "to_client")
    with pytest.raises(SpecViolation):
        validate_frame(revision, answer(result), method, "to_client", exact=True)


def test_exact_lets_members_pass_that_no_revision_defines() -> None:
    validate_frame("2025-11-25", answer({**TEXT, "x-note": 1}), "tools/call", "to_client", exact=True)


def test_generated_schema_is_mended() -> None:
    """`schema.ts` says number and null where the generated `schema.json` has lost them."""
    validate("2025-06-18", "ElicitResult", {"action": "accept", "content": {"score": 95.5}})
    validate("2026-07-28", "JSONObject", {"half": 0.5, "none": None})


def test_methods_by_direction() -> None:
    assert "initialize" in methods("2025-11-25", "Request", "to_server")
    assert "initialize" not in methods("2026-07-28", "Request", "to_server")
    assert methods("2026-07-28", "Request", "to_client") == {}
    assert "notifications/cancelled" in methods("2026-07-28", "Notification", "to_server")
