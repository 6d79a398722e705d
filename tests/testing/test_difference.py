"""Differences of JSON values, as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing import differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ({"a": 1}, {"a": 2}, ["~ a: 1 -> 2"]),
        ({"a": 1}, {}, ["- a: 1"]),
        ({}, {"a": [1]}, ["+ a: [1]"]),
        ([1, 2], [1], ["- [1]: 2"]),
        ({"c": [{"text": "x"}]}, {"c": [{"text": "y"}]}, ['~ c[0].text: "x" -> "y"']),
        (1, "1", ['~ (all): 1 -> "1"']),
        ({"a": 1}, {"a": True}, ["~ a: 1 -> true"]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": "one\ntwo"}, {"a": "one\n2"}, ["~ a:\n     one\n    -two\n    +2"]),
        ({"a": "x" * 300}, {}, ["- a: " + '"' + "x" * 198 + "…"]),
    ],
)
def test_differences(was, now, told):
    assert [str(difference) for difference in differences(was, now)] == told


@pytest.mark.parametrize("ignore", ["a[0].b", "a[*].b", "b", "a"])
def test_what_is_ignored(ignore):
    assert differences({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, ignore=[ignore]) == []
    assert differences({"a": [{"b": 1}], "c": 1}, {"a": [{"b": 2}], "c": 2}, ignore=[ignore]) != []


@given(JSON, JSON)
def test_none_between_equals_and_some_between_others(one, other):
    assert differences(one, one) == []
    if differences(one, other) == []:
        assert one == other
