"""Schemas narrowed to the part of JSON Schema that an API understands; what does not fit is told in words.

Which part that is, is a `Subset`; this module knows no API. A keyword that is gone stands in the
description, where the model reads it, and in the list of what was lost, where a person does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoman.host.models.schemas import (
    COMBINATORS,
    Lost,
    Schema,
    UnfitError,
    below,
    is_object,
    items,
    note,
    properties,
    required,
    resolve,
    table,
    tables,
    told,
    types,
    where,
)

MOST_NODES: Final = 20_000  # of a schema whose references are written out: a few lines can mean millions
_DEFINITIONS: Final = ("$defs", "definitions")
_SILENT: Final = frozenset({"$schema", "$id", "$anchor", "$comment", "deprecated", "readOnly", "writeOnly"})
_STRUCTURE: Final = frozenset({*_DEFINITIONS, "$ref", "properties", "items", "anyOf", "additionalProperties"})
_NAMES: Final = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (type(None), "null"),
    (list, "array"),
    (dict, "object"),
)


@dataclass(frozen=True, slots=True)
class Subset:
    """What an API understands.

    `keywords` are those whose values stay as they are, `formats` the values of `format` (any, if None),
    `counts` those of `minItems`. A `closed` one takes no object with free keys, and if `whole` none with
    properties that may be missing. `typed`: each schema has to name its type. `lookaround`: patterns may
    look around.
    """

    keywords: frozenset[str]
    formats: frozenset[str] | None = None
    counts: frozenset[int] | None = None
    closed: bool = False
    whole: bool = False
    typed: bool = False
    lookaround: bool = True


def narrow(schema: Mapping[str, Any], subset: Subset) -> tuple[Schema, list[Lost]]:
    """The schema as the subset can say it, and what is lost.

    Raises:
        UnfitError: it cannot say what the schema means, only something that refuses valid arguments.
    """
    work = _Narrowing(schema, subset)
    out = work.node(schema, "")
    defined = {
        name: work.node(part, below("", keyword, name))
        for keyword in _DEFINITIONS
        for name, part in (table(schema.get(keyword)) or {}).items()
    }
    if defined:
        out["$defs"] = defined
    return out, work.lost


class _Narrowing:
    def __init__(self, root: Mapping[str, Any], subset: Subset) -> None:
        self.root = root
        self.subset = subset
        self.lost: list[Lost] = []
        self.nodes = 0

    def lose(self, path: str, keyword: str, *, why: str) -> None:
        self.lost.append(Lost(path, keyword, why))

    def node(self, value: object, path: str, *, seen: frozenset[str] = frozenset()) -> Schema:
        """One schema. `seen` are the references that were followed to it."""
        schema = self._united(self._counted(value, path), path)
        if "$ref" in schema:
            return self._reference(schema, path=path, seen=seen)
        out: Schema = {}
        notes: list[str] = []
        for keyword, part in schema.items():
            if keyword in _STRUCTURE:
                self._structure(out, keyword, part=part, path=path, seen=seen)
            elif self._keeps(keyword, part):
                out[keyword] = self._nested(keyword, part, path=path, seen=seen)
            elif not self._passes(keyword):
                notes += self._drop(keyword, part, path=path)
        if is_object(schema) and self.subset.closed:
            self._close(out, schema, path=path)
        if self.subset.typed:
            _type(out)
        if said := told(schema, notes):
            out["description"] = said
        return out

    def _counted(self, value: object, path: str) -> Mapping[str, Any]:
        self.nodes += 1
        if self.nodes > MOST_NODES:
            raise UnfitError(f"more than {MOST_NODES:,} schemas, with references written out")
        if value is False:
            self.lose(path, "false", why="a schema that nothing fits")
        return table(value) or {}

    # Keywords ----------------------------------------------------------------------------------------

    def _keeps(self, keyword: str, part: object) -> bool:
        subset = self.subset
        if keyword not in subset.keywords:
            return False
        if keyword == "format":
            return subset.formats is None or (isinstance(part, str) and part in subset.formats)
        if keyword == "minItems":
            return subset.counts is None or (isinstance(part, int) and part in subset.counts)
        if keyword == "pattern":
            return subset.lookaround or not (isinstance(part, str) and _looks_around(part))
        return True

    def _passes(self, keyword: str) -> bool:
        """Whether a keyword means nothing to a model, or is seen to elsewhere."""
        elsewhere = keyword == "description" or (keyword == "required" and self.subset.closed)
        return elsewhere or keyword in _SILENT or keyword.startswith("x-")

    def _nested(self, keyword: str, part: object, *, path: str, seen: frozenset[str]) -> Any:
        if keyword not in (*COMBINATORS, "prefixItems"):
            return part
        return [
            self.node(each, below(path, keyword, index), seen=seen) for index, each in enumerate(items(part))
        ]

    def _drop(self, keyword: str, part: object, *, path: str) -> list[str]:
        if self.subset.closed and keyword in ("patternProperties", "prefixItems", "dependentSchemas"):
            raise UnfitError(f"{keyword} at {where(path)} has no equivalent")
        self.lose(path, keyword, why="not understood; told in the description")
        return note(keyword, part)

    def _structure(self, out: Schema, keyword: str, *, part: object, path: str, seen: frozenset[str]) -> None:
        match keyword:
            case "properties":
                found = table(part) or {}
                out[keyword] = {
                    name: self.node(each, below(path, keyword, name), seen=seen)
                    for name, each in found.items()
                }
            case "items":
                if _is_list(part):
                    self._drop("prefixItems", part, path=path)  # as drafts before 2020-12 wrote it
                else:
                    out[keyword] = self.node(part, below(path, keyword), seen=seen)
            case "anyOf":
                out[keyword] = self._nested(keyword, part, path=path, seen=seen)
            case "additionalProperties" if keyword in self.subset.keywords:
                inside = below(path, keyword)
                out[keyword] = part if part in (True, False) else self.node(part, inside, seen=seen)
            case "additionalProperties" if not self.subset.closed and part not in (True, False):
                self._drop(keyword, part, path=path)
            case _:
                pass

    def _close(self, out: Schema, schema: Mapping[str, Any], *, path: str) -> None:
        extra = schema.get("additionalProperties")
        named: dict[str, Schema] = out.setdefault("properties", {})
        if extra not in (None, False, True, {}):
            raise UnfitError(f"the object at {where(path)} has free keys")
        if not named and extra is not False and (path or extra is not None):
            raise UnfitError(f"the object at {where(path)} has free keys")
        if extra not in (None, False):
            self.lose(path, "additionalProperties", why="only the named properties are left")
        out["additionalProperties"] = False
        needed = [name for name in required(schema) if name in named]
        for name in required(schema):
            if name not in named:
                self.lose(path, "required", why=f"{name!r} is no property that is described")
        if self.subset.whole:
            for name in named.keys() - set(needed):
                named[name] = nullable(named[name])
            needed = [*named]
        if needed or "required" in schema or self.subset.whole:
            out["required"] = needed

    # References and unions -----------------------------------------------------------------------------

    def _reference(self, schema: Mapping[str, Any], *, path: str, seen: frozenset[str]) -> Schema:
        ref, beside = schema["$ref"], {name: part for name, part in schema.items() if name != "$ref"}
        target = resolve(self.root, ref)
        if target is None or not isinstance(ref, str):
            if self.subset.closed:
                raise UnfitError(f"$ref at {where(path)} leads out of the schema: {ref!r}")
            self.lose(path, "$ref", why=f"leads out of the schema: {ref!r}")
            return self.node(beside, path, seen=seen)
        local = _local(ref)
        if local is None:
            if ref in seen:
                raise UnfitError(f"$ref at {where(path)} refers to what it is in: {ref!r}")
            return self.node({**target, **beside}, path, seen=seen | {ref})
        used = {name: part for name, part in beside.items() if name not in (*_SILENT, *_DEFINITIONS)}
        if not used:
            return {"$ref": local}
        out = self.node(used, path, seen=seen)
        if "anyOf" in out:
            self.lose(path, "anyOf", why="beside a $ref")
        return {**out, "anyOf": [{"$ref": local}]}

    def _united(self, schema: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """The schema without the kinds of union that the subset has not."""
        keywords = self.subset.keywords
        if "allOf" in schema and "allOf" not in keywords:
            schema = merged(schema, self.root, lost=self.lost, path=path)
        if "oneOf" in schema and "oneOf" not in keywords:
            rest = {name: part for name, part in schema.items() if name != "oneOf"}
            if "anyOf" in rest:
                self.lose(path, "oneOf", why="beside anyOf")
                return rest
            self.lose(path, "oneOf", why="as anyOf: more than one may fit")
            schema = {**rest, "anyOf": schema["oneOf"]}
        if "const" in schema and "const" not in keywords:
            rest = {name: part for name, part in schema.items() if name != "const"}
            schema = {**rest, "enum": [schema["const"]]}
        return schema


def merged(
    schema: Mapping[str, Any], root: Mapping[str, Any], *, lost: list[Lost], path: str
) -> dict[str, Any]:
    """A schema with its `allOf` in itself. Where two parts say different things, the first one counts."""
    out = {name: part for name, part in schema.items() if name != "allOf"}
    waiting, seen = tables(schema["allOf"]), set[str]()
    while waiting:
        part = dict(waiting.pop(0))
        ref = part.pop("$ref", None)
        if ref is not None:
            target = resolve(root, ref)
            if target is None or str(ref) in seen:
                lost.append(Lost(path, "allOf", f"a part of it is {ref!r}"))
            else:
                seen.add(str(ref))
                waiting.insert(0, target)
        waiting = [*tables(part.pop("allOf", None)), *waiting]
        for keyword, value in part.items():
            _add(out, keyword, value=value, lost=lost, path=path)
    return out


def _add(out: dict[str, Any], keyword: str, *, value: object, lost: list[Lost], path: str) -> None:
    if keyword == "properties":
        out[keyword] = {**(table(value) or {}), **properties(out)}
    elif keyword == "required":
        out[keyword] = list(dict.fromkeys([*required(out), *items(value)]))
    elif keyword == "description" and keyword in out:
        out[keyword] = f"{out[keyword]}\n\n{value}"
    elif keyword in out and out[keyword] != value and keyword not in (*_SILENT, *_DEFINITIONS, "title"):
        lost.append(Lost(path, keyword, "two parts of allOf differ; the first one counts"))
    else:
        out.setdefault(keyword, value)


def nullable(part: Schema) -> Schema:
    """The schema, which null fits too."""
    named = types(part)
    if "$ref" in part or "const" in part or not (named or "anyOf" in part):
        said = {"description": part["description"]} if "description" in part else {}
        rest = {name: value for name, value in part.items() if name != "description"}
        return {**said, "anyOf": [rest, {"type": "null"}]}
    out = dict(part)
    if named and "null" not in named:
        out["type"] = [*named, "null"]
    if "enum" in part and None not in items(part["enum"]):
        out["enum"] = [*items(part["enum"]), None]
    if "anyOf" in part and not any(types(way) == ["null"] for way in tables(part["anyOf"])):
        out["anyOf"] = [*items(part["anyOf"]), {"type": "null"}]
    return out


def _type(out: Schema) -> None:
    """Name the type of what is given by its values alone."""
    values = items(out.get("enum")) or ([out["const"]] if "const" in out else [])
    if values and not types(out):
        named = list(dict.fromkeys(kind_of(value) for value in values))
        out["type"] = named[0] if len(named) == 1 else named
    elif is_object(out) and not types(out):
        out["type"] = "object"


def kind_of(value: object) -> str:
    """The type of a JSON value."""
    return next(name for kind, name in _NAMES if isinstance(value, kind))


def _local(ref: str) -> str | None:
    """A reference to the root, or to a definition of the root, as 2020-12 writes it."""
    if ref == "#":
        return ref
    parts = ref.split("/")
    return f"#/$defs/{parts[2]}" if len(parts) == 3 and parts[1] in _DEFINITIONS else None


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _looks_around(pattern: str) -> bool:
    return any(sign in pattern for sign in ("(?=", "(?!", "(?<=", "(?<!"))
