"""A small, strict reader of YAML: what people write into the frontmatter of skills, and nothing else.

Mappings, lists, plain and quoted texts, blocks after `|` and `>`, `[...]` and `{...}`. No tags, no
anchors, no documents: nothing can be built by it but plain data, and what two readers of YAML could
understand in two ways is a fault that names its line. It opens no files.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from dragoman.protocol.yaml.flow import Flow
from dragoman.protocol.yaml.scalars import escaped, folded, folded_block, plain

DEPTH: Final = 16

_BREAK: Final = re.compile(r"\r\n|\n|\r")
_FOREIGN: Final = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]")
_BLOCK: Final = re.compile(r"([|>])([-+]?)(?: +#.*| *)")
_COMMENT: Final = re.compile(r"(?:^| )#")
_QUOTED: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""")
_COLON: Final = re.compile(r" *:(?= |$)")
_END: Final = re.compile(r":(?= |$)")
_SINGLE: Final = re.compile(r"(?:[^']|'')*")
_DOUBLE: Final = re.compile(r'(?:[^"\\]|\\.)*')
_SPECIAL: Final = {
    "&": "anchors",
    "*": "aliases",
    "!": "tags",
    "%": "directives",
    "@": "texts that begin with @",
    "`": "texts that begin with `",
}


