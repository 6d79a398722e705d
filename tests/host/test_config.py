"""`.mcp.json` and `.claude/settings.json` as Claude Code reads them: one bad entry hurts itself alone."""

from __future__ import annotations

import json

import pytest

from dragoman.host.config.claude import read_rules, read_servers
from dragoman.host.config.expand import expand, references
from dragoman.host.config.record import Origin, ServerConfig


def entry(value, name="s"):
    """The one server that comes of one entry."""
    file = read_servers(json.dumps({"mcpServers": {name: value}}), ".mcp.json")
    assert file.problems == ()
    (server,) = file.servers
    return server


def refused(value, name="s"):
    """Why an entry is left out; its neighbour is always there."""
    text = json.dumps({"mcpServers": {name: value, "ok": {"command": "true"}}})
    file = read_servers(text, ".mcp.json")
    assert [server.name for server in file.servers] == ["ok"]
    (problem,) = file.problems
    assert problem.server == name
    return problem.text


# --- entries ------------------------------------------------------------------------------------------


def test_command_is_stdio():
    server = entry({"command": "npx", "args": ["-y", "pkg"], "env": {"A": "1"}})
    assert (server.transport, server.command, server.args) == ("stdio", "npx", ("-y", "pkg"))
    assert server.env == {"A": "1"}
    assert server.url is None


@pytest.mark.parametrize(
    ("kind", "transport"), [("http", "http"), ("streamable-http", "http"), ("sse", "sse"), ("ws", "ws")]
)
def test_url_needs_a_type_and_the_type_is_the_transport(kind, transport):
    server = entry({"type": kind, "url": "https://x.example/mcp", "headers": {"A": "b"}})
    assert (server.transport, server.url, server.headers) == (transport, "https://x.example/mcp", {"A": "b"})


def test_sse_is_said_to_be_deprecated():
    assert any(
        "deprecated" in text for text in entry({"type": "sse", "url": "https://x.example/sse"}).warnings
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"url": "https://x.example/mcp"}, '`url` without `type`: add "type": "http"'),
        ({}, "expected a member `command`"),
        ({"type": "stdio", "url": "https://x.example"}, "expected a member `command`"),
        ({"type": "http"}, "expected a member `url`"),
        ({"type": "http", "url": ""}, "`url` is empty"),
        ({"command": " "}, "`command` is empty"),
        ({"command": 7}, "`command`: expected a string; received a number"),
        ({"command": "x", "args": "-y"}, "`args`: expected a list of strings; received a string"),
        ({"command": "x", "args": ["a", 1]}, "`args`: expected a string; received a number"),
        ({"command": "x", "env": ["A=1"]}, "`env`: expected an object of strings; received a list"),
        ({"command": "x", "env": {"A": 1}}, "`env.A`: expected a string; received a number"),
        ({"type": "carrier-pigeon", "url": "x"}, "`type`: expected one of stdio, http"),
        ({"type": None, "command": "x"}, "`type`: expected one of"),
        (
            {"command": "x", "timeout": "30"},
            "`timeout`: expected milliseconds as a number; received a string",
        ),
        ("npx", "expected an object; received a string"),
        (None, "expected an object; received null"),
    ],
)
def test_a_bad_entry_is_left_out_alone_and_says_what_was_expected(value, says):
    assert says in refused(value)


@pytest.mark.parametrize("name", ["workspace", "claude-in-chrome", "computer-use"])
def test_reserved_names_are_skipped(name):
    assert "the name is reserved" in refused({"command": "true"}, name)


def test_a_secret_that_lost_its_quotes_is_not_in_the_message():
    assert "90210" not in refused({"command": "x", "env": {"API_KEY": 90210}})


def test_an_entry_says_where_it_stands():
    text = '{\n  "mcpServers": {\n    "a": {"command": "x"},\n\n    "b": {\n      "url": "https://x"\n    }}}'
    file = read_servers(text, ".mcp.json")
    assert file.servers[0].origin == Origin(".mcp.json", 3, 5)
    assert str(file.servers[0].origin) == ".mcp.json:3"
    assert file.problems[0].origin.exact == ".mcp.json:6:14"


def test_timeout_is_milliseconds_and_too_small_ones_are_ignored():
    assert entry({"command": "x", "timeout": 30_000}).timeout == 30.0
    server = entry({"command": "x", "timeout": 30})
    assert server.timeout is None
    assert any("milliseconds" in text for text in server.warnings)


def test_blanks_are_kept_and_said():
    server = entry({"command": "x ", "args": ["\ty"]})
    assert (server.command, server.args) == ("x ", ("\ty",))
    assert len(server.warnings) == 2


def test_what_only_looks_like_a_reference_is_said():
    (warning,) = entry({"command": "x", "args": ["${HOME%/}"]}).warnings
    assert "${HOME%/}" in warning


def test_repr_shows_no_value_that_may_be_secret():
    server = entry({"type": "http", "url": "https://x.example/mcp?key=hush", "headers": {"A": "hush"}})
    assert "hush" not in repr(server)


# --- files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ('{"mcpServers": {\n"a": }}', "f:2:6", "not JSON: expected a value; received '}'"),
        ("[]", "f:1:1", "expected an object with `mcpServers`; received a list"),
        ("{}", "f:1:1", "expected a member `mcpServers`"),
        ('{"servers": {"a": {"command": "true"}}}', "f:1:13", "`servers` is another program's key"),
        ('{"mcpServers": []}', "f:1:16", "`mcpServers`: expected an object; received a list"),
    ],
)
def test_a_file_that_is_none_gives_no_server_and_one_problem(text, place, says):
    file = read_servers(text, "f")
    assert file.servers == ()
    (problem,) = file.problems
    assert problem.origin.exact == place
    assert says in problem.text


