"""The two forms in which Google's Gemini API takes a schema: a part of JSON Schema, and one of OpenAPI."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from dragoman.host.models.schemas import (
    Lost,
    Schema,
    UnfitError,
    below,
    items,
    properties,
    required,
    resolve,
    subschemas,
    table,
    tables,
    told,
    types,
    where,
)
from dragoman.host.models.subset import MOST_NODES, Subset, kind_of, narrow

# What the API's reference lists for `responseJsonSchema`, which is the same kind of schema.
JSON: Final = Subset(
    frozenset({"type", "title", "description", "format", "enum", "prefixItems", "oneOf", "required"})
    | {"minItems", "maxItems", "minimum", "maximum", "additionalProperties", "propertyOrdering"}
)
# The members of `Schema` in its published types. Of `format`, those that its text names.
OPENAPI: Final = Subset(
    frozenset({"type", "title", "description", "format", "enum", "required", "default", "pattern"})
    | {"minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength"}
    | {"minProperties", "maxProperties"},
    formats=frozenset(
        {"float", "double", "int32", "int64", "email", "byte", "date", "date-time", "password"}
    ),
)
PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def json_schema(schema: Mapping[str, Any]) -> tuple[Schema, list[Lost]]:
    """A schema for `parametersJsonSchema`.

    Raises:
        UnfitError: it refers to itself in a way that cannot be written out.
    """
    out, lost = narrow(schema, JSON)
    for path, part in subschemas(out):
        for name in required(part):
            if _leads_back(out, properties(part).get(name)):
                kept = [other for other in required(part) if other != name]
                cast("Schema", part)["required"] = kept  # a part of what was made here
                lost.append(Lost(path, "required", f"{name!r} refers to what it is in"))
    return out, lost


def openapi(schema: Mapping[str, Any]) -> tuple[Schema, list[Lost]]:
    """A schema for `parameters`, with references written out.

    Raises:
        UnfitError: a name of a property is not one that the API takes, or the schema is too large.
    """
    narrowed, lost = narrow(schema, OPENAPI)
    work = _Writing(narrowed, lost)
    return work.node(narrowed, ""), lost


def _leads_back(root: Mapping[str, Any], part: object) -> bool:
    """Whether a schema holds a reference from which the same reference can be reached."""
    first = _refs(part)
    for ref in first:
        reached: set[str] = set()
        waiting = {ref}
        while waiting:
            waiting = {found for each in waiting for found in _refs(resolve(root, each))} - reached
            reached |= waiting
        if ref in reached:
            return True
    return False


def _refs(part: object) -> set[str]:
    found = table(part)
    inside = {} if found is None else {name: value for name, value in found.items() if name != "$defs"}
    return {str(each["$ref"]) for _, each in subschemas(inside) if "$ref" in each}


class _Writing:
    """Writes a narrowed schema anew, in the words of OpenAPI."""

    def __init__(self, root: Mapping[str, Any], lost: list[Lost]) -> None:
        self.root = root
        self.lost = lost
        self.nodes = 0

    def node(self, schema: Mapping[str, Any], path: str, *, seen: tuple[str, ...] = ()) -> Schema:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise UnfitError(f"more than {MOST_NODES:,} schemas, with references written out")
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), path, seen=seen)
        out: Schema = {}
        notes: list[str] = []
        for keyword, part in schema.items():
            if keyword == "properties":
                out[keyword] = {
                    name: self.node(each, below(path, keyword, name), seen=seen)
                    for name, each in self._named(part, path).items()
                }
            elif keyword == "items":
                out[keyword] = self.node(part, below(path, keyword), seen=seen)
            elif keyword == "anyOf":
                self._alternatives(out, part, path=path, seen=seen)
            elif keyword == "enum":
                self._values(out, items(part), notes=notes, path=path)
            elif keyword not in ("type", "$defs", "description"):
                out[keyword] = part
        self._type(out, schema)
        if said := told(schema, notes):
            out["description"] = said
        return out

    def _named(self, part: object, path: str) -> Mapping[str, Any]:
        found = table(part) or {}
        for name in found:
            if PARAMETER.fullmatch(name) is None:
                expected = "a letter or _, then up to 63 of A-Z a-z 0-9 _"
                raise UnfitError(f"property {name!r} at {where(path)}: expected {expected}")
        return found

    def _reference(self, ref: str, path: str, *, seen: tuple[str, ...]) -> Schema:
        target = resolve(self.root, ref)
        if target is None or ref in seen:
            self.lost.append(Lost(path, "$ref", f"{ref!r} refers to what it is in; written out once"))
            named = types(target or {})
            return {"type": named[0].upper() if len(named) == 1 else "OBJECT"}
        return self.node(target, path, seen=(*seen, ref))

    def _alternatives(self, out: Schema, part: object, *, path: str, seen: tuple[str, ...]) -> None:
        ways = [(index, way) for index, way in enumerate(tables(part)) if types(way) != ["null"]]
        if len(ways) < len(tables(part)):
            out["nullable"] = True
        written = [self.node(way, below(path, "anyOf", index), seen=seen) for index, way in ways]
        if len(written) == 1:
            out.update({name: value for name, value in written[0].items() if name not in out})
        elif written:
            out["anyOf"] = written

    def _values(self, out: Schema, values: list[Any], *, notes: list[str], path: str) -> None:
        """An enum is one of strings. Of other values, type and description are left."""
        if None in values:
            out["nullable"] = True
        plain = [value for value in values if value is not None]
        if all(isinstance(value, str) and value for value in plain):
            out["enum"] = plain
            return
        self.lost.append(Lost(path, "enum", "of other values than text; told in the description"))
        notes.append("enum: " + json.dumps(plain, ensure_ascii=False))

    def _type(self, out: Schema, schema: Mapping[str, Any]) -> None:
        named = types(schema)
        if not named and "enum" in schema:
            named = list(dict.fromkeys(kind_of(value) for value in items(schema["enum"])))
        if "null" in named:
            out["nullable"] = True
        kept = [name.upper() for name in named if name != "null"]
        if len(kept) == 1:
            out["type"] = kept[0]
        elif kept and "anyOf" not in out:
            # Each alternative says what it can of the whole.
            own = {"ARRAY": "items", "OBJECT": "properties"}
            moved = {keyword: out.pop(keyword) for keyword in own.values() if keyword in out}
            out["anyOf"] = [
                {"type": name, **({own[name]: moved[own[name]]} if own.get(name) in moved else {})}
                for name in kept
            ]
