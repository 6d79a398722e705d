"""TOML with the line and column of every value, as `located` has them for JSON.

The values are the standard library's, which is strict; a second pass over the same text, which is then
known to be TOML, finds where each of them stands. Opens no file and knows no dialect.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from dragoman.host.config.located import DEPTH, Node, TextError

_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'", re.DOTALL
)
_SCALAR: Final = re.compile(r"[^,\]}\n#]+")
_AT: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_PART: Final = r"""(?:[A-Za-z0-9_-]{1,1000}|"[^"\n]{0,1000}"|'[^'\n]{0,1000}')"""
_DEEP: Final = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]{{0,10}}\.[ \t]{{0,10}}){{{DEPTH}}}")
_HEAD: Final = re.compile(r"\[\[?")

_Path: TypeAlias = tuple[str | int, ...]
_Place: TypeAlias = tuple[int, int]


class TomlError(TextError):
    """A text that is no TOML."""

    form = "TOML"


def parse(text: str, file: str = "") -> Node:
    """The table that `text` is, with places; `file` is set in every node.

    Raises:
        TomlError: it is not TOML.
    """
    text = text.removeprefix("\ufeff")
    # The standard library takes time with the square of a name's parts.
    if (deep := _DEEP.search(text)) is not None:
        line = text.count("\n", 0, deep.start())
        column = deep.start() - text.rfind("\n", 0, deep.start())
        raise TomlError(f"nested deeper than {DEPTH}", line=line + 1, column=column)
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise _error(str(exc), text) from None
    except RecursionError:
        raise TomlError(f"nested deeper than {DEPTH}", line=1, column=1) from None
    except ValueError:  # longer than the interpreter converts
        raise TomlError("a number of too many digits", line=1, column=1) from None
    scan = _Scan(text.replace("\r\n", "\n"))
    scan.document()
    return _node(value, (), scan=scan, file=file)


def _error(message: str, text: str) -> TomlError:
    found = _AT.search(message)
    message = _AT.sub("", message)
    message = message[:1].lower() + message[1:]
    if found is not None and found[1]:
        return TomlError(message, line=int(found[1]), column=int(found[2]))
    lines = text.split("\n")
    return TomlError(message, line=len(lines), column=len(lines[-1]) + 1)


def _node(value: Any, path: _Path, *, scan: _Scan, file: str) -> Node:
    if len(path) > DEPTH:
        raise TomlError(f"nested deeper than {DEPTH}", line=1, column=1)
    line, column = scan.place(path)
    if isinstance(value, dict):
        table = cast("Mapping[str, Any]", value)
        members = {name: _node(item, (*path, name), scan=scan, file=file) for name, item in table.items()}
        names = {name: scan.name(path, name) for name in table}
        return Node(value, line, column, members=members, names=names, file=file)
    if isinstance(value, list):
        listed = cast("list[object]", value)
        items = tuple(_node(item, (*path, at), scan=scan, file=file) for at, item in enumerate(listed))
        return Node(value, line, column, items=items, file=file)
    return Node(value, line, column, file=file)


class _Scan:
    """Places of keys and values in a text that is TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self._values: dict[_Path, _Place] = {}
        self._keys: dict[_Path, _Place] = {}
        self._tables: dict[_Path, int] = {}  # how many elements an array of tables has so far
        self._line = 0

    def place(self, path: _Path) -> _Place:
        """Where a value stands, or the first thing in it: tables may be there by their members alone."""
        while path:
            if path in self._values:
                return self._values[path]
            if path in self._keys:
                return self._keys[path]
            path = path[:-1]
        return 1, 1

    def name(self, path: _Path, name: str) -> _Place:
        """Where a member's name stands."""
        return self._keys.get((*path, name)) or self.place(path)

    def document(self) -> None:
        base: _Path = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self._next() == "[":
                base = self._header()
            else:
                self._pair(base)

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _here(self) -> _Place:
        line = self._line if self._starts[self._line] <= self.at else 0
        while line + 1 < len(self._starts) and self._starts[line + 1] <= self.at:
            line += 1
        self._line = line
        return line + 1, self.at - self._starts[line] + 1

    def _header(self) -> _Path:
        many = self._skip(_HEAD) == "[["
        where = self._here()
        path = self._key(())
        for length in range(1, len(path) + 1):
            self._keys.setdefault(path[:length], where)
        if many:
            count = self._tables.get(path, 0)
            self._tables[path] = count + 1
            path = (*path, count)
            self._values[path] = where
        self.at = self.text.find("\n", self.at)
        self.at = len(self.text) if self.at < 0 else self.at
        return path

    def _key(self, base: _Path) -> _Path:
        """A dotted key below `base`; an array of tables on the way means its last element."""
        path = base
        while True:
            self._skip(_SPACE)
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
            quoted = self._skip(_STRING)
            path = (*path, _unquoted(quoted) if quoted else self._skip(_BARE))
            self._skip(_SPACE)
            if self._next() != ".":
                return path
            self.at += 1

    def _pair(self, base: _Path) -> None:
        where = self._here()
        path = self._key(base)
        for length in range(len(base) + 1, len(path) + 1):
            self._keys.setdefault(path[:length], where)
        self.at += 1  # the sign
        self._skip(_SPACE)
        self._value(path)

    def _value(self, path: _Path) -> None:
        self._values[path] = self._here()
        first = self._next()
        if first == "[":
            self._elements(path)
        elif first == "{":
            self._members(path)
        elif not self._skip(_STRING):
            self._skip(_SCALAR)

    def _elements(self, path: _Path) -> None:
        self.at += 1
        count = 0
        while True:
            self._skip(_BLANK)
            if self._next() in ("]", ""):
                self.at += 1
                return
            if self._next() == ",":
                self.at += 1
                continue
            self._value((*path, count))
            count += 1

    def _members(self, path: _Path) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self._next() in ("}", ""):
                self.at += 1
                return
            if self._next() == ",":
                self.at += 1
                continue
            self._pair(path)


def _unquoted(text: str) -> str:
    """A quoted key as the reader of values reads it."""
    (key,) = tomllib.loads(f"{text} = 0")
    return key
