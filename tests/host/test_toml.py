"""TOML with places: the values are the standard library's, the places are where a person finds them."""

from __future__ import annotations

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.config.toml import TomlError, parse

TEXT = """\
# a comment = 1
top = 1
a.b.c = "dotted"

[mcp_servers.docs]  # trailing
command = "npx"
args = [
  "-y", # with a comment, and a ]
  'p]',
]
env = { A = "x=1", "B.C" = "2" }

[[rule]]
name = '''
[not.a.table]
'''

[[rule]]
name = "second"
[rule.inner]
deep = [[1, 2], [3]]

["quoted.key"."x"]
when = 1979-05-27T07:32:00Z
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (["top"], 2, 7),
        (["a", "b", "c"], 3, 9),
        (["mcp_servers", "docs", "command"], 6, 11),
        (["mcp_servers", "docs", "args", 1], 9, 3),
        (["mcp_servers", "docs", "env", "B.C"], 11, 28),
        (["rule", 0, "name"], 14, 8),
        (["rule", 1, "name"], 19, 8),
        (["rule", 1, "inner", "deep", 1, 0], 21, 18),
        (["quoted.key", "x", "when"], 24, 8),
    ],
)
def test_every_value_has_its_place(path, line, column):
    node = parse(TEXT, "config.toml")
    for part in path:
        node = node.items[part] if isinstance(part, int) else node.members[part]
    assert (node.line, node.column, node.file) == (line, column, "config.toml")


def test_names_have_their_places():
    node = parse(TEXT)
    assert node.members["mcp_servers"].names["docs"] == (5, 2)
    assert node.members["mcp_servers"].members["docs"].names["args"] == (7, 1)


def test_values_are_those_of_the_standard_library():
    assert parse(TEXT).value == tomllib.loads(TEXT)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("a =", 1, 4), ("a = 1\na = 2", 2, 6), ("[a", 1, 3), ('x = "', 1, 6), ("\n\n?", 3, 1)],
)
def test_an_error_has_its_place(text, line, column):
    with pytest.raises(TomlError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize("name", ["a.", '"a b" . ', "'a'.\t", "a.'b'."])
@pytest.mark.parametrize("form", ["{}b = 1", "[{}b]", "x = {{ {}b = 1 }}"])
def test_a_name_of_very_many_parts_takes_no_time(name, form):
    text = "x0 = 1\n" + form.format(name * (500_000 // len(name)))
    begun = time.process_time()
    with pytest.raises(TomlError, match=r"line 2, column .*: nested deeper than 100"):
        parse(text)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    "piece", ['"', "'", "a", "-", "a ", '"a', "a.a.a.a " * 12, ("a." * 98 + "a "), " ", ". "]
)
def test_what_only_looks_like_such_a_name_takes_no_time(piece):
    begun = time.process_time()
    with pytest.raises(TomlError):
        parse("x = " + piece * (500_000 // len(piece)))
    assert time.process_time() - begun < 5


def test_depth_is_no_way_to_end_the_program():
    with pytest.raises(TomlError, match="deeper"):
        parse("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(TomlError, match="deeper"):
        parse(".".join("a" * 500) + " = 1")


SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.=# ", max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def written(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[\n" + ",\n".join(written(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(name)} = {written(item)}" for name, item in value.items()) + "}"
    return str(value)


@given(st.dictionaries(st.text("abc.=#[] ", max_size=5), VALUES, max_size=4))
def test_whatever_is_written_is_read_back_with_places_inside_the_text(table):
    text = "".join(f"{written(name)} = {written(value)}\n" for name, value in table.items())
    lines = text.split("\n")

    def check(node):
        assert 1 <= node.line <= len(lines)
        assert 1 <= node.column <= len(lines[node.line - 1]) + 1
        for inner in (*node.members.values(), *node.items):
            check(inner)

    node = parse(text)
    assert node.value == table
    check(node)


@given(st.text(alphabet="ab=[]{}\"'.,#\n \\\r1-:TZ", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(TomlError) as caught:
            parse(text)
        assert min(caught.value.line, caught.value.column) >= 1
    else:
        assert parse(text).value == expected
