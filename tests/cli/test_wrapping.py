"""How lines for a terminal are wrapped: by columns, between words where that is possible."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.output import width, wrapped


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("", 5, [""]),
        ("a bb ccc dddd", 6, ["a bb", "ccc", "dddd"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
        ("ab " + "x" * 25, 10, ["ab xxxxxxx", "x" * 10, "x" * 8]),
        (
            "ab 注文を取り消しました",
            10,
            ["ab 注文を", "取り消しま", "した"],
        ),  # each of these takes two columns
        ("e\u0301e\u0301e\u0301", 2, ["e\u0301e\u0301", "e\u0301"]),
    ],
)
def test_a_line_is_cut_where_its_columns_end(text: str, room: int, lines: list[str]) -> None:
    assert wrapped(text, room) == lines


@given(st.lists(st.text("ab注é.", min_size=1, max_size=12), max_size=12), st.integers(2, 30))
def test_nothing_is_lost_and_no_line_is_too_long(words: list[str], room: int) -> None:
    text = " ".join(words)
    lines = wrapped(text, room)
    assert all(width(line) <= room for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(words)


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=20), st.integers(9, 30))
def test_plain_words_go_where_they_always_went(words: list[str], room: int) -> None:
    text = " ".join(words)
    assert wrapped(text, room) == textwrap.wrap(text, room)
