"""A tool's arguments from the words of a command line, read by the tool's own schema.

Pure: words and a schema in, a JSON object out. It refuses to guess where the schema speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.schema.references import resolve
from dragoman.schema.shapes import class_of, is_array, is_object

_decode: Final = msgspec.json.Decoder().decode
_NO_JSON: Final = object()
_ANYTHING: Final[dict[str, Any]] = {}
_HOPS: Final = 32  # references followed one after the other; more is a ring
_DEPTH: Final = 64  # alternatives inside of alternatives that are looked into
_MEMBERS: Final = 100  # objects inside of objects that one key can name
_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Word:
    """`key=text`, or with `forced` `key:=text`, which is JSON whatever the schema says."""

    key: str
    text: str
    forced: bool


def words(texts: Sequence[str]) -> list[Word]:
    """Split `key=value` and `key:=value`.

    Raises:
        UsageError: a text is neither.
    """
    found: list[Word] = []
    for text in texts:
        key, equals, value = text.partition("=")
        forced = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            raise UsageError(f"argument {text!r}: expected key=value or key:=JSON")
        if key.count(".") > _MEMBERS:
            raise UsageError(f"argument {key[:50]!r}...: more than {_MEMBERS} members inside of each other")
        found.append(Word(key, value, forced))
    return found


def read_object(text: str) -> dict[str, Any]:
    """The JSON object that `--args` was given.

    Raises:
        UsageError: it is none.
    """
    try:
        value = _decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise UsageError(
            f"--args: expected a JSON object: {exc}", hint="""--args '{"key": "value"}'"""
        ) from None
    if not is_object(value):
        raise UsageError(f"--args: expected a JSON object, received {_kind(value)}")
    return value


def assemble(
    given: Sequence[Word], schema: Mapping[str, Any], *, base: Mapping[str, Any] = {}
) -> dict[str, Any]:
    """`base` with the words put in, each value read as the schema has it.

    Raises:
        UsageError: a forced value is no JSON, or two words contradict each other.
    """
    result = {**base}
    whole = _Place(schema, _Document(schema))
    seen: dict[tuple[str, ...], list[Any]] = {}
    for word in given:
        path, place = _find(word.key, whole)
        values = seen.setdefault(path, [])
        values.append(_value(word, place))
        if len(values) > 1 and not place.admits("array"):
            raise UsageError(f"argument {word.key!r} is given twice, and the tool takes no list there")
        _put(result, path, value=values[0] if len(values) == 1 else _joined(values))
    return result


def _joined(values: list[Any]) -> list[Any]:
    joined: list[Any] = []
    for value in values:
        joined += value if isinstance(value, list) else [value]
    return joined


def _put(target: dict[str, Any], path: tuple[str, ...], *, value: Any) -> None:
    for done, key in enumerate(path[:-1], start=1):
        inner = target.get(key, {})
        if not is_object(inner):
            outer = ".".join(path[:done])
            raise UsageError(f"argument {'.'.join(path)!r}: {outer!r} is given too, and is no object")
        target[key] = target = {**inner}
    target[path[-1]] = value


class _Document:
    """A whole schema, and what was found out about its parts: each is looked into once, rings and all."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.types: dict[int, frozenset[str] | None] = {}
        self.members: dict[tuple[int, str], _Place | None] = {}


class _Place:
    """A part of a schema: what may stand at one place of the arguments."""

    def __init__(self, schema: Any, document: _Document, *, depth: int = 0) -> None:
        for _ in range(_HOPS):
            if not is_object(schema) or "$ref" not in schema:
                break
            schema = resolve(document.root, schema["$ref"])
        self.schema: Mapping[str, Any] = schema if is_object(schema) else _ANYTHING
        self.document = document
        self._depth = depth

    def _inner(self, *keywords: str) -> Iterator[_Place]:
        for keyword in keywords if self._depth < _DEPTH else ():
            schemas = self.schema.get(keyword)
            for schema in schemas if is_array(schemas) else ():
                yield _Place(schema, self.document, depth=self._depth + 1)

    def member(self, name: str) -> _Place | None:
        """The property of that name, if the schema knows one."""
        key, known = (id(self.schema), name), self.document.members
        if key not in known:
            known[key] = None  # what a ring comes back to
            known[key] = self._member(name)
        return known[key]

    def _member(self, name: str) -> _Place | None:
        properties = self.schema.get("properties")
        if is_object(properties) and name in properties:
            return _Place(properties[name], self.document)
        inner = (place.member(name) for place in self._inner("allOf", "anyOf", "oneOf"))
        return next((place for place in inner if place is not None), None)

    def extra(self) -> _Place:
        """What further properties are."""
        return _Place(self.schema.get("additionalProperties"), self.document)

    def items(self) -> _Place:
        """What the items of an array are."""
        for inner in (self, *self._inner("allOf", "anyOf", "oneOf")):
            if "items" in inner.schema:
                return _Place(inner.schema["items"], self.document)
        return _Place(_ANYTHING, self.document)

    def types(self) -> frozenset[str] | None:
        """The JSON types that may stand here (`integer` counts as `number`); None for any."""
        key, known = id(self.schema), self.document.types
        if key not in known:
            known[key] = None  # what a ring comes back to
            known[key] = self._types()
        return known[key]

    def _types(self) -> frozenset[str] | None:
        named = self._named()
        for inner in self._inner("allOf"):
            others = inner.types()
            if others is not None:
                named = others if named is None else named & others
        either = [inner.types() for keyword in ("anyOf", "oneOf") for inner in self._inner(keyword)]
        if either and None not in either:
            union = frozenset[str]().union(*(types for types in either if types is not None))
            named = union if named is None else named & union
        return named

    def _named(self) -> frozenset[str] | None:
        kind = self.schema.get("type")
        names = [kind] if isinstance(kind, str) else kind
        if is_array(names):
            return frozenset("number" if name == "integer" else str(name) for name in names)
        values = self.values()
        return None if values is None else frozenset(_kind(value) for value in values)

    def values(self) -> Sequence[Any] | None:
        """The values of an enumeration, if it is one."""
        if "const" in self.schema:
            return [self.schema["const"]]
        values = self.schema.get("enum")
        return values if is_array(values) else None

    def admits(self, kind: str) -> bool:
        """Whether a value of that type may stand here."""
        types = self.types()
        return types is None or kind in types


def _kind(value: Any) -> str:
    return _TYPES.get(class_of(value), "string")


def _find(key: str, place: _Place) -> tuple[tuple[str, ...], _Place]:
    """Where `a.b` is: the property of that very name, or member `b` of the object `a`."""
    found = place.member(key)
    if found is not None:
        return (key,), found
    head, dot, rest = key.partition(".")
    if not dot or not head or not rest:
        return (key,), place.extra()
    path, inner = _find(rest, place.member(head) or place.extra())
    return (head, *path), inner


def _value(word: Word, place: _Place) -> Any:
    if not word.forced:
        return _read(word.text, place)
    value = _json(word.text)
    if value is _NO_JSON:
        raise UsageError(f"argument {word.key!r}: expected JSON after `:=`, received {word.text!r}")
    return value


def _read(text: str, place: _Place) -> Any:
    types = place.types()
    value = _json(text)
    if types is None:
        return text if value is _NO_JSON else value
    if "string" in types:
        values = place.values()
        other = values is not None and text not in values and value in values
        return value if other else text
    if "array" in types and (value is _NO_JSON or _kind(value) not in types):
        return [_read(text, place.items())]
    return text if value is _NO_JSON else value


def _json(text: str) -> Any:
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _NO_JSON
