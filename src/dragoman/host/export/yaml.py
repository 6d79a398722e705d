"""Servers put into the YAML of Continue: lines of other entries, comments and keys stay as they are. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.protocol.yaml import YamlFault, read_yaml
from dragoman.schema.shapes import is_array, is_object

LIST: Final = "mcpServers"
_HEAD: Final = re.compile(rf"{LIST}:[ \t]*(?P<rest>[^#\n]*?)[ \t]*(?:#.*)?")
_ITEM: Final = re.compile(r"(?P<margin> *)-(?: |$)")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_FOREIGN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_EMPTY: Final = ("", "[]", "null", "~")
_HEADER: Final = ("name: Local", "version: 1.0.0", "schema: v1")


def put_server(text: str, name: str, *, entry: Mapping[str, Any], own: Collection[str]) -> str:
    """The text with the entry of a server: new at the end of the list, or in place of the one that is there.

    Of an entry that is there, members that are not among `own` stay; comments inside of it do not.

    Raises:
        UsageError: the text is no YAML that is read here, or its list is written on one line.
    """
    before = _read(text)
    items: Any = before.get(LIST)
    items = [] if items is None else items
    if not is_array(items):
        raise UsageError(f"`{LIST}`: expected a list")
    at = next((index for index, item in enumerate(items) if _called(item, name)), None)
    kept = {} if at is None else {key: value for key, value in items[at].items() if key not in own}
    wanted = {"name": name, **{key: value for key, value in kept.items() if key != "name"}, **entry}
    after = _written(text, at, wanted=wanted)
    expected = [*items, wanted] if at is None else [*items[:at], wanted, *items[at + 1 :]]
    if _read(after) != ({**before, LIST: expected} if text.strip() else {**_read(after), LIST: expected}):
        raise UsageError(f"`{LIST}` is written in a way that cannot be added to: write an item a line")
    return after


def _called(item: Any, name: str) -> bool:
    return is_object(item) and item.get("name") == name


def _read(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        return read_yaml(text)[0]
    except YamlFault as exc:
        raise UsageError(f"line {exc.line}: not YAML that is read here: {exc}") from None


def _written(text: str, at: int | None, *, wanted: Mapping[str, Any]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    if not text.strip():
        return newline.join([*_HEADER, f"{LIST}:", *_block(wanted, "  "), ""])
    lines = text.replace("\r\n", "\n").split("\n")
    head = next((number for number, line in enumerate(lines) if _HEAD.fullmatch(line)), None)
    if head is None:
        while lines and not lines[-1].strip():
            lines.pop()
        return newline.join([*lines, f"{LIST}:", *_block(wanted, "  "), ""])
    found = _HEAD.fullmatch(lines[head])
    if found is not None and found["rest"] not in _EMPTY:
        raise UsageError(f"line {head + 1}: `{LIST}` stands on one line: write an item a line")
    if found is not None and found["rest"]:
        lines[head] = f"{LIST}:"
    blocks, margin = _blocks(lines, head)
    if at is None:
        end = blocks[-1][1] if blocks else head + 1
        lines[end:end] = _block(wanted, margin)
    else:
        start, end = blocks[at]
        lines[start:end] = _block(wanted, margin)
    return newline.join(lines)


def _blocks(lines: list[str], head: int) -> tuple[list[tuple[int, int]], str]:
    """The lines of each item of the list, no blank lines and comments behind it, and their margin."""
    margin: str | None = None
    starts: list[int] = []
    end = head + 1
    for number in range(head + 1, len(lines)):
        line = lines[number]
        found = _ITEM.match(line)
        if found is not None and margin in (None, found["margin"]):
            margin = found["margin"]
            starts.append(number)
        elif line.strip() and not line.startswith(" ") and not line.startswith("#"):
            break
        if line.strip() and not line.lstrip().startswith("#"):
            end = number + 1
    bounds = [*starts, end]
    return [(start, _trimmed(lines, start, end=bounds[at + 1])) for at, start in enumerate(starts)], (
        "  " if margin is None else margin
    )


def _trimmed(lines: list[str], start: int, *, end: int) -> int:
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _block(entry: Mapping[str, Any], margin: str) -> list[str]:
    lines = _mapping(entry)
    return [f"{margin}- {lines[0]}", *(f"{margin}  {line}" for line in lines[1:])]


def _mapping(table: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, value in table.items():
        key = name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)
        if is_object(value) and value:
            lines += [f"{key}:", *(f"  {line}" for line in _mapping(value))]
        elif is_array(value) and value:
            lines += [f"{key}:", *(f"  - {_scalar(item)}" for item in value)]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    """A value as JSON, which is YAML too, but for characters that have no place in a line of it."""
    text = json.dumps(value, ensure_ascii=False)
    return _FOREIGN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
