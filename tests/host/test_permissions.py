"""Who may call what: deny beats ask beats allow, whatever stands where and however it is spelled."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.config.record import Origin, Rule
from dragoman.host.permissions import check, decide, glob, hidden
from dragoman.protocol.naming import Name, Names

CALL = "mcp__github__create_issue"


def rules(*, scope="project", **lists):
    return [
        Rule(effect, text, Origin("settings.json", line + 1), scope)
        for effect, texts in lists.items()
        for line, text in enumerate(texts)
    ]


def effect(call=CALL, arguments=None, *, trusted=True, can_ask=True, **lists):
    decision = decide(call, arguments or {}, rules=rules(**lists), can_ask=can_ask, trusted=trusted)
    return decision.effect


# --- what a rule matches --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mcp__github", "allow"),
        ("mcp__github__*", "allow"),
        ("mcp__github__create_issue", "allow"),
        (" mcp__github__create_issue ", "allow"),
        ("mcp__github__create_*", "allow"),
        ("mcp__github__*_issue", "allow"),
        ("mcp__github__get_*", "ask"),
        ("mcp__github__create", "ask"),
        ("mcp__github__create_issues", "ask"),
        ("mcp__git", "ask"),
        ("mcp__gitlab", "ask"),
        ("mcp__GitHub", "ask"),
        # An allow rule's server is literal.
        ("mcp__*", "ask"),
        ("*", "ask"),
        ("mcp__git*__create_issue", "ask"),
        ("mcp__github*", "ask"),
        ("mcp", "ask"),
        ("mcp__", "ask"),
        ("", "ask"),
        ("create_issue", "ask"),
        ("github", "ask"),
        # Parentheses are no form of an allow rule for a server's tool.
        ("mcp__github__create_issue(title:x)", "ask"),
        ("mcp__github__create_issue()", "ask"),
        ("Bash(mcp__github__create_issue)", "ask"),
    ],
)
def test_allow(text, expected):
    assert effect(allow=[text], arguments={"title": "x"}) == expected


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(
    ("text", "hit"),
    [
        ("mcp__github", True),
        ("mcp__github__*", True),
        ("mcp__github__create_issue", True),
        ("mcp__*", True),
        ("*", True),
        ("mcp__git*", True),
        ("mcp__git*__create_issue", True),
        ("*__create_*", True),
        ("mcp__github__get_*", False),
        ("mcp__git", False),
        ("mcp__github__create", False),
        ("mcp", False),
        ("mcp__", False),
        ("create_issue", False),
        ("Bash", False),
        ("mcp__github__create_issue(title:x)", True),
        ("mcp__github__create_issue(title:*)", True),
        ("mcp__github__create_issue(title:y)", False),
        ("mcp__github__create_issue(other:*)", False),
        ("mcp__github(title:x)", True),
        ("*(title:x)", True),
        # What cannot be read restricts nothing.
        ("mcp__github__create_issue(whatever)", True),
        ("mcp__github__create_issue(", True),
    ],
)
def test_deny_and_ask(kind, text, hit):
    expected = kind if hit else "allow"
    assert effect(arguments={"title": "x"}, allow=["mcp__github"], **{kind: [text]}) == expected


@pytest.mark.parametrize(
    ("condition", "arguments", "hit"),
    [
        ("name:gmail_delete_*", {}, False),
        ("name:gmail_delete_*", {"name": "gmail_delete_all"}, True),
        ("name:gmail_delete_*", {"name": "gmail_send"}, False),
        ("n:7", {"n": 7}, True),
        ("n:1.5", {"n": 1.5}, True),
        ("n:true", {"n": True}, True),
        ("n:null", {"n": None}, True),
        ("n:*", {"n": ""}, True),
        ("a.b:x", {"a": {"b": "x"}}, False),
        ("a:*", {"a": {"b": "x"}}, False),
        ("a:*", {"a": ["x"]}, False),
        ("url:https://x.example/*", {"url": "https://x.example/a:b"}, True),
        ("text:(draft)*", {"text": "(draft) one"}, True),
    ],
)
def test_a_condition_looks_at_one_top_level_scalar(condition, arguments, hit):
    found = effect("mcp__gw__invoke", arguments, allow=["mcp__gw"], deny=[f"mcp__gw__invoke({condition})"])
    assert found == ("deny" if hit else "allow")


# --- which rule wins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(permutations(["allow", "ask", "deny"])))
def test_deny_beats_ask_beats_allow_in_any_order(order):
    lists = {"allow": [CALL], "ask": ["mcp__github"], "deny": ["mcp__github__*"]}
    for present in ({"allow", "ask", "deny"}, {"allow", "ask"}, {"allow", "deny"}, {"ask", "deny"}):
        chosen = {kind: lists[kind] for kind in order if kind in present}
        expected = next(kind for kind in ("deny", "ask", "allow") if kind in present)
        assert effect(**chosen) == expected


def test_a_narrower_rule_is_not_stronger():
    assert effect(deny=["mcp__github"], allow=[CALL]) == "deny"
    assert effect(ask=[CALL], allow=["mcp__github"]) == "ask"


def test_nothing_matches_asks():
    assert effect() == "ask"


def test_nobody_to_ask_denies():
    assert effect(can_ask=False) == "deny"
    assert effect(can_ask=False, ask=[CALL], allow=[CALL]) == "deny"
    assert effect(can_ask=False, allow=[CALL]) == "allow"


def test_a_deny_of_any_scope_wins():
    mixed = [*rules(scope="user", deny=[CALL]), *rules(scope="project", allow=[CALL])]
    assert decide(CALL, {}, rules=mixed, can_ask=True).effect == "deny"


@pytest.mark.parametrize(("kind", "expected"), [("allow", "ask"), ("deny", "deny"), ("ask", "ask")])
def test_in_a_folder_without_trust_its_own_allow_rules_wait(kind, expected):
    assert effect(trusted=False, **{kind: [CALL]}) == expected


@pytest.mark.parametrize("scope", ["user", "local"])
def test_a_persons_own_allow_rules_need_no_trust(scope):
    own = rules(scope=scope, allow=[CALL])
    assert decide(CALL, {}, rules=own, can_ask=True, trusted=False).effect == "allow"


def test_a_decision_names_the_rule_its_place_and_those_that_lost():
    given_rules = rules(allow=["mcp__other", "mcp__github"], deny=["mcp__github__create_*"])
    decision = decide(CALL, {}, rules=given_rules, can_ask=True)
    assert decision.rule is given_rules[2]
    assert decision.lost == (given_rules[1],)
    assert decision.why == "mcp__github__create_* in permissions.deny (settings.json:1)"


def test_a_decision_without_a_rule_says_so():
    decision = decide(CALL, {}, rules=[], can_ask=False)
    assert decision.rule is None
    assert decision.why == "no rule matches, and there is nobody to ask"


# --- names that can be read two ways --------------------------------------------------------------------


def test_an_ambiguous_server_is_allowed_narrowly_and_denied_widely():
    inner = Name.of("a__b", "c")
    assert decide(inner, {}, rules=rules(allow=["mcp__a"]), can_ask=True).effect == "ask"
    assert decide(inner, {}, rules=rules(allow=["mcp__a__b"]), can_ask=True).effect == "allow"
    assert decide(inner, {}, rules=rules(deny=["mcp__a"]), can_ask=True).effect == "deny"


def test_a_tool_cannot_borrow_the_rule_of_another_servers_tool():
    names = Names([("a", "b__c"), ("a__b", "c")])
    for pair in [("a", "b__c"), ("a__b", "c")]:
        name = names.of(*pair)
        assert decide(name, {}, rules=rules(allow=["mcp__a__b__c"]), can_ask=True).effect == "ask"
        assert decide(name, {}, rules=rules(deny=["mcp__a__b__c"]), can_ask=True).effect == "deny"


def test_rules_mean_the_whole_name_where_the_model_sees_a_cut_one():
    name = Name.of("s", "t" * 100)
    assert len(name.model) == 64
    assert decide(name, {}, rules=rules(allow=["mcp__s__" + "t" * 100]), can_ask=True).effect == "allow"
    assert decide(name, {}, rules=rules(deny=[name.model]), can_ask=True).effect == "deny"


def test_a_dot_in_a_tools_name_can_be_written_either_way():
    name = Name.of("s", "admin.list")
    for text in ("mcp__s__admin.list", "mcp__s__admin_list"):
        assert decide(name, {}, rules=rules(allow=[text]), can_ask=True).effect == "allow"


def test_plugin_servers_are_names_like_any_other():
    allowed = rules(allow=["mcp__plugin_my-plugin_database-tools__*"])
    assert (
        decide("mcp__plugin_my-plugin_database-tools__query", {}, rules=allowed, can_ask=True).effect
        == "allow"
    )


# --- sight ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "out_of_sight"),
    [
        ("mcp__github", True),
        ("mcp__github__create_*", True),
        ("mcp__github__create_issue(title:x)", False),
        ("mcp__github__delete_*", False),
    ],
)
def test_a_deny_without_parentheses_takes_the_tool_out_of_sight(text, out_of_sight):
    assert (hidden(CALL, rules(deny=[text])) is not None) is out_of_sight


def test_an_ask_hides_nothing():
    assert hidden(CALL, rules(ask=["*"], allow=["mcp__github"])) is None


# --- rules that never match -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("allow", "mcp__*", "only behind `mcp__<server>__`"),
        ("allow", "*", "only behind `mcp__<server>__`"),
        ("allow", "mcp__git*__x", "only behind `mcp__<server>__`"),
        ("allow", "mcp__github__create_issue(a:b)", "takes no parentheses"),
        ("deny", "", "expected a tool's name"),
        ("deny", "mcp__gihub__create_issue", "no server of that name is configured; there is github, mail"),
        ("allow", "mcp__github__creat_issue", "server 'github' has no such tool"),
        ("deny", "mcp__github__delete_*", "server 'github' has no such tool"),
    ],
)
def test_a_rule_that_never_matches_is_said(kind, text, says):
    names = Names([("github", "create_issue")])
    (problem,) = check(rules(**{kind: [text]}), servers=["github", "mail"], names=list(names))
    assert "never matches" in problem.text
    assert says in problem.text
    assert str(problem.origin) == "settings.json:1"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("allow", "mcp__github"),
        ("allow", "mcp__github__create_*"),
        ("deny", "mcp__*"),
        ("deny", "*"),
        ("ask", "mcp__git*__create_issue"),
        ("deny", "mcp__mail__send"),  # configured, but not answering: nobody knows
        ("deny", "Bash(rm *)"),
        ("allow", "Read(./**)"),
        ("allow", "WebFetch"),
    ],
)
def test_other_rules_are_not(kind, text):
    names = Names([("github", "create_issue")])
    assert list(check(rules(**{kind: [text]}), servers=["github", "mail"], names=list(names))) == []


def test_a_condition_that_cannot_be_read_is_said_to_hold_for_every_call():
    names = Names([("github", "create_issue")])
    (problem,) = check(rules(deny=["mcp__github(x)"]), servers=["github"], names=list(names))
    assert "holds for every call" in problem.text


# --- the glob -------------------------------------------------------------------------------------------


@given(st.text(alphabet="ab*", max_size=8), st.text(alphabet="ab*", max_size=10))
def test_glob_agrees_with_its_definition(pattern, text):
    def slow(pattern, text):
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(slow(pattern[1:], text[cut:]) for cut in range(len(text) + 1))
        return bool(text) and text[0] == pattern[0] and slow(pattern[1:], text[1:])

    assert glob(pattern, text) == slow(pattern, text)


def test_a_hostile_pattern_costs_little():
    assert not glob("*a" * 500 + "b", "a" * 20_000)
