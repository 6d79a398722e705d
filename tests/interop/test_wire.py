"""What holds the frames against the schemas: it has to see what it is there for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.interop.wire import VERSION_KEY, Wire
from tests.spec.oracle import SpecViolation

NEWEST, HANDSHAKE = "2026-07-28", "2025-11-25"
META = {VERSION_KEY: NEWEST, "io.modelcontextprotocol/clientCapabilities": {}}
HELLO = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
WELCOME = {"protocolVersion": HANDSHAKE, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
DONE = {"content": [{"type": "text", "text": "5"}]}


def asked(method: str, params: Any, id: int = 1) -> tuple[str, Any]:  # noqa: A002  # the member's own name
    return "to_server", {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def answered(result: Any, id: int = 1) -> tuple[str, Any]:  # noqa: A002  # the member's own name
    return "to_client", {"jsonrpc": "2.0", "id": id, "result": result}


def wire(ours: Any, *frames: tuple[Any, Any]) -> Wire:
    self = Wire(ours)
    for direction, frame in frames:
        self.add(direction, json.dumps(frame).encode())
    return self


OPENED = (asked("initialize", HELLO), answered(WELCOME))
CALL = {"name": "add", "arguments": {}}


def test_an_answer_is_held_against_the_revision_of_its_request() -> None:
    complete = {**DONE, "resultType": "complete"}
    call = asked("tools/call", CALL, 2)
    assert wire("server", *OPENED, call, answered(DONE, 2)).check() == []
    with pytest.raises(SpecViolation, match=f"{HANDSHAKE} .*resultType"):
        wire("server", *OPENED, call, answered(complete, 2)).check()
    call = asked("tools/call", {**CALL, "_meta": META}, 3)
    assert wire("server", *OPENED, call, answered(complete, 3)).check() == []
    with pytest.raises(SpecViolation, match=f"{NEWEST} .*resultType"):
        wire("server", *OPENED, call, answered(DONE, 3)).check()


def test_a_request_of_ours_has_to_be_that_of_its_revision() -> None:
    with pytest.raises(SpecViolation, match="_meta"):
        wire("client", asked("tools/call", CALL)).check()
    with pytest.raises(SpecViolation, match="has no request"):
        wire("client", *OPENED, asked("server/discover", {}, 2)).check()


def test_a_fault_of_the_peer_is_told_and_what_it_adds_is_not() -> None:
    call = asked("tools/call", CALL, 2)
    (fault,) = wire("client", *OPENED, call, answered({"content": "5"}, 2)).check()
    assert f"{HANDSHAKE} CallToolResult: $.content" in fault
    assert wire("client", *OPENED, call, answered({**DONE, "resultType": "complete"}, 2)).check() == []


def test_an_answer_to_nothing_is_a_fault() -> None:
    (fault,) = wire("client", *OPENED, answered(DONE, 9)).check()
    assert "method" in fault
