"""Secrets do not get into a recording; everything else does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing import Redaction
from dragoman.testing.redaction import REDACTED

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize(
    "name", ["password", "api_key", "Api-Key", "ACCESS_TOKEN", "clientSecret", "Authorization"]
)
def test_members_by_their_names(name):
    assert Redaction()({"a": [{name: "hunter2"}], "b": 1}) == {"a": [{name: REDACTED}], "b": 1}
    assert Redaction()({name: 12345}) == {name: REDACTED}


def test_a_schema_that_describes_a_secret_stays():
    schema = {"properties": {"password": {"type": "string"}, "token": True}, "required": ["password"]}
    assert Redaction()(schema) == schema


@pytest.mark.parametrize("name", ["progressToken", "requestState", "nextCursor", "tokens", "name"])
def test_the_protocol_s_own_members_stay(name):
    assert Redaction()({name: "abc"}) == {name: "abc"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"),
        ("key sk-abcdefghijklmnop1234 ok", "key [redacted] ok"),
        ("ghp_abcdefghijklmnopqrstuvwx", "[redacted]"),
        ("https://me:pass@host/", "https://me:[redacted]@host/"),
        ("https://h/?a=1&api_key=zzz&b=2", "https://h/?a=1&api_key=[redacted]&b=2"),
        ('{"token": "abc", "x": 1}', '{"token": "[redacted]", "x": 1}'),
        ("a basic question about tokens", "a basic question about tokens"),
    ],
)
def test_secrets_by_their_look(text, expected):
    assert Redaction()(text) == expected


def test_what_was_a_secret_once_is_one_everywhere_and_later():
    redact = Redaction()
    assert redact({"password": "hunter2hunter2", "x": "with hunter2hunter2!"}) == {
        "password": REDACTED,
        "x": f"with {REDACTED}!",
    }
    assert redact(["hunter2hunter2"]) == [REDACTED]


def test_rules_of_ones_own():
    redact = Redaction(names=["customer-id"], patterns=[r"\bC-\d+", r"pin (?P<secret>\d+)"], values=["Ann"])
    given_ = {"customerId": "77", "text": "C-123 of Ann, pin 4711"}
    assert redact(given_) == {"customerId": REDACTED, "text": f"{REDACTED} of {REDACTED}, pin {REDACTED}"}
    with pytest.raises(ValueError, match=r"pattern '\('"):
        Redaction(patterns=["("])


@given(JSON)
def test_the_shape_stays_and_twice_is_once(value):
    once = Redaction()(value)
    assert Redaction()(once) == once
    assert json.loads(json.dumps(once)) == once
    assert type(once) is type(value)
