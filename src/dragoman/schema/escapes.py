"""Texts of others, with what steers a terminal, or what no encoding has, shown as escapes.

Pure. What is around a text, and how wide it may be, is for those who show it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.schema.shapes import is_object, is_sequence

# Control characters, halves of pairs, and those that turn the direction of text around: a server's words
# must not move the cursor, change colours or make a line read as another one.
_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """The text with nothing in it that steers a terminal; line ends and tabs stay."""
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], text.replace("\r\n", "\n"))


def writable(value: Any) -> Any:
    """A JSON value without halves of surrogate pairs: JSON lets people write them, UTF-8 cannot."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if is_object(value):
        return {writable(name): writable(inner) for name, inner in value.items()}
    return [writable(inner) for inner in value] if is_sequence(value) else value
