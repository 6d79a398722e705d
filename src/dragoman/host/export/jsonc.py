"""Members of a JSON text put in, replaced and taken out, with everything else of the text as it was.

Pure. Comments, blanks, order, the kind of line ends and commas before brackets stay where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.host.config.located import Node, parse
from dragoman.schema.shapes import is_object

_BOM: Final = "\ufeff"
_BLANK: Final = re.compile(r"(?:[ \t\n\r]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_INDENT: Final = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_LINE_START: Final = re.compile(r"[^\n\r]*\Z")
_LONGEST: Final = 100  # characters of a line that an object stands on


class JsonText:
    """A text that is changed in place. An empty one is an empty object.

    Raises:
        JsonError: the text is no JSON, with comments and commas before brackets allowed.
        UsageError: it is no object.
    """

    def __init__(self, text: str) -> None:
        self._bom = _BOM if text.startswith(_BOM) else ""
        self.text = text.removeprefix(_BOM)
        if not self.text.strip():
            self.text = "{}\n"
        self._newline = "\r\n" if "\r\n" in self.text else "\n"
        found = _INDENT.search(self.text)
        self._unit = found[1] if found else "  "
        self._root()

    def __str__(self) -> str:
        """The whole text."""
        return self._bom + self.text

    @property
    def value(self) -> dict[str, Any]:
        """What the text says now."""
        value: dict[str, Any] = self._root().value
        return value

    def node(self, path: Sequence[str]) -> Node | None:
        """The value at a path; None where there is none.

        Raises:
            UsageError: something on the way is no object, or stands twice.
        """
        node = self._root()
        for at, name in enumerate(path):
            where = ".".join(path[:at]) or "the file"
            if not isinstance(node.value, dict):
                raise UsageError(f"line {node.line}: {where} is no object")
            if name in node.twice:
                raise UsageError(f"line {node.names[name][0]}: `{name}` stands twice in {where}")
            if name not in node.members:
                return None
            node = node.members[name]
        return node

    def put(self, path: Sequence[str], value: Any) -> None:
        """Set the value at a path, making the objects on the way. Raises UsageError as `node`."""
        old = self.node(path)
        if old is not None:
            if old.value != value:
                self._replace(old, value)
            return
        parent = self.node(path[:-1])
        if parent is None:
            self.put(path[:-1], {path[-1]: value})
        elif not isinstance(parent.value, dict):
            raise UsageError(f"line {parent.line}: {'.'.join(path[:-1])} is no object")
        else:
            self._insert(parent, path[-1], value=value)

    def drop(self, path: Sequence[str]) -> None:
        """Take a member out, if it is there. Raises UsageError as `node`."""
        node, parent = self.node(path), self.node(path[:-1])
        if node is None or parent is None:
            return
        start, end = self._offset(*parent.names[path[-1]]), node.end
        comma = _skip(self.text, end)
        if self.text[comma : comma + 1] == ",":
            end = comma + 1
        else:
            before = [member.end for member in parent.members.values() if member.end < start]
            if before:
                at = _skip(self.text, max(before))
                self.text = self.text[:at] + self.text[at + 1 :]
                start, end = start - 1, end - 1
        self.text = _cut(self.text, start, end=end)

    # How it is written -------------------------------------------------------------------------------

    def _root(self) -> Node:
        root = parse(self.text, comments=True)
        if not isinstance(root.value, dict):
            raise UsageError(f"line {root.line}: the file is no object")
        return root

    def _offset(self, line: int, column: int) -> int:
        starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", self.text))]
        return starts[line - 1] + column - 1

    def _margin(self, offset: int) -> str:
        """The blanks that the line of a place begins with."""
        found = _LINE_START.search(self.text[:offset])
        line = found[0] if found else ""
        return line[: len(line) - len(line.lstrip())]

    def _replace(self, node: Node, value: Any) -> None:
        start = self._offset(node.line, node.column)
        inline = self._newline not in self.text[start : node.end]
        self.text = self.text[:start] + self._dump(value, start, inline=inline) + self.text[node.end :]

    def _dump(self, value: Any, at: int, *, inline: bool) -> str:
        margin = self._margin(at)
        if inline:
            short = _short(value)
            if len(margin) + len(short) <= _LONGEST or not isinstance(value, dict | list):
                return short
        lines = _long(value, self._unit).split("\n")
        return self._newline.join([lines[0], *(margin + line for line in lines[1:])])

    def _insert(self, parent: Node, name: str, *, value: Any) -> None:
        opening = self._offset(parent.line, parent.column)
        closing = parent.end - 1
        last = max((member.end for member in parent.members.values()), default=None)
        margin = self._margin(opening)
        one_line = not re.search(r"[\n\r]", self.text[opening:closing]) and last is not None
        key = json.dumps(name, ensure_ascii=False)
        if one_line and last is not None:
            tail = self.text[last:closing].rstrip(" \t")
            comma = "" if tail.lstrip().startswith(",") else ","
            piece = f"{comma} {key}: {_short(value)}"
            at = last + len(tail)
            self.text = self.text[:at] + piece + self.text[at:]
            return
        inner = self._inner(parent, margin)
        trailing = False
        if last is not None:
            comma_at = _skip(self.text, last)
            trailing = comma_at < closing and self.text[comma_at] == ","
            if not trailing:
                self.text = self.text[:last] + "," + self.text[last:]
                closing += 1
        at = len(self.text[:closing].rstrip(" \t\r\n"))
        dumped = self._dump_at(value, inner)
        piece = f"{self._newline}{inner}{key}: {dumped}{',' if trailing else ''}"
        end = self.text[at:closing]
        if not re.search(r"[\n\r]", end):
            end = self._newline + margin
        self.text = self.text[:at] + piece + end + self.text[closing:]

    def _inner(self, parent: Node, margin: str) -> str:
        """The blanks before the members of an object."""
        for line, column in parent.names.values():
            start = self._offset(line, column)
            found = self._margin(start)
            if len(found) == column - 1:
                return found
        return margin + self._unit

    def _dump_at(self, value: Any, margin: str) -> str:
        lines = _long(value, self._unit).split("\n")
        return self._newline.join([lines[0], *(margin + line for line in lines[1:])])


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _cut(text: str, start: int, *, end: int) -> str:
    """The text without a stretch of it, and without the line if nothing else stands on it."""
    head = len(text[:start].rstrip(" \t"))
    tail = re.compile(r"[ \t]*(\r\n|\n|\r)?").match(text, end)
    alone = (head == 0 or text[head - 1] in "\r\n") and tail is not None and tail[1] is not None
    if alone and tail is not None:
        return text[:head] + text[tail.end() :]
    rest = text[end:].lstrip(" \t")
    return text[: head if rest[:1] in ("}", "]") else start] + rest


def _short(value: Any) -> str:
    """A value on one line."""
    if is_object(value) and value:
        members = ", ".join(
            f"{json.dumps(str(k), ensure_ascii=False)}: {_short(v)}" for k, v in value.items()
        )
        return f"{{{members}}}"
    return json.dumps(value, ensure_ascii=False)


def _long(value: Any, unit: str) -> str:
    """A value on several lines, but lists of texts and what is empty on one."""
    if is_object(value) and value:
        members = [
            f"{unit}{json.dumps(str(name), ensure_ascii=False)}: "
            + _long(inner, unit).replace("\n", f"\n{unit}")
            for name, inner in value.items()
        ]
        return "{\n" + ",\n".join(members) + "\n}"
    return json.dumps(value, ensure_ascii=False)
