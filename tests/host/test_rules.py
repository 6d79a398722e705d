"""Every host's decisions: the rule that decides with its place, those that lost, and what cannot change."""

from __future__ import annotations

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.config import own as own_files
from dragoman.host.config.copilot import options
from dragoman.host.config.record import Origin, Rule, Setup, Situation, Source
from dragoman.host.dialects import DIALECTS
from dragoman.host.permissions import Call, own
from dragoman.host.permissions.checking import never
from dragoman.host.permissions.claude import answered
from dragoman.protocol.naming import Name

HERE = Situation(folder="/p", trusted=True)
ALONE = Situation(folder="/p", trusted=True, interactive=False)


def call(server="s", tool="t", **more):
    return Call(Name.of(server, tool), **more)


def setup(host, *sources, situation=HERE):
    return DIALECTS[host].read(list(sources), situation)


def source(content, *, kind, scope="user", name="f.json"):
    return Source(content if isinstance(content, str) else json.dumps(content), name, scope, kind)


def judge(host, found, what=None, *, situation=HERE):
    return DIALECTS[host].judge(found, what or call(), situation=situation)


# --- the deciding rule, its place, and the losers ---------------------------------------------------------


def test_codex_names_the_mode_that_decided_and_the_one_that_lost():
    text = (
        '[mcp_servers.s]\ncommand = "x"\ndefault_tools_approval_mode = "approve"\n'
        '[mcp_servers.s.tools.t]\napproval_mode = "prompt"\n'
    )
    found = setup("codex", source(text, kind="config", name="config.toml"))
    decision = judge("codex", found)
    assert decision.effect == "ask"
    assert str(decision.rule.origin) == "config.toml:5"
    assert [str(rule.origin) for rule in decision.lost] == ["config.toml:3"]
    assert "always asks" in decision.why
    assert judge("codex", found, call(tool="u")).effect == "allow"
    assert judge("codex", found, situation=ALONE).effect == "deny"


def test_codex_refuses_what_would_ask_where_nobody_is_asked():
    text = 'approval_policy = "never"\n[mcp_servers.s]\ncommand = "x"\n'
    decision = judge("codex", setup("codex", source(text, kind="config")))
    assert (decision.effect, decision.rule) == ("deny", None)
    assert "`approval_policy` is never" in decision.why


def test_a_tool_that_its_entry_leaves_out_is_refused_when_it_is_called_all_the_same():
    text = '[mcp_servers.s]\ncommand = "x"\nenabled_tools = ["u"]\ndefault_tools_approval_mode = "approve"\n'
    decision = judge("codex", setup("codex", source(text, kind="config", name="c.toml")))
    assert (decision.effect, decision.hidden) == ("deny", True)
    assert "c.toml:1" in decision.why


def test_cursors_team_stands_over_its_files_and_its_files_over_the_editor():
    ide = source({"mcpAllowlist": ["*:*"]}, kind="ide", name="ide")
    mine = source({"mcpAllowlist": ["s:t"]}, kind="permissions", name="mine")
    team = source({"mcpAllowlist": ["x:y"]}, kind="permissions", scope="managed", name="team")
    assert judge("cursor", setup("cursor", ide)).rule.origin.file == "ide"
    assert judge("cursor", setup("cursor", ide, mine)).rule.origin.file == "mine"
    assert judge("cursor", setup("cursor", ide, mine, team)).effect == "ask"


def test_cursors_command_line_denies_before_it_allows():
    rules = {"permissions": {"allow": ["Mcp(s:*)"], "deny": ["Mcp(*:t?)"]}}
    found = setup("cursor", source(rules, kind="cli", name="cli.json"))
    told = Situation(mode="cli")
    decision = judge("cursor", found, call(tool="t1"), situation=told)
    assert (decision.effect, decision.rule.text) == ("deny", "Mcp(*:t?)")
    assert [rule.text for rule in decision.lost] == ["Mcp(s:*)"]
    assert judge("cursor", found, situation=told).effect == "allow"
    assert judge("cursor", found, situation=HERE).effect == "ask"  # the editor has a list of its own


