"""Names for models: always acceptable, always different, and the way back by the table alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol.naming import Name, Names

ACCEPTABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")
PARTS = st.text(min_size=1, max_size=80) | st.sampled_from(
    ["a", "a_", "a__b", "b", "b__c", "c", "a.b", "a b"]
)
PAIRS = st.sets(st.tuples(PARTS, PARTS), max_size=30)


@pytest.mark.parametrize(
    ("server", "tool", "expected"),
    [
        ("orders", "lookup_order", "mcp__orders__lookup_order"),
        ("db tools", "query", "mcp__db_tools__query"),
        ("plugin:my.plugin:db tools", "query", "mcp__plugin_my_plugin_db_tools__query"),
        ("a-b", "c-d", "mcp__a-b__c-d"),
        ("s", "admin.tools.list", "mcp__s__admin_tools_list"),
        ("서버", "도구", "mcp" + 8 * "_"),
    ],
)
def test_a_name_that_meets_no_other(server, tool, expected):
    names = Names([(server, tool)])
    assert names.of(server, tool).model == expected
    assert (names.find(expected).server, names.find(expected).tool) == (server, tool)


def test_at_64_characters_a_name_is_whole_and_beyond_it_is_hashed():
    fits, beyond = "t" * (64 - len("mcp__s__")), "t" * (65 - len("mcp__s__"))
    assert Name.of("s", fits).model == f"mcp__s__{fits}"
    model = Name.of("s", beyond).model
    assert len(model) == 64
    assert re.fullmatch(r"mcp__s__t+_[0-9a-f]{8}", model)


def test_names_that_become_the_same_are_kept_apart():
    names = Names([("s", "a.b"), ("s", "a b"), ("s", "a_b")])
    assert names.of("s", "a_b").model == "mcp__s__a_b"
    hashed = {names.of("s", "a.b").model, names.of("s", "a b").model}
    assert len(hashed) == 2
    assert all(re.fullmatch(r"mcp__s__a_b_[0-9a-f]{8}", name) for name in hashed)


def test_where_two_servers_meet_neither_takes_the_plain_name():
    names = Names([("a", "b__c"), ("a__b", "c")])
    assert names.find("mcp__a__b__c") is None
    assert all(name.ambiguous for name in names)


def test_an_unknown_name_is_not_taken_apart():
    names = Names([("orders", "lookup_order")])
    assert names.find("mcp__orders__refund") is None
    assert names.find("orders__lookup_order") is None
    assert names.find("") is None


@given(PAIRS)
def test_every_name_is_acceptable_and_leads_back(pairs):
    names = Names(pairs)
    assert len(names) == len(pairs)
    for server, tool in pairs:
        name = names.of(server, tool)
        assert ACCEPTABLE.fullmatch(name.model)
        assert names.find(name.model) is name
        assert (name.server, name.tool) == (server, tool)
    assert len({name.model for name in names}) == len(pairs)


@given(PAIRS, st.randoms())
def test_the_order_in_which_servers_answer_changes_nothing(pairs, random):
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert [name.model for name in Names(shuffled)] == [name.model for name in Names(pairs)]


@given(PAIRS, PAIRS)
def test_a_tool_that_meets_no_other_keeps_its_name_whoever_comes(pairs, more):
    before, after = Names(pairs), Names(pairs | more)
    plain = {Name.of(*pair).model for pair in more - pairs}
    for name in before:
        if Name.of(name.server, name.tool).model not in plain:
            assert after.of(name.server, name.tool).model == name.model


def test_a_name_that_was_given_out_keeps_its_meaning_when_others_come():
    # Alone, `a` with `b__c` has the plain name; `a__b` with `c` would come to the same one.
    early = Names([("a", "b__c")])
    later = Names([("a", "b__c"), ("a__b", "c")], keep=early)
    assert later.find("mcp__a__b__c").server == "a"
    other = later.of("a__b", "c")
    assert other.model != "mcp__a__b__c"
    assert (other.server, other.tool) == ("a__b", "c")
    assert later.of("a", "b__c").ambiguous


def test_a_name_that_was_given_out_outlives_its_tool():
    names = Names([("a", "other")], keep=Names([("a", "gone")]))
    assert names.find("mcp__a__gone").tool == "gone"


@given(PAIRS, PAIRS)
def test_kept_names_stay_and_all_names_lead_back(first, second):
    early = Names(first)
    later = Names(second, keep=early)
    assert all(later.find(name.model) is not None for name in early)
    for name in early:
        assert later.of(name.server, name.tool).model == name.model
    assert len({name.model for name in later}) == len(later) == len(first | second)
    for server, tool in first | second:
        found = later.find(later.of(server, tool).model)
        assert (found.server, found.tool) == (server, tool)
        assert ACCEPTABLE.fullmatch(found.model)
