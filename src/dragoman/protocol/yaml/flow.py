"""Lists and mappings in brackets, `[a, b]` and `{a: b}`, as YAML has them: part of the small reader."""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.protocol.yaml.scalars import escaped, plain

_GAP: Final = re.compile(r"(?: *(?:(?<![^ \n])#[^\n]*)?\n)* *")
_REST: Final = re.compile(r" *(?:(?<= )#[^\n]*)?(?=\n|$)")
_PLAIN: Final = re.compile(r"(?:[^,\[\]{}:#\n]|:(?![ \n,\[\]{}]|$)|(?<![ \n])#)+")
_SINGLE: Final = re.compile(r"'((?:[^'\n]|'')*)'")
_DOUBLE: Final = re.compile(r'"((?:[^"\\\n]|\\[^\n])*)"')
_FORBIDDEN: Final = "&*!%@`|>?#"


class Flow:
    """A text that begins with a bracket. `at` is where the reader is, in characters."""

    def __init__(self, text: str, depth: int) -> None:
        self._text = text
        self._depth = depth
        self.at = 0

    def read(self) -> Any:
        """The value up to the closing bracket, after which nothing else stands on its line.

        Raises:
            ValueError: it is none; `at` is about where.
        """
        value = self._value(0)
        found = _REST.match(self._text, self.at)
        if found is None:
            raise ValueError("unexpected text after the closing bracket")
        return value

    def _gap(self) -> str:
        """Pass over blanks, comments and breaks; the character after them."""
        found = _GAP.match(self._text, self.at)
        self.at = found.end() if found else self.at
        if self.at >= len(self._text):
            raise ValueError("a bracket that is never closed")
        return self._text[self.at]

    def _value(self, depth: int) -> Any:
        if depth > self._depth:
            raise ValueError("brackets nested too deep")
        first = self._gap()
        if first == "[":
            return self._list(depth)
        if first == "{":
            return self._mapping(depth)
        return self._scalar(first)

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        while self._gap() != "]":
            items.append(self._value(depth + 1))
            self._comma("]")
        self.at += 1
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        while (first := self._gap()) != "}":
            key = self._scalar(first) if first not in "[{" else None
            if not isinstance(key, str):
                raise ValueError("a key that is no text: put it in quotes")  # noqa: TRY004  # it is read, not given
            if key in members:
                raise ValueError(f"{key} stands there twice")
            if self._gap() != ":":
                raise ValueError(f"expected `: ` after the key {key}")
            self.at += 1
            members[key] = self._value(depth + 1)
            self._comma("}")
        self.at += 1
        return members

    def _comma(self, closing: str) -> None:
        found = self._gap()
        if found == ",":
            self.at += 1
        elif found != closing:
            raise ValueError(f"expected , or {closing}, found {self._text[self.at : self.at + 20]!r}")

    def _scalar(self, first: str) -> Any:
        if first in "\"'":
            found = (_SINGLE if first == "'" else _DOUBLE).match(self._text, self.at)
            if found is None:
                raise ValueError("a quote that is not closed on its line")
            value: Any = found[1].replace("''", "'") if first == "'" else escaped(found[1])
            self.at = found.end()
            return value
        found = _PLAIN.match(self._text, self.at)
        if found is None or first in _FORBIDDEN or (first == "-" and found[0][1:2] in ("", " ")):
            raise ValueError(f"expected a value, found {self._text[self.at : self.at + 20]!r}")
        value = plain(found[0].rstrip(" "))
        self.at = found.end()
        return value