def test_gemini_takes_the_highest_priority_and_of_equals_the_stricter():
    policy = (
        '[[rule]]\nmcpName = "s"\ndecision = "allow"\npriority = 5\n'
        '[[rule]]\nmcpName = "s"\ndecision = "deny"\npriority = 5\n'
        '[[rule]]\ntoolName = "*"\ndecision = "ask_user"\npriority = 1\n'
    )
    decision = judge("gemini-cli", setup("gemini-cli", source(policy, kind="policy", name="p.toml")))
    assert (decision.effect, str(decision.rule.origin)) == ("deny", "p.toml:5")
    assert [rule.effect for rule in decision.lost] == ["allow", "ask"]


def test_an_administrators_policy_beats_every_priority_of_a_person():
    mine = '[[rule]]\nmcpName = "s"\ndecision = "allow"\npriority = 999\n'
    theirs = '[[rule]]\nmcpName = "*"\ndecision = "deny"\npriority = 0\n'
    sources = [source(mine, kind="policy"), source(theirs, kind="policy", scope="managed")]
    for order in permutations(sources):
        assert judge("gemini-cli", setup("gemini-cli", *order)).effect == "deny"


def test_a_workspaces_policies_are_not_heard():
    theirs = '[[rule]]\nmcpName = "s"\ndecision = "allow"\npriority = 999\n'
    found = setup("gemini-cli", source(theirs, kind="policy", scope="project"))
    assert judge("gemini-cli", found).effect == "ask"


def test_opencode_takes_the_last_and_continue_the_first():
    rules = {"permission": {"s_*": "allow", "s_t": "deny", "*": "ask"}}
    decision = judge("opencode", setup("opencode", source(rules, kind="config", name="o.json")))
    assert (decision.effect, decision.rule.text) == ("ask", "*: ask")
    assert [rule.text for rule in decision.lost] == ["s_*: allow", "s_t: deny"]
    policies = {
        "policies": [{"tool": "s_*", "permission": "allow"}, {"tool": "s_t", "permission": "exclude"}]
    }
    decision = judge("continue", setup("continue", source(policies, kind="permissions")))
    assert (decision.effect, decision.rule.text) == ("allow", "s_*: allow")


def test_zeds_project_does_not_loosen_what_the_person_set_for_everything():
    mine = source(
        {"agent": {"tool_permissions": {"tools": {"mcp:s:t": {"default": "deny"}}}}}, kind="settings"
    )
    theirs = source(
        {"agent": {"tool_permissions": {"tools": {"mcp:s:t": {"default": "allow"}}}}},
        kind="settings",
        scope="project",
    )
    for order in permutations([mine, theirs]):
        assert judge("zed", setup("zed", *order)).effect == "deny"


def test_vscode_shows_the_result_of_an_open_tool_and_heeds_what_may_never_be_automatic():
    found = setup("vscode", source({}, kind="settings"))
    decision = judge("vscode", found, call(annotations={"readOnlyHint": True, "openWorldHint": True}))
    assert (decision.effect, decision.review) == ("allow", True)
    settings = {
        "chat.tools.global.autoApprove": True,
        "chat.tools.eligibleForAutoApproval": {"mcp__s__t": False},
    }
    found = setup("vscode", source(settings, kind="settings"))
    assert judge("vscode", found).effect == "ask"
    assert judge("vscode", found, call(tool="u")).effect == "allow"


def test_vscodes_workspace_cannot_switch_questions_off():
    found = setup("vscode", source({"chat.tools.global.autoApprove": True}, kind="settings", scope="project"))
    assert judge("vscode", found).effect == "ask"


def test_roos_list_counts_only_while_approvals_are_automatic():
    found = setup(
        "roo-code", source({"mcpServers": {"s": {"command": "x", "alwaysAllow": ["t"]}}}, kind="servers")
    )
    assert judge("roo-code", found).effect == "allow"
    off = Setup("roo-code", found.servers, settings={"auto_approve": False})
    assert judge("roo-code", off).effect == "ask"


def test_copilots_denial_beats_every_allowance():
    rules = options(["--allow-all-tools", "--allow-tool", "s(t)", "--deny-tool", "s(t)", "--allow-tool=a,b"])
    decision = judge("copilot-cli", Setup("copilot-cli", rules=tuple(rules)))
    assert (decision.effect, str(decision.rule.origin)) == ("deny", "command line:5")
    assert [rule.text for rule in rules[-2:]] == ["a", "b"]


