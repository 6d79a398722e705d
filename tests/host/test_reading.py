"""Files of all hosts on one machine: which are found, in what order they count, and what cannot be read."""

from __future__ import annotations

import json
import os

import pytest

from dragoman.errors import UsageError
from dragoman.host.config.expand import expand
from dragoman.host.dialects import DIALECTS
from dragoman.host.locations import Machine, locations
from dragoman.host.reading import (
    LARGEST,
    LARGEST_OF_PROJECT,
    command_line,
    installed,
    read_own,
    read_setup,
    this_machine,
)


@pytest.fixture
def machine(tmp_path):
    folder, home, root = tmp_path / "home/u/project", tmp_path / "home/u", tmp_path / "root"
    folder.mkdir(parents=True)
    root.mkdir()
    return Machine(folder, home, {}, "linux", root)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


SERVER = {"command": "x"}
FILES = {
    "claude-code": (".mcp.json", {"mcpServers": {"s": SERVER}}),
    "codex": (".codex/config.toml", '[mcp_servers.s]\ncommand = "x"'),
    "cursor": (".cursor/mcp.json", {"mcpServers": {"s": SERVER}}),
    "vscode": (".vscode/mcp.json", {"servers": {"s": SERVER}}),
    "gemini-cli": (".gemini/settings.json", {"mcpServers": {"s": SERVER}}),
    "opencode": ("opencode.json", {"mcp": {"s": {"type": "local", "command": ["x"]}}}),
    "zed": (".zed/settings.json", {"context_servers": {"s": SERVER}}),
    "roo-code": (".roo/mcp.json", {"mcpServers": {"s": SERVER}}),
    "continue": (".continue/mcpServers/s.json", SERVER),
    "copilot-cli": (".github/mcp.json", {"mcpServers": {"s": SERVER}}),
}


@pytest.mark.parametrize("host", FILES)
def test_a_projects_file_is_found_and_its_server_named_with_the_place(host, machine):
    name, content = FILES[host]
    write(machine.folder / name, content)
    setup = read_setup(host, machine, trusted=True, interactive=False)
    assert list(setup.active) == ["s"]
    assert setup.active["s"].origin.file == name
    assert host in installed(machine)


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        ("linux", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "AppData/Roaming/Claude/claude_desktop_config.json"),
    ],
)
def test_claude_desktops_file_on_each_system(system, expected, machine):
    (place,) = locations("claude-desktop", Machine(machine.folder, machine.home, {}, system))
    assert place.path == machine.home / expected


@pytest.mark.parametrize(
    ("variable", "host", "name"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", "settings.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("COPILOT_HOME", "copilot-cli", "mcp-config.json"),
        ("XDG_CONFIG_HOME", "opencode", "opencode/opencode.json"),
    ],
)
def test_a_home_that_was_moved(variable, host, name, machine):
    moved = Machine(machine.folder, machine.home, {variable: "/elsewhere"}, "linux")
    paths = [str(place.path) for place in locations(host, moved)]
    assert f"/elsewhere/{name}" in paths


def test_nothing_is_installed_on_an_empty_machine(machine):
    assert installed(machine) == []
    for host in DIALECTS:
        setup = read_setup(host, machine)
        assert (setup.servers, setup.problems) == ((), ())


def test_a_persons_file_is_shown_from_home(machine):
    write(machine.home / ".cursor/mcp.json", {"mcpServers": {"s": SERVER}})
    assert read_setup("cursor", machine).active["s"].origin.file == "~/.cursor/mcp.json"


def test_codexs_nearer_files_stand_over_farther_ones(machine):
    (machine.folder / ".git").mkdir()
    inner = machine.folder / "a/b"
    inner.mkdir(parents=True)
    write(machine.folder / ".codex/config.toml", '[mcp_servers.s]\ncommand = "far"\nargs = ["1"]')
    write(machine.folder / "a/.codex/config.toml", '[mcp_servers.s]\ncommand = "nearer"')
    write(inner / ".codex/config.toml", '[mcp_servers.s]\nenv = {A = "1"}')
    config = read_setup(
        "codex", Machine(inner, machine.home, {}, "linux", machine.root), trusted=True
    ).active["s"]
    assert (config.command, config.args, config.env) == ("nearer", ("1",), {"A": "1"})


def test_without_a_projects_root_nothing_above_the_folder_is_the_projects(machine):
    inner = machine.folder / "a"
    inner.mkdir()
    write(machine.folder / ".codex/config.toml", '[mcp_servers.s]\ncommand = "far"')
    setup = read_setup("codex", Machine(inner, machine.home, {}, "linux", machine.root), trusted=True)
    assert setup.active == {}


def test_files_of_a_folder_are_read_by_name(machine):
    for name in ("b", "a"):
        write(machine.home / f".gemini/policies/{name}.toml", '[[rule]]\ndecision = "deny"\npriority = 1\n')
    write(machine.home / ".gemini/policies/notes.txt", "not one")
    rules = read_setup("gemini-cli", machine).rules
    assert [rule.origin.file for rule in rules] == ["~/.gemini/policies/a.toml", "~/.gemini/policies/b.toml"]


