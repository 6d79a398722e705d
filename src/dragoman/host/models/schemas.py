"""JSON Schemas of tools as trees: pointers, references, and a root that is a plain object.

Knows no API. What is lost on the way is told, never swallowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, cast
from urllib.parse import unquote

Schema: TypeAlias = dict[str, Any]

COMBINATORS: Final = ("allOf", "anyOf", "oneOf")
_INDEX: Final = re.compile("[0-9]{1,9}")
_TOLD: Final = 200  # characters of a value that still go into a description


class Lost(NamedTuple):
    """A keyword that is gone. `path` is a JSON Pointer to the schema that had it."""

    path: str
    keyword: str
    why: str


class UnfitError(Exception):
    """A schema that has no equivalent where it is to go; the message says what of it, and where."""


def table(value: object) -> Mapping[str, Any] | None:
    """A JSON object; None for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def items(value: object) -> list[Any]:
    """The members of a JSON array; none for anything else."""
    return [*cast("list[object]", value)] if isinstance(value, list) else []


def tables(value: object) -> list[Mapping[str, Any]]:
    """The objects in a JSON array."""
    return [found for item in items(value) if (found := table(item)) is not None]


def types(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names."""
    said = schema.get("type")
    return [said] if isinstance(said, str) else [str(item) for item in items(said)]


def is_object(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is one of objects."""
    named = types(schema)
    return "object" in named or (not named and "properties" in schema)


def properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties that a schema names."""
    return dict(table(schema.get("properties")) or {})


def required(schema: Mapping[str, Any]) -> list[str]:
    """The properties that a schema requires."""
    return [str(name) for name in items(schema.get("required"))]


def below(path: str, *keys: str | int) -> str:
    """A JSON Pointer, deeper by these keys."""
    return path + "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def where(path: str) -> str:
    """A pointer for people."""
    return path or "the root"


def resolve(root: Mapping[str, Any], ref: object) -> Mapping[str, Any] | None:
    """The schema that a reference inside the same document means; None for any other one."""
    if not isinstance(ref, str) or (ref != "#" and not ref.startswith("#/")):
        return None
    found: Any = root
    for part in ref.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = cast("Mapping[str, Any]", found).get(key)
        elif (
            isinstance(found, list) and _INDEX.fullmatch(key) and int(key) < len(cast("list[object]", found))
        ):
            found = cast("list[object]", found)[int(key)]
        else:
            return None
    return table(found)


def levels(value: object) -> int:
    """How deep arrays and objects stand in each other; for any depth, without recursion."""
    deep, waiting = 0, [value]
    while waiting:
        deep += 1
        inside: list[object] = []
        for part in waiting:
            found = table(part)
            inside += items(part) if found is None else found.values()
        waiting = inside
    return deep - 1


def subschemas(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A schema and all that it is made of, each with its pointer."""
    yield path, schema
    for keyword in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        for name, part in (table(schema.get(keyword)) or {}).items():
            if (found := table(part)) is not None:
                yield from subschemas(found, below(path, keyword, name))
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains"):
        if (found := table(schema.get(keyword))) is not None:
            yield from subschemas(found, below(path, keyword))
    for keyword in (*COMBINATORS, "prefixItems"):
        for index, part in enumerate(items(schema.get(keyword))):
            if (found := table(part)) is not None:
                yield from subschemas(found, below(path, keyword, index))


def told(schema: Mapping[str, Any], notes: list[str]) -> str:
    """A description with what the schema itself can no longer say."""
    said = schema.get("description")
    return "\n\n".join(part for part in (said if isinstance(said, str) else "", "; ".join(notes)) if part)


def note(keyword: str, value: object) -> list[str]:
    """A keyword as words, unless its value is too long to be of use."""
    text = json.dumps(value, ensure_ascii=False)
    return [f"{keyword}: {text}"] if value is not None and len(text) <= _TOLD else []


# The root ------------------------------------------------------------------------------------------------


def rooted(schema: Mapping[str, Any]) -> Schema:
    """The schema with what its root refers to in the root itself."""
    found = dict(schema)
    seen: set[str] = set()
    while isinstance(ref := found.get("$ref"), str) and ref not in seen:
        seen.add(ref)
        target = resolve(schema, ref)
        if target is None or ref == "#":
            break
        found.pop("$ref")
        found = {**target, **found}
    if "type" not in found and any(_objects(found.get(combinator), schema) for combinator in COMBINATORS):
        found["type"] = "object"
    return found


def _objects(branches: object, root: Mapping[str, Any]) -> bool:
    """Whether there are alternatives, and each is one of objects."""
    parts = tables(branches)
    return bool(parts) and all(types(_target(part, root)) == ["object"] for part in parts)


def flat(schema: Mapping[str, Any]) -> tuple[Schema, str, list[Lost]]:
    """The schema without combinators at its root, words for what its root no longer says, and what is lost.

    `allOf` keeps what it requires. Alternatives only lend their properties: the server still checks them.
    """
    found = rooted(schema)
    notes: list[str] = []
    lost: list[Lost] = []
    for combinator in COMBINATORS:
        branches = found.pop(combinator, None)
        if not isinstance(branches, list):
            continue
        parts = [_target(part, schema) for part in tables(cast("list[object]", branches))]
        lent = _lent(found, parts, combinator=combinator)
        if lent:
            found["properties"] = lent
        needed = [required(part) for part in parts]
        if combinator == "allOf":
            found["required"] = list(dict.fromkeys(chain(required(found), *needed)))
            continue
        lost.append(Lost("", combinator, "not taken at the root: its properties are there, all optional"))
        if any(needed):
            ways = "; or ".join(", ".join(names) if names else "nothing more" for names in needed)
            how = "Exactly one" if combinator == "oneOf" else "At least one"
            notes.append(f"{how} of these sets of arguments is required: {ways}.")
    return found, "\n".join(notes), lost


def _lent(own: Mapping[str, Any], parts: list[Mapping[str, Any]], *, combinator: str) -> dict[str, Any]:
    """The properties of a schema with those of its parts. What two parts say of one is kept as a union."""
    lent: dict[str, list[Any]] = {}
    for part in parts:
        for name, schema in properties(part).items():
            known = lent.setdefault(name, [])
            if schema not in known:
                known.append(schema)
    out = properties(own)
    for name, known in lent.items():
        if name in out and combinator != "allOf":
            continue  # it holds for every alternative, whatever that adds
        said = [out[name], *known] if name in out and out[name] not in known else known
        out[name] = said[0] if len(said) == 1 else {combinator.replace("oneOf", "anyOf"): said}
    return out


def _target(part: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    target = resolve(root, part.get("$ref"))
    return part if target is None else {**target, **part}


# Nulls that stand for nothing ------------------------------------------------------------------------------


def without_nulls(value: Any, schema: Mapping[str, Any], *, root: Mapping[str, Any]) -> Any:
    """A value without the nulls by which a model said that it leaves out an optional property.

    `schema` is the tool's own, before its optional properties were made to take null. Where it takes null
    itself, a null stays.
    """
    ways = [*_ways(schema, root)]
    if isinstance(value, list):
        parts = [found for way in ways if (found := table(way.get("items"))) is not None]
        return [
            without_nulls(item, parts[0], root=root) if parts else item
            for item in cast("list[object]", value)
        ]
    if not isinstance(value, Mapping):
        return value
    out: dict[str, Any] = {}
    for name, item in cast("Mapping[str, Any]", value).items():
        named = [(way, properties(way)[name]) for way in ways if name in properties(way)]
        if (
            item is None
            and named
            and not any(name in required(way) or _takes_null(part, root) for way, part in named)
        ):
            continue
        part = next((found for _, part in named if (found := table(part)) is not None), None)
        out[name] = item if part is None else without_nulls(item, part, root=root)
    return out


def _takes_null(part: object, root: Mapping[str, Any], *, seen: frozenset[str] = frozenset()) -> bool:
    """Whether null fits a schema."""
    schema = table(part)
    if schema is None:
        return part is True
    ref = schema.get("$ref")
    if isinstance(ref, str):
        target = resolve(root, ref)
        if ref in seen or (target is not None and not _takes_null(target, root, seen=seen | {ref})):
            return False
    named = types(schema)
    says_no = (
        ("enum" in schema and None not in items(schema["enum"]))
        or ("const" in schema and schema["const"] is not None)
        or bool(named and "null" not in named)
    )
    if says_no or not all(_takes_null(way, root, seen=seen) for way in items(schema.get("allOf"))):
        return False
    unions = [items(schema[union]) for union in ("anyOf", "oneOf") if union in schema]
    return all(any(_takes_null(way, root, seen=seen) for way in ways) for ways in unions)


def _ways(
    schema: Mapping[str, Any], root: Mapping[str, Any], *, seen: frozenset[str] = frozenset()
) -> Iterator[Mapping[str, Any]]:
    """The schema, what it refers to, and the alternatives in it."""
    yield schema
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref not in seen and (target := resolve(root, ref)) is not None:
        yield from _ways(target, root, seen=seen | {ref})
    for combinator in COMBINATORS:
        for part in tables(schema.get(combinator)):
            yield from _ways(part, root, seen=seen)
