"""Values that are too long for a line: shortened in it, and kept beside it by their hash.

Pure: what is kept is handed back. The line says of each where it stood, in `large`, a member that no value of
a server's can take the place of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.host.trace.redaction import OWN
from dragoman.schema.escapes import writable
from dragoman.schema.shapes import is_array, is_object

_IDS: Final = ("type", "id", "name", "tool_use_id")

SHOWN: Final = 256
"""Characters of a long value that stay in the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large things get, in bytes.

    A text longer than `value`, and what makes a line longer than `line`, goes to a file beside. A file of
    `size` bytes, or one that was begun `age` seconds ago, is followed by a new one; `keep` of those before
    it stay, None for all.

    Raises:
        UsageError: a limit is smaller than what a line needs.
    """

    value: int = 64 << 10
    line: int = 1 << 20
    size: int | None = 64 << 20
    age: float | None = None
    keep: int | None = None

    def __post_init__(self) -> None:
        least = {"value": 4 * SHOWN, "line": 16 * SHOWN, "size": 1, "age": 0, "keep": 0}
        for name, few in least.items():
            value: float | None = getattr(self, name)
            if value is not None and value < few:
                raise UsageError(f"{name}={value}: expected {few} or more")


@dataclass(slots=True)
class Large:
    """What was taken out of one line: `kept` by hash, if there is where to keep it, and the places of all."""

    keeps: bool
    limits: Limits
    kept: dict[str, bytes] = field(default_factory=dict[str, bytes])
    places: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def take(self, data: bytes, *, at: Iterable[str | int], form: str) -> str:
        """Take a value out; what the line shows instead."""
        digest = sha256(data).hexdigest()
        if self.keeps:
            self.kept[digest] = data
        self.places.append(
            {"at": list(at), "bytes": len(data), "sha256": digest, "form": form, "kept": self.keeps}
        )
        return data[: SHOWN * 4].decode("utf-8", "replace")[:SHOWN] + "…"


def shorten(members: dict[str, Any], large: Large) -> bytes:
    """A line's members, encoded, with what is too long for it taken out."""
    body = encode(members)
    if len(body) <= min(large.limits.value, large.limits.line):
        return body
    table: dict[str, Any] = {
        name: value if name in OWN else _texts(value, large, at=(name,)) for name, value in members.items()
    }
    body = encode(_with(table, large))
    # Many small values: whole objects and arrays go, the largest first, and what is around them last.
    for at in _holders(table):
        if len(body) <= large.limits.line:
            break
        _take(table, members, large=large, at=at)
        body = encode(_with(table, large))
    return body


def _holders(table: dict[str, Any]) -> list[tuple[str, ...]]:
    """The places of what may be taken out as a whole: members of members, then members."""
    outer = [
        (name,) for name, value in table.items() if name not in OWN and (is_object(value) or is_array(value))
    ]
    inner = [
        (name, member)
        for (name,) in outer
        if is_object(table[name])
        for member, value in table[name].items()
        if is_object(value) or is_array(value)
    ]
    length: dict[tuple[str, ...], int] = {at: len(encode(_at(table, at))) for at in (*outer, *inner)}
    by_length = sorted(length, key=length.__getitem__, reverse=True)
    return sorted(by_length, key=len, reverse=True)


def _at(table: Any, at: tuple[str, ...]) -> Any:
    for name in at:
        table = table[name]
    return table


def _take(table: dict[str, Any], members: dict[str, Any], *, large: Large, at: tuple[str, ...]) -> None:
    """Take out the value at a place, as it was before anything was taken out of it."""
    large.places = [place for place in large.places if place["at"][: len(at)] != list(at)]
    value = _at(members, at)
    shown: Any = large.take(encode(value), at=at, form="json")
    if len(at) == 1 and is_object(value):
        # By these a line is found.
        short = {name: value.get(name) for name in _IDS if isinstance(value.get(name), str)}
        shown = {**{name: text for name, text in short.items() if len(str(text)) <= SHOWN}, "…": shown}
    _at(table, at[:-1])[at[-1]] = shown


def _with(table: dict[str, Any], large: Large) -> dict[str, Any]:
    return {**table, "large": large.places} if large.places else table


def _texts(value: Any, large: Large, *, at: tuple[str | int, ...]) -> Any:
    if isinstance(value, str):
        if len(value) * 4 <= large.limits.value:  # no need to count
            return value
        data = value.encode("utf-8", "backslashreplace")
        return value if len(data) <= large.limits.value else large.take(data, at=at, form="text")
    if is_object(value):
        return {name: _texts(inner, large, at=(*at, name)) for name, inner in value.items()}
    if is_array(value):
        return [_texts(inner, large, at=(*at, place)) for place, inner in enumerate(value)]
    return value


def encode(value: Any) -> bytes:
    """A JSON value, as it stands in a line; what JSON has no form for becomes its text."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(writable(value))


_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
