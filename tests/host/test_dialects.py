"""What each host's files come to: places, merging, bad entries, trust. The cases of `data` have the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.host.config.expand import expand
from dragoman.host.config.record import Origin, Situation, Source
from dragoman.host.dialects import DIALECTS, dialect

HERE = Situation(folder="/p", home="/home/u", trusted=True)


def read(host, *sources, situation=HERE):
    return DIALECTS[host].read(list(sources), situation)


def file(text, name="file", *, scope="user", kind="servers", **more):
    return Source(text if isinstance(text, str) else json.dumps(text), name, scope, kind, **more)


def states(setup):
    return {(item.config.name, item.config.scope): item.state for item in setup}


# --- places -----------------------------------------------------------------------------------------------

JSON_FORMS = [
    ("claude-code", "mcpServers", "servers", {"command": "x"}),
    ("cursor", "mcpServers", "servers", {"command": "x"}),
    ("vscode", "servers", "servers", {"command": "x"}),
    ("claude-desktop", "mcpServers", "servers", {"command": "x"}),
    ("gemini-cli", "mcpServers", "settings", {"command": "x"}),
    ("opencode", "mcp", "config", {"type": "local", "command": ["x"]}),
    ("zed", "context_servers", "settings", {"command": "x"}),
    ("cline", "mcpServers", "servers", {"command": "x"}),
    ("roo-code", "mcpServers", "servers", {"command": "x"}),
    ("continue", "mcpServers", "servers", {"command": "x"}),
    ("copilot-cli", "mcpServers", "servers", {"command": "x"}),
]


@pytest.mark.parametrize(("host", "key", "kind", "entry"), JSON_FORMS)
def test_an_entry_says_where_it_stands(host, key, kind, entry):
    text = f'{{\n  "{key}": {{\n    "s": {json.dumps(entry)}\n  }}\n}}'
    setup = read(host, file(text, "f.json", kind=kind))
    assert setup.problems == ()
    (item,) = setup
    assert item.config.origin == Origin("f.json", 3, 5)
    assert (item.state, item.config.command, item.config.host) == ("active", "x", host)
    assert item.config.raw == entry


@pytest.mark.parametrize(("host", "key", "kind", "entry"), JSON_FORMS)
def test_a_bad_entry_is_told_of_with_its_place_and_hurts_what_that_host_says_it_hurts(host, key, kind, entry):
    text = f'{{\n"{key}": {{\n"ok": {json.dumps(entry)},\n"bad": {{"args": 7}}\n}}\n}}'
    setup = read(host, file(text, "f.json", kind=kind))
    assert list(setup.active) == ([] if host == "cline" else ["ok"])
    problem = next(item for item in setup.problems if item.server == "bad")
    assert problem.origin.file == "f.json"
    assert problem.origin.line == 4
    assert (setup.failure is not None) is (host == "cline")


@pytest.mark.parametrize(("host", "key", "kind", "entry"), JSON_FORMS)
def test_a_secret_that_lost_its_quotes_is_in_no_message(host, key, kind, entry):
    del entry
    env = "environment" if host == "opencode" else "headers"
    bad = {"command": "x", "type": "stdio", "env": {"K": [4711]}, "headers": {"K": [4711]}}
    if host == "opencode":
        bad = {"type": "local", "command": ["x"], env: {"K": 4711}}
    setup = read(host, file({key: {"s": bad}}, "f.json", kind=kind))
    assert setup.problems
    assert not any("4711" in str(problem) for problem in setup.problems)


@pytest.mark.parametrize("host", [host for host, *_ in JSON_FORMS])
@pytest.mark.parametrize("text", ["", "[", "[]", "7", '{"a": }', '"x"', "{" * 500, "\x00"])
def test_a_file_that_is_none_is_one_problem_and_no_end(host, text):
    kind = next(kind for name, _, kind, _ in JSON_FORMS if name == host)
    setup = read(host, file(text, "f.json", kind=kind))
    assert setup.active == {}
    assert setup.problems
    assert all(problem.origin.file == "f.json" for problem in setup.problems)


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                """
                command args env url type headers cwd timeout transport tools oauth mcpServers servers mcp s
                permissions allow deny ask rule policies tool permission agent tool_permissions default
                """.split()
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(WILD)
def test_whatever_stands_in_a_file_no_reader_raises(value):
    for host, key, kind, _ in JSON_FORMS:
        kinds = {kind, "settings", "permissions", "cli", "ide", "state", "exclusive", "root", "devcontainer"}
        for other in sorted(kinds):
            read(
                host,
                file(value, kind=other),
                file({key: value}, kind=other),
                file({key: {"s": value}}, kind=other),
            )


@given(st.text(alphabet="[]{}=\"'.mcp_servers\nruledecision:- #,0", max_size=60))
def test_whatever_stands_in_toml_or_yaml_no_reader_raises(text):
    for kind in ("config", "requirements", "plugin"):
        read("codex", file(text, kind=kind))
    read("gemini-cli", file(text, kind="policy"))
    read("continue", file(text, "config.yaml", kind="config"))


@given(WILD)
def test_whatever_stands_in_an_entry_of_codex_no_reader_raises(value):
    def written(item):
        if isinstance(item, dict):
            return "{" + ", ".join(f'"{name}" = {written(inner)}' for name, inner in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(written(inner) for inner in item) + "]"
        return "0" if item is None else json.dumps(item) if not isinstance(item, float) else repr(item)

    read("codex", file(f"mcp_servers.s = {written(value)}", kind="config"))
    read("codex", file(f"mcp_servers = {written(value)}", kind="requirements"))


def test_a_host_that_is_not_known_is_said():
    with pytest.raises(UsageError, match="expected one of claude-code, codex"):
        dialect("emacs")


# --- Claude Code ------------------------------------------------------------------------------------------


def claude(*, project=None, settings=None, state=None, situation=HERE, **files):
    sources = [file({"mcpServers": project}, ".mcp.json", scope="project")] if project else []
    if state:
        sources.append(file(state, "~/.claude.json", kind="state"))
    for scope, content in (settings or {}).items():
        sources.append(file(content, f"{scope} settings", scope=scope, kind="settings"))
    sources += files.get("more", [])
    return read("claude-code", *sources, situation=situation)


def test_an_entry_that_loses_says_to_which():
    setup = claude(
        project={"gh": {"command": "theirs"}},
        state={"mcpServers": {"gh": {"command": "mine"}}},
        settings={"user": {"enabledMcpjsonServers": ["gh"]}},
    )
    assert states(setup) == {("gh", "project"): "active", ("gh", "user"): "shadowed"}
    lost = next(item for item in setup if item.state == "shadowed")
    assert lost.by == setup.active["gh"].origin
    assert ".mcp.json" in lost.why


def test_an_entry_that_nobody_approved_takes_no_name_away():
    setup = claude(project={"gh": {"command": "theirs"}}, state={"mcpServers": {"gh": {"command": "mine"}}})
    assert setup.active["gh"].command == "mine"
    assert states(setup)["gh", "project"] == "pending"


def test_trust_is_read_from_the_persons_own_file():
    untold = Situation(folder="/p", home="/home/u")
    settings = {"project": {"enabledMcpjsonServers": ["s"]}}
    for accepted, state in ((True, "active"), (False, "pending"), ("yes", "pending")):
        projects = {"/p": {"hasTrustDialogAccepted": accepted}, "/": {"hasTrustDialogAccepted": True}}
        setup = claude(
            project={"s": {"command": "x"}}, settings=settings, state={"projects": projects}, situation=untold
        )
        assert states(setup) == {("s", "project"): state}


def test_a_projects_file_can_neither_approve_itself_nor_switch_questions_off():
    hostile = {
        "enableAllProjectMcpServers": True,
        "enabledMcpjsonServers": ["s"],
        "skipDangerousModePermissionPrompt": True,
        "permissions": {"defaultMode": "bypassPermissions", "allow": ["mcp__s"]},
        "allowedMcpServers": [{"serverName": "s"}],
    }
    setup = claude(
        project={"s": {"command": "x", "env": {"K": "${SECRET}"}}},
        settings={"project": hostile, "local": hostile},
        situation=Situation(folder="/p", trusted=False, env={"SECRET": "4711"}),
    )
    assert setup.active == {}
    assert "defaultMode" not in setup.settings
    assert "4711" not in repr(setup)


def test_a_project_cannot_switch_questions_off_in_a_trusted_folder_either():
    setup = claude(settings={"project": {"permissions": {"defaultMode": "bypassPermissions"}}})
    assert "defaultMode" not in setup.settings
    setup = claude(settings={"project": {"permissions": {"defaultMode": "dontAsk"}}})
    assert setup.settings["defaultMode"] == "dontAsk"


def test_an_organisations_broken_file_turns_everything_off():
    broken = file("{", "managed-mcp.json", scope="managed", kind="exclusive")
    setup = claude(state={"mcpServers": {"u": {"command": "x"}}}, more=[broken])
    assert setup.active == {}
    assert setup.problems


# --- Codex ------------------------------------------------------------------------------------------------


def codex(*layers, situation=HERE):
    sources = [file(text, f"{scope}.toml", scope=scope, kind="config") for scope, text in layers]
    return read("codex", *sources, situation=situation)


def test_fields_of_one_server_come_from_several_files():
    setup = codex(
        ("project", '[mcp_servers.d]\nenv = {A = "project"}'),
        ("user", '[mcp_servers.d]\ncommand = "x"\nenv = {A = "user", B = "user"}\nargs = ["1"]'),
    )
    config = setup.active["d"]
    assert (config.command, config.args, config.env) == ("x", ("1",), {"A": "project", "B": "user"})
    assert setup.servers[0].why == "fields of user.toml, project.toml"


def test_an_error_of_any_layer_costs_the_whole_configuration_and_names_its_place():
    setup = codex(("user", '[mcp_servers.ok]\ncommand = "x"\n[mcp_servers.bad]\nurl = "u"\nargs = ["y"]'))
    assert setup.servers == ()
    assert str(setup.failure.origin) == "user.toml:5"
    assert "mcp_servers.bad: `args` is for servers with `command`" in setup.failure.text


def test_a_project_without_trust_is_not_read_and_its_servers_are_shown_as_waiting():
    layers = (("user", 'model = "m"'), ("project", '[mcp_servers.p]\ncommand = "y"'))
    setup = codex(*layers, situation=Situation(folder="/p"))
    assert states(setup) == {("p", "project"): "untrusted"}
    trusted = ("user", '[projects."/p"]\ntrust_level = "trusted"')
    assert "p" in codex(trusted, layers[1], situation=Situation(folder="/p")).active


def test_a_project_cannot_trust_itself():
    text = '[projects."/p"]\ntrust_level = "trusted"\n[mcp_servers.p]\ncommand = "y"'
    assert codex(("project", text), situation=Situation(folder="/p")).active == {}


def test_secrets_are_named_and_read_at_the_start():
    setup = codex(
        (
            "user",
            """
            [mcp_servers.h]
            url = "https://x"
            bearer_token_env_var = "T"
            env_http_headers = {X = "HX", Y = "HY"}
            """,
        )
    )
    config = setup.active["h"]
    full, missing = expand(config, {"T": "token", "HX": "value", "HY": "  "})
    assert missing == ()
    assert full.headers == {"Authorization": "Bearer token", "X": "value"}
    assert expand(config, {})[1] == ("T",)
    assert "token" not in repr(config)


def matchers(*args):
    return f'[mcp_server_matchers.d]\ncommand = "x"\nargs = [{", ".join(args)}]'


@pytest.mark.parametrize(
    ("requirements", "state"),
    [
        ('[mcp_servers.d.identity]\ncommand = "x"', "active"),
        ('[mcp_servers.d.identity]\ncommand = "y"', "blocked"),
        ('[mcp_servers.d.identity]\nurl = "x"', "blocked"),
        ("[mcp_servers.d]", "blocked"),
        ('[mcp_servers.e.identity]\ncommand = "x"', "blocked"),
        ("[mcp_servers]", "blocked"),
        ("other = 1", "active"),
        ("broken =", "blocked"),
        (matchers('{match = "exact", value = "-y"}', '{match = "prefix", value = "p@"}'), "active"),
        (matchers('{match = "exact", value = "-y"}'), "blocked"),
        (
            matchers('{match = "regex", expression = "-."}', '{match = "regex", expression = "p@1|q"}'),
            "active",
        ),
        (matchers('{match = "regex", expression = "-"}', '{match = "regex", expression = "p@1"}'), "blocked"),
        (matchers('{match = "regex", expression = "-."}', '{match = "regex", expression = "["}'), "blocked"),
    ],
)
def test_requirements(requirements, state):
    config = file('[mcp_servers.d]\ncommand = "x"\nargs = ["-y", "p@1"]', "c.toml", kind="config")
    rules = file(requirements, "requirements.toml", scope="managed", kind="requirements")
    (item,) = read("codex", config, rules)
    assert item.state == state
    if state == "blocked":
        assert item.by.file == "requirements.toml"


# --- others -----------------------------------------------------------------------------------------------


def test_cursors_project_file_stands_over_the_persons_with_whole_entries():
    mine = file({"mcpServers": {"s": {"command": "mine", "env": {"A": "1"}}}}, "~/.cursor/mcp.json")
    theirs = file({"mcpServers": {"s": {"command": "theirs"}}}, ".cursor/mcp.json", scope="project")
    for order in ([mine, theirs], [theirs, mine]):
        setup = read("cursor", *order)
        assert (setup.active["s"].command, setup.active["s"].env) == ("theirs", {})
    waiting = read("cursor", mine, theirs, situation=Situation(folder="/p", trusted=False))
    assert waiting.active["s"].command == "mine"


def test_opencodes_first_form_is_put_together_field_by_field():
    mine = file({"mcp": {"s": {"type": "local", "command": ["x"], "environment": {"A": "1"}}}}, kind="config")
    theirs = file(
        {"mcp": {"s": {"enabled": False, "environment": {"B": "2"}}}}, scope="project", kind="config"
    )
    (item,) = read("opencode", theirs, mine)
    assert item.config.env == {"A": "1", "B": "2"}
    assert item.state == "disabled"


def test_opencodes_second_form_takes_a_stronger_entry_whole():
    mine = file({"mcp": {"servers": {"s": {"type": "local", "command": ["x"]}}}}, kind="config")
    theirs = {"mcp": {"servers": {"s": {"type": "remote", "url": "https://x"}}}}
    setup = read("opencode", mine, file(theirs, scope="project", kind="config"))
    assert setup.active["s"].url == "https://x"
    assert setup.active["s"].then_sse is False


def test_geminis_gates_in_their_order():
    entries = {name: {"command": "x"} for name in ("A", "b", "c")}
    settings = {"mcpServers": entries, "mcp": {"allowed": ["a", "B"], "excluded": ["b"]}}
    setup = read("gemini-cli", file(settings, kind="settings"))
    assert {name: state for (name, _), state in states(setup).items()} == {
        "A": "active",
        "b": "blocked",
        "c": "blocked",
    }


def test_a_geminis_folder_without_trust_starts_no_program():
    person = {
        "security": {"folderTrust": {"enabled": True}},
        "mcpServers": {"u": {"command": "x"}, "r": {"url": "https://x"}},
    }
    project = {"mcpServers": {"p": {"url": "https://p"}}, "security": {"folderTrust": {"enabled": False}}}
    setup = read(
        "gemini-cli",
        file(person, kind="settings"),
        file(project, scope="project", kind="settings"),
        situation=Situation(folder="/p", trusted=False),
    )
    assert list(setup.active) == ["r"]


def test_vscodes_files_are_servers_of_their_own():
    profile = file({"servers": {"s": {"command": "a"}}}, "profile")
    workspace = file({"servers": {"s": {"command": "b"}}}, ".vscode/mcp.json", scope="project")
    assert [item.state for item in read("vscode", profile, workspace)] == ["active", "active"]


def test_vscode_asks_for_inputs_and_never_sends_what_it_did_not_get():
    setup = read("vscode", file({"servers": {"s": {"command": "x", "env": {"K": "${input:key}"}}}}))
    full, missing = expand(setup.active["s"], {})
    assert missing == ("input:key",)
    assert full.env == {"K": "${input:key}"}


YAML = """\
name: mine
mcpServers:
  - name: first
    command: npx
    args: ["-y", "p"]
    env:
      K: ${{ secrets.K }}
  # a comment
  - name: second
    type: sse
    url: https://x.example/sse
  - args: []
models: []
"""


def test_continues_yaml():
    setup = read("continue", file(YAML, "config.yaml", kind="config"))
    first, second = setup.active.values()
    assert (first.command, first.args, first.origin) == ("npx", ("-y", "p"), Origin("config.yaml", 3, 3))
    assert (second.transport, second.origin.line) == ("sse", 9)
    (problem,) = setup.problems
    assert problem.origin.line == 12
    assert expand(first, {"K": "v"})[0].env == {"K": "v"}
    assert expand(first, {})[1] == ("K",)


def test_copilots_list_of_tools():
    entries = {
        "a": {"command": "x", "tools": ["*"]},
        "b": {"command": "x", "tools": []},
        "c": {"command": "x", "tools": ["t"]},
    }
    active = read("copilot-cli", file({"mcpServers": entries})).active
    assert [[config.lists("t"), config.lists("u")] for config in active.values()] == [
        [True, True],
        [False, False],
        [True, False],
    ]


def test_claude_desktop_expands_nothing():
    config = read(
        "claude-desktop", file({"mcpServers": {"s": {"command": "x", "args": ["${HOME}"]}}})
    ).active["s"]
    assert expand(config, {"HOME": "/h"})[0].args == ("${HOME}",)
