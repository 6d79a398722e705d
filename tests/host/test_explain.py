"""The chain of one call as a record: which tool a text may mean, what each link says, what it comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.host import DIALECTS, HostNames, Judged, Machine, Name, Situation, Source, ToolUse
from dragoman.host.config.record import Setup
from dragoman.host.explain import Facts, Listed, candidates, explain, nearest
from dragoman.host.files import HostFiles
from dragoman.host.naming import name_of
from dragoman.host.ruling import call_of, decide
from dragoman.model import Tool
from dragoman.schema.errors import Fault

TOML = """
[mcp_servers.my-shop]
command = "shop"
disabled_tools = ["drop"]
[mcp_servers.my-shop.tools.refund]
approval_mode = "prompt"
[mcp_servers.off]
command = "off"
enabled = false
"""


def files(host="codex", text=TOML, *, kind="config", interactive=True, trusted=True):
    situation = Situation(folder="/p", trusted=trusted, interactive=interactive)
    setup = DIALECTS[host].read([Source(text, "config", "user", kind)], situation)
    machine = Machine(folder=Path("/p"), home=Path("/h"))
    return HostFiles(setup, Setup("dragoman"), machine, trusted=trusted, interactive=interactive)


def facts(host_files, server="my-shop", tool="search", *, listed=None, judged=None, **more):
    name = next(iter(HostNames(host_files.host, [(server, tool)])))
    definition = None if judged is None else judged.tool
    return Facts(
        files=host_files,
        name=name,
        listed=listed or Listed(tools=("search", "refund")),
        decision=decide(host_files, call_of(name, {}, tool=definition)),
        judged=judged,
        **more,
    )


def judged(**members):
    members.setdefault("tool", Tool(name="search", input_schema={"type": "object"}))
    return Judged(use=ToolUse("1", "n", {}), name=Name.of("my-shop", "search"), **members)


@pytest.mark.parametrize("host", sorted(DIALECTS))
def test_the_model_s_name_leads_to_its_server_and_tool(host):
    text, kind = {
        "codex": ('[mcp_servers.shop]\ncommand = "x"', "config"),
        "opencode": ('{"mcp": {"shop": {"type": "local", "command": ["x"]}}}', "config"),
        "vscode": ('{"servers": {"shop": {"command": "x"}}}', "servers"),
        "zed": ('{"context_servers": {"shop": {"command": "x"}}}', "settings"),
        "gemini-cli": ('{"mcpServers": {"shop": {"command": "x"}}}', "settings"),
        "continue": ('mcpServers:\n  - name: shop\n    command: "x"\n', "config"),
    }.get(host, ('{"mcpServers": {"shop": {"command": "x"}}}', "servers"))
    known = files(host, text, kind=kind)
    for asked in (name_of(host, server="shop", tool="search"), "shop:search", "shop/search"):
        assert ("shop", "search") in candidates(known, asked)


def test_a_name_that_no_server_has():
    assert candidates(files(), "mcp__other__search") == []
    assert candidates(files(), "my-shop:") == []
    assert nearest(files(), "my_shop:search") == ["my-shop"]
    assert nearest(files(), "mcp__my_shpo__x") == ["my-shop"]


def test_what_the_entry_does_not_let_the_host_have():
    chain = explain(facts(files(), tool="drop", listed=Listed(tools=("drop",))))
    assert chain.verdict == "deny"
    assert "'drop' is not among the tools" in chain["permission"].text
    assert "change the lists of tools of the entry in config:2" in chain["permission"].remedy


def test_a_server_that_is_off_stops_the_chain_and_the_rules_speak_all_the_same():
    chain = explain(facts(files(), "off", listed=Listed(asked=False, why="it is not in use")))
    assert chain["config"].ok is False
    assert "`enabled` is false" in chain["config"].text
    assert "enabled = false" in chain["config"].remedy
    assert chain["list"].ok is None
    assert chain["permission"].ok is True
    assert chain.verdict == "refused"


def test_a_server_that_no_file_has():
    assert "no file of codex has a server 'absent'" in explain(facts(files(), "absent"))["config"].text


def test_the_list():
    assert explain(facts(files(), tool="refund"))["list"].ok is True
    missing = explain(facts(files(), tool="serch"))
    assert missing["list"].remedy == "did you mean 'search'?"
    assert missing.verdict == "unknown"
    silent = explain(facts(files(), listed=Listed(why="exit status 3")))
    assert silent["list"].ok is None
    assert silent.verdict == "unknown"
    assert silent.text == "it cannot be called: exit status 3"
    hidden = explain(facts(files(), listed=Listed(tools=("search",), hidden="its name is too long")))
    assert hidden["list"].ok is False


def test_the_schema():
    assert explain(facts(files()))["schema"].ok is None
    assert explain(facts(files(), judged=judged()))["schema"].ok is True
    faults = (
        Fault(field="a", expected="a string", received="1", rule="/properties/a/type"),
        Fault(field="b", expected="", received="", unknown=True, close="c"),
    )
    link = explain(facts(files(), judged=judged(faults=faults)))["schema"]
    assert link.details == (
        "a: expected a string; received 1 (/properties/a/type)",
        'unknown argument "b"; did you mean "c"?',
    )
    unusable = explain(facts(files(), judged=judged(unusable="no such $ref")))
    assert unusable["schema"].ok is False


def test_the_lock_is_there_only_if_the_server_is_locked():
    assert [link.step for link in explain(facts(files(), judged=judged())).links] == [
        "config",
        "list",
        "schema",
        "permission",
    ]
    locked = explain(facts(files(), judged=judged(locked="its schema changed"), locked=True))
    assert locked["lock"].ok is False
    assert "dragoman lock --update" in locked["lock"].remedy


def test_the_permission_names_rule_losers_and_what_would_change_it():
    chain = explain(facts(files(), tool="refund"))
    assert chain.verdict == "ask"
    assert chain["permission"].places[0].line == 6
    assert chain["permission"].remedy == "to change that, change the rule in config:6:17"
    unruled = explain(facts(files(), judged=judged()))
    assert unruled["permission"].remedy == (
        'to allow it, set `approval_mode = "approve"` in [mcp_servers.my-shop.tools.search] of config.toml'
    )


def test_other_situations_are_told_only_where_they_come_out_otherwise():
    call = call_of(Name.of("my-shop", "search"), {}, tool=None)
    same, other = decide(files(), call), decide(files(interactive=False), call)
    others = {"where nobody can be asked": other, "in another way": same}
    details = explain(facts(files(), others=others))["permission"].details
    assert "where nobody can be asked: denied" in details
    assert not any(text.startswith("in another way") for text in details)


def test_a_record_has_every_link_and_place():
    record = explain(facts(files()))["config"].record()
    assert record["places"] == [{"file": "config", "line": 2, "column": 2}]
    assert set(record) == {"step", "ok", "text", "details", "remedy", "places"}
