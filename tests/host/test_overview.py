"""What a person is told of each host's entries: how they stand, over which, and what to do about it."""

from __future__ import annotations

import json

import pytest

from dragoman.host import DIALECTS, Situation, Source
from dragoman.host.overview import overview

COMMAND = {"command": "x"}


def look(host, *sources, env=None, **situation):
    situation = Situation(folder="/p", **situation)
    setup = DIALECTS[host].read(list(sources), situation)
    return overview(setup, env=env or {}, folder="/p")


def servers(text, scope="project", kind="servers", file="f"):
    return Source(text if isinstance(text, str) else json.dumps(text), file, scope, kind)


TABLE = {"mcpServers": {"s": COMMAND}}
OFF = {"mcpServers": {"s": {**COMMAND, "disabled": True}}}


@pytest.mark.parametrize(
    ("host", "source", "situation", "state", "remedy"),
    [
        (
            "claude-code",
            servers(TABLE),
            {},
            "pending",
            "`enabledMcpjsonServers` in .claude/settings.local.json",
        ),
        ("cursor", servers(TABLE), {"trusted": False}, "pending", "switch it on in Cursor's settings"),
        (
            "vscode",
            servers({"servers": {"s": COMMAND}}),
            {"trusted": False},
            "pending",
            "`MCP: List Servers`",
        ),
        ("copilot-cli", servers(TABLE), {"trusted": False}, "untrusted", "when `copilot` asks"),
        (
            "codex",
            servers('[mcp_servers.s]\ncommand = "x"', kind="config"),
            {"trusted": False},
            "untrusted",
            '[projects."/p"] with trust_level = "trusted"',
        ),
        (
            "codex",
            servers('[mcp_servers.s]\ncommand = "x"\nenabled = false', "user", "config"),
            {},
            "disabled",
            "take `enabled = false` out of the entry (f:1)",
        ),
        ("cline", servers(OFF, "user"), {}, "disabled", "take `disabled` out of the entry (f:1)"),
        (
            "claude-desktop",
            servers({"mcpServers": {"s": {"url": "https://h"}}}, "user"),
            {},
            "blocked",
            "Settings > Connectors",
        ),
    ],
)
def test_what_to_do_about_an_entry_that_is_not_used(host, source, situation, state, remedy):
    (row,) = look(host, source, **situation).rows
    assert row.standing.state == state
    assert remedy in row.remedy


def test_a_refusal_names_the_list_to_change():
    settings = servers({"disabledMcpjsonServers": ["s"]}, "user", "settings", "settings.json")
    (row,) = look("claude-code", servers(TABLE), settings).rows
    assert row.standing.state == "rejected"
    assert row.remedy == "take it out of the list (settings.json:1)"


def test_who_wins_names_whom_it_shadows():
    weak = servers({"mcpServers": {"s": {"command": "y"}}}, "user", file="g")
    first, second = look("roo-code", servers(TABLE), weak).rows
    assert [str(origin) for origin in first.shadows] == ["g:1"]
    assert (second.standing.state, str(second.standing.by)) == ("shadowed", "f:1")


def test_variables_without_a_value():
    entry = {"command": "x", "env": {"A": "${env:A}"}}
    (row,) = look("cursor", servers({"mcpServers": {"s": entry}})).rows
    assert row.standing.state == "active"
    (trouble,) = look("cursor", servers({"mcpServers": {"s": entry}})).troubles
    assert trouble.problem.text == "server 's': no value for A: it is not started"
    assert trouble.remedy == "set A in the environment that the host is started in"
    assert look("cursor", servers({"mcpServers": {"s": entry}}), env={"A": "1"}).troubles == ()


def test_what_vs_code_asks_for_is_no_trouble():
    entry = {"command": "x", "env": {"A": "${input:key}"}}
    assert look("vscode", servers({"servers": {"s": entry}})).troubles == ()


def test_a_whole_configuration_that_does_not_load():
    seen = look("codex", servers("[mcp_servers.s]\n", "user", "config"))
    assert seen.rows == ()
    (trouble,) = seen.troubles
    assert trouble.problem.text.startswith("the host does not start with this: mcp_servers.s: expected")


def test_rules_that_never_match_are_told_of():
    settings = servers({"permissions": {"allow": ["mcp__other__x"]}}, "user", "settings")
    texts = [trouble.problem.text for trouble in look("claude-code", servers(TABLE), settings).troubles]
    assert any("never matches: no server of that name is configured" in text for text in texts)
