"""Servers written in another host's form: what is read there is what was read here, or it is told."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.host import DIALECTS, ServerConfig, Situation, Source
from dragoman.host.config.located import TextError
from dragoman.host.config.record import Origin
from dragoman.host.export.draft import Draft, draft
from dragoman.host.export.targets import export
from dragoman.host.export.templates import Ref

SITUATION = Situation(folder="/p", trusted=True, interactive=False, home="/h")
HOSTS = list(DIALECTS)
KIND = {"codex": "config", "gemini-cli": "settings", "opencode": "config", "zed": "settings"}
FILE = {"codex": "config.toml", "continue": "config.yaml"}

# What each host can say, by its own documentation: transports, references, members beyond the common.
SPEAKS = {
    "claude-code": {"stdio", "http", "sse", "ws"},
    "codex": {"stdio", "http"},
    "cursor": {"stdio", "http", "sse"},
    "vscode": {"stdio", "http", "sse"},
    "claude-desktop": {"stdio"},
    "gemini-cli": {"stdio", "http", "sse"},
    "opencode": {"stdio", "http", "sse"},
    "zed": {"stdio", "http"},
    "cline": {"stdio", "http", "sse"},
    "roo-code": {"stdio", "http", "sse"},
    "continue": {"stdio", "http", "sse"},
    "copilot-cli": {"stdio", "http", "sse"},
}
REPLACES = {
    "claude-code",
    "cursor",
    "vscode",
    "gemini-cli",
    "opencode",
    "roo-code",
    "continue",
    "copilot-cli",
}
DEFAULTS = {"claude-code", "gemini-cli", "copilot-cli"}
HAS = {
    "cwd": {"codex", "vscode", "gemini-cli", "opencode", "continue", "copilot-cli"},
    "timeout": {"claude-code", "codex", "gemini-cli", "opencode", "zed", "cline", "roo-code"},
    "startup": {"codex", "continue"},
    "only_tools": {"codex", "gemini-cli", "copilot-cli"},
    "without_tools": {"codex", "gemini-cli", "roo-code"},
    "env_file": {"cursor", "vscode"},
    "required": {"codex"},
}


def source(host, text, file=None):
    file = file or FILE.get(host, "mcp.json")
    kind = KIND.get(host, "servers")
    if host == "continue":
        kind = "servers" if file.endswith(".json") else "config"
    return Source(text, file, "project", kind)


def read(host, text, file=None):
    setup = DIALECTS[host].read([source(host, text, file)], SITUATION)
    assert setup.failure is None
    return {item.config.name: item.config for item in setup}


def drafts(host, text, file=None):
    return {name: draft(config) for name, config in read(host, text, file).items()}


def config(name="s", **members):
    members.setdefault("transport", "stdio" if "command" in members else "http")
    return ServerConfig(name=name, origin=Origin("a", 1, 1), **members)


def exported(servers, to, text="", file=None):
    return export(text, servers, to=to, file=file or FILE.get(to, "mcp.json"))


PLAIN = [
    config("program", command="run", args=("a b", '"q"', "ü", "-x=1"), env={"A": "1", "B.C": "two\n"}),
    config("bare", command="run"),
    config("remote", transport="http", url="https://h.example/mcp?a=1#f", headers={"X-A": "b"}),
    config("old", transport="sse", url="https://h.example/sse"),
    config("socket", transport="ws", url="wss://h.example/ws"),
]


@pytest.mark.parametrize("to", HOSTS)
def test_what_every_host_can_say_is_read_there_as_it_was_here(to):
    done = exported(PLAIN, to)
    found = drafts(to, done.text)
    assert {item.name for item in done.left} == {c.name for c in PLAIN if c.transport not in SPEAKS[to]}
    assert set(found) == {c.name for c in PLAIN if c.transport in SPEAKS[to]}
    for item in PLAIN:
        if item.name in found:
            here, there = draft(item), found[item.name]
            assert (here.command, here.args, here.env) == (there.command, there.args, there.env)
            assert (here.url, here.headers) == (there.url, there.headers)


RICH = config(
    "rich",
    command="run",
    args=("--to", "${TARGET}/x"),
    env={"KEY": "${KEY}", "OTHER": "pre-${KEY}"},
    cwd="/work",
    timeout=90.0,
    startup_timeout=7.0,
    only_tools=("a", "b"),
    without_tools=("c",),
    env_file="/p/.env",
    required=True,
)
SECURE = config(
    "secure",
    url="https://${HOST}/mcp",
    headers={"Authorization": "Bearer ${TOKEN}", "X-Key": "${KEY}"},
)


def able(server: Draft, host: str) -> Draft:
    """What a host can say of a server, by the tables above."""
    lost = {
        "cwd": (),
        "timeout": None,
        "startup": None,
        "only_tools": None,
        "without_tools": (),
        "env_file": (),
        "required": False,
    }
    kept = {name: value for name, value in lost.items() if host not in HAS[name]}
    if host in ("cline", "roo-code"):
        kept["timeout"] = server.timeout or 60.0  # what they take where nothing is said
    if host in ("vscode", "opencode"):
        kept["then_sse"] = server.transport != "stdio"
        kept["transport"] = "stdio" if server.transport == "stdio" else "http"
    elif host not in ("cursor", "gemini-cli", "continue"):
        kept["then_sse"] = False
    return replace(server, **kept)


@pytest.mark.parametrize("to", sorted(REPLACES))
@pytest.mark.parametrize("start", sorted(REPLACES))
def test_every_pair_of_hosts_that_replace_references(start, to):
    first = exported([RICH, SECURE], start)
    assert not first.left
    here = read(start, first.text)
    done = exported(list(here.values()), to)
    assert not done.left
    there = drafts(to, done.text)
    for name, item in here.items():
        assert there[name] == able(able(draft(item), start), to)


NATIVE = {
    "codex": """
