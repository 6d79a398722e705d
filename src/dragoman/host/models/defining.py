"""What all APIs' definitions of tools have in common: a name, a description, a schema with a plain root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET

from dragoman.host.models.base import Definitions, Dropped, LeftOut, Shown
from dragoman.host.models.names import fitted
from dragoman.host.models.schemas import Lost, Schema, flat, levels, rooted, types
from dragoman.host.naming import ApiNames

MOST_LEVELS: Final = 200  # of the JSON of a schema


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tool that can be defined: `name` is that on the wire, `schema` has no combinator at its root."""

    name: str
    shown: Shown
    schema: Schema
    description: str


def prepare(
    tools: Iterable[Shown], rule: ApiNames, *, most: int | None = None
) -> tuple[list[Prepared], Definitions]:
    """The tools that an API can be told of, and the beginnings of what they come to."""
    named, left_out = fitted(tools, rule, most=most)
    found = Definitions(left_out=left_out)
    prepared: list[Prepared] = []
    for name, item in named:
        why = _refused(item.tool.input_schema)
        if why is not None:
            found.left_out.append(LeftOut(item.name, f"inputSchema: {why}"))
            continue
        schema, note, lost = flat(item.tool.input_schema)
        report(found, item, lost=lost)
        if name != item.name:
            found.names[name] = item.name
        said = item.tool.description
        parts = ("" if said is UNSET else said, note)
        prepared.append(Prepared(name, item, schema, "\n\n".join(part for part in parts if part)))
    return prepared, found


def report(found: Definitions, item: Shown, *, lost: Iterable[Lost]) -> None:
    """Note what a tool's schema lost."""
    found.dropped.extend(Dropped(item.name, *each) for each in lost)


def _refused(schema: Mapping[str, Any]) -> str | None:
    """Why no API would take the schema."""
    if levels(schema) > MOST_LEVELS:
        return f"nested more than {MOST_LEVELS} levels deep"
    root = rooted(schema)
    if types(root) != ["object"]:
        return f"expected type 'object' at the root; received {root.get('type')!r}"
    if not isinstance(root.get("properties", {}), Mapping):
        return "`properties`: expected an object"
    return None
