"""Limits on schemas that come from somewhere else, so that validating costs no more than they say.

It walks a schema as plain data and refuses to know what its keywords assert.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dragoman.schema.errors import InvalidSchema
from dragoman.schema.references import resolve
from dragoman.schema.shapes import is_array, is_object

MAX_DEPTH: Final = 64
"""Subschemas may be nested this deep."""
MAX_SUBSCHEMAS: Final = 10_000
MAX_EXPANSION: Final = 2_000
"""With references followed, this many subschemas may apply to one and the same value."""
MAX_STEPS: Final = 100_000
"""All faults of a value are listed if no path into it applies more subschemas than this."""
MAX_NESTING: Final = 250
"""Nor may the applications on one path nest deeper than this."""

_NAMES_OF_MANY: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_IN_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_IN_PLACE: Final = ("not", "if", "then", "else")


def check_bounds(schema: Any) -> None:
    """Raise `InvalidSchema` if the schema is too deep, too large, or multiplies itself by references."""
    count = 0
    waiting: list[tuple[Any, int, tuple[str, ...]]] = [(schema, 1, ())]
    references = False
    while waiting:
        node, depth, path = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidSchema(f"the schema is nested more than {MAX_DEPTH} deep", "".join(path))
        count += 1
        if count > MAX_SUBSCHEMAS:
            raise InvalidSchema(f"the schema has more than {MAX_SUBSCHEMAS} parts", "")
        references = references or (is_object(node) and "$ref" in node)
        for key, child in _children(node):
            waiting.append((child, depth + 1, (*path, "/", key)))
    if references:
        _Expansion(schema).check()


def _children(node: Any) -> Iterator[tuple[str, Any]]:
    """The objects and arrays right below a subschema; the maps of names in between do not count."""
    pairs = node.items() if is_object(node) else enumerate(node)
    for key, value in pairs:
        if key in _NAMES_OF_MANY and is_object(value):
            yield from (
                (f"{key}/{name}", child) for name, child in value.items() if isinstance(child, (dict, list))
            )
        elif isinstance(value, (dict, list)):
            yield str(key), value


def in_place(schema: dict[str, Any], root: Any) -> Iterator[dict[str, Any]]:
    """The subschemas that apply to the same value as `schema`, one step away."""
    for keyword in _IN_PLACE_LISTS:
        members = schema.get(keyword)
        if is_array(members):
            yield from (member for member in members if is_object(member))
    for keyword in _IN_PLACE:
        if is_object(schema.get(keyword)):
            yield schema[keyword]
    dependent = schema.get("dependentSchemas")
    if is_object(dependent):
        yield from (member for member in dependent.values() if is_object(member))
    for keyword in ("$ref", "$dynamicRef"):
        target = resolve(root, schema.get(keyword))
        if is_object(target):
            yield target


class _Expansion:
    """Counts what applies to one value at once; a cycle without a step into the value counts once."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[int, int] = {}

    def check(self) -> None:
        waiting = [self._root]
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if is_object(node) and self.count(node, 0) > MAX_EXPANSION:
                raise InvalidSchema(
                    f"references make more than {MAX_EXPANSION} subschemas apply to one value"
                )
            waiting.extend(child for _, child in _children(node))

    def count(self, schema: dict[str, Any], depth: int) -> int:
        known = self._known.get(id(schema))
        if known is not None:
            return known
        if depth > MAX_DEPTH * 4:
            raise InvalidSchema("references lead through too many others")
        self._known[id(schema)] = 1  # what a cycle finds
        total = 1 + sum(self.count(child, depth + 1) for child in in_place(schema, self._root))
        self._known[id(schema)] = min(total, MAX_EXPANSION + 1)
        return self._known[id(schema)]


def is_listable(schema: Any, depth: int) -> bool:
    """Whether all faults of a value of this depth can be listed at a bounded price.

    The validator lists the faults of each member of a union anew at each level, by recursion: for
    a recursive union that is exponential in time, and for long chains of references deep in stack.
    """
    try:
        cost, height = _Cost(schema).of(schema, depth, level=0)
    except RecursionError:
        return False
    return cost <= MAX_STEPS and height <= MAX_NESTING


class _Cost:
    """How many subschemas are applied on one path into a value, at most, and how deep that nests."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._known: dict[tuple[int, int], tuple[int, int]] = {}

    def of(self, schema: Any, depth: int, *, level: int) -> tuple[int, int]:
        if not is_object(schema):
            return 1, 1
        if level > MAX_NESTING:
            raise RecursionError
        key = (id(schema), depth)
        if key not in self._known:
            self._known[key] = (1, 1)  # what a cycle finds
            same = [self.of(child, depth, level=level + 1) for child in in_place(schema, self._root)]
            apart: list[tuple[int, int]] = []
            if depth > 0:
                same += [self.of(child, depth - 1, level=level + 1) for child in _overlapping(schema)]
                apart = [self.of(child, depth - 1, level=level + 1) for child in _disjoint(schema)]
            cost = 1 + sum(part for part, _ in same) + max((part for part, _ in apart), default=0)
            height = 1 + max((part for _, part in (*same, *apart)), default=0)
            self._known[key] = (min(cost, MAX_STEPS + 1), height)
        return self._known[key]


def _disjoint(schema: dict[str, Any]) -> Iterator[Any]:
    """Subschemas of which at most one applies to a given member or item."""
    properties = schema.get("properties")
    if is_object(properties):
        yield from properties.values()
    for keyword in ("additionalProperties", "items", "additionalItems"):
        value = schema.get(keyword)
        yield from value if is_array(value) else (value,)
    prefix = schema.get("prefixItems")
    if is_array(prefix):
        yield from prefix


def _overlapping(schema: dict[str, Any]) -> Iterator[Any]:
    patterns = schema.get("patternProperties")
    if is_object(patterns):
        yield from patterns.values()
    for keyword in ("contains", "unevaluatedProperties", "unevaluatedItems"):
        yield schema.get(keyword)