[mcp_servers.a]
command = "run"
args = ["x"]
env_vars = ["KEY"]
env = { B = "2" }
tool_timeout_sec = 30
enabled_tools = ["t"]
[mcp_servers.b]
url = "https://h.example/mcp"
bearer_token_env_var = "TOKEN"
env_http_headers = { X-Key = "KEY" }
""",
    "zed": '{"context_servers": {"a": {"command": "run", "args": ["x"], "env": {"B": "2"}, "timeout": 30}}}',
    "cline": '{"mcpServers": {"a": {"command": "run", "env": {"B": "2"}}, "c": {"url": "https://h.example/sse"}}}',
    "claude-desktop": '{"mcpServers": {"a": {"command": "run", "args": ["${NOT_A_REFERENCE_HERE"]}}}',
}


@pytest.mark.parametrize("to", HOSTS)
@pytest.mark.parametrize("start", sorted(NATIVE))
def test_from_hosts_that_replace_none(start, to):
    here = read(start, NATIVE[start])
    done = exported(list(here.values()), to)
    there = drafts(to, done.text)
    left = {item.name for item in done.left}
    assert left | set(there) == set(here)
    for name, item in there.items():
        wanted = able(draft(here[name]), to)
        if to == "zed":  # a program has the variables of Zed's own environment
            wanted = replace(wanted, env={key: value for key, value in wanted.env.items() if key != "KEY"})
        assert item == wanted
    refers = {name for name, item in here.items() if item.env_names or item.bearer_env}
    speaks = {name for name, item in here.items() if item.transport in SPEAKS[to]}
    same_name = {"a"} if to == "zed" else set()
    assert left == {
        name
        for name in here
        if name not in speaks or (name in refers - same_name and to not in REPLACES | {"codex"})
    }


def test_variables_are_written_as_each_host_refers_to_them():
    def entry(to, file=None):
        return exported([config("s", command="run", env={"K": "${V:-d}"})], to, file=file)

    said = {to: entry(to).text for to in REPLACES}
    assert '"K": "${V:-d}"' in said["claude-code"]
    assert '"K": "${V:-d}"' in said["gemini-cli"]
    assert '"K": "${V:-d}"' in said["copilot-cli"]
    assert '"K": "${env:V}"' in said["cursor"]
    assert '"K": "${env:V}"' in said["vscode"]
    assert '"K": "${env:V}"' in said["roo-code"]
    assert '"K": "{env:V}"' in said["opencode"]
    assert 'K: "${{ secrets.V }}"' in said["continue"]
    assert '"K": "${V}"' in entry("continue", "mcp.json").text
    for to in REPLACES - DEFAULTS:
        (one,) = entry(to).written
        assert any("V has no default there" in note for note in one.notes)


@pytest.mark.parametrize("to", ["codex", "zed", "cline", "claude-desktop"])
def test_a_reference_is_never_written_where_none_is_replaced(to):
    done = exported([config("s", command="run", args=("${SECRET}",))], to)
    assert done.text == ""
    assert "SECRET" in done.left[0].why


def test_codex_has_variables_and_headers_by_their_names():
    servers = [
        config("a", command="run", env={"KEY": "${KEY}", "X": "1"}),
        config("b", url="https://h.example", headers={"Authorization": "Bearer ${T}", "A": "${V}", "B": "c"}),
    ]
    value = tomllib.loads(exported(servers, "codex").text)["mcp_servers"]
    assert value["a"] == {"command": "run", "env": {"X": "1"}, "env_vars": ["KEY"]}
    assert value["b"] == {
        "url": "https://h.example",
        "bearer_token_env_var": "T",
        "http_headers": {"B": "c"},
        "env_http_headers": {"A": "V"},
    }
    (left,) = exported([config("c", command="run", env={"A": "${B}"})], "codex").left
    assert "env.A" in left.why


def test_a_text_that_would_become_a_reference_there_is_not_written():
    codex = read("codex", '[mcp_servers.a]\ncommand = "run"\nargs = ["${HOME}", "a$b"]\n')["a"]
    for to in ("claude-code", "gemini-cli", "copilot-cli"):
        (left,) = exported([codex], to).left
        assert "would be read as a reference there" in left.why
    assert drafts("cursor", exported([codex], "cursor").text)["a"].args == (("${HOME}",), ("a$b",))


def test_places_of_an_editor():
    entry = '{"command": "${workspaceFolder}/run", "args": ["${userHome}", "${/}"]}'
    cursor = read("cursor", f'{{"mcpServers": {{"a": {entry}}}}}')["a"]
    claude = read("claude-code", exported([cursor], "claude-code").text)["a"]
    assert claude.command == "${CLAUDE_PROJECT_DIR:-.}/run"
    assert claude.args == ("${HOME}", "/")
    assert read("vscode", exported([cursor], "vscode").text)["a"].args == ("${userHome}", "${/}")
    codex = read("codex", exported([cursor], "codex").text)["a"]
    assert (codex.command, codex.args) == ("/p/run", ("/h", "/"))
    back = read("cursor", exported([claude], "cursor").text)["a"]
    assert back.command == "${workspaceFolder}/run"


def test_what_a_person_is_asked_for_in_vs_code_is_a_variable_elsewhere():
    vscode = read(
        "vscode", '{"servers": {"a": {"type": "stdio", "command": "r", "env": {"K": "${input:api-key}"}}}}'
    )["a"]
    done = exported([vscode], "claude-code")
    assert read("claude-code", done.text)["a"].env == {"K": "${API_KEY}"}
    assert any("the variable API_KEY there" in note for note in done.written[0].notes)
    assert draft(vscode).env["K"] == (Ref("asked", "input:api-key"),)
    (one,) = exported([vscode], "vscode").written
    assert one.notes == ["`env.K`: 'api-key' has to be among the `inputs` of the file"]


def test_what_is_not_quite_the_same_is_told():
    done = exported([RICH, config("h", url="https://h", then_sse=True)], "claude-code")
    notes = {one.name: " ".join(one.notes) for one in done.written}
    assert "the folder that it is started in cannot be said there" in notes["rich"]
    assert "its file of variables cannot be said there" in notes["rich"]
    assert "all of its tools are there, not only a, b" in notes["rich"]
    assert "c cannot be taken away there" in notes["rich"]
    assert "time that it may take to start (7 s) cannot be said there" in notes["rich"]
    assert "SSE) is not tried there" in notes["h"]
    token = config("t", url="https://h", headers={"A": "${NPM_TOKEN}"})
    (one,) = exported([token], "claude-code").written
    assert one.notes == ["NPM_TOKEN reads as empty there in what leaves the machine"]


def test_a_server_that_is_switched_off_stays_off_or_is_left_out():
    off = config("s", command="r", enabled=False)
    for to in ("codex", "opencode", "zed", "cline", "roo-code"):
        assert read(to, exported([off], to).text)["s"].enabled is False
    for to in ("claude-code", "cursor", "vscode", "gemini-cli", "continue", "copilot-cli"):
        assert exported([off], to).left[0].why == "it is switched off, which cannot be said there"


def test_names_that_a_host_does_not_take():
    (one,) = exported([config("plugin:p:my server", command="r")], "codex").written
    assert one.name == "my_server"
    done = exported([config("a b", command="r"), config("a.b", command="x")], "codex")
    assert [one.name for one in done.written] == ["a_b"]
    assert done.left[0].why == "another server has that name there"
    assert "reserved" in exported([config("workspace", command="r")], "claude-code").left[0].why


def test_half_a_character_is_not_written():
    one = read("cursor", '{"mcpServers": {"a": {"command": "r", "args": ["\\ud800"]}}}')["a"]
    for to in HOSTS:
        assert "surrogate" in exported([one], to).left[0].why


# Files that are there already -------------------------------------------------------------------------------

SERVER = config("new", command="run", args=("x",))


def test_codex_keeps_comments_order_and_what_it_does_not_know():
    text = """\
