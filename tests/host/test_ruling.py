"""The decision by all files: what the host says, what Dragoman's own rules add, what was answered before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host import DIALECTS, Machine, Name, Origin, Rule, Setup, Situation, Source
from dragoman.host.files import HostFiles
from dragoman.host.permissions import own
from dragoman.host.ruling import call_of, decide, hides
from dragoman.model import Tool, ToolAnnotations

STRICT = {"allow": 0, "ask": 1, "deny": 2}
HERE = Situation(folder="/p", trusted=True)
NONE = Setup("dragoman", settings={"trusted": True, "trusted_servers": ("s",)})
SOURCES = {
    "claude-code": Source(
        json.dumps({"permissions": {"allow": ["mcp__s"], "ask": ["mcp__s__b"], "deny": ["mcp__s__c"]}}),
        "settings.json",
        "user",
        "settings",
    ),
    "cursor": Source('{"mcpAllowlist": ["s:a"]}', "permissions.json", "user", "permissions"),
    "opencode": Source('{"permission": {"s_b": "ask", "s_c": "deny"}}', "opencode.json", "user", "config"),
    "codex": Source('[mcp_servers.s]\ncommand = "x"\n', "config.toml", "user", "config"),
}
TOOLS = ("a", "b", "c")
EFFECTS = st.sampled_from(["allow", "ask", "deny"])
RULES = st.builds(
    lambda effect, server, tool, amount: Rule(
        effect,
        f"{effect} {server}:{tool}",
        Origin("permissions.toml", 1),
        "user",
        {"server": server, "tool": tool}
        | ({} if amount is None else {"arguments": {"amount": {"minimum": amount}}}),
    ),
    EFFECTS,
    st.sampled_from(["*", "s", "t"]),
    st.sampled_from(["*", "a", "b", "c", "[ab]", "a*"]),
    st.none() | st.integers(0, 3),
)


def files(host: str, rules: tuple[Rule, ...] = (), *, interactive: bool = True) -> HostFiles:
    setup = DIALECTS[host].read([SOURCES[host]], HERE)
    machine = Machine(Path("/p"), Path("/home"))
    return HostFiles(setup, replace(NONE, rules=rules), machine, True, "", interactive)


def call(tool: str = "a", **arguments):
    return call_of(Name.of("s", tool), arguments, tool=None)


@pytest.mark.parametrize("host", SOURCES)
@given(st.lists(RULES, max_size=4), st.sampled_from(TOOLS), st.integers(0, 3), st.booleans())
def test_own_rules_make_nothing_laxer(host, rules, tool, amount, interactive):
    what = call(tool, amount=amount)
    before = decide(files(host, interactive=interactive), what)
    after = decide(files(host, tuple(rules), interactive=interactive), what)
    assert STRICT[after.effect] >= STRICT[before.effect]
    if after.effect == "deny" and before.effect != "deny":
        assert after.rule in rules or not interactive


@pytest.mark.parametrize("host", SOURCES)
@given(st.lists(RULES, max_size=4), st.randoms(), st.sampled_from(TOOLS), st.integers(0, 3))
def test_the_order_of_own_rules_changes_no_effect(host, rules, random, tool, amount):
    what = call(tool, amount=amount)
    effect = decide(files(host, tuple(rules)), what).effect
    random.shuffle(rules)
    assert decide(files(host, tuple(rules)), what).effect == effect


@pytest.mark.parametrize("host", SOURCES)
@given(st.lists(RULES, max_size=4), st.lists(st.sampled_from(TOOLS), max_size=3), st.sampled_from(TOOLS))
def test_a_yes_for_the_session_answers_questions_and_undoes_no_rule(host, rules, said, tool):
    found = files(host, tuple(rules))
    before = decide(found, call(tool))
    grants = tuple(own.grant(call(one)) for one in said)
    after = decide(found, call(tool), grants=grants)
    if before.effect != "ask" or before.once or tool not in said:
        assert after == before
    else:
        assert after.effect == "allow"
        assert str(after.rule.origin) == "this session"
    # Of another server's tool of the same name nothing was said.
    other = call_of(Name.of("t", tool), {}, tool=None)
    assert decide(found, other, grants=grants) == decide(found, other)


@pytest.mark.parametrize("host", SOURCES)
@given(st.lists(RULES, max_size=4))
def test_what_is_hidden_is_denied_whatever_the_arguments_are(host, rules):
    found = files(host, tuple(rules))
    for tool in TOOLS:
        if hides(found, Name.of("s", tool), tool=None):
            for amount in range(4):
                assert decide(found, call(tool, amount=amount)).effect == "deny"


def test_what_a_tool_says_of_itself_reaches_the_rules_under_the_protocols_names():
    tool = Tool(
        name="a",
        input_schema={"type": "object"},
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
        meta={"x/y": 1},
    )
    what = call_of(Name.of("s", "a"), {}, tool=tool)
    assert what.annotations == {"readOnlyHint": True, "openWorldHint": False}
    assert what.meta == {"x/y": 1}


def test_of_both_words_the_stricter_counts_and_the_other_is_among_those_that_lost():
    rule = Rule("deny", "deny s:a", Origin("permissions.toml", 7), "user", {"server": "s", "tool": "a"})
    decision = decide(files("cursor", (rule,)), call("a"))
    assert (decision.effect, decision.rule) == ("deny", rule)
    assert [str(one.origin) for one in decision.lost] == ["permissions.json:1"]
