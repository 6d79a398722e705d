"""A `tools/call` takes no detour: how many of our own functions it enters, on each era of the protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).with_name("counted_server.py")
BUDGET = 30

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "budget", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "budget", "version": "1"},
}


class Peer:
    """One request at a time over the pipes of a server process."""

    def __init__(self, process: subprocess.Popen[bytes], *, meta: dict[str, Any] | None) -> None:
        self.process = process
        self.meta = meta
        self.next_id = 0

    def send(self, message: dict[str, Any]) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.next_id += 1
        params = params if self.meta is None else {**params, "_meta": self.meta}
        self.send({"id": self.next_id, "method": method, "params": params})
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.next_id
        return answer["result"]

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]

    def entered(self) -> Counter[str]:
        return Counter(self.call("entered", {}))


@pytest.fixture(params=["2026-07-28", "2025-11-25"])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    command = [sys.executable, str(SERVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        if request.param == HELLO["protocolVersion"]:
            peer = Peer(process, meta=None)
            peer.request("initialize", HELLO)
            peer.send({"method": "notifications/initialized"})
        else:
            peer = Peer(process, meta=META)
        yield peer
        process.stdin.close()
        assert process.wait(30) == 0


def test_functions_entered_for_one_call(peer: Peer) -> None:
    for _ in range(3):  # what the first calls set up is not what a call costs
        peer.call("add", {"a": 1, "b": 2})
        peer.entered()
    first, second = peer.entered(), peer.entered()
    assert peer.call("add", {"a": 1, "b": 2}) == {"result": 3}
    third = peer.entered()
    question = second - first
    both = third - second
    call = both - question
    total = call.total()
    assert total >= 5, f"too few to be a whole call: {call}"
    assert total <= BUDGET, "\n".join(f"{number:3} {name}" for name, number in sorted(call.items()))
