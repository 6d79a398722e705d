"""JSON with the line and column of every value: what messages about a configuration file need.

A strict reader (RFC 8259) of text in memory, and with `comments` one of the JSON that editors write; it
opens no file and knows no dialect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from dragoman.errors import DragomanError

DEPTH: Final = 100
"""How deep a configuration file may nest."""

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_COMMENTED: Final = re.compile(r"(?:[ \t\n\r]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")
_decode: Final = JSONDecoder().raw_decode
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}


class TextError(DragomanError):
    """A text that is not of its form: `message`, with `line` and `column` counted from 1."""

    form = "text"

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.message = message
        self.line = line
        self.column = column


class JsonError(TextError):
    """A text that is no JSON."""

    form = "JSON"


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the place where it starts, counted from 1 in characters.

    `members` are those of an object, the last of a name where it stands twice, and `names` the places
    of their names; `twice` lists names that stand more than once. `items` are those of an array. `file`
    is set where values of several files are put together. `end` is the offset behind the value, in a text of
    JSON without its mark of byte order.
    """

    value: Any
    line: int
    column: int
    members: Mapping[str, Node] = field(default_factory=dict[str, "Node"])
    names: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    items: tuple[Node, ...] = ()
    twice: tuple[str, ...] = ()
    file: str = ""
    end: int = 0


def parse(text: str, *, comments: bool = False) -> Node:
    """The one JSON value that `text` is; with `comments`, both kinds and commas before a bracket are fine.

    Raises:
        JsonError: it is not one.
    """
    reader = _Reader(text.removeprefix("\ufeff"), comments=comments)
    node, end = reader.value(reader.skip(0), 0)
    end = reader.skip(end)
    if end != len(reader.text):
        raise reader.error("text after the end of the value", end)
    return node


class _Reader:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self._comments = comments
        self._blank = _COMMENTED if comments else _SPACE
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
        self._line = 0  # where the last place was: places are asked for in order

    def place(self, offset: int) -> tuple[int, int]:
        line = self._line if self._starts[self._line] <= offset else 0
        while line + 1 < len(self._starts) and self._starts[line + 1] <= offset:
            line += 1
        self._line = line
        return line + 1, offset - self._starts[line] + 1

    def error(self, message: str, offset: int) -> JsonError:
        line, column = self.place(min(offset, len(self.text)))
        return JsonError(message, line=line, column=column)

    def skip(self, offset: int) -> int:
        match = self._blank.match(self.text, offset)
        return match.end() if match else offset

    def value(self, start: int, depth: int) -> tuple[Node, int]:
        if depth > DEPTH:
            raise self.error(f"nested deeper than {DEPTH}", start)
        head = self.text[start : start + 1]
        if head == "{":
            return self._object(start, depth)
        if head == "[":
            return self._array(start, depth)
        line, column = self.place(start)
        value, end = self._string(start) if head == '"' else self._scalar(start)
        return Node(value, line, column, end=end), end

    def _scalar(self, start: int) -> tuple[Any, int]:
        for word, value in _WORDS.items():
            if self.text.startswith(word, start):
                return value, start + len(word)
        match = _NUMBER.match(self.text, start)
        if match is not None:
            whole = match[1] is None and match[2] is None
            return self._number(match[0], start, whole=whole), match.end()
        raise self.error(self._unexpected("a value", start), start)

    def _number(self, text: str, start: int, *, whole: bool) -> int | float:
        try:
            return int(text) if whole else float(text)
        except ValueError:  # longer than the interpreter converts
            raise self.error("a number of too many digits", start) from None

    def _string(self, start: int) -> tuple[str, int]:
        try:
            return _decode(self.text, start)
        except JSONDecodeError as exc:
            raise self.error(exc.msg[:1].lower() + exc.msg[1:], exc.pos) from None

    def _object(self, start: int, depth: int) -> tuple[Node, int]:
        line, column = self.place(start)
        members: dict[str, Node] = {}
        names: dict[str, tuple[int, int]] = {}
        twice: list[str] = []
        at, done = self._first("}", start)
        while not done:
            if self.text[at : at + 1] != '"':
                raise self.error(self._unexpected("a name in double quotes", at), at)
            where = self.place(at)
            name, end = self._string(at)
            colon = self.skip(end)
            if self.text[colon : colon + 1] != ":":
                raise self.error(self._unexpected("':' after a name", colon), colon)
            node, end = self.value(self.skip(colon + 1), depth + 1)
            if name in members:
                twice.append(name)
            members[name], names[name] = node, where
            at, done = self._next("}", end)
        value = {name: node.value for name, node in members.items()}
        return Node(value, line, column, members=members, names=names, twice=tuple(twice), end=at + 1), at + 1

    def _array(self, start: int, depth: int) -> tuple[Node, int]:
        line, column = self.place(start)
        items: list[Node] = []
        at, done = self._first("]", start)
        while not done:
            node, end = self.value(at, depth + 1)
            items.append(node)
            at, done = self._next("]", end)
        return Node([item.value for item in items], line, column, items=tuple(items), end=at + 1), at + 1

    def _first(self, bracket: str, start: int) -> tuple[int, bool]:
        """The place of the first element, or of the closing bracket and True."""
        at = self.skip(start + 1)
        return at, self.text[at : at + 1] == bracket

    def _next(self, bracket: str, end: int) -> tuple[int, bool]:
        """The place of the next element, or of the closing bracket and True."""
        comma = self.skip(end)
        found = self.text[comma : comma + 1]
        if found == bracket:
            return comma, True
        if found != ",":
            raise self.error(self._unexpected(f"',' or '{bracket}'", comma), comma)
        at = self.skip(comma + 1)
        if self.text[at : at + 1] == bracket:
            if self._comments:
                return at, True
            raise self.error("a comma before the closing bracket", comma)
        return at, False

    def _unexpected(self, expected: str, at: int) -> str:
        found = self.text[at : at + 1]
        if not found:
            return f"expected {expected}; the text ends here"
        if self.text.startswith(("//", "/*"), at):
            return f"expected {expected}; received a comment, which JSON does not have"
        return f"expected {expected}; received {found!r}"