# mine
model = "o"   # the model

[mcp_servers.old]  # the old one
command = "old" # why
env = { A = "1" }
note = "kept"

[tui]
theme = "dark"
"""
    done = exported([SERVER, config("old", command="newer")], "codex", text)
    assert done.text == text.replace('command = "old"', 'command = "newer"').replace(
        'env = { A = "1" }\n', ""
    ) + ('\n[mcp_servers.new]\ncommand = "run"\nargs = ["x"]\n')
    assert done.changed == ("new", "old")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers.old.command = "x"\n',
        'mcp_servers = { old = { command = "x" } }\n',
        '[mcp_servers]\nold = { command = "x" }\n',
        '[mcp_servers.a]\ncommand = "x"\n[other]\n[mcp_servers.old]\ncommand = "x"',
        '[mcp_servers."old"]\r\ncommand = "x"\r\n',
    ],
)
def test_codex_however_its_tables_are_written(text):
    done = exported([SERVER, config("old", command="y")], "codex", text)
    value = tomllib.loads(done.text)["mcp_servers"]
    assert value["old"] == {"command": "y"}
    assert value["new"] == {"command": "run", "args": ["x"]}


def test_continue_keeps_other_items_and_comments():
    text = """\
name: Mine
version: 1.0.0
schema: v1
# models
models:
  - name: m
