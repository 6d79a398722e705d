"""Names for every host: what its model sees, within its limit, each of one tool, and the way back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.dialects import DIALECTS
from dragoman.host.naming import (
    API_NAMES,
    CONVENTIONS,
    HostNames,
    connector,
    name_of,
    prompt_command,
    registered,
    vscode_prefixes,
)

ANY = st.text(max_size=90)
NEAR = st.text(alphabet="ab_-. /é데", max_size=6)
PAIRS = st.lists(st.tuples(ANY | NEAR, ANY | NEAR), max_size=8, unique=True)
LIMITS = {host: CONVENTIONS[host].limit if host in CONVENTIONS else 64 for host in DIALECTS}


@pytest.mark.parametrize("host", DIALECTS)
@given(PAIRS)
def test_every_tool_has_a_name_of_its_own_and_the_way_back(host, pairs):
    names = HostNames(host, pairs)
    assert len(names) + len(names.left_out) == len(pairs)
    for name in names:
        assert names.find(name.model) == name
        assert names.of(name.server, name.tool) == name
        assert (name.server, name.tool) in pairs
        assert len(name.model) <= LIMITS[host]


@pytest.mark.parametrize("host", DIALECTS)
@given(PAIRS, st.randoms())
def test_names_are_the_same_in_any_order(host, pairs, random):
    before = {name.model: (name.server, name.tool) for name in HostNames(host, pairs)}
    random.shuffle(pairs)
    assert {name.model: (name.server, name.tool) for name in HostNames(host, pairs)} == before


@pytest.mark.parametrize("host", DIALECTS)
@given(PAIRS, PAIRS, PAIRS)
def test_a_name_that_was_given_out_means_the_same_tool_for_ever(host, first, then, last):
    seen = {}
    names = None
    for pairs in (first, then, last):
        names = HostNames(host, pairs, keep=names)
        assert len(names) + len(names.left_out) == len(pairs)
        for name in names:
            pair = (name.server, name.tool)
            assert seen.setdefault(name.model, pair) == pair
            assert names.find(name.model) == name
            assert len(name.model) <= LIMITS[host]
    again = HostNames(host, first, keep=names)
    assert {name.model: (name.server, name.tool) for name in again}.items() <= seen.items()


@given(PAIRS)
def test_codex_gives_a_model_letters_digits_and_underscores(pairs):
    for name in HostNames("codex", pairs):
        assert re.fullmatch(r"mcp__[A-Za-z0-9_]+", name.model)


@pytest.mark.parametrize(
    ("host", "server", "tool", "expected"),
    [
        ("claude-code", "plugin:my.plugin:db tools", "query", "mcp__plugin_my_plugin_db_tools__query"),
        ("codex", "a-b", "c.d", "mcp__a_b__c_d"),
        ("codex", "", "t", "mcp_____t"),
        ("gemini-cli", "my server", "get.it", "mcp_my_server_get.it"),
        ("cline", "s", "t", "s__t"),
        ("cline", "s!!", "t", "s___t_4fc0e95c"),
        ("roo-code", "my server", "데이터", "mcp--my_server--_unnamed"),
        ("roo-code", "a-b", "c", "mcp--a-b--c"),
        ("continue", "My Server!", "get", "my_server_get"),
        ("continue", "github", "github_get", "github_get"),
        ("opencode", "a.b", "c d", "a_b_c_d"),
        ("vscode", "Context7", "get.docs", "mcp_context7_get_docs"),
    ],
)
def test_a_name_by_itself(host, server, tool, expected):
    assert name_of(host, server=server, tool=tool) == expected


def test_two_servers_of_one_name_in_codex_are_told_apart_by_twelve_digits():
    first, second = HostNames("codex", [("a-b", "t"), ("a_b", "t")])
    assert first.model != second.model
    for name in (first, second):
        assert re.fullmatch(r"mcp__a_b__t_[0-9a-f]{12}", name.model)


def test_vscodes_prefixes_are_at_most_eighteen_long_and_numbered():
    assert vscode_prefixes(["My Server", "my server", "my/server"]) == [
        "mcp_my_server_",
        "mcp_my_server2_",
        "mcp_my_server3_",
    ]
    assert all(len(prefix) <= 18 for prefix in vscode_prefixes(["a" * 40] * 12))


def test_vscodes_prefixes_follow_the_order_of_the_servers_where_it_is_known():
    names = HostNames("vscode", [("Foo", "t"), ("foo", "t")], servers=["foo", "Foo"])
    assert names.of("foo", "t").model == "mcp_foo_t"
    assert names.of("Foo", "t").model == "mcp_foo2_t"


def test_roo_takes_what_models_make_of_its_separator():
    names = HostNames("roo-code", [("a-b", "c"), ("x", "y")])
    assert names.find("mcp__a_b__c") == names.of("a-b", "c")
    assert names.find("mcp__nothing__c") is None
    ambiguous = HostNames("roo-code", [("a-b", "c"), ("a_b", "c")])
    assert ambiguous.find("mcp__a_b__c") is None


def test_tools_that_a_host_does_not_show_have_a_reason():
    names = HostNames("cursor", [("server", "t" * 60), ("server", "t")])
    assert [name.tool for name in names] == ["t"]
    assert "below 60" in names.left_out["server", "t" * 60]


def test_claude_codes_other_names():
    assert registered("p", "s") == "plugin:p:s"
    assert name_of("claude-code", server=connector("Slack"), tool="send") == "mcp__claude_ai_Slack__send"
    assert prompt_command("my server", "list prs") == "/mcp__my_server__list prs"


@pytest.mark.parametrize(
    ("api", "name", "accepted"),
    [
        ("anthropic-messages", "a.b", False),
        ("anthropic-messages", "a" * 64, True),
        ("openai-chat", "a" * 65, False),
        ("gemini", "ns:tool.v-1", True),
        ("gemini", "-x", False),
        ("openai-responses", "", False),
    ],
)
def test_what_an_api_takes(api, name, accepted):
    assert API_NAMES[api].accepts(name) is accepted
