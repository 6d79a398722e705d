"""What OpenAI's two APIs have in common: schemas of parameters, kinds of media, errors in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.host.models.base import Definitions, Dropped, Failed
from dragoman.host.models.defining import Prepared, report
from dragoman.host.models.pieces import FAILED
from dragoman.host.models.schemas import Lost, Schema, UnfitError, items, table, types
from dragoman.host.models.strictness import openai as held

IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
FILES: Final = frozenset({"application/pdf"})
_NOT_AT_THE_ROOT: Final = ("enum", "not")  # besides the combinators, which no API takes there
_MAPS: Final = ("properties", "$defs", "definitions", "patternProperties")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")


def parameters(found: Definitions, item: Prepared, *, strict: bool) -> tuple[Schema, bool]:
    """The schema of a function, and whether a model is held to it.

    Where `strict` is wanted and cannot be had, what is in the way stands among the dropped keywords.
    """
    plain = {name: part for name, part in item.schema.items() if name not in _NOT_AT_THE_ROOT}
    gone = (Lost("", name, "not taken at the root") for name in _NOT_AT_THE_ROOT if name in item.schema)
    report(found, item.shown, lost=gone)
    if strict:
        try:
            schema, lost = held(plain)
        except UnfitError as exc:
            found.dropped.append(Dropped(item.shown.name, "", "strict", str(exc)))
        else:
            report(found, item.shown, lost=lost)
            found.nulled[item.name] = item.schema
            return schema, True
    return {"properties": {}, **_with_items(plain)}, False


def _with_items(schema: Mapping[str, Any]) -> Schema:
    """The schema, where each array says something of its items: the APIs refuse one that does not."""
    out: Schema = dict(schema)
    for keyword in _MAPS:
        if (named := table(schema.get(keyword))) is not None:
            out[keyword] = {name: _part(part) for name, part in named.items()}
    for keyword in _LISTS:
        if keyword in schema:
            out[keyword] = [_part(part) for part in items(schema[keyword])]
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            out[keyword] = _part(schema[keyword])
    if "array" in types(schema) and "items" not in schema:
        out["items"] = {}
    return out


def _part(part: Any) -> Any:
    found = table(part)
    return part if found is None else _with_items(found)


def failed(text: str) -> str:
    """A failure in words: neither API has a flag for it."""
    said = text.strip() or FAILED
    return said if said.lower().startswith("error") else f"Error: {said}"


def error_of(body: Mapping[str, Any]) -> Failed | None:
    """The error of a body `{"error": {...}}`. Some servers that speak these APIs put text there."""
    found = body.get("error")
    said = table(found)
    if said is not None:
        code = said.get("code") or said.get("type") or "error"
        return Failed(str(code), str(said.get("message", "")))
    return Failed("error", found) if isinstance(found, str) and found else None