@pytest.mark.parametrize(
    ("by", "meta", "expected"),
    [("person", True, "allow"), ("program", True, "deny"), ("program", "true", "allow")],
)
def test_a_program_cannot_answer_for_the_person(by, meta, expected):
    what = call(meta={"anthropic/requiresUserInteraction": meta})
    decision = judge("claude-code", setup("claude-code"), what)
    assert answered(decision, what, yes=True, by=by).effect == expected
    assert answered(decision, what, yes=False, by=by).effect == "deny"


# --- what cannot change -----------------------------------------------------------------------------------

STRICT = {
    "claude-code": ("settings", lambda effect, text: {"permissions": {effect: [f"mcp__{text}"]}}),
    "cursor": ("cli", lambda effect, text: {"permissions": {effect: [f"Mcp({text.replace('__', ':')})"]}}),
}
TEXTS = st.sampled_from(["s__t", "s__*", "*__t", "s__u", "x__t", "*__*"])
LISTS = st.lists(st.tuples(st.sampled_from(["allow", "deny"]), TEXTS), max_size=5)


@pytest.mark.parametrize("host", STRICT)
@given(LISTS, st.randoms())
def test_the_order_of_files_never_changes_a_decision_of_hosts_where_deny_wins(host, rules, random):
    kind, form = STRICT[host]
    sources = [source(form(*rule), kind=kind, name=f"{at}") for at, rule in enumerate(rules)]
    told = Situation(mode="cli" if host == "cursor" else "", trusted=True)
    before = judge(host, setup(host, *sources), situation=told).effect
    random.shuffle(sources)
    assert judge(host, setup(host, *sources), situation=told).effect == before


@pytest.mark.parametrize("host", STRICT)
@given(LISTS, TEXTS)
def test_one_more_allow_rule_never_turns_a_deny_into_an_allow(host, rules, text):
    kind, form = STRICT[host]
    sources = [source(form(*rule), kind=kind, name=f"{at}") for at, rule in enumerate(rules)]
    told = Situation(mode="cli" if host == "cursor" else "", trusted=True)
    if judge(host, setup(host, *sources), situation=told).effect == "deny":
        more = [*sources, source(form("allow", text), kind=kind)]
        assert judge(host, setup(host, *more), situation=told).effect == "deny"


OPTIONS = st.lists(
    st.tuples(
        st.sampled_from(["--allow-tool", "--deny-tool", "--allow-all"]), st.sampled_from(["s", "s(t)", "x"])
    ),
    max_size=5,
)


@given(OPTIONS, st.sampled_from(["s", "s(t)"]), st.randoms())
def test_copilots_options_in_any_order_and_with_one_more_allowance(given_options, text, random):
    def effect(pairs):
        rules = tuple(options([f"{name}={value}" for name, value in pairs]))
        return judge("copilot-cli", Setup("copilot-cli", rules=rules)).effect

    before = effect(given_options)
    shuffled = list(given_options)
    random.shuffle(shuffled)
    assert effect(shuffled) == before
    if before == "deny":
        assert effect([*given_options, ("--allow-tool", text), ("--allow-all", "")]) == "deny"


EFFECTS = st.sampled_from(["allow", "ask", "deny"])
OWN = st.lists(
    st.tuples(EFFECTS, st.sampled_from(["s", "*", "x"]), st.sampled_from(["t", "*", "u"])), max_size=6
)


def own_text(rules):
    return "".join(
        f'[[rule]]\neffect = "{effect}"\nserver = "{server}"\ntool = "{tool}"\n'
        for effect, server, tool in rules
    )


def own_setup(text, scope="user", situation=HERE):
    return own_files.read([source(text, kind="permissions", scope=scope, name="permissions.toml")], situation)


@given(OWN, st.randoms(), st.booleans())
def test_own_rules_are_decided_in_any_order_and_no_allow_beats_a_deny(rules, random, can_ask):
    told = HERE if can_ask else ALONE
    before = own.judge(own_setup(own_text(rules)), call(), situation=told).effect
    shuffled = list(rules)
    random.shuffle(shuffled)
    assert own.judge(own_setup(own_text(shuffled)), call(), situation=told).effect == before
    more = own.judge(own_setup(own_text([*rules, ("allow", "s", "t")])), call(), situation=told).effect
    if any(effect == "deny" and server in "s*" and tool in "t*" for effect, server, tool in rules):
        assert before == more == "deny"


