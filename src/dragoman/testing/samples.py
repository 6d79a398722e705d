"""One value for a JSON Schema: the plainest that fits, the same one each time.

Pure, and modest: whoever uses a value holds it against the schema.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.schema.references import resolve
from dragoman.schema.shapes import is_array, is_object

_DEPTH: Final = 12
_FORMATS: Final = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "someone@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
}


def sample(schema: Any, root: dict[str, Any] | None = None, *, depth: int = 0) -> Any:
    """A value for the schema; `root` is the document that its references are into."""
    if not is_object(schema):
        return None
    root = schema if root is None else root
    if "$ref" in schema and depth < _DEPTH:
        return sample(resolve(root, schema["$ref"]), root, depth=depth + 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        values = schema.get(name)
        if is_array(values) and values:
            return values[0]
    either = schema.get("anyOf") or schema.get("oneOf")
    if is_array(either) and either and depth < _DEPTH:
        return sample(either[0], root, depth=depth + 1)
    return _typed(schema, root, depth=depth)


def _typed(schema: dict[str, Any], root: dict[str, Any], *, depth: int) -> Any:
    kind = schema.get("type")
    if is_array(kind):
        kind = kind[0] if kind else None
    if kind == "object" or (kind is None and "properties" in schema):
        return _object(schema, root, depth=depth)
    if kind == "array":
        least = schema.get("minItems", 0 if depth >= _DEPTH else 1)
        return [sample(schema.get("items"), root, depth=depth + 1) for _ in range(min(int(least), 16))]
    if kind == "string":
        return _string(schema)
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    return kind == "boolean" or None


def _object(schema: dict[str, Any], root: dict[str, Any], *, depth: int) -> dict[str, Any]:
    properties = schema.get("properties")
    required = schema.get("required")
    if not is_object(properties):
        properties = {}
    needed = [*required] if is_array(required) else []
    names = needed if depth >= _DEPTH else [*properties, *(name for name in needed if name not in properties)]
    return {name: sample(properties.get(name), root, depth=depth + 1) for name in names}


def _string(schema: dict[str, Any]) -> str:
    text = _FORMATS.get(str(schema.get("format")), "text")
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(text))
    return text.ljust(min(int(least), 10_000), "x")[: max(int(most), int(least))]


def _number(schema: dict[str, Any], *, whole: bool) -> float:
    step = schema.get("multipleOf", 1)
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    value: float = 0
    if low is not None and low >= 0:
        value = -(-low // step) * step
        if schema.get("exclusiveMinimum") == value:
            value += step
    elif high is not None and high <= 0:
        value = high // step * step
        if schema.get("exclusiveMaximum") == value:
            value -= step
    return int(value) if whole else value