def test_what_cannot_be_read_is_said_and_hurts_no_other_file(machine):
    write(machine.home / ".cursor/mcp.json", {"mcpServers": {"s": SERVER}})
    path = machine.folder / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_bytes(b'{"a": "\xff"}')
    setup = read_setup("cursor", machine)
    assert list(setup.active) == ["s"]
    (problem,) = setup.problems
    assert str(problem) == ".cursor/mcp.json: cannot be read: not UTF-8: byte 0xff at offset 7"


def test_a_pipe_or_a_folder_or_a_giant_in_a_files_place_is_not_read(machine):
    write(machine.folder / ".mcp.json/inner", "x")
    os.mkfifo(machine.folder / "opencode.json")
    with (machine.folder / "opencode.jsonc").open("wb") as file:
        file.truncate(LARGEST + 1)
    assert "not a regular file" in str(read_setup("claude-code", machine).problems)
    pipe, giant = read_setup("opencode", machine).problems
    assert "not a regular file" in str(pipe)
    assert "larger than" in str(giant)


def test_of_a_project_less_is_read_than_of_the_person(machine):
    text = json.dumps({"mcpServers": {"s": SERVER}}) + " " * LARGEST_OF_PROJECT
    write(machine.home / ".cursor/mcp.json", text)
    write(machine.folder / ".cursor/mcp.json", text)
    setup = read_setup("cursor", machine)
    assert [item.config.origin.file for item in setup.servers] == ["~/.cursor/mcp.json"]
    (problem,) = setup.problems
    assert str(problem) == f".cursor/mcp.json: cannot be read: larger than {LARGEST_OF_PROJECT} bytes"


def test_this_machine_is_this_one(tmp_path):
    found = this_machine(tmp_path)
    assert found.folder == tmp_path.resolve()
    assert found.env is os.environ


def test_own_rules_are_read_of_person_project_and_machine(machine):
    rule = '[[rule]]\neffect = "deny"\n'
    write(machine.home / ".config/dragoman/permissions.toml", rule)
    write(machine.folder / ".dragoman/permissions.toml", f'trusted_servers = ["s"]\n{rule}')
    write(machine.root / "etc/dragoman/permissions.toml", rule)
    setup = read_own(machine)
    assert [rule.scope for rule in setup.rules] == ["managed", "user", "project"]
    assert setup.settings["trusted_servers"] == ()


# Plugins and extensions -------------------------------------------------------------------------------------


def plugin(machine, name="tools@market", *, settings="~/.claude/settings.json", on=True, **entry):
    """Install a plugin for Claude Code and switch it on or off in a settings file; returns its folder."""
    root = machine.home / ".claude/plugins/cache" / name.replace("@", "/")
    root.mkdir(parents=True, exist_ok=True)
    installed = [{"scope": "user", "installPath": str(root), **entry}]
    write(
        machine.home / ".claude/plugins/installed_plugins.json",
        {"version": 2, "plugins": {name: installed}},
    )
    base = machine.home if settings.startswith("~/") else machine.folder
    write(base / settings.removeprefix("~/"), {"enabledPlugins": {name: on}})
    return root


def servers(machine, **options):
    return {item.config.name: item for item in read_setup("claude-code", machine, **options)}


BARE = {"db": {"command": "${CLAUDE_PLUGIN_ROOT}/db", "args": ["${CLAUDE_PLUGIN_DATA}"]}}


@pytest.mark.parametrize("text", [BARE, {"mcpServers": BARE}])
def test_a_plugin_that_is_switched_on_brings_its_servers(text, machine):
    root = plugin(machine)
    write(root / ".mcp.json", text)
    found = servers(machine)["plugin:tools:db"]
    assert (found.state, found.config.scope) == ("active", "plugin")
    assert found.config.origin.file == "~/.claude/plugins/cache/tools/market/.mcp.json"
    full, missing = expand(found.config, {})
    assert full.command == f"{root}/db"
    assert full.args == (str(machine.home / ".claude/plugins/data/tools-market"),)
    assert missing == ()


@pytest.mark.parametrize("manifest", [{"db": SERVER}, "./servers.json", ["./servers.json"]])
def test_a_plugin_may_have_them_in_its_manifest_or_name_a_file(manifest, machine):
    root = plugin(machine)
    write(root / ".claude-plugin/plugin.json", {"name": "tools", "mcpServers": manifest})
    write(root / "servers.json", {"mcpServers": {"db": SERVER}})
    assert servers(machine)["plugin:tools:db"].state == "active"


def test_a_manifest_names_no_file_outside_of_its_plugin(machine):
    root = plugin(machine)
    write(machine.home / "secret.json", {"mcpServers": {"db": SERVER}})
    for path in (str(machine.home / "secret.json"), "../../../../../secret.json"):
        write(root / ".claude-plugin/plugin.json", {"mcpServers": path})
        assert servers(machine) == {}


