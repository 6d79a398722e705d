"""The tasks extension as a client speaks it, and its own schema as the oracle for what comes back."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests.drivers.stdio import NS, ServerProcess, stateless

NAME = "io.modelcontextprotocol/tasks"
KNOWS: dict[str, Any] = {
    NS + "clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}, "extensions": {NAME: {}}}
}
SCHEMA = Path(__file__).parents[1] / "spec" / "data" / "tasks" / "schema.json"
OVER = ("completed", "failed", "cancelled")


@cache
def validator(definition: str) -> Any:
    document = json.loads(SCHEMA.read_text())
    return jsonschema_rs.validator_for({**document, "$ref": f"#/$defs/{definition}"})


def check(definition: str, value: Any) -> None:
    """`value` is what the extension's schema calls `definition`."""
    found = [
        f"{list(error.instance_path)}: {error.message}" for error in validator(definition).iter_errors(value)
    ]
    assert not found, found


class Client:
    """A client of a server process over stdio that knows tasks."""

    def __init__(self, process: ServerProcess) -> None:
        self.process = process
        self._next = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.ask_all([(method, params)])[0]

    def ask_all(self, requests: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
        """Several requests in one write; their results in the order of the requests."""
        first = self._next + 1
        self._next += len(requests)
        ids = range(first, self._next + 1)
        self.process.send(
            *(
                stateless(id_, method, params, **KNOWS)
                for id_, (method, params) in zip(ids, requests, strict=True)
            )
        )
        answers = self.process.answers(ids)
        for answer in answers.values():
            assert "result" in answer, answer
        return [answers[id_]["result"] for id_ in ids]

    def begin(self, tool: str, count: int) -> list[str]:
        """Start that many tasks, numbered; their ids."""
        calls = [("tools/call", {"name": tool, "arguments": {"number": n}}) for n in range(count)]
        created = self.ask_all(calls)
        for result in created:
            check("CreateTaskResult", result)
        return [result["taskId"] for result in created]

    def look(self, ids: list[str]) -> list[dict[str, Any]]:
        return self.ask_all([("tasks/get", {"taskId": id_}) for id_ in ids])
