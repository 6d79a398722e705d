"""Story 5: `lookup_order` by way of the host, and the same refused by schema and by rule, line by line.

The golden lines stand under `golden/orders-host-<revision>.jsonl`. In them `<id>` is the request's id,
which the client chooses, `<version>` the version of this package, `<transport>` the one that is played.
What no text can fix in advance is left out: the moment (`at`), the time taken (`ms`), the link (`call`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pytest

from dragoman.host import Frame, Host, Outcome, Source, Trace
from dragoman.version import VERSION
from tests.spec.oracle import validate_frame
from tests.transcripts import player

REVISIONS = ("2026-07-28", "2025-11-25")
ORDERS = player.EXAMPLES / "orders"
CALLS = (
    ("mcp__orders__lookup_order", {"order_id": "A-1042"}),
    ("mcp__orders__lookup_order", {"order_id": "1042"}),
    ("mcp__orders__refund_order", {"order_id": "A-1042", "amount": 18900}),
)


@pytest.fixture(scope="module")
def http_url() -> Iterator[str]:
    command = [sys.executable, "server.py", "--http", "127.0.0.1:0"]
    with player.http_server(command, ORDERS) as (host, port, path):
        yield f"http://{host}:{port}{path}"


class Play:
    """One host, the model's three calls, and what they left on the wire and in the trace."""

    def __init__(self, transport: str, revision: str, env: dict[str, str]) -> None:
        self.transport, self.revision = transport, revision
        # Over HTTP the entry of a run's own command line stands in place of the project's.
        text = (ORDERS / "http.mcp.json").read_text("utf-8")
        self.more = [] if transport == "stdio" else [Source(text, "http.mcp.json", "cli")]
        self.env = {**os.environ, "PYTHON": sys.executable, **env}
        self.frames: list[Frame] = []
        self.lines: list[bytes] = []
        self.outcomes: list[Outcome] = []

    async def run(self) -> Play:
        async with Host.from_files(
            ORDERS,
            more=self.more,
            user=False,
            trusted=True,
            env=self.env,
            protocol=self.revision,
            trace=Trace(self.lines.append),
            tap=self.frames.append,
        ) as host:
            assert host.sessions["orders"].state == "connected", host.sessions["orders"].why
            for number, (name, arguments) in enumerate(CALLS, 1):
                block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
                self.outcomes.append(await host.answer(block))
        return self

    def calls(self) -> list[dict[str, Any]]:
        """The calls of tools that were really on the wire."""
        sent = [json.loads(frame.data) for frame in self.frames if frame.direction == "out"]
        return [frame for frame in sent if frame["method"] == "tools/call"]


def golden(play: Play) -> list[dict[str, Any]]:
    (call,) = play.calls()
    text = (player.GOLDEN / f"orders-host-{play.revision}.jsonl").read_text("utf-8")
    text = text.replace('"<id>"', json.dumps(call["id"])).replace("<version>", VERSION)
    place = ".mcp.json:3" if play.transport == "stdio" else "http.mcp.json:3"
    text = text.replace("<transport>", play.transport).replace("<config>", place)
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if "note" not in line]


def definitions(play: Play) -> dict[str, dict[str, str]]:
    """By tool, the hashes of what the server listed: SHA-256 of JSON without blanks, its members sorted."""
    answers = [json.loads(frame.data) for frame in play.frames if frame.direction == "in"]
    (listed,) = [answer["result"]["tools"] for answer in answers if "tools" in answer.get("result", {})]
    return {
        tool["name"]: {
            part: sha256(
                json.dumps(tool[part], sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            ).hexdigest()
            for part in ("title", "description", "inputSchema", "outputSchema", "annotations")
            if part in tool
        }
        for tool in listed
    }


def check(play: Play) -> None:
    lines = [json.loads(line) for line in play.lines]
    links = [line.pop("call") for line in lines]
    assert [links.count(link) for link in dict.fromkeys(links)] == [3, 2, 2]
    before = "0" * 64
    for number, line in enumerate(lines, 1):
        assert (line.pop("seq"), line.pop("prev")) == (number, before)
        before = line.pop("hash")
        assert line.pop("at").endswith("Z")
        assert line.pop("ms", 0) >= 0
        if line["kind"] == "tool_use":
            # A function has no folder in which the texts could be kept.
            expected = {**definitions(play)[line["tool"]], "kept": False}
            assert line.pop("definition") == expected
    assert [player.exact(line) for line in lines] == [player.exact(line) for line in golden(play)]
    # The line in the trace is the frame on the wire, under the server's own name for the tool.
    assert [line["request"] for line in lines if line["kind"] == "tools/call"] == play.calls()
    assert [outcome.by for outcome in play.outcomes] == ["server", "schema", "permission"]
    methods: dict[Any, str] = {}
    for frame in play.frames:
        body = json.loads(frame.data)
        if frame.direction == "out" and "id" in body:
            methods[body["id"]] = body["method"]
        way = "to_server" if frame.direction == "out" else "to_client"
        validate_frame(play.revision, body, methods.get(body.get("id")), way, exact=True)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_stdio(revision: str) -> None:
    check(await Play("stdio", revision, {}).run())


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_http(revision: str, http_url: str) -> None:
    check(await Play("http", revision, {"ORDERS_URL": http_url}).run())