@pytest.mark.parametrize("host", DIALECTS)
def test_a_decision_is_the_same_twice_and_has_a_reason(host):
    found = setup(host)
    for situation in (HERE, ALONE):
        first = judge(host, found, situation=situation)
        assert first == judge(host, found, situation=situation)
        assert first.why
    if host not in ("opencode", "continue"):  # these two allow where nobody can be asked: their way
        assert judge(host, found, situation=ALONE).effect == "deny"


# --- Dragoman's own ---------------------------------------------------------------------------------------


def own_effect(text, what=None, *, situation=HERE, scope="user"):
    return own.judge(own_setup(text, scope, situation), what or call(), situation=situation).effect


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [({"amount": 50}, "allow"), ({"amount": 500}, "ask"), ({}, "ask"), ({"amount": "50"}, "ask")],
)
def test_an_argument_is_matched_by_a_schema(arguments, expected):
    text = '[[rule]]\neffect = "allow"\narguments = {amount = {type = "number", maximum = 100}}\n'
    assert own_effect(text, call(arguments=arguments)) == expected


def test_what_a_server_says_of_itself_counts_only_where_it_is_trusted():
    rule = '[[rule]]\neffect = "allow"\nannotations = {readOnlyHint = true}\n'
    reads = call(annotations={"readOnlyHint": True})
    assert own_effect(rule, reads) == "ask"
    assert own_effect(f'trusted_servers = ["s"]\n{rule}', reads) == "allow"
    assert own_effect(f'trusted_servers = ["s"]\n{rule}', call()) == "ask"
    assert own_effect(f'trusted_servers = ["s"]\n{rule}', reads, scope="project") == "ask"


def test_a_hint_that_is_missing_is_what_the_protocol_says_it_is():
    rule = '[[rule]]\neffect = "deny"\nannotations = {destructiveHint = true}\n'
    assert own_effect(rule, call()) == "deny"
    assert own_effect(rule, call(annotations={"destructiveHint": False})) == "ask"


def test_a_rule_ends_with_its_time():
    rule = '[[rule]]\neffect = "allow"\nuntil = 2030-01-01T00:00:00Z\n'
    assert own_effect(rule, situation=Situation(trusted=True, now=1_893_455_999)) == "allow"
    assert own_effect(rule, situation=Situation(trusted=True, now=1_893_456_000)) == "ask"


def test_a_projects_own_allowances_wait_for_trust_and_its_denials_do_not():
    for trusted, expected in ((None, "ask"), (False, "ask"), (True, "allow")):
        told = Situation(trusted=trusted)
        assert own_effect('[[rule]]\neffect = "allow"\n', situation=told, scope="project") == expected
        assert own_effect('[[rule]]\neffect = "deny"\n', situation=told, scope="project") == "deny"


@pytest.mark.parametrize("member", ["sever = 'x'", "server = 7", "until = 2030-01-01", "arguments = 'a'"])
def test_a_rule_that_cannot_be_read_is_never_weaker_for_it(member):
    for effect, expected in (("allow", "ask"), ("deny", "deny"), ("ask", "ask")):
        found = own_setup(f'[[rule]]\neffect = "{effect}"\n{member}\n')
        assert own.judge(found, call(), situation=HERE).effect == expected
        (problem,) = found.problems
        assert problem.origin.line in (1, 3)


def test_a_grant_is_for_one_tool_whatever_is_in_its_name():
    rule = own.grant(call("s*", "t*"), until=100)
    found = Setup("dragoman", rules=(rule,), settings={"trusted": True})
    told = Situation(now=99)
    assert own.judge(found, call("s*", "t*"), situation=told).effect == "allow"
    assert own.judge(found, call("s1", "t1"), situation=told).effect == "ask"
    assert own.judge(found, call("s*", "t*"), situation=Situation(now=100)).effect == "ask"


