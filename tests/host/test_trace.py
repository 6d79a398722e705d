"""The trace: JSON lines that a later reader can link, with nothing secret in them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.config.record import Origin, Rule
from dragoman.host.permissions import decide
from dragoman.host.trace import HIDDEN, Trace, cover, redact
from dragoman.protocol.naming import Name

NAME = Name.of("orders", "lookup_order")
BLOCK = {"type": "tool_use", "id": "toolu_1", "name": NAME.model, "input": {"order_id": "A-1042"}}


def write(trace):
    entry = trace.begin()
    rule = Rule("allow", NAME.canonical, Origin(".claude/settings.json", 3))
    decision = decide(NAME, {}, rules=[rule], can_ask=False)
    entry.tool_use(BLOCK, name=NAME, faults=(), decision=decision)
    entry.sent(
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call"}', server="orders", revision="r", transport="stdio"
    )
    entry.result({"type": "tool_result", "tool_use_id": "toolu_1", "content": "서울\u2028\n"}, by="server")


def test_three_lines_a_call_linked_by_one_id(tmp_path):
    path = tmp_path / "trace.jsonl"
    for _ in range(2):
        trace = Trace(path)
        write(trace)
        trace.close()
    data = path.read_bytes()
    assert data.endswith(b"\n")
    assert b"\r" not in data
    lines = [json.loads(line) for line in data.decode("utf-8").split("\n")[:-1]]
    assert [line["kind"] for line in lines] == ["tool_use", "tools/call", "result"] * 2
    assert len({line["call"] for line in lines[:3]}) == 1
    assert lines[0]["call"] != lines[3]["call"]
    assert lines[0]["block"] == BLOCK
    assert (lines[0]["server"], lines[0]["tool"]) == ("orders", "lookup_order")
    assert lines[0]["decision"]["effect"] == "allow"
    assert lines[0]["decision"]["origin"] == ".claude/settings.json:3"
    assert lines[1]["request"] == {"jsonrpc": "2.0", "id": 3, "method": "tools/call"}
    assert lines[2]["block"]["content"] == "서울\u2028\n"
    assert (lines[2]["by"], lines[2]["is_error"]) == ("server", False)
    assert lines[2]["ms"] >= 0


def test_secrets_are_covered_wherever_they_stand():
    lines = []
    entry = Trace(lines.append).begin()
    inner = {
        "Authorization": "Bearer hush",
        "list": [{"api_key": "hush", "apiKey": "hush"}],
        "password": {"p": "hush"},
    }
    entry.tool_use({**BLOCK, "input": inner}, name=NAME, faults=(), decision=None)
    frame = json.dumps(
        {"method": "tools/call", "params": {"arguments": inner, "_meta": {"progressToken": 7}}}
    )
    entry.sent(frame.encode(), server="s", revision=None, transport="http")
    entry.result({"content": [{"type": "text", "text": "x"}], "access_token": "hush"}, by="server")
    assert b"hush" not in b"".join(lines)
    assert json.loads(lines[1])["request"]["params"]["_meta"] == {"progressToken": 7}
    assert json.loads(lines[0])["block"]["input"]["password"] == HIDDEN


def test_another_hook_may_decide_what_is_secret():
    lines = []
    trace = Trace(lines.append, redact=lambda name, value: "#" if name == "order_id" else value)
    trace.begin().tool_use(BLOCK, name=NAME, faults=(), decision=None)
    assert json.loads(lines[0])["block"]["input"] == {"order_id": "#"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_one_call_is_never_more_lines_whatever_is_in_it(value):
    lines = []
    Trace(lines.append, redact=lambda name, value: value).begin().result({"content": value}, by="host")
    (line,) = lines
    assert line.count(b"\n") == 1
    assert json.loads(line)["block"] == {"content": value}


@given(VALUES)
def test_covering_changes_only_what_is_secret(value):
    assert cover(value, lambda name, member: member) == value


def test_names_that_only_sound_secret_are_left_alone():
    assert redact("progressToken", 7) == 7
    assert redact("tokens", 7) == 7
    assert redact("author", "x") == "x"
    assert redact("X-Api-Key", "x") == HIDDEN
