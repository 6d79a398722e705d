"""A story: `tools/call` id 7 needs an answer, id 8 has it; on 2025-11-25 the same handler asks inline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.drivers.stdio import META, NS, ServerProcess
from tests.spec.oracle import validate_frame

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "confirm" / "server.py"
CAPABLE = META | {NS + "clientCapabilities": {"elicitation": {"form": {}}}}
ARGUMENTS = {"order_id": "A-1042", "amount": 18.5}
FORM = {
    "type": "object",
    "properties": {"sure": {"type": "boolean", "description": "Refund the whole amount"}},
    "required": ["sure"],
}
QUESTION = {"message": "Refund 18.5 for A-1042?", "requestedSchema": FORM}
ANSWER = {"action": "accept", "content": {"sure": True}}


def stateless(id_: int, **more: Any) -> dict[str, Any]:
    params = {"name": "refund_order", "arguments": ARGUMENTS, **more, "_meta": CAPABLE}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


def test_on_2026_07_28_the_call_is_made_again_with_the_answer() -> None:
    with ServerProcess(script=SCRIPT) as server:
        asked = server.ask(stateless(7))
        validate_frame("2026-07-28", asked, "tools/call", "to_client", exact=True)
        state = asked["result"].pop("requestState")
        assert asked == {
            "jsonrpc": "2.0",
            "id": 7,
            "result": {
                "resultType": "input_required",
                "inputRequests": {"sure": {"method": "elicitation/create", "params": QUESTION}},
                "_meta": {NS + "serverInfo": {"name": "confirm", "version": "1.0.0"}},
            },
        }
        done = server.ask(stateless(8, inputResponses={"sure": ANSWER}, requestState=state))
        validate_frame("2026-07-28", done, "tools/call", "to_client", exact=True)
        assert done == {
            "jsonrpc": "2.0",
            "id": 8,
            "result": {
                "resultType": "complete",
                "content": [{"type": "text", "text": "Refunded 18.5 for A-1042 (charge 1)."}],
                "structuredContent": {"result": "Refunded 18.5 for A-1042 (charge 1)."},
                "_meta": {NS + "serverInfo": {"name": "confirm", "version": "1.0.0"}},
            },
        }


def test_on_2025_11_25_the_same_handler_asks_in_the_middle_of_the_call() -> None:
    with ServerProcess(script=SCRIPT) as server:
        opening = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        }
        server.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
        server.send(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "refund_order", "arguments": ARGUMENTS},
            }
        )
        asked = server.read()
        validate_frame("2025-11-25", asked, None, "to_client", exact=True)
        assert asked == {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": QUESTION}
        server.send({"jsonrpc": "2.0", "id": 1, "result": ANSWER})
        done = server.read()
        validate_frame("2025-11-25", done, "tools/call", "to_client", exact=True)
        assert done == {
            "jsonrpc": "2.0",
            "id": 7,
            "result": {
                "content": [{"type": "text", "text": "Refunded 18.5 for A-1042 (charge 1)."}],
                "structuredContent": {"result": "Refunded 18.5 for A-1042 (charge 1)."},
            },
        }


def test_a_person_who_says_no_costs_nothing() -> None:
    with ServerProcess(script=SCRIPT) as server:
        state = server.ask(stateless(7))["result"]["requestState"]
        declined = server.ask(
            stateless(8, inputResponses={"sure": {"action": "decline"}}, requestState=state)
        )
        assert (
            json.dumps(declined["result"]["content"]) == '[{"type": "text", "text": "Nothing was refunded."}]'
        )
