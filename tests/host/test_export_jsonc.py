"""Changes of a JSON text leave everything else of it as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.host.config.located import JsonError, parse
from dragoman.host.export.jsonc import JsonText

COMMENTED = """\
{
    // the servers
    "servers": {
        "a": { "command": "a" }, // the first
        /* the second */
        "b": {
            "command": "b", // why
        },
    },
    "inputs": []
}
"""


def put(text, path, value):
    edited = JsonText(text)
    edited.put(path, value)
    return str(edited)


def drop(text, path):
    edited = JsonText(text)
    edited.drop(path)
    return str(edited)


def test_a_member_is_put_behind_the_last_one_in_the_style_of_the_file():
    assert put(COMMENTED, ("servers", "c"), {"command": "c", "args": ["x"]}) == COMMENTED.replace(
        "        },\n    },\n",
        '        },\n        "c": {\n            "command": "c",\n'
        '            "args": ["x"]\n        },\n    },\n',
    )


def test_a_value_that_is_replaced_keeps_the_comments_around_it():
    assert put(COMMENTED, ("servers", "b", "command"), "d") == COMMENTED.replace('"b", // why', '"d", // why')
    assert put(COMMENTED, ("servers", "a", "command"), "d") == COMMENTED.replace('"a" }', '"d" }')


def test_a_value_that_is_there_already_changes_nothing():
    assert put(COMMENTED, ("servers", "a"), {"command": "a"}) == COMMENTED


def test_members_are_taken_out_with_their_lines():
    assert drop(COMMENTED, ("inputs",)) == COMMENTED.replace('    },\n    "inputs": []\n', "    }\n")
    assert drop('{"a": 1, "b": 2, "c": 3}', ("b",)) == '{"a": 1, "c": 3}'
    assert drop('{"a": 1, "b": 2}', ("b",)) == '{"a": 1}'
    assert drop('{\n  "a": 1\n}\n', ("a",)) == "{\n}\n"
    assert drop(COMMENTED, ("servers", "x")) == COMMENTED


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_file_becomes_an_object(text):
    assert put(text, ("mcpServers", "a"), {"command": "x"}) == (
        '{\n  "mcpServers": {\n    "a": {\n      "command": "x"\n    }\n  }\n}\n'
    )


def test_line_ends_tabs_and_the_mark_of_byte_order_stay():
    text = '\ufeff{\r\n\t"mcpServers": {}\r\n}\r\n'
    assert put(text, ("mcpServers", "a"), {"b": 1}) == (
        '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"b": 1\r\n\t\t}\r\n\t}\r\n}\r\n'
    )


def test_a_comment_behind_the_last_member_stays_with_it():
    text = '{\n  "a": 1 // one\n  // the end\n}\n'
    assert put(text, ("b",), 2) == '{\n  "a": 1, // one\n  // the end\n  "b": 2\n}\n'


def test_an_object_on_one_line_stays_on_it():
    assert put('{"a": {"b": 1}}\n', ("a", "c"), {"d": [2]}) == '{"a": {"b": 1, "c": {"d": [2]}}}\n'


def test_what_cannot_be_changed_is_told_with_its_line():
    with pytest.raises(UsageError, match="line 2: a is no object"):
        put('{\n"a": 1}', ("a", "b"), 2)
    with pytest.raises(UsageError, match="line 3: `a` stands twice"):
        put('{"a": {},\n\n"a": {}}', ("a", "b"), 2)
    with pytest.raises(UsageError, match="no object"):
        put("[]", ("a",), 1)
    with pytest.raises(JsonError):
        put('{"a": }', ("a",), 1)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=4), values, max_size=4)
blanks = st.sampled_from(["", " ", "\n", "\n    ", " // c,{}\n", "/* d} */", "\t"])


@st.composite
def texts(draw):
    """An object as JSON with comments and blanks anywhere, and maybe commas before brackets."""

    def write(value):
        def gap():
            return draw(blanks)

        if isinstance(value, dict | list):
            left, right = "{}" if isinstance(value, dict) else "[]"
            pairs = (
                [f"{json.dumps(name)}{gap()}:{gap()}{write(inner)}" for name, inner in value.items()]
                if isinstance(value, dict)
                else [write(inner) for inner in value]
            )
            tail = "," if pairs and draw(st.booleans()) else ""
            return left + gap() + f"{gap()},{gap()}".join(pairs) + gap() + tail + gap() + right
        return json.dumps(value)

    value = draw(objects)
    return value, draw(blanks) + write(value) + draw(blanks)


@settings(deadline=None)
@given(texts(), st.text(max_size=4), values)
def test_whatever_is_put_is_there_and_nothing_else_changes(text, name, value):
    before, written = text
    after = put(written, (name,), value)
    assert parse(after, comments=True).value == {**before, name: value}
    assert written.count("// c,{}") <= after.count("// c,{}") or name in before


@settings(deadline=None)
@given(texts(), st.data())
def test_whatever_is_dropped_is_gone_and_nothing_else_changes(text, data):
    before, written = text
    name = data.draw(st.sampled_from(sorted(before))) if before else "x"
    after = drop(written, (name,))
    assert parse(after, comments=True).value == {key: inner for key, inner in before.items() if key != name}
