"""Two calls compared: what differs is named, and why what passed does not any more."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.host.trace import Trace
from dragoman.host.trace.calls import find
from dragoman.host.trace.comparing import compare, pair
from dragoman.model import Tool
from tests.host.traced import ALLOW, DENY, TOOL, call, clock, fault


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


@pytest.fixture
def trace(path):
    return Trace(path, now=clock())


def compared(path, *ids):
    return compare(*(find(path, name) for name in ids))


def test_the_same_call_twice(path, trace):
    found = compared(path, call(trace), call(trace))
    assert found.same
    assert found.told.startswith("mcp__orders__lookup_order passed at 2026-11-30 0")
    assert found.told.endswith("; nothing differs")


def test_a_rule_that_is_new(path, trace):
    found = compared(path, call(trace), call(trace, rule=DENY, text="Not permitted"))
    assert list(found.parts) == ["permission", "result"]
    (line,) = found.parts["permission"]
    was, now = line.split(" -> ")
    assert was == "allow by mcp__orders__lookup_order (.claude/settings.json:3)"
    assert now == "deny by mcp__orders__* (.claude/settings.json:7)"
    assert found.parts["result"][:2] == ["passed -> was denied", "answered by: server -> permission"]
    assert "because of the rule mcp__orders__* (.claude/settings.json:7); permission differs" in found.told


def test_arguments_that_differ(path, trace):
    found = compared(path, call(trace), call(trace, arguments={"order_id": "A-7", "deep": {"n": [1]}}))
    assert list(found.parts) == ["argument"]
    assert found.parts["argument"] == ['~ order_id: "A-1042" -> "A-7"', '+ deep: {"n":[1]}']
    assert found.told.endswith("; argument differs")


def test_a_schema_that_changed_says_what_of_it(path, trace):
    narrower = Tool(
        name=TOOL.name,
        description="Find an order by its number.",
        input_schema={**TOOL.input_schema, "required": ["order_id", "region"]},
    )
    new = call(trace, definition=narrower, faults=[fault("region")], text="Invalid arguments")
    found = compared(path, call(trace), new)
    text = "\n".join(found.parts["schema"])
    assert "breaking" in text
    assert "region" in text
    assert "description" in text
    assert "refused now: region: expected a text; received 7" in text
    assert "was refused by the schema" in found.told
    assert "because region: expected a text; received 7; schema, permission differ" in found.told


def test_a_schema_whose_text_was_not_kept_is_still_named(path):
    lines: list[bytes] = []
    trace = Trace(lines.append)
    ids = [call(trace), call(trace, definition=Tool(name=TOOL.name, input_schema={"type": "object"}))]
    path.write_bytes(b"".join(lines))
    assert compared(path, *ids).parts["schema"] == [
        "description: is no longer there",
        "inputSchema: differs; the texts were not kept",
    ]


def test_names_servers_and_results(path, trace):
    first = call(trace, server="orders")
    found = compared(path, first, call(trace, server="archive", text="found\nelsewhere"))
    assert found.parts["name"] == [
        "name: mcp__orders__lookup_order -> mcp__archive__lookup_order",
        "server: orders -> archive",
    ]
    assert [line for line in found.parts["result"] if "elsewhere" in line]
    assert found.told.startswith("mcp__orders__lookup_order / mcp__archive__lookup_order passed at")


def test_a_tool_that_failed(path, trace):
    found = compared(path, call(trace), call(trace, is_error=True, text="disk full"))
    assert found.parts["result"][0] == "passed -> ended in an error"
    assert "ended in an error at" in found.told
    assert "because disk full" in found.told


def test_the_newest_is_held_against_what_passed_before(path, trace):
    passed = call(trace)
    call(trace, is_error=True)
    call(trace, rule=DENY)
    newest = call(trace, rule=DENY)
    call(trace, tool="other")
    for name in (
        "mcp__orders__lookup_order",
        "lookup_order",
        "orders/lookup_order",
        "orders:lookup_order",
        newest,
    ):
        assert [each.id for each in pair(path, name)] == [passed, newest]


def test_one_that_passed_is_held_against_what_did_not(path, trace):
    denied = call(trace, rule=DENY)
    call(trace)
    newest = call(trace)
    assert [each.id for each in pair(path, "lookup_order")] == [denied, newest]


def test_with_no_other_outcome_it_is_the_last_one_before(path, trace):
    call(trace)
    before = call(trace)
    newest = call(trace, rule=ALLOW)
    assert [each.id for each in pair(path, "lookup_order")] == [before, newest]
    assert [each.id for each in pair(path, newest, before)] == [newest, before]


def test_nothing_to_compare_with(path, trace):
    call(trace)
    with pytest.raises(UsageError, match="there is no call of mcp__orders__lookup_order before"):
        pair(path, "lookup_order")
    with pytest.raises(UsageError, match="no call 'other' in"):
        pair(path, "other")