class YamlFault(ValueError):
    """What was written is not read here: `line` says where, the message what and why."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(text: str, *, line: int = 1) -> tuple[dict[str, Any], dict[str, int]]:
    """A mapping, and the line of each of its keys; `line` is the number of the first line.

    Raises:
        YamlFault: it is no mapping, or uses what is not read here.
    """
    reader = _Reader(text, line)
    value = reader.document()
    return value, reader.key_lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _key_end(text: str) -> int:
    """Where the colon after a key stands, if the text begins with a key, or -1."""
    if text[0] in "[{|>#":
        return -1
    quoted = _QUOTED.match(text)
    if quoted:
        found = _COLON.match(text, quoted.end())
        return -1 if found is None else found.end() - 1
    found = None if text[0] in "\"'" else _END.search(text)
    return -1 if found is None or _COMMENT.search(text, 0, found.start()) else found.start()


class _Reader:
    """One text, read from the first line to the last."""

    def __init__(self, text: str, first: int) -> None:
        self._lines = _BREAK.split(text)
        self._first = first
        self._at = 0
        self.key_lines: dict[str, int] = {}
        for number, line in enumerate(self._lines):
            found = _FOREIGN.search(line)
            if found:
                what = "a tab" if found[0] == "\t" else f"the character U+{ord(found[0]):04X}"
                raise YamlFault(f"{what} has no place here", first + number)

    def _fault(self, message: str, at: int | None = None) -> YamlFault:
        return YamlFault(message, self._first + (self._at if at is None else at))

    def _peek(self) -> tuple[int, str] | None:
        """Indentation and text of the next line that says something."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            text = line.lstrip(" ")
            if text.strip(" ") and text[0] != "#":
                return len(line) - len(text), text.rstrip(" ")
            self._at += 1
        return None

    def document(self) -> dict[str, Any]:
        """All of it."""
        found = self._peek()
        if found is None:
            raise self._fault("expected a mapping such as `name: ...`, found nothing", 0)
        value = self._node(found[0], 0)
        left = self._peek()
        if left is not None:
            raise self._fault("unexpected indentation")
        if not isinstance(value, dict):
            raise self._fault("expected a mapping such as `name: ...`", 0)
        return cast("dict[str, Any]", value)

    # Structure -----------------------------------------------------------------------------------

    def _node(self, indent: int, depth: int) -> Any:
        """What begins on the next line, which is indented by `indent`."""
        if depth > DEPTH:
            raise self._fault(f"nested more than {DEPTH} deep")
        found = self._peek()
        text = found[1] if found else ""
        if text in ("---", "..."):
            raise self._fault("a second document")
        if text == "-" or text.startswith("- "):
            return self._list(indent, depth)
        if _key_end(text) >= 0 or text[0] == "?":
            return self._mapping(indent, depth)
        return self._value(text, indent - 1, depth=depth)

    def _list(self, indent: int, depth: int) -> list[Any]:
        items: list[Any] = []
        while (found := self._peek()) and found[0] == indent:
            text = found[1]
            if text != "-" and not text.startswith("- "):
                break
            rest = text[1:].lstrip(" ")
            if rest and ((rest[0] == "-" and rest[1:2] in ("", " ")) or _key_end(rest) >= 0):
                # A list or a mapping in the item, begun on its own line.
                column = indent + len(text) - len(rest)
                self._lines[self._at] = " " * column + rest
                items.append(self._node(column, depth + 1))
            else:
                items.append(self._value(rest, indent, depth=depth + 1))
        self._closed(indent)
        return items

    def _mapping(self, indent: int, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while (found := self._peek()) and found[0] == indent:
            end = _key_end(found[1])
            if end < 0:
                raise self._fault(f"expected `key: value`, found {found[1][:40]!r}")
            key = self._key(found[1][:end].rstrip(" "))
            if key in members:
                raise self._fault(f"{key} stands there twice")
            if not depth:
                self.key_lines[key] = self._first + self._at
            rest = found[1][end + 1 :].lstrip(" ")
            members[key] = self._value(rest, indent, depth=depth + 1, in_mapping=True)
        self._closed(indent)
        return members

    def _closed(self, indent: int) -> None:
        found = self._peek()
        if found and found[0] > indent:
            raise self._fault("unexpected indentation")

    def _key(self, text: str) -> str:
        if not text:
            raise self._fault("a colon without its key")
        if text[0] in "\"'":
            return self._unquoted(text[0], text[1:-1], at=self._at)
        self._check_start(text)
        key = self._plain_value(text)
        if not isinstance(key, str):
            raise self._fault(f"the key {text} is no text: put it in quotes")
        return key

    # Values --------------------------------------------------------------------------------------

    def _value(self, rest: str, parent: int, *, depth: int, in_mapping: bool = False) -> Any:
        """What `rest`, the end of the line, begins; `parent` is the indentation of what holds it."""
        if not rest or rest[0] == "#":
            self._at += 1
            return self._below(parent, depth, in_mapping=in_mapping)
        block = _BLOCK.fullmatch(rest)
        if block:
            self._at += 1
            return self._block(block[1], block[2], parent=parent)
        if rest[0] in "|>":
            raise self._fault(f"{rest[:20]!r}: a block begins with |, |-, |+, >, >- or >+")
        if rest[0] in "[{":
            return self._flow(rest, parent, depth=depth)
        if rest[0] in "\"'":
            return self._quoted(rest, parent)
        return self._plain(rest, parent)

    def _below(self, parent: int, depth: int, *, in_mapping: bool) -> Any:
        found = self._peek()
        if found is None or found[0] < parent or (found[0] == parent and not in_mapping):
            return None
        if found[0] == parent and found[1] != "-" and not found[1].startswith("- "):
            return None
        return self._node(found[0], depth)

    def _check_start(self, text: str) -> None:
        first = text[0]
        if first in _SPECIAL:
            raise self._fault(f"{text[:20]!r}: no {_SPECIAL[first]} here; a text is put in quotes")
        if first in ",[]{}#|>\"'" or (first in "-?:" and text[1:2] in ("", " ")):
            raise self._fault(f"a text cannot begin with {first}: put it in quotes")

    def _plain_value(self, text: str) -> Any:
        try:
            return plain(text)
        except ValueError as exc:
            raise self._fault(str(exc)) from None

    def _plain(self, rest: str, parent: int) -> Any:
        self._check_start(rest)
        parts = [self._checked(rest)]
        ended = parts[0] != rest
        start, self._at = self._at, self._at + 1
        while not ended and self._at < len(self._lines):
            line = self._lines[self._at]
            text = line.strip(" ")
            if text and (_indent(line) <= parent or text[0] == "#"):
                break
            parts.append(self._checked(text))
            ended = parts[-1] != text
            self._at += 1
        while not parts[-1]:
            parts.pop()
        if len(parts) > 1:
            return folded(parts)
        end, self._at = self._at, start
        value = self._plain_value(parts[0])
        self._at = end
        return value

    def _checked(self, text: str) -> str:
        """A line of a text without quotes, without its comment."""
        comment = _COMMENT.search(text)
        if comment:
            text = text[: comment.start()].rstrip(" ")
        if text.endswith(":") or ": " in text:
            raise self._fault("a colon and a blank in a text without quotes: put the text in quotes")
        return text

    def _quoted(self, rest: str, parent: int) -> str:
        start, quote = self._at, rest[0]
        parts: list[str] = []
        text = rest[1:]
        while True:
            found = (_SINGLE if quote == "'" else _DOUBLE).match(text)
            end = found.end() if found else 0
            if end < len(text) and text[end] == quote:
                break
            if end < len(text):
                raise self._fault("a backslash at the end of a line is not read here")
            parts.append(text.rstrip(" "))
            text = self._continued(parent, start)
        after = text[end + 1 :].strip(" ")
        if after and not (after[0] == "#" and text[end + 1] == " "):
            raise self._fault(f"unexpected text after the closing quote: {after[:40]!r}")
        value = self._unquoted(quote, folded([*parts, text[:end]]), at=start)
        self._at += 1
        return value

    def _continued(self, parent: int, start: int) -> str:
        self._at += 1
        if self._at >= len(self._lines):
            raise self._fault("a quote that is never closed", start)
        line = self._lines[self._at]
        text = line.strip(" ")
        if text and _indent(line) <= parent:
            raise self._fault("a quote that is never closed", start)
        return line.lstrip(" ")

    def _unquoted(self, quote: str, text: str, *, at: int) -> str:
        if quote == "'":
            return text.replace("''", "'")
        try:
            return escaped(text)
        except ValueError as exc:
            raise self._fault(str(exc), at) from None

    def _block(self, style: str, chomp: str, *, parent: int) -> str:
        start, lines = self._at - 1, self._block_lines(parent)
        if chomp == "+" and self._at >= len(self._lines):
            raise self._fault(f"readers differ on where a block after {style}+ at the very end ends", start)
        while lines and not lines[-1] and chomp != "+":
            lines.pop()
        empty = 0
        while lines and not lines[-1]:
            lines.pop()
            empty += 1
        text = "\n".join(lines) if style == "|" else folded_block(lines)
        if chomp == "-":
            return text
        return text + "\n" * (empty + bool(lines))

    def _block_lines(self, parent: int) -> list[str]:
        """The lines that belong to a block, without their common indentation."""
        start = self._at
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip(" ") and _indent(line) <= parent:
                break
            self._at += 1
        lines = self._lines[start : self._at]
        indent = next((_indent(line) for line in lines if line.strip(" ")), 0)
        said = False
        for number, line in enumerate(lines, start):
            said = said or bool(line.strip(" "))
            if line.strip(" ") and _indent(line) < indent:
                raise self._fault("less indented than the first line of its block", number)
            if not said and indent and len(line) > indent:
                raise self._fault("an empty line that is indented further than its block", number)
        return [line[indent:] if indent else "" for line in lines]

    def _flow(self, rest: str, parent: int, *, depth: int) -> Any:
        text = "\n".join([rest, *self._lines[self._at + 1 :]])
        flow = Flow(text, DEPTH - depth)
        try:
            value = flow.read()
        except ValueError as exc:
            raise self._fault(str(exc), self._at + text.count("\n", 0, flow.at)) from None
        start, self._at = self._at, self._at + text.count("\n", 0, flow.at) + 1
        for number, line in enumerate(self._lines[start + 1 : self._at], start + 1):
            if line.strip(" ") and _indent(line) <= parent:
                raise self._fault("what stands in brackets has to be indented further than its key", number)
        return value
