"""What of other people's texts is shown as escapes."""

from __future__ import annotations

import json

import pytest

from dragoman.schema.escapes import harmless, writable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nof\r\ntwo", "plain\ttext\nof\ntwo"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("over\rwritten", "over\\rwritten"),
        ("bell\x07 \x9b1A", "bell\\x07 \\x9b1A"),
        ("turned \u202egnp.exe", "turned \\u202egnp.exe"),
        ("half \ud83d", "half \\ud83d"),
        ("заказ 注文 📦", "заказ 注文 📦"),
    ],
)
def test_what_steers_a_terminal_is_shown(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_json_value_can_be_written_whatever_people_put_into_it() -> None:
    value = json.loads('{"\\ud83d": ["\\udce6", {"a": 1}], "whole": "\\ud83d\\udce6"}')
    assert writable(value) == {"\\ud83d": ["\\udce6", {"a": 1}], "whole": "📦"}
