"""What is different between two states of a tool, and whom it breaks. Pure.

A change of what is accepted is weighed from the caller's side, one of what is answered from the reader's;
what cannot be weighed counts as breaking. It knows no file and no server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.host.definition import INTERACTION
from dragoman.schema.references import resolve
from dragoman.schema.shapes import is_array, is_object

Kind: TypeAlias = Literal["breaking", "compatible", "text"]
"""`breaking`: calls that were right may fail or do something else. `text`: only words, which models read."""

_WORDS: Final = frozenset({"title", "description", "$comment", "examples", "deprecated", "$id", "$schema"})
_LOWER: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_DEFINED: Final = frozenset({"$defs", "definitions"})
_APART: Final = frozenset({"type", "enum", "const", "required", "properties", "items", "$ref"})
_LOOSE: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
_DEEPEST: Final = 32
_MOST: Final = 10_000  # schemas that are looked at: definitions that refer to each other can be many more
# Members that hold schemas: in a list, or by name.
_ALTERNATIVES: Final = frozenset({"anyOf", "oneOf"})
_LISTS: Final = _ALTERNATIVES | {"allOf", "prefixItems"}
_NAMED: Final = frozenset({"patternProperties", "dependentSchemas"})
_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
# What a hint says where it is missing, and the value after which more care is needed.
_HINTS: Final[Mapping[str, tuple[bool, bool]]] = {
    "readOnlyHint": (False, False),
    "destructiveHint": (True, True),
    "idempotentHint": (False, False),
    "openWorldHint": (True, True),
}
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """One difference: `place` is a path such as `inputSchema.properties.id.type`."""

    place: str
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}: {self.text}" if self.place else f"{self.kind}: {self.text}"


def changes(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Every difference between two states of one tool, each in the wire form of `tools/list`."""
    found: list[Change] = []
    for member in ("title", "description"):
        found += _word(member, was=was.get(member), now=now.get(member))
    found += _hints(_table(was.get("annotations")), _table(now.get("annotations")))
    found += _asking(_table(was.get("_meta")), _table(now.get("_meta")))
    found += _Walk(was.get("inputSchema"), now.get("inputSchema"), accepted=True).compare("inputSchema")
    old, new = was.get("outputSchema"), now.get("outputSchema")
    if old is None and new is not None:
        found.append(Change("outputSchema", "compatible", "the tool now promises what it answers"))
    elif old is not None and new is None:
        found.append(Change("outputSchema", "breaking", "the tool no longer promises what it answers"))
    elif old is not None:
        found += _Walk(old, new, accepted=False).compare("outputSchema")
    return found


def worst(found: Iterable[Change]) -> Kind | None:
    """The gravest kind among changes; None without any."""
    kinds = {change.kind for change in found}
    order: tuple[Kind, ...] = ("breaking", "compatible", "text")
    return next((kind for kind in order if kind in kinds), None)


def _word(place: str, *, was: Any, now: Any) -> Iterator[Change]:
    if was == now:
        return
    if was is None:
        yield Change(place, "text", f"new: {shown(now)}")
    elif now is None:
        yield Change(place, "text", f"gone: {shown(was)}")
    else:
        yield Change(place, "text", f"{shown(was)} is now {shown(now)}")


