"""`dragoman config`: what is shown of the files of all hosts on a machine, and what never is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.cli.output import width
from dragoman.cli.words import HOSTS
from dragoman.host.dialects import DIALECTS
from tests.cli.machine import Place, new_place
from tests.terminal import in_terminal, plain

SECRET = "q7Zf0kP2mX9vB4nT6wL1"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = new_place(tmp_path)
    place.write(
        ".mcp.json",
        '{\n  "mcpServers": {\n'
        '    "orders": {"command": "orders-mcp", "args": ["--api-key", "' + SECRET + '"]},\n'
        '    "docs": {"type": "http", "url": "https://docs.example/mcp?key=' + SECRET + '",\n'
        '      "headers": {"Authorization": "Bearer ${DOCS_TOKEN}", "X-Other": "' + SECRET + '"}},\n'
        '    "bad": {"url": "https://bad.example"}\n'
        "  }\n}\n",
    )
    place.write("~/.claude.json", {"mcpServers": {"orders": {"command": "old-orders"}}})
    place.write(
        ".claude/settings.local.json", {"enabledMcpjsonServers": ["orders"], "disabledMcpjsonServers": []}
    )
    return place


def trusted(place: Place) -> None:
    """The person has said that the folder is trusted, so that approvals of its local settings count."""
    projects = {str(place.project): {"hasTrustDialogAccepted": True}}
    place.write("~/.claude.json", {"mcpServers": {"orders": {"command": "old-orders"}}, "projects": projects})


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.partition("\n\n")[0].splitlines()]


def test_hosts_of_the_words_are_those_of_the_dialects() -> None:
    assert tuple(DIALECTS) == HOSTS


def test_each_entry_stands_in_a_line_with_place_and_state(place: Place) -> None:
    trusted(place)
    done = place.run("config", "--host", "claude-code", DOCS_TOKEN="x")
    assert (done.status, done.err) == (0, "")
    head, *body = rows(done.out)
    assert head == ["HOST", "SERVER", "TRANSPORT", "SCOPE", "SOURCE", "STARTS", "STATE"]
    assert [(row[:5], row[-1]) for row in body] == [
        (["claude-code", "orders", "stdio", "project", ".mcp.json:3"], "active"),
        (["claude-code", "docs", "http", "project", ".mcp.json:4"], "pending"),
        (["claude-code", "orders", "stdio", "user", "~/.claude.json:3"], "shadowed"),
    ]


def test_what_is_not_used_says_why_and_what_to_do(place: Place) -> None:
    trusted(place)
    out = place.run("config", "--host", "claude-code").out
    assert "orders (~/.claude.json:3) is shadowed: the entry of scope project in .mcp.json:3 is used" in out
    assert "docs (.mcp.json:4) is pending" in out
    assert 'add "docs" to `enabledMcpjsonServers` in .claude/settings.local.json' in out


def test_problems_have_place_and_remedy(place: Place) -> None:
    out = place.run("config", "--host", "claude-code").out
    assert '.mcp.json:6:20: server \'bad\' is left out: `url` without `type`: add "type": "http"' in out
    assert "no value for DOCS_TOKEN" in out
    assert "set DOCS_TOKEN in the environment" in out
    assert "no value for DOCS_TOKEN" not in place.run("config", DOCS_TOKEN="x").out


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_no_secret_is_shown(words: list[str], place: Place) -> None:
    place.write("~/.codex/config.toml", f'[mcp_servers.a]\ncommand = "a"\nenv = {{ X = "{SECRET}" }}\n')
    place.write(".cursor/mcp.json", {"mcpServers": {"u": {"url": f"https://u:{SECRET}@h.example/mcp"}}})
    done = place.run("config", *words, DOCS_TOKEN=SECRET)
    assert done.status == 0
    assert SECRET not in done.out + done.err
    assert "secret stands in the file" in done.out


def test_json_has_every_fact_of_an_entry(place: Place) -> None:
    trusted(place)
    value = place.run("config", "--host", "claude-code", "--json").value
    assert value["ok"] is True
    (host,) = value["result"]["hosts"]
    first, second, third = host["servers"]
    assert first["source"] == {"file": ".mcp.json", "line": 3, "column": 5}
    assert first["shadows"] == [third["source"]]
    assert first["args"] == ["--api-key", "[hidden]"]
    assert second["headers"] == {"Authorization": "Bearer ${DOCS_TOKEN}", "X-Other": "[hidden]"}
    assert (third["state"], third["by"]) == ("shadowed", first["source"])
    assert host["problems"][0]["server"] == "bad"


def test_one_table_has_all_hosts_that_have_files(place: Place) -> None:
    place.write("~/.codex/config.toml", '[mcp_servers.a]\ncommand = "a"\n')
    place.write(".codex/config.toml", '[mcp_servers.b]\ncommand = "b"\n')
    place.write(".cursor/mcp.json", {"mcpServers": {"c": {"command": "c"}}})
    body = rows(place.run("config").out)[1:]
    states = {(row[0], row[1]): row[-1] for row in body}
    assert states["codex", "a"] == "active"
    assert states["codex", "b"] == "untrusted"
    assert states["cursor", "c"] == "active"
    assert {host for host, _ in states} == {"claude-code", "codex", "cursor", "vscode", "copilot-cli"}


def test_a_problem_of_a_file_that_several_hosts_read_is_told_once(place: Place) -> None:
    out = place.run("config").out
    assert out.count("`args[1]`") == 1
    assert "claude-code, vscode, copilot-cli: .mcp.json:3:5: server 'orders'" in out


def test_servers_of_the_command_line(place: Place) -> None:
    path = place.write("run.json", {"mcpServers": {"orders": {"command": "mine"}}})
    out = place.run("config", "--host", "claude-code", "--mcp-config", str(path)).out
    row = next(row for row in rows(out) if row[3] == "cli")
    assert (row[1], row[-2:]) == ("orders", ["mine", "active"])
    done = place.run("config", "--mcp-config", "absent.json")
    assert (done.status, done.err) == (2, "dragoman: absent.json: no such file\n")


def test_a_machine_without_files_and_a_folder_that_is_none(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    done = place.run("config")
    assert (done.status, done.out) == (0, "")
    assert f"no host has files in {place.project} or in the home folder" in done.err
    assert "try: write servers into .mcp.json (Claude Code)" in done.err
    for words in (["doctor"], ["explain", "shop:search"], ["lock"], ["list", "--cost"]):
        done = place.run(*words)
        assert done.status == 2, words
        assert ".mcp.json (Claude Code)" in done.err.partition("  try: ")[2], words
    assert place.run("config", "export", "--to", "codex").out.endswith(
        "nothing to write, as no server was found\n"
    )
    assert "try: name a TARGET; `dragoman config` shows" in place.run("lock", "--host", "cursor").err
    assert place.run("config", "absent").status == 2
    assert place.run("config", "--host", "emacs").status == 2


def test_a_file_that_is_broken_takes_no_other_host_with_it(place: Place) -> None:
    place.write("~/.codex/config.toml", "[mcp_servers.a\n")
    out = place.run("config").out
    assert "codex: ~/.codex/config.toml:1:15: the host does not start with this: not TOML" in out
    assert "claude-code" in out


def test_half_of_a_surrogate_pair_is_shown_as_an_escape(place: Place) -> None:
    place.write(".cursor/mcp.json", '{"mcpServers": {"a\\ud800": {"command": "c"}}}')
    assert "a\\ud800" in place.run("config", "--host", "cursor").out
    value = place.run("config", "--host", "cursor", "--json").value
    assert value["result"]["hosts"][0]["servers"][0]["name"] == "a\\ud800"
    assert place.run("explain", "x:y", "--json").value["error"]["kind"] == "usage"


def test_dragomans_own_rules_are_looked_at_too(place: Place) -> None:
    place.write(".dragoman/permissions.toml", '[[rule]]\neffect = "allow"\ntool = 5\n')
    out = place.run("config").out
    assert (
        "dragoman: .dragoman/permissions.toml:1:3: an allow rule is left out: `tool`: expected a string"
        in out
    )


def test_names_that_steer_a_terminal_are_shown_as_escapes(place: Place) -> None:
    place.write(".cursor/mcp.json", {"mcpServers": {"a\x1b[2J": {"command": "c\x1b[31m"}}})
    out = place.run("config", "--host", "cursor").out
    assert "\x1b" not in out
    assert "a\\x1b[2J" in out


def test_a_terminal_of_eighty_columns_holds_every_line_and_has_colours(place: Place) -> None:
    long = "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    place.write(long, {"mcpServers": {"s": {"command": "x"}}})
    status, out = in_terminal(f"{sys.executable} -m dragoman config", place.project, env=place.env())
    lines = plain(out).splitlines()
    assert status == 0
    assert max(map(width, lines)) <= 80
    assert any(line.startswith("cline") and "cline_mcp_settings.json:3" in line for line in lines)
    assert "\x1b[33mpending\x1b[0m" in out
    assert "\x1b[" not in place.run("config").out
