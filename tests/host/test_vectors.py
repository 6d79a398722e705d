"""Cases of what hosts do with their files, run through the public functions of `dragoman.host`.

`data/vectors.json` was put together from the hosts' documentation and sources, `data/more.json` from the
rules of `docs/hosts.md`. What fails for a known reason stands in `data/known-failures.json`, and may not
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
CASES = [*load(DATA / "vectors.json"), *load(DATA / "more.json")]


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


@pytest.mark.parametrize(
    ("found", "wanted", "agreed"),
    [
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
