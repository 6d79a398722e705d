"""Arguments that are mirrored into HTTP headers: the `x-mcp-header` annotations of an input schema.

The constraints are those of the specification, revision 2026-07-28, "Tools" (x-mcp-header) and
"Streamable HTTP" (Schema Extension). It refuses to know how header values are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from dragoman.schema.errors import HeaderAnnotationError
from dragoman.schema.shapes import is_array, is_object
from dragoman.schema.wording import pointer, snippet

ANNOTATION: Final = "x-mcp-header"

# Compiled, and kept by `re`, when first used: a server starts without it.
_TCHARS: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # RFC 9110 section 5.6.2
_TYPES: Final = ("string", "integer", "boolean")
_ABSENT: Final[Any] = object()

# Below these keywords are values or names, not subschemas: an annotation there annotates nothing.
_DATA: Final = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})
_MAPS: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


class HeaderParameter(Struct, frozen=True):
    """One mirrored argument: its path of member names, the name after `Mcp-Param-`, and its JSON type."""

    path: tuple[str, ...]
    header: str
    type: str

    def value(self, arguments: Any) -> Any:
        """The argument at the exact path; `None` if there is none (null is none, too: it has no text)."""
        for step in self.path:
            if not is_object(arguments) or step not in arguments:
                return None
            arguments = arguments[step]
        return arguments


def header_parameters(schema: Any) -> tuple[HeaderParameter, ...]:
    """The header parameters of an input schema, in the order in which they stand there.

    Raises `HeaderAnnotationError` with the reason for the first annotation that is not allowed; a
    tool with such a schema is to be left out of a list.
    """
    found: list[HeaderParameter] = []
    seen: dict[str, str] = {}
    for node, place, path in _annotated(schema, (), path=()):
        parameter = _parameter(node, place=pointer(place), path=path)
        other = seen.setdefault(parameter.header.lower(), pointer(place))
        if other != pointer(place):
            raise HeaderAnnotationError(
                f"{ANNOTATION} {parameter.header!r} is used twice (case does not matter), also at #{other}",
                pointer(place),
            )
        found.append(parameter)
    return tuple(found)


def _annotated(
    node: Any, place: tuple[str | int, ...], *, path: tuple[str, ...] | None
) -> Iterator[tuple[dict[str, Any], tuple[str | int, ...], tuple[str, ...] | None]]:
    """Every annotated subschema; `path` is None once something else than `properties` was passed."""
    if is_array(node):
        for at, item in enumerate(node):
            yield from _annotated(item, (*place, at), path=None)
    if not is_object(node):
        return
    if ANNOTATION in node:
        yield node, place, path
    for keyword, value in node.items():
        if keyword in _MAPS and is_object(value):
            straight = path is not None and keyword == "properties"
            for name, inner in value.items():
                inner_path = (*path, name) if straight and path is not None else None
                yield from _annotated(inner, (*place, keyword, name), path=inner_path)
        elif keyword not in _DATA:
            yield from _annotated(value, (*place, keyword), path=None)


def _parameter(node: dict[str, Any], *, place: str, path: tuple[str, ...] | None) -> HeaderParameter:
    header = node[ANNOTATION]
    if not isinstance(header, str) or not header:
        raise HeaderAnnotationError(f"{ANNOTATION} must be a name, not {snippet(header)}", place)
    if not re.fullmatch(_TCHARS, header):
        raise HeaderAnnotationError(
            f"{ANNOTATION} {header!r} is no HTTP field name: letters, digits and !#$%&'*+-.^_`|~ only", place
        )
    if not path:
        raise HeaderAnnotationError(
            f"{ANNOTATION} {header!r} is not reachable through `properties` alone from the root", place
        )
    kind = node.get("type", _ABSENT)
    if kind not in _TYPES:
        shown = "no type" if kind is _ABSENT else f"type {snippet(kind)}"
        raise HeaderAnnotationError(
            f"{ANNOTATION} {header!r} is on a parameter of {shown}: string, integer and boolean are allowed",
            place,
        )
    return HeaderParameter(path, header, kind)