def test_plugins_that_are_off_not_said_to_be_on_or_another_projects(machine):
    for options in ({"on": False}, {"on": "yes"}, {"projectPath": "/elsewhere"}):
        root = plugin(machine, **options)
        write(root / ".mcp.json", BARE)
        assert servers(machine) == {}
    plugin(machine, projectPath=str(machine.folder))
    assert "plugin:tools:db" in servers(machine)


def test_a_project_switches_a_plugin_on_only_in_a_trusted_folder(machine):
    root = plugin(machine, settings=".claude/settings.json")
    write(root / ".mcp.json", BARE)
    assert servers(machine, trusted=False) == {}
    assert servers(machine) == {}
    assert "plugin:tools:db" in servers(machine, trusted=True)
    projects = {str(machine.folder): {"hasTrustDialogAccepted": True}}
    write(machine.home / ".claude.json", {"projects": projects})
    assert "plugin:tools:db" in servers(machine)


def test_the_older_list_of_plugins(machine):
    root = plugin(machine)
    write(root / ".mcp.json", BARE)
    listed = {"version": 1, "plugins": {"tools@market": {"installPath": str(root)}}}
    write(machine.home / ".claude/plugins/installed_plugins.json", listed)
    assert "plugin:tools:db" in servers(machine)


def extension(machine, name="weather", **members):
    write(machine.home / f".gemini/extensions/{name}/gemini-extension.json", {"name": name, **members})


def gemini(machine, **options):
    setup = read_setup("gemini-cli", machine, **options)
    return {item.config.name: item for item in setup}


def test_an_extension_of_gemini_cli_brings_its_servers(machine):
    entry = {"command": "node", "args": ["${extensionPath}${/}s.js", "${workspacePath}"], "trust": True}
    extension(machine, mcpServers={"sun": entry})
    found = gemini(machine)["sun"]
    assert (found.state, found.config.scope, found.config.rules) == ("active", "plugin", ())
    full, missing = expand(found.config, {})
    assert full.args == (f"{machine.home}/.gemini/extensions/weather/s.js", str(machine.folder))
    assert missing == ()


def test_settings_stand_over_an_extension(machine):
    extension(machine, mcpServers={"sun": SERVER})
    write(machine.home / ".gemini/settings.json", {"mcpServers": {"sun": {"command": "mine"}}})
    setup = read_setup("gemini-cli", machine)
    assert setup.active["sun"].command == "mine"
    assert [item.state for item in setup] == ["active", "shadowed"]


@pytest.mark.parametrize(
    ("overrides", "state"),
    [
        (["!{home}/*"], "disabled"),
        (["!{home}/*", "{folder}/*"], "active"),
        (["!{folder}/"], "disabled"),
        (["!/elsewhere/*"], "active"),
        ([], "active"),
    ],
)
def test_where_an_extension_is_off(overrides, state, machine):
    extension(machine, mcpServers={"sun": SERVER})
    words = [text.format(home=machine.home, folder=machine.folder) for text in overrides]
    switches = {"weather": {"overrides": words}}
    write(machine.home / ".gemini/extensions/extension-enablement.json", switches)
    assert gemini(machine)["sun"].state == state


def test_policies_of_an_extension_count_where_it_is_on(machine):
    extension(machine)
    rule = '[[rule]]\ntoolName = "*"\nmcpName = "s"\ndecision = "deny"\npriority = 10\n'
    write(machine.home / ".gemini/extensions/weather/policies/a.toml", rule)
    (found,) = read_setup("gemini-cli", machine).rules
    assert (found.effect, found.scope) == ("deny", "plugin")
    switches = {"weather": {"overrides": [f"!{machine.folder}/*"]}}
    write(machine.home / ".gemini/extensions/extension-enablement.json", switches)
    assert read_setup("gemini-cli", machine).rules == ()


def test_codex_decides_by_the_profile_that_is_chosen(machine):
    text = 'approval_policy = "on-request"\n[profiles.quiet]\napproval_policy = "never"\n'
    path = machine.home / ".codex/config.toml"
    write(path, text)
    assert read_setup("codex", machine).settings["approval_policy"] == "on-request"
    write(path, 'profile = "quiet"\n' + text)
    assert read_setup("codex", machine).settings["approval_policy"] == "never"
    # A project chooses no profile.
    write(path, f'{text}[projects."{machine.folder}"]\ntrust_level = "trusted"\n')
    write(machine.folder / ".codex/config.toml", 'profile = "quiet"\n')
    assert read_setup("codex", machine).settings["approval_policy"] == "on-request"


def test_servers_of_a_command_line(tmp_path):
    write(tmp_path / "a.json", {"mcpServers": {"a": SERVER}})
    inline = '{"mcpServers": {"b": {"command": "x"}}}'
    sources = command_line([str(tmp_path / "a.json"), inline])
    assert [(source.scope, source.kind) for source in sources] == [("cli", "servers")] * 2
    with pytest.raises(UsageError, match="no such file"):
        command_line([str(tmp_path / "absent.json")])
    with pytest.raises(UsageError, match="not a regular file"):
        command_line([str(tmp_path)])
