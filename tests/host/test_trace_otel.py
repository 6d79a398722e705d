"""Spans of a trace: OTLP's JSON form, and the conventions' names."""

from __future__ import annotations

import json
import re

import pytest

from dragoman.host.trace import Trace
from dragoman.host.trace.calls import calls
from dragoman.host.trace.otel import documents
from tests.host.traced import DENY, call, clock, fault

# The members of `Span` that we use, with their JSON types, by opentelemetry-proto's trace.proto and the
# protocol's JSON mapping: ids in hex, 64-bit numbers as texts, enumerations as numbers.
SPAN = {
    "traceId": str,
    "spanId": str,
    "parentSpanId": str,
    "name": str,
    "kind": int,
    "startTimeUnixNano": str,
    "endTimeUnixNano": str,
    "attributes": list,
    "events": list,
    "status": dict,
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


def spans(path, **options):
    found = []
    for line in documents(calls(path), **options):
        assert line.endswith(b"\n")
        (resource,) = json.loads(line)["resourceSpans"]
        (scope,) = resource["scopeSpans"]
        assert attributes(resource["resource"]) == {"service.name": "dragoman"}
        found += scope["spans"]
    for span in found:
        assert all(type(value) is SPAN[name] for name, value in span.items())
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    return found


def attributes(holder):
    return {each["key"]: next(iter(each["value"].values())) for each in holder["attributes"]}


def test_a_call_is_a_tool_span_with_a_clients_span_in_it(path):
    name = call(Trace(path, now=clock()))
    tool, client = spans(path)
    assert (tool["name"], tool["kind"]) == ("execute_tool lookup_order", 1)
    assert (client["name"], client["kind"]) == ("tools/call lookup_order", 3)
    assert client["parentSpanId"] == tool["spanId"]
    assert client["traceId"] == tool["traceId"]
    told = attributes(tool)
    assert told["gen_ai.operation.name"] == "execute_tool"
    assert told["gen_ai.tool.name"] == "lookup_order"
    assert told["dragoman.call"] == name
    assert attributes(client) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup_order",
        "jsonrpc.request.id": "3",
        "network.transport": "pipe",
        "dragoman.server": "orders",
    }
    (event,) = tool["events"]
    assert event["name"] == "dragoman.decision"
    assert attributes(event)["dragoman.decision.origin"] == ".claude/settings.json:3"
    assert tool["status"] == {}
    assert tool["startTimeUnixNano"].startswith("17960")


@pytest.mark.parametrize(
    ("how", "kind", "count"),
    [
        ({"rule": DENY}, "permission_denied", 1),
        ({"faults": [fault()]}, "invalid_arguments", 1),
        ({"known": False}, "refused", 1),
        ({"is_error": True}, "tool_error", 2),
    ],
)
def test_what_went_wrong_is_an_error_of_its_kind(path, how, kind, count):
    call(Trace(path), **how)
    found = spans(path)
    assert len(found) == count
    assert {attributes(span)["error.type"] for span in found} == {kind}
    assert {span["status"]["code"] for span in found} == {2}


def test_arguments_and_results_are_there_only_when_asked_for(path):
    call(Trace(path), text="a private answer")
    assert "private" not in json.dumps(spans(path))
    assert "A-1042" not in json.dumps(spans(path))
    told = attributes(spans(path, content=True)[0])
    assert json.loads(told["gen_ai.tool.call.arguments"]) == {"order_id": "A-1042"}
    assert json.loads(told["gen_ai.tool.call.result"])[0]["text"] == "a private answer"


def test_what_a_server_says_of_its_error_is_not_in_the_status(path):
    call(Trace(path), text="a private answer", is_error=True)
    assert "private" not in json.dumps(spans(path))


def test_a_request_with_a_parent_keeps_its_ids(path):
    entry = Trace(path).begin()
    entry.tool_use({"id": "1", "name": "n"}, name=None, faults=(), decision=None)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    request = {"id": "x", "params": {"name": "n", "_meta": {"traceparent": parent}}}
    entry.sent(json.dumps(request).encode(), server="s", revision=None, transport="http")
    tool, client = spans(path)
    assert (client["traceId"], client["spanId"]) == (parent[3:35], parent[36:52])
    assert tool["traceId"] == client["traceId"]
    assert attributes(client)["network.transport"] == "tcp"


def test_calls_of_a_turn_are_one_trace(path):
    trace = Trace(path)
    with trace.turn(1):
        call(trace)
        call(trace)
    call(trace)
    tools = [span for span in spans(path) if span["kind"] == 1]
    assert tools[0]["traceId"] == tools[1]["traceId"] != tools[2]["traceId"]


def test_the_same_trace_gives_the_same_spans(path):
    call(Trace(path))
    assert spans(path) == spans(path)


def test_many_calls_are_many_lines(path):
    trace = Trace(path)
    for _ in range(150):
        call(trace)
    assert len(list(documents(calls(path)))) == 2
    assert len({span["spanId"] for span in spans(path)}) == 300
