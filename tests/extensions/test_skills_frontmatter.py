"""The frontmatter of skills: what is read, and what is refused because readers of YAML differ about it.

The values are those of the YAML specification. PyYAML 6 (YAML 1.1) and the npm package yaml 2 (YAML 1.2)
gave the same for every text that is accepted here, which is the point of refusing the others.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol.frontmatter import FrontmatterFault, read_frontmatter
from dragoman.protocol.yaml import YamlFault, read_yaml

READ: list[tuple[str, Any]] = [
    ("a: b", {"a": "b"}),
    ("a : b  # c", {"a": "b"}),
    (" a: 1\n b: 2", {"a": 1, "b": 2}),
    ("# c\n\na: b # c\n  # c\nb: c#d", {"a": "b", "b": "c#d"}),
    ("a:\nb: ~\nc: null\nd: #c", {"a": None, "b": None, "c": None, "d": None}),
    ("a: true\nb: False\nc: y\nd: n", {"a": True, "b": False, "c": "y", "d": "n"}),
    ("a: 0\nb: -3\nc: +5\nd: 1.5\ne: -0.25", {"a": 0, "b": -3, "c": 5, "d": 1.5, "e": -0.25}),
    ("a: 2.1.0\nb: E2\nc: v1\nd: 1 2\ne: .", {"a": "2.1.0", "b": "E2", "c": "v1", "d": "1 2", "e": "."}),
    (
        "a: http://x.y/z#q\nb: a:b\nc: Bash(git:*) Read",
        {"a": "http://x.y/z#q", "b": "a:b", "c": "Bash(git:*) Read"},
    ),
    # Plain texts over several lines.
    ("a: one\n  two\n\n  three # c\nb: 2", {"a": "one two\nthree", "b": 2}),
    ("a:\n  some text\n  more", {"a": "some text more"}),
    ("a: x\n  - y", {"a": "x - y"}),
    # Quotes.
    ("a: 'it''s'\nb: \"x\\ny \\u00e9 \\\"\"\n\"q r\": '1'", {"a": "it's", "b": 'x\ny é "', "q r": "1"}),
    ('a: "one\n  two\n\n  three"', {"a": "one two\nthree"}),
    ("a: 'one\n  two '", {"a": "one two "}),
    ('a: "\n  x\n  "', {"a": " x "}),
    # Blocks.
    ("a: |\n  one\n    two\n\n\nb: 1", {"a": "one\n  two\n", "b": 1}),
    ("a: |-\n  one\n\n  two\n", {"a": "one\n\ntwo"}),
    ("a: |+\n  x\n\nb: 1", {"a": "x\n\n", "b": 1}),
    ("a: >-\n  one\n  two\n\n  three\n   deep\n  four", {"a": "one two\nthree\n deep\nfour"}),
    ("a: >\n\n  x\n\n\n  y\n  z", {"a": "\nx\n\ny z\n"}),
    ("a: >-\n  # no comment\n  : ' \"", {"a": "# no comment : ' \""}),
    # Lists and mappings.
    ("l:\n- a\n- b\nm:\n  - c", {"l": ["a", "b"], "m": ["c"]}),
    (
        "m:\n  k: v\n  s:\n    - 1\n    - a: b\n      c: d\n",
        {"m": {"k": "v", "s": [1, {"a": "b", "c": "d"}]}},
    ),
    ("l:\n  - - x\n    - y\n  -\n    z: 1\n  -\n", {"l": [["x", "y"], {"z": 1}, None]}),
    (
        "f: [a, 'b, c', {x: 1, \"y\": [true, null]}]  # c\ng: []",
        {"f": ["a", "b, c", {"x": 1, "y": [True, None]}], "g": []},
    ),
    ("f: {a: b,\n  c: d}\ng:\n  [x, # c\n   y,]", {"f": {"a": "b", "c": "d"}, "g": ["x", "y"]}),
    ("f: [a:b, http://x, a#b, c d, -1]", {"f": ["a:b", "http://x", "a#b", "c d", -1]}),
    ("a: b\r\nc: d", {"a": "b", "c": "d"}),
]

REFUSED: list[tuple[str, int, str]] = [
    # What readers understand in two ways.
    *((f"x: 1\na: {text}", 2, "put it in quotes") for text in (
        "yes", "No", "ON", "017", "0x1F", "0o17", "1_000", "1e3", ".5", "1.", "10:30", ".inf",
        "-.INF", ".NaN", "2026-07-28", "2026-07-28 12:00:00", "12345678901234567890", "9007199254740992",
    )),
    ("yes: 1", 1, "put it in quotes"),
    ("<<: {a: 1}", 1, "put it in quotes"),
    ("1: a", 1, "put it in quotes"),
    ("a: |+\n  x\n", 1, "readers differ"),
    ("a: x\x85y", 1, r"U\+0085"),
    ("a: b\n\tc", 2, "a tab"),
    # What is more than data, or no YAML.
    ("a: &x b", 1, "anchors"),
    ("a: *x", 1, "aliases"),
    ("a: !!python/object/apply:os.system [ls]", 1, "tags"),
    ("%YAML 1.1", 1, "directives"),
    ("a: @x", 1, "begin with @"),
    ("? a\n: b", 1, "key: value"),
    ("a: b\n---\nc: d", 2, "key: value"),
    ("a: b: c", 1, "a colon and a blank"),
    ("a: b\n  c: d", 2, "a colon and a blank"),
    ("a: x\nb: - c", 2, "cannot begin with -"),
    ("a: ]", 1, "cannot begin with ]"),
    ("a: b\nb:\n  c: 1\na: d", 4, "twice"),
    ("a: {b: 1, b: 2}", 1, "twice"),
    ("a:\n b: 1\n  c: 2", 3, "a colon and a blank"),
    ("a:\n  - x\n    y: 1", 3, "a colon and a blank"),
    ("a: 'b'\n   c: d", 2, "unexpected indentation"),
    ("a: [x\nb: 1", 2, "expected , or"),
    ("a: [x", 1, "never closed"),
    ("a: [x,\ny]", 2, "indented further"),
    ("a: {b}", 1, "after the key b"),
    ("a: [- b]", 1, "expected a value"),
    ("a: [#b]", 1, "expected a value"),
    ("a: [b]c", 1, "after the closing bracket"),
    ("a: 'b\n", 1, "never closed"),
    ("a: 'b\nc: d'", 1, "never closed"),
    ("a: 'b' c", 1, "after the closing quote"),
    ('x: 1\na: "\\q"', 2, "no escape"),
    ('a: "\\ud800"', 1, "surrogate"),
    ('a: "\\UFFFFFFFF"', 1, "no character"),
    ('a: "b\\\n  c"', 1, "backslash"),
    ("a: |2\n  x", 1, "a block begins with"),
    ("a: >80%", 1, "a block begins with"),
    ("a: |\n   x\n  y", 3, "less indented"),
    ("a: |\n     \n  y", 2, "indented further"),
    ("a: \x07", 1, r"U\+0007"),
    ("- a", 1, "expected a mapping"),
    ("a", 1, "expected a mapping"),
    ("# nothing", 1, "found nothing"),
    ("a:\n" + "".join(f"{' ' * (n + 1)}k:\n" for n in range(20)), 18, "deep"),
    ("a: " + "[" * 20, 1, "deep"),
    ("a:\n  " + "- " * 20 + "x", 2, "deep"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_all_readers_agree_about_is_read(text: str, value: Any) -> None:
    assert read_yaml(text)[0] == value


@pytest.mark.parametrize(("text", "line", "why"), REFUSED)
def test_what_could_be_read_otherwise_is_refused_with_its_line(text: str, line: int, why: str) -> None:
    with pytest.raises(YamlFault, match=why) as caught:
        read_yaml(text)
    assert caught.value.line == line


def test_a_fault_counts_from_the_line_where_the_text_stands() -> None:
    with pytest.raises(YamlFault) as caught:
        read_yaml("a: b\nc: yes", line=2)
    assert caught.value.line == 3
    assert read_yaml("a: b\n\nc: d", line=2)[1] == {"a": 2, "c": 4}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(max_codepoint=126, min_codepoint=32)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("abc", min_size=1), JSON, min_size=1, max_size=4))
def test_json_is_yaml(value: dict[str, Any]) -> None:
    text = "\n".join(f"{json.dumps(key)}: {json.dumps(member)}" for key, member in value.items())
    assert read_yaml(text)[0] == value


@given(st.text(st.sampled_from("ab:-#'\"[]{},|>\n \\&*!?1.y~=%")))
def test_any_text_is_read_or_refused_with_a_line_of_it(text: str) -> None:
    line = 1
    try:
        read_yaml(text)
    except YamlFault as exc:
        line = exc.line
    assert 1 <= line <= text.count("\n") + 1


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "x " * 30_000,
        "a: " + " " * 60_000 + "x",
        "a" + " " * 60_000,
        "a: '" + "''" * 30_000,
        'a: "' + "\\\\" * 30_000,
        "a: [" + " " * 60_000,
        "a: [" + "x, " * 20_000,
        "a: [" + "# \n " * 15_000,
        "\n".join(f"k{n}: [a, b]" for n in range(5_000)),
        "a:\n" + "  x\n" * 15_000,
        "a: >\n" + "  x\n\n" * 12_000,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    with suppress(YamlFault):
        read_yaml(text)
    assert time.process_time() - began < 1.0


# The rules of Agent Skills --------------------------------------------------------------------------

HEAD = "---\nname: a-skill\ndescription: What it does\n"


def test_every_field_is_as_its_author_wrote_it() -> None:
    text = (
        HEAD + 'license: MIT\nmetadata: {version: "1.0"}\nallowed-tools: [Read, Bash(git:*)]\nnew: [1]\n---\n'
    )
    assert read_frontmatter(text) == {
        "name": "a-skill",
        "description": "What it does",
        "license": "MIT",
        "metadata": {"version": "1.0"},
        "allowed-tools": ["Read", "Bash(git:*)"],
        "new": [1],
    }


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "---",
        HEAD + "--- \t\nx",
        "\ufeff" + HEAD + "---\n",
        HEAD.replace("\n", "\r\n") + "---\r\n---\r\n",
    ],
)
def test_where_the_frontmatter_ends(text: str) -> None:
    assert read_frontmatter(text) == {"name": "a-skill", "description": "What it does"}


@pytest.mark.parametrize("name", ["a", "pdf-processing", "3d", "a" * 64])
def test_names(name: str) -> None:
    assert read_frontmatter(f"---\nname: '{name}'\ndescription: b\n---\n")["name"] == name


@pytest.mark.parametrize(
    ("fields", "line", "why"),
    [
        *(
            (f"name: '{name}'\ndescription: b", 2, "name: expected 1 to 64")
            for name in ("", "A", "-a", "a-", "a--b", "a_b", "ä", "a" * 65, "a b", "a\n\n  b")
        ),
        ("description: b", 1, "name: .*found none"),
        ("description: b\nname: [a]", 3, "name: .*found "),
        ("name: a", 1, "description: .*found none"),
        ("name: a\ndescription: ' '", 3, "description: expected a text of 1 to 1024"),
        (f"name: a\ndescription: {'x' * 1025}", 3, "description: .*found one of 1025"),
        (
            f"name: a\ndescription: b\ncompatibility: {'x' * 501}",
            4,
            "compatibility: expected a text of 1 to 500",
        ),
        ("name: a\ndescription: b\nlicense: 1", 4, "license: expected a text, found 1"),
        ("name: a\ndescription: b\nallowed-tools: [1]", 4, "allowed-tools: expected"),
        ("name: a\ndescription: b\nmetadata: x", 4, "metadata: expected a mapping"),
        (
            "name: a\ndescription: b\nmetadata:\n  io.modelcontextprotocol/x: y",
            4,
            "metadata: io.modelcontextprotocol/x",
        ),
        ("name: a\ndescription: Use it when: asked", 3, "put the text in quotes"),
    ],
)
def test_a_broken_rule_is_told_with_its_line(fields: str, line: int, why: str) -> None:
    with pytest.raises(FrontmatterFault, match=why) as caught:
        read_frontmatter(f"---\n{fields}\n---\n")
    assert caught.value.found[0][0] == line


def test_all_broken_rules_are_told_at_once() -> None:
    with pytest.raises(FrontmatterFault) as caught:
        read_frontmatter("---\nname: A\nlicense: 1\n---\n")
    assert [message.partition(":")[0] for _, message in caught.value.found] == [
        "name",
        "description",
        "license",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "expected ---"),
        ("# A skill\n", "expected ---"),
        (" ---\nname: a\n---\n", "expected ---"),
        ("---\nname: a\n", "expected ---"),
        ("---\nname: a\n--- x\n", "expected ---"),
        ("---\n---\n", "found nothing"),
        ("---\nname: a\n" + "# x\n" * 20_000 + "---\n", "65536 characters"),
    ],
)
def test_a_file_without_frontmatter_is_no_skill(text: str, why: str) -> None:
    with pytest.raises(FrontmatterFault, match=why):
        read_frontmatter(text)
