"""Reading results of servers that write `null` for what they mean to leave out.

The wire types are strict: an absent member is absent. Whoever reads what others wrote gets here the
same types, with a second look at what did not fit; this module knows no method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Raw

T = TypeVar("T")

# Members whose value is the author's own JSON, where null means null.
_OPAQUE: Final = frozenset(
    {
        "_meta",
        "arguments",
        "data",
        "frontmatter",
        "inputSchema",
        "outputSchema",
        "requestedSchema",
        "structuredContent",
    }
)


def reader(kind: type[T]) -> Callable[[bytes | Raw], T]:
    """A decoder for `kind` that passes over members that are null where `kind` knows no null.

    It raises `msgspec.ValidationError` for what does not fit even so, in the words of the first look.
    """
    decode = msgspec.json.Decoder(kind).decode

    def read(data: bytes | Raw) -> T:
        try:
            return decode(data)
        except msgspec.ValidationError as exc:
            if b"null" not in bytes(data):
                raise
            fault = exc
        try:
            return msgspec.convert(without_nulls(msgspec.json.decode(data)), kind)
        except msgspec.ValidationError:
            raise fault from None

    return read


def without_nulls(value: Any) -> Any:
    """`value` without the members that are null, at any depth but inside an author's own JSON."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: member if name in _OPAQUE else without_nulls(member)
            for name, member in members.items()
            if member is not None or name == "structuredContent"
        }
    if isinstance(value, list):
        items = cast("list[Any]", value)  # type: ignore[redundant-cast]  # the other checker sees a list of unknowns
        return [without_nulls(item) for item in items]
    return value