mcpServers:
  # the first
  - name: one
    command: first   # by hand

  # the second
  - name: two
    command: second
    args: ["a"]
rules: []
"""
    done = exported([SERVER, config("two", command="other")], "continue", text)
    assert done.text == text.replace(
        '    command: second\n    args: ["a"]\n',
        '    command: "other"\n  - name: "new"\n    command: "run"\n    args:\n      - "x"\n',
    ).replace("- name: two", '- name: "two"')


def test_continue_without_a_list_and_without_a_file():
    for text in ("name: a\n", "name: a\nmcpServers: []\n", "name: a\nmcpServers:\n", ""):
        assert set(read("continue", exported([SERVER], "continue", text).text)) == {"new"}
    with pytest.raises(UsageError, match="line 1: `mcpServers` stands on one line"):
        exported([SERVER], "continue", "mcpServers: [{name: a, command: b}]\n")


def test_members_of_an_entry_that_are_not_the_exports_stay():
    entry = '{\n      "command": "old", // c\n      "autoApprove": ["t"]\n    }'
    text = f'{{\n  "mcpServers": {{\n    "new": {entry}\n  }}\n}}\n'
    done = exported([SERVER], "cursor", text)
    assert done.text == text.replace('"old"', '"run"').replace(
        '["t"]', '["t"],\n      "type": "stdio",\n      "args": ["x"]'
    )


def test_an_entry_that_comes_to_the_same_is_left_as_it_is():
    text = '{"mcpServers": {"new": {"type": "stdio", "args": ["x"], "command": "run"}}}'
    done = exported([SERVER], "cursor", text)
    assert (done.text, done.changed) == (text, ())


def test_opencode_in_its_second_form():
    text = '{"mcp": {"servers": {"a": {"type": "local", "command": ["a"]}}}}'
    done = exported([SERVER, config("off", command="r", enabled=False)], "opencode", text)
    value = json.loads(done.text)["mcp"]["servers"]
    assert value["new"] == {"type": "local", "command": ["run", "x"]}
    assert value["off"] == {"type": "local", "command": ["r"], "disabled": True}


def test_a_file_that_cannot_be_read_is_not_written():
    with pytest.raises(TextError):
        exported([SERVER], "cursor", "{")
    with pytest.raises(TextError):
        exported([SERVER], "codex", "[a")
    with pytest.raises(UsageError, match="not YAML"):
        exported([SERVER], "continue", "a: &b c\n")
    with pytest.raises(UsageError, match=r"Claude Code does not take the file: .*JSON does not have"):
        exported([SERVER], "claude-code", '{\n// strict\n"mcpServers": {}}')


# Whatever stands in an entry --------------------------------------------------------------------------------

texts = st.text(max_size=12) | st.sampled_from(
    ["${A}", "$A", "{env:A}", "${env:A}", "${{ secrets.A }}", "'\"\\"]
)
words = st.text(min_size=1, max_size=12).filter(str.strip) | st.sampled_from(
    ["a b", "#x", "- y", "k: v", "~"]
)


@settings(deadline=None)
@given(
    name=words,
    command=words,
    args=st.lists(texts, max_size=3),
    env=st.dictionaries(words, texts, max_size=3),
    start=st.sampled_from(["claude-code", "cursor", "opencode", "codex"]),
)
@pytest.mark.parametrize("to", HOSTS)
def test_any_text_is_read_there_as_it_was_here_or_left_out(to, name, command, args, env, start):
    one = config(name, command=command, args=tuple(args), env=env, host=start, syntax=start)
    done = exported([one], to)
    if done.left:
        assert done.text == ""
        return
    (written,) = done.written
    there = drafts(to, done.text)[written.name]
    here = draft(one)
    assert (there.command, there.args) == (here.command, here.args)
    left = {key for key, value in here.env.items() if to == "zed" and value == (Ref("env", key),)}
    assert there.env == {key: value for key, value in here.env.items() if key not in left}
