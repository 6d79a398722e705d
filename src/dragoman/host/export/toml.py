"""Servers put into the TOML of Codex, with comments, order and everything else of it as they were. Pure."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.host.config.toml import parse
from dragoman.schema.shapes import is_array, is_object

TABLE: Final = "mcp_servers"


def put_server(text: str, name: str, *, entry: Mapping[str, Any], own: Collection[str]) -> str:
    """The text with the entry of a server: new at its end, or changed where it stands.

    Of an entry that is there, the members among `own` become those of `entry`; others stay.

    Raises:
        TomlError: the text is no TOML.
        UsageError: it is written in a way in which the entry cannot be put into it.
    """
    before = parse(text).value
    found = before.get(TABLE)
    old: dict[str, Any] = found if is_object(found) else {}
    there = old.get(name)
    if is_object(there) and _is_program(there) == _is_program(entry):
        wanted = {key: value for key, value in there.items() if key not in own} | dict(entry)
    else:
        wanted = dict(entry)
    expected = {**before, TABLE: {**old, name: wanted}}
    for after in (
        _edited(text, name, wanted=wanted, new=there is None),
        _rewritten(text, name, wanted=wanted),
    ):
        if _value(after) == expected:
            return after
    raise UsageError(
        f"the tables of {TABLE} are written in a way that cannot be added to: use [{TABLE}.name]"
    )


def _is_program(entry: Mapping[str, Any]) -> bool:
    return "command" in entry


def _value(text: str) -> object:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _edited(text: str, name: str, *, wanted: Mapping[str, Any], new: bool) -> str:
    """The table at the end of the text, or member by member where it is."""
    if not new:
        return _members(text, name, wanted=wanted)
    import tomlkit

    newline = "\r\n" if "\r\n" in text else "\n"
    key = tomlkit.key([TABLE, name]).as_string()
    lines = [
        f"[{key}]",
        *(f"{tomlkit.key(member).as_string()} = {_inline(value)}" for member, value in wanted.items()),
    ]
    block = newline.join([*lines, ""])
    if not text.strip():
        return block
    start = text if text.endswith("\n") else text + newline
    return f"{start}{newline}{block}"


def _members(text: str, name: str, *, wanted: Mapping[str, Any]) -> str:
    import tomlkit

    document: Any = tomlkit.parse(text)
    table = document[TABLE][name]
    for member in [key for key in table if key not in wanted]:
        del table[member]
    for member, value in wanted.items():
        if member not in table or table[member] != value:
            table[member] = tomlkit.value(_inline(value))
    return tomlkit.dumps(document)


def _rewritten(text: str, name: str, *, wanted: Mapping[str, Any]) -> str:
    """The whole entry anew, inside of whatever the tables are."""
    import tomlkit

    document: Any = tomlkit.parse(text)
    try:
        document[TABLE][name] = tomlkit.value(_inline(wanted))
    except (KeyError, TypeError, ValueError):
        return ""
    return tomlkit.dumps(document)


def _inline(value: Any) -> str:
    """A value on one line."""
    import tomlkit

    if is_object(value):
        members = ", ".join(
            f"{tomlkit.key(str(key)).as_string()} = {_inline(inner)}" for key, inner in value.items()
        )
        return f"{{ {members} }}" if members else "{}"
    if is_array(value):
        return f"[{', '.join(map(_inline, value))}]"
    # JSON's way of writing texts, numbers and truth is TOML's too, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
