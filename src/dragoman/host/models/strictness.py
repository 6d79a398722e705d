"""The schemas to which OpenAI's and Anthropic's APIs hold a model: conversion to them, and a check of them.

Knows what both say of `strict`, and nothing else of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dragoman.host.models.schemas import (
    COMBINATORS,
    Lost,
    Schema,
    UnfitError,
    is_object,
    items,
    properties,
    required,
    subschemas,
    table,
    types,
    where,
)
from dragoman.host.models.subset import Subset, narrow

_FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_STRUCTURE: Final = frozenset(
    {
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "definitions",
        "$schema",
    }
)
_ANNOTATIONS: Final = frozenset({"type", "title", "description", "enum", "const"})

OPENAI: Final = Subset(
    _ANNOTATIONS
    | {"pattern", "format", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
    | {"minItems", "maxItems"},
    formats=_FORMATS,
    closed=True,
    whole=True,
    typed=True,
    lookaround=False,
)
ANTHROPIC: Final = Subset(
    _ANNOTATIONS | {"format", "minItems"},
    formats=_FORMATS | {"uri"},
    counts=frozenset({0, 1}),
    closed=True,
    typed=True,
)

LEVELS: Final = 10
PROPERTIES: Final = 5_000
ENUM_VALUES: Final = 1_000
CHARACTERS: Final = 120_000
LARGE_ENUM: Final = 250
LARGE_ENUM_CHARACTERS: Final = 15_000


def openai(schema: Mapping[str, Any]) -> tuple[Schema, list[Lost]]:
    """A schema for `strict: true`; each optional property takes null.

    Raises:
        UnfitError: there is none that every valid call fits.
    """
    out, lost = narrow(schema, OPENAI)
    fault = next(openai_faults(out), None)
    if fault is not None:
        raise UnfitError(fault)
    return out, lost


def anthropic(schema: Mapping[str, Any]) -> tuple[Schema, list[Lost]]:
    """A schema for `strict: true`.

    Raises:
        UnfitError: there is none that every valid call fits.
    """
    out, lost = narrow(schema, ANTHROPIC)
    fault = next(anthropic_faults(out), None)
    if fault is not None:
        raise UnfitError(fault)
    return out, lost


def anthropic_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """What Anthropic's API refuses in a schema with `strict: true`, each with its place."""
    for path, part in subschemas(schema):
        place = where(path)
        for keyword in part.keys() - ANTHROPIC.keywords - _STRUCTURE - {"allOf"}:
            yield f"{keyword} at {place}"
        if not _says_something(part):
            yield f"{place} takes any value"
        if is_object(part) and part.get("additionalProperties") is not False:
            yield f"additionalProperties at {place} has to be false"
        if part.get("$ref") is not None and _recurs(schema, str(part["$ref"])):
            yield f"$ref at {place} refers to what it is in: {part['$ref']!r}"


def openai_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """What OpenAI's APIs refuse in a schema with `strict: true`, each with its place."""
    if types(schema) != ["object"]:
        yield "the root has to be of type 'object'"
    for keyword in (*COMBINATORS, "enum", "not"):
        if keyword in schema:
            yield f"{keyword} at the root"
    for path, part in subschemas(schema):
        yield from _part_faults(part, where(path))
    yield from _size_faults(schema)


def _part_faults(part: Mapping[str, Any], place: str) -> Iterator[str]:
    for keyword in part.keys() - OPENAI.keywords - _STRUCTURE:
        yield f"{keyword} at {place}"
    if "$ref" in part and part.keys() - {"$ref", "$defs", "definitions"}:
        yield f"$ref with other keywords beside it at {place}"
    if not _says_something(part):
        yield f"{place} takes any value: a type is needed"
    named = properties(part)
    if "object" in types(part) or named:
        if part.get("additionalProperties") is not False:
            yield f"additionalProperties at {place} has to be false"
        if missing := sorted(named.keys() - set(required(part))):
            yield f"required at {place} has to name every property: {', '.join(missing)}"
        if unknown := sorted(set(required(part)) - named.keys()):
            yield f"required at {place} names no property: {', '.join(unknown)}"
    if "array" in types(part) and table(part.get("items")) is None:
        yield f"the array at {place} needs items"
    if "format" in part and part["format"] not in _FORMATS:
        yield f"format {part['format']!r} at {place}"


def _size_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    count = values = characters = 0
    for path, part in subschemas(schema):
        names = properties(part)
        enum = items(part.get("enum"))
        count += len(names)
        values += len(enum)
        strings = [value for value in (*enum, part.get("const")) if isinstance(value, str)]
        defined = (*names, *(table(part.get("$defs")) or {}))
        long = sum(map(len, strings))
        characters += long + sum(map(len, defined))
        if len(enum) > LARGE_ENUM and long > LARGE_ENUM_CHARACTERS:
            yield f"the enum at {where(path)} is of more than {LARGE_ENUM_CHARACTERS:,} characters"
    if count > PROPERTIES:
        yield f"{count:,} properties; at most {PROPERTIES:,}"
    if values > ENUM_VALUES:
        yield f"{values:,} values in enums; at most {ENUM_VALUES:,}"
    if characters > CHARACTERS:
        yield f"{characters:,} characters in names and values; at most {CHARACTERS:,}"
    if (levels := _levels(schema)) > LEVELS:
        yield f"{levels} levels of objects and arrays; at most {LEVELS}"


def _levels(schema: Mapping[str, Any]) -> int:
    """How deep objects and arrays stand in each other. What a reference leads to is counted by itself."""
    own = 1 if {"object", "array"} & set(types(schema)) else 0
    inside = [*properties(schema).values(), schema.get("items"), *items(schema.get("anyOf"))]
    return own + max((_levels(found) for part in inside if (found := table(part)) is not None), default=0)


def _says_something(part: Mapping[str, Any]) -> bool:
    return bool(types(part)) or any(keyword in part for keyword in ("anyOf", "allOf", "$ref"))


def _recurs(root: Mapping[str, Any], ref: str) -> bool:
    """Whether a reference leads back to itself."""
    reached: set[str] = set()
    waiting = [ref]
    while waiting:
        name = waiting.pop()
        target = root if name == "#" else table((table(root.get("$defs")) or {}).get(name.rpartition("/")[2]))
        parts = (part for _, part in subschemas(target or {}))
        found = {str(part["$ref"]) for part in parts if "$ref" in part}
        if ref in found:
            return True
        waiting += found - reached
        reached |= found
    return False