def test_a_name_that_stands_twice_is_said():
    file = read_servers('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "f")
    assert [server.command for server in file.servers] == ["y"]
    assert "stands twice" in file.problems[0].text


# --- rules --------------------------------------------------------------------------------------------


def test_rules_come_with_effect_place_and_scope():
    text = '{"permissions": {\n"allow": ["mcp__a", "Bash(ls)"],\n"deny": [\n  "mcp__b__*"\n]}}'
    file = read_rules(text, "settings.json", scope="local")
    assert [(rule.effect, rule.text, str(rule.origin)) for rule in file.rules] == [
        ("deny", "mcp__b__*", "settings.json:4"),
        ("allow", "mcp__a", "settings.json:2"),
        ("allow", "Bash(ls)", "settings.json:2"),
    ]
    assert {rule.scope for rule in file.rules} == {"local"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object; received a list"),
        ('{"permissions": []}', "`permissions`: expected an object; received a list"),
        ('{"permissions": {"allow": "mcp__a"}}', "`permissions.allow`: expected a list; received a string"),
        ('{"permissions": {"deny": [1]}}', "`permissions.deny`: expected a string; received a number"),
    ],
)
def test_settings_that_are_none_say_so(text, says):
    file = read_rules(text, "settings.json")
    assert file.rules == ()
    assert says in file.problems[0].text


def test_settings_without_permissions_are_fine():
    assert read_rules('{"model": "x"}', "settings.json") == read_rules("{}", "settings.json")


def test_a_bad_rule_leaves_the_others():
    file = read_rules('{"permissions": {"deny": [null, "mcp__a"], "allow": 3, "ask": ["mcp__b"]}}', "f")
    assert [rule.text for rule in file.rules] == ["mcp__a", "mcp__b"]
    assert len(file.problems) == 2


# --- references ---------------------------------------------------------------------------------------


def local(**members) -> ServerConfig:
    return entry({"command": "x", **members})


def remote(**members) -> ServerConfig:
    return entry({"type": "http", "url": "https://x.example/mcp", **members})


@pytest.mark.parametrize(
    ("env", "text", "expected"),
    [
        ({"A": "1"}, "${A}", "1"),
        ({"A": "1"}, "pre-${A}-${A}", "pre-1-1"),
        ({}, "${A:-d}", "d"),
        ({"A": "1"}, "${A:-d}", "1"),
        ({"A": ""}, "${A:-d}", ""),
        ({}, "${A:-}", ""),
        ({"A": "${B}", "B": "2"}, "${A}", "${B}"),
        ({"A": "1"}, "$A ${A%x} $(A)", "$A ${A%x} $(A)"),
    ],
)
def test_a_reference_is_replaced_once(env, text, expected):
    full, missing = expand(local(args=[text]), env)
    assert full.args == (expected,)
    assert missing == ()


def test_references_are_replaced_in_every_text_of_an_entry():
    full, _ = expand(local(command="${A}", args=["${A}"], env={"K": "${A}"}), {"A": "1"})
    assert (full.command, full.args, full.env) == ("1", ("1",), {"K": "1"})
    full, _ = expand(remote(url="https://${A}/mcp", headers={"K": "Bearer ${A}"}), {"A": "1"})
    assert (full.url, full.headers) == ("https://1/mcp", {"K": "Bearer 1"})


def test_a_variable_without_a_value_is_named_once():
    _, missing = expand(local(args=["${MISSING}", "${MISSING}", "${OTHER}"]), {})
    assert missing == ("MISSING", "OTHER")


@pytest.mark.parametrize("text", ["${ANTHROPIC_AUTH_TOKEN}", "${NPM_TOKEN:-fallback}", "${HTTPS_PROXY}"])
def test_the_hosts_own_credentials_read_as_empty_toward_another_machine(text):
    env = {"ANTHROPIC_AUTH_TOKEN": "secret", "HTTPS_PROXY": "secret"}
    full, missing = expand(remote(headers={"Authorization": f"Bearer {text}"}), env)
    assert full.headers == {"Authorization": "Bearer "}
    assert missing == ()


def test_a_providers_address_is_no_credential():
    full, _ = expand(remote(url="${ANTHROPIC_BASE_URL}/mcp"), {"ANTHROPIC_BASE_URL": "https://gw.example"})
    assert full.url == "https://gw.example/mcp"


def test_a_program_of_this_machine_gets_what_its_entry_names():
    full, _ = expand(local(env={"T": "${NPM_TOKEN}"}), {"NPM_TOKEN": "t"})
    assert full.env == {"T": "t"}


def test_records_keep_references_as_they_were_written():
    server = local(args=["${A}", "${B:-x}"], env={"K": "${A}"})
    assert server.args == ("${A}", "${B:-x}")
    assert list(references(server)) == ["A", "B", "A"]


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ('{"permissions": {"deny": ["mcp__a"], "deny": []}}', "deny", "f:1:38"),
        ('{"permissions": {"deny": ["mcp__a"]}, "permissions": {}}', "permissions", "f:1:39"),
    ],
)
def test_rules_that_a_second_member_of_the_name_takes_away_are_not_lost_in_silence(text, name, place):
    (problem,) = read_rules(text, "f").problems
    assert problem.text == f"`{name}` stands twice; the last one counts"
    assert problem.origin.exact == place


def test_a_member_of_an_entry_that_stands_twice_is_said():
    file = read_servers('{"mcpServers": {"a": {"command": "x", "command": "y"}}}', "f")
    assert [server.command for server in file.servers] == ["y"]
    (problem,) = file.problems
    assert problem.text == "server 'a': `command` stands twice; the last one counts"
    assert problem.server == "a"
    (problem,) = read_servers('{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {}}', "f").problems
    assert problem.text == "`mcpServers` stands twice; the last one counts"
