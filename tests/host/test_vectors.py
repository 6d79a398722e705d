"""Cases of what hosts do with their files, run through the public functions of `dragoman.host`.

`data/vectors.json` was put together from the hosts' documentation and sources, `data/more.json` from the
rules of `docs/hosts.md`, and `data/wide.json` has each rule in several of the ways in which a case may be
written. What fails for a known reason stands in `data/known-failures.json`, and may not
stand there longer than it fails.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.vectors.__main__ import load, main, run
from tools.vectors.expecting import Effect, Present, Says, State, Transport, agrees, differs

DATA = Path(__file__).parent / "data"
KNOWN = json.loads((DATA / "known-failures.json").read_text())
CASES = [case for name in ("vectors", "more", "wide") for case in load(DATA / f"{name}.json")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case):
    outcome = run(case)
    if case["id"] in KNOWN:
        assert outcome.why is not None, f"{case['id']} passes now: take it out of known-failures.json"
        pytest.xfail(KNOWN[case["id"]])
    assert outcome.why is None


def test_every_known_failure_is_a_case_and_has_a_reason():
    assert KNOWN.keys() <= {case["id"] for case in CASES}
    assert all(KNOWN.values())


def test_ids_are_unique():
    assert len({case["id"] for case in CASES}) == len(CASES)


# --- the runner -----------------------------------------------------------------------------------------


def case(expect, **more):
    return {
        "id": "x-1",
        "host": "claude-code",
        "kind": "permission",
        "input": {"rules": {"deny": ["mcp__a"]}, "call": "mcp__a__b"},
        "expect": expect,
        **more,
    }


def test_the_runner_prints_what_fails_and_the_sums(tmp_path, capsys):
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"vectors": [case({"decision": "deny"}), case({"decision": "allow"})]}))
    assert main([str(path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == ["x-1 (?): decision: expected 'allow'; got deny (hidden)", "1 passed, 1 failed"]


def test_a_file_that_is_none_is_said(tmp_path, capsys):
    path = tmp_path / "cases.json"
    assert main([str(path)]) == 2
    path.write_text("[")
    assert main([str(path)]) == 2
    assert main([]) == 2
    assert "cases.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"kind": "no-such-kind"}, "could not be run"),
        ({"host": "no-such-host"}, "could not be run"),
        ({"input": {}}, "could not be run"),
        ({"expect": {"weather": "fine"}}, "not understood"),
        ({"expect": {"note": "only words"}}, "nothing to compare"),
        ({"expect": {}}, "nothing to compare"),
    ],
)
def test_a_case_that_is_not_understood_fails(more, says):
    assert says in run({**case({"decision": "deny"}), **more}).why


@pytest.mark.parametrize("given", CASES[:: len(CASES) // 40], ids=lambda case: case["id"])
def test_a_member_that_nothing_looks_at_fails_the_case(given):
    why = run({**given, "input": {**given["input"], "surprise": 1}}).why
    assert why is not None
    assert "surprise" in why


@pytest.mark.parametrize("kind", ["permissions", "Permission", "decision"])
def test_a_kind_may_be_called_otherwise(kind):
    assert run(case({"decision": "deny"}, kind=kind)).why is None


def test_members_for_people_and_empty_ones_say_nothing():
    more = {"rules": {"deny": ["mcp__a"]}, "call": "mcp__a__b", "note": "seen in June", "surprise": {}}
    assert run(case({"decision": "deny"}, input=more)).why is None


def test_what_an_unsure_case_leaves_open_is_not_compared():
    left_open = {"decision": "deny", "label": "undocumented"}
    assert run(case(left_open, certainty="uncertain")).why is None
    assert "not understood" in run(case(left_open, certainty="certain")).why
    assert run(case({"decision": "unclear"}, certainty="uncertain", kind="no-such-kind")).why is not None


def test_a_file_that_no_host_has_is_said():
    why = run(case({"servers": {}}, kind="precedence", input={"files": {"what.json": {}}})).why
    assert "'what.json' is none that is known" in why


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ('[mcp_servers.a] command="x" args=["1", "a;b"]', {"args": ["1", "a;b"]}),
        (
            'user: [mcp_servers.a] command="x" ; project (trusted): [mcp_servers.a] args=["2"]',
            {"args": ["2"]},
        ),
        (
            'user: [mcp_servers.a] command="x" ; project: [mcp_servers.a] args=["2"]; not trusted',
            {"args": []},
        ),
        ('mcp_servers.a.command="x" and mcp_servers.a.args=["3"]', {"args": ["3"]}),
        ("startup_timeout_sec=2.5", {"startup_s": 2.5}),
        ('requirements.toml: mcp_servers={} ; config: [mcp_servers.a] command="x"', {"server": "disabled"}),
        ("no = toml [", {"config": "fails to load"}),
    ],
)
def test_toml_with_words_around_it_is_taken_apart(text, headers):
    assert run(case(headers, host="codex", kind="precedence", input={"toml": text})).why is None


@pytest.mark.parametrize(
    ("found", "wanted", "agreed"),
    [
        (Effect("deny"), "not allowed", True),
        (Effect("allow"), "not allowed", False),
        (Effect("deny"), "deny (tool not hidden)", True),
        (Effect("ask"), "the person is prompted", True),
        (Effect("ask"), "nonsense", False),
        (Effect("ask"), "allow or ask", True),
        (Effect("deny"), "allow or ask", False),
        (Present(True), "loads (unknown keys are ignored)", True),
        (Present(False, "x"), "loads (unknown keys are ignored)", False),
        (Present(True, hurt=True), "may fail as a whole", True),
        (Present(True), "may fail as a whole", False),
        (State("rejected"), "disabled", True),
        (Transport("http", then_sse=None), "remote", True),
        (Transport("stdio", then_sse=False), "remote", False),
        (Effect("deny", hidden=True), "deny (tool hidden from the model)", True),
        (Effect("deny"), "deny (tool hidden from the model)", False),
        (Effect("deny", hidden=True), "hidden", True),
        (Effect("deny"), "exclude", True),
        (Effect("allow"), "allow when auto-approve is on", True),
        (Effect("ask"), "allow", False),
        (Present(False, "x"), "error: mixed fields", True),
        (Present(False, "x"), "not loaded", True),
        (Present(True), "not loaded", False),
        (Present(True), "loaded", True),
        (Present(False, "x"), "fails to load (no transport)", True),
        (State("pending"), "pending-approval until the trust dialog is accepted", True),
        (State("active"), "loads without prompt", True),
        (State("pending"), "loads without prompt", False),
        (State("active"), "rejected", False),
        (Transport("http", then_sse=True), "streamable http first, then sse", True),
        (Transport("http", then_sse=False), "streamable http first, then sse", False),
        (Transport("http", then_sse=False), "streamable_http", True),
        (Transport("http", then_sse=True), "http", False),
        (Transport("sse", then_sse=False), "sse", True),
        (Transport("stdio", then_sse=False), "stdio", True),
        (Transport("stdio", then_sse=False), "http", False),
        (Says(1, "four"), "four hundred", True),
        (Says(1, "four"), "five", False),
        (30.0, 30, True),
        (1, True, False),
        ("1", 1, False),
    ],
)
def test_words_agree_with_what_they_say(found, wanted, agreed):
    assert agrees("x", wanted, found=found) is agreed


def test_tables_of_servers_have_to_be_the_same_ones_and_records_need_not_be_whole():
    found = {"servers": {"a": {"command": "x", "args": []}}}
    assert differs({"servers": {"a": {"command": "x"}}}, found) is None
    assert differs({"servers": {"a": {"command": "y"}}}, found) is not None
    assert differs({"servers": {}}, found) is not None
    assert differs({"servers": {"a": {}, "b": {}}}, found) is not None
