"""JSON with places: the same values as the standard reader, and errors where an editor shows them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.config.located import DEPTH, JsonError, parse

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_reads_what_json_writes(value, indent, ascii_only):
    assert parse(json.dumps(value, indent=indent, ensure_ascii=ascii_only)).value == value


@given(st.text(alphabet='{}[]",:truefalsn0123456789.-+eE\\ \n\t', max_size=40))
def test_refuses_what_json_refuses(text):
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(JsonError):
            parse(text)
    else:
        assert parse(text).value == expected


def test_every_value_has_its_place():
    root = parse('{\n  "a": [1,\n\t{"b": "é"}],\r\n "c": null\r}')
    assert (root.line, root.column) == (1, 1)
    assert root.names == {"a": (2, 3), "c": (4, 2)}
    inner = root.members["a"].items[1]
    assert (inner.line, inner.column) == (3, 2)
    assert (inner.members["b"].line, inner.members["b"].column) == (3, 8)


def test_the_last_of_a_name_that_stands_twice_counts():
    root = parse('{"a": 1,\n"a": 2}')
    assert root.value == {"a": 2}
    assert root.twice == ("a",)
    assert root.names["a"] == (2, 1)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("", 1, 1, "expected a value; the text ends here"),
        ('{"a": 1,\n}', 1, 8, "a comma before the closing bracket"),
        ("[1,\n 2,]", 2, 3, "a comma before the closing bracket"),
        ('{"a" 1}', 1, 6, "expected ':' after a name; received '1'"),
        ("{\n a: 1}", 2, 2, "expected a name in double quotes; received 'a'"),
        ('{"a": 1} x', 1, 10, "text after the end of the value"),
        ('{\n  // servers\n  "a": 1}', 2, 3, "a comment, which JSON does not have"),
        ('{"a": 1', 1, 8, "expected ',' or '}'; the text ends here"),
        ('{"a": "b', 1, 7, "nterminated string"),
        ('["a\nb"]', 1, 4, "control character"),
        ("[01]", 1, 3, "expected ',' or ']'; received '1'"),
        ("[NaN]", 1, 2, "expected a value; received 'N'"),
        ("[" * (DEPTH + 2), 1, DEPTH + 2, f"nested deeper than {DEPTH}"),
        ("[" + "1" * 5000 + "]", 1, 2, "a number of too many digits"),
    ],
)
def test_errors_name_the_place_and_what_was_expected(text, line, column, says):
    with pytest.raises(JsonError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert says in caught.value.message


def test_a_byte_order_mark_is_passed_over():
    assert parse("\ufeff[1]").value == [1]