def _asking(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    old, new = was.get(INTERACTION) is True, now.get(INTERACTION) is True
    if old != new:
        yield Change(
            f"_meta.{INTERACTION}", "breaking" if old else "compatible", f"{shown(old)} is now {shown(new)}"
        )


def _hints(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Change]:
    for name in sorted({*was, *now}):
        place = f"annotations.{name}"
        if name not in _HINTS:
            yield from _word(place, was=was.get(name), now=now.get(name))
            continue
        absent, careful = _HINTS[name]
        old, new = was.get(name, absent), now.get(name, absent)
        if old != new:
            kind: Kind = "breaking" if new == careful else "compatible"
            yield Change(place, kind, f"{shown(old)} is now {shown(new)}")


class _Walk:
    """Two schemas side by side. `accepted`: of what a tool takes, else of what it gives."""

    def __init__(self, was: Any, now: Any, *, accepted: bool) -> None:
        self._roots = was, now
        self._accepted = accepted
        self._inside: list[tuple[bytes, bytes]] = []  # pairs that are being compared, outermost first
        self._count = 0

    def compare(self, place: str) -> list[Change]:
        return list(self._schema(*self._roots, place=place))

    def _kind(self, *, narrower: bool) -> Kind:
        return "breaking" if narrower == self._accepted else "compatible"

    def _schema(self, was: Any, now: Any, *, place: str) -> Iterator[Change]:
        # What refers to nothing is the same if it reads the same.
        if b'"$ref"' not in (written := _encode(was)) and written == _encode(now):
            return
        was, now = self._resolved(was, 0), self._resolved(now, 1)
        pair = _encode(was), _encode(now)
        if pair in self._inside:
            return
        self._count += 1
        if len(self._inside) > _DEEPEST or self._count > _MOST:
            if pair[0] != pair[1]:
                yield Change(place, "breaking", "changed, beyond what is looked at")
            return
        self._inside.append(pair)
        if is_object(was) and is_object(now):
            yield from self._members(was, now, place=place)
        else:
            yield from self._boolean(was, now, place=place)
        self._inside.pop()

    def _members(self, was: Mapping[str, Any], now: Mapping[str, Any], *, place: str) -> Iterator[Change]:
        yield from self._types(was.get("type"), now.get("type"), place=place)
        yield from self._values(was, now, place=place)
        yield from self._required(was, now, place=place)
        yield from self._properties(was, now, place=place)
        if "items" in was or "items" in now:
            yield from self._schema(was.get("items", True), now.get("items", True), place=f"{place}.items")
        yield from self._others(was, now, place=place)

    def _resolved(self, schema: Any, side: int) -> Any:
        """The schema without the reference that it is; definitions are reached from the root alone."""
        hops = 0
        while is_object(schema) and isinstance(schema.get("$ref"), str) and hops < _DEEPEST:
            target = resolve(self._roots[side], schema["$ref"])
            if not is_object(target):
                return schema if target is None else target
            # What stands beside a reference holds too.
            schema = {**target, **{name: value for name, value in schema.items() if name != "$ref"}}
            hops += 1
        if is_object(schema) and not _DEFINED.isdisjoint(schema):
            return {name: value for name, value in schema.items() if name not in _DEFINED}
        return schema

    def _boolean(self, was: Any, now: Any, *, place: str) -> Iterator[Change]:
        if was == now:
            return
        wider = now is True or now == {}
        narrower = was is True or was == {} or now is False
        if wider:
            yield Change(place, self._kind(narrower=False), "takes anything now")
        elif narrower:
            yield Change(place, self._kind(narrower=True), f"is held to {shown(now)} now")
        else:
            yield Change(place, "breaking", f"{shown(was)} is now {shown(now)}")

    def _types(self, was: Any, now: Any, *, place: str) -> Iterator[Change]:
        old, new = _types(was), _types(now)
        place = f"{place}.type"
        if lost := old - new:
            yield Change(place, self._kind(narrower=True), f"no longer {_listed(lost)}")
        if won := new - old:
            yield Change(place, self._kind(narrower=False), f"now {_listed(won)} too")

    def _values(self, was: Mapping[str, Any], now: Mapping[str, Any], *, place: str) -> Iterator[Change]:
        old, new = _values(was), _values(now)
        word = "const" if "const" in was or "const" in now else "enum"
        place = f"{place}.{word}"
        if old is None and new is not None:
            yield Change(place, self._kind(narrower=True), f"only {_listed(new)} now")
        elif old is not None and new is None:
            yield Change(place, self._kind(narrower=False), "any value now")
        elif old is not None and new is not None:
            if lost := [value for value in old if value not in new]:
                yield Change(place, self._kind(narrower=True), f"no longer {_listed(lost)}")
            if won := [value for value in new if value not in old]:
                yield Change(place, self._kind(narrower=False), f"now {_listed(won)} too")

    def _required(self, was: Mapping[str, Any], now: Mapping[str, Any], *, place: str) -> Iterator[Change]:
        old, new = _names(was.get("required")), _names(now.get("required"))
        there = _table(was.get("properties"))
        for name in sorted(new - old):
            what = "is required now" if name in there or not self._accepted else "is new, and required"
            yield Change(f"{place}.required", self._kind(narrower=True), f"{name!r} {what}")
        for name in sorted(old - new):
            what = "may be left out now" if self._accepted else "may be missing now"
            yield Change(f"{place}.required", self._kind(narrower=False), f"{name!r} {what}")

    def _properties(self, was: Mapping[str, Any], now: Mapping[str, Any], *, place: str) -> Iterator[Change]:
        old, new = _table(was.get("properties")), _table(now.get("properties"))
        for name in sorted({*old, *new}):
            inner = f"{place}.properties.{name}"
            if name not in new:
                yield Change(inner, "breaking", "is gone")
            elif name not in old:
                yield Change(inner, "compatible", "is new")  # that it is required is said apart
            else:
                yield from self._schema(old[name], new[name], place=inner)

    def _others(self, was: Mapping[str, Any], now: Mapping[str, Any], *, place: str) -> Iterator[Change]:
        for keyword in sorted({*was, *now} - _APART):
            old, new, inner = was.get(keyword), now.get(keyword), f"{place}.{keyword}"
            if keyword in _WORDS:
                yield from _word(inner, was=old, now=new)
            elif keyword in _LOWER | _UPPER:
                yield from self._bound(old, new, place=inner, lower=keyword in _LOWER)
            elif keyword in _LOOSE:
                yield from self._schema(was.get(keyword, True), now.get(keyword, True), place=inner)
            elif keyword in _LISTS and is_array(old) and is_array(new):
                yield from self._list(old, new, place=inner, keyword=keyword)
            elif keyword in _NAMED and is_object(old) and is_object(new) and old.keys() == new.keys():
                for name in sorted(old):
                    yield from self._schema(old[name], new[name], place=f"{inner}.{name}")
            elif _encode(old) != _encode(new):
                yield self._opaque(was, now, place=inner, keyword=keyword)

    def _list(self, was: list[Any], now: list[Any], *, place: str, keyword: str) -> Iterator[Change]:
        if len(was) == len(now):
            for index, (old, new) in enumerate(zip(was, now, strict=True)):
                yield from self._schema(old, new, place=f"{place}[{index}]")
            return
        fewer, more = sorted((was, now), key=len)
        kind: Kind = "breaking"
        if all(item in more for item in fewer) and keyword != "prefixItems":
            kind = self._kind(narrower=(len(now) < len(was)) == (keyword in _ALTERNATIVES))
        yield Change(place, kind, f"{len(was)} of them are now {len(now)}")

    def _opaque(self, was: Mapping[str, Any], now: Mapping[str, Any], *, place: str, keyword: str) -> Change:
        """Of patterns and formats nobody can tell; only that without one, more is taken."""
        kind: Kind = "breaking"
        if keyword not in now and keyword != "default":
            kind = self._kind(narrower=False)
        elif keyword not in was and not self._accepted:
            kind = "compatible"
        return Change(place, kind, _told(was, now, keyword=keyword))

    def _bound(self, was: Any, now: Any, *, place: str, lower: bool) -> Iterator[Change]:
        if was == now:
            return
        if was is None or now is None:
            narrower = was is None
        elif isinstance(was, int | float) and isinstance(now, int | float):
            narrower = now > was if lower else now < was
        else:
            yield Change(place, "breaking", f"{shown(was)} is now {shown(now)}")
            return
        said = "no limit" if was is None else shown(was)
        then = "without limit" if now is None else shown(now)
        yield Change(place, self._kind(narrower=narrower), f"{said} is now {then}")


def shown(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    text = _encode(value).decode()
    return text if len(text) <= 120 else f"{text[:100]}… ({len(text)} characters)"


def _told(was: Mapping[str, Any], now: Mapping[str, Any], *, keyword: str) -> str:
    if keyword not in was:
        return f"new: {shown(now[keyword])}"
    if keyword not in now:
        return f"gone: {shown(was[keyword])}"
    return f"{shown(was[keyword])} is now {shown(now[keyword])}"


def _table(value: Any) -> Mapping[str, Any]:
    return value if is_object(value) else {}


def _names(value: Any) -> set[str]:
    return {item for item in value if isinstance(item, str)} if is_array(value) else set()


def _types(value: Any) -> set[str]:
    told = [value] if isinstance(value, str) else value if is_array(value) else list(_TYPES)
    found = {item for item in told if isinstance(item, str)}
    return found | {"integer"} if "number" in found else found


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    enum = schema.get("enum")
    return list(enum) if is_array(enum) else None


def _listed(values: Iterable[Any]) -> str:
    told = sorted(values) if isinstance(values, set) else list(values)
    return ", ".join(value if isinstance(value, str) and value in _TYPES else shown(value) for value in told)