def test_of_two_decisions_the_stricter_holds_and_the_other_ones_rule_has_lost():
    allow = own.judge(own_setup('[[rule]]\neffect = "allow"\n'), call(), situation=HERE)
    deny = own.judge(own_setup('[[rule]]\neffect = "deny"\n'), call(), situation=HERE)
    for first, second in ((allow, deny), (deny, allow)):
        decision = own.stricter(first, second)
        assert (decision.effect, decision.rule, decision.lost) == ("deny", deny.rule, (allow.rule,))


def test_own_rules_that_never_match_are_said():
    text = (
        '[[rule]]\neffect = "allow"\nannotations = {readOnlyHint = true}\n'
        '[[rule]]\neffect = "deny"\narguments = {a = {type = "nonsense"}}\n'
    )
    found = own_setup(text)
    first, second = own.check(found.rules)
    assert "never matches: none of its servers is in `trusted_servers`" in first.text
    assert "holds for all arguments" in second.text


# --- rules that never match -------------------------------------------------------------------------------


def warned(host, *sources, names=()):
    return [problem.text for problem in never(setup(host, *sources), [Name.of(*pair) for pair in names])]


def test_rules_that_never_match_are_said_for_every_host():
    servers = source({"mcpServers": {"s": {"command": "x"}}}, kind="servers")
    settings = source({"permissions": {"allow": ["mcp__*"]}}, kind="settings")
    assert "only behind" in warned("claude-code", servers, settings)[0]
    assert (
        "expected server:tool"
        in warned("cursor", source({"mcpAllowlist": ["github"]}, kind="permissions"))[0]
    )
    policy = '[[rule]]\nmcpName = "my_server"\ndecision = "allow"\npriority = 1\n'
    assert "up to the first `_`" in warned("gemini-cli", source(policy, kind="policy"))[0]
    zed = {
        "context_servers": {"s": {"command": "x"}},
        "agent": {"tool_permissions": {"tools": {"mcp:S:t": {"default": "deny"}}}},
    }
    assert "there is s" in warned("zed", source(zed, kind="settings"))[0]
    text = (
        '[mcp_servers.s]\ncommand = "x"\ndisabled_tools = ["drop"]\n'
        '[mcp_servers.s.tools.u]\napproval_mode = "prompt"\n'
    )
    first, second = warned("codex", source(text, kind="config"), names=[("s", "t")])
    assert "'drop'" in first
    assert "no such tool" in second


def test_rules_that_may_match_are_not():
    servers = source({"mcpServers": {"s": {"command": "x"}}}, kind="servers")
    settings = source({"permissions": {"allow": ["mcp__s"]}}, kind="settings")
    assert warned("claude-code", servers, settings, names=[("s", "t")]) == []
    text = '[mcp_servers.s]\ncommand = "x"\ndisabled_tools = ["t"]\n'
    assert warned("codex", source(text, kind="config"), names=[("s", "t")]) == []
    assert warned("codex", source(text, kind="config")) == []


def test_a_rule_says_what_it_is_and_where():
    rule = Rule("deny", "x", Origin("f", 3))
    assert str(rule) == "deny x (f:3)"


# --- what a model may write in more than one way ----------------------------------------------------------


@pytest.mark.parametrize("value", [7, 7.0, "7"])
def test_claudes_deny_of_a_number_holds_however_the_number_is_written(value):
    found = setup("claude-code", source({"permissions": {"deny": ["mcp__s__t(n:7)"]}}, kind="settings"))
    assert judge("claude-code", found, call(arguments={"n": value})).effect == "deny"
    assert judge("claude-code", found, call(arguments={"n": 7.5})).effect == "ask"


def test_geminis_pattern_that_cannot_be_read_here_denies_all_and_allows_nothing():
    pattern = "(?<name>/etc)"  # JavaScript's
    deny = '[[rule]]\nmcpName = "s"\nargsPattern = \'{}\'\ndecision = "{}"\npriority = 5\n'
    for decision, effect in (("deny", "deny"), ("allow", "ask")):
        text = deny.format(pattern, decision)
        found = setup("gemini-cli", source(text, kind="policy", name="p.toml"))
        assert judge("gemini-cli", found, call(arguments={"path": "/etc/x"})).effect == effect
