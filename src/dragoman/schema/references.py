"""Local references of a JSON Schema: following them, and writing them out.

It knows JSON Pointers into one document, and refuses to know any other document.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.schema.errors import InvalidSchema, UnresolvedReference
from dragoman.schema.shapes import is_array, is_object

MOST_NODES: Final = 100_000
"""A schema is not written out beyond this many objects and arrays."""


# Compiled, and kept by `re`, when first used: a server starts without it.
_PERCENT: Final = r"(?:%[0-9A-Fa-f]{2})+"


def resolve(root: Any, reference: Any) -> Any:
    """What a local reference (`#`, `#/$defs/Name`) leads to; None if it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found = root
    for step in reference[1:].split("/")[1:]:
        name = re.sub(_PERCENT, _unquoted, step).replace("~1", "/").replace("~0", "~")
        if is_object(found) and name in found:
            found = found[name]
        elif is_array(found) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def _unquoted(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")


def inline(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema with its local references written out, for readers that do not follow them.

    A recursive definition cannot be written out: the reference at which it enters itself again
    stays, and the definitions with it. Raises `UnresolvedReference` for a reference
    that leads nowhere in the document, and `InvalidSchema` if the result would be out of all
    proportion.
    """
    writer = _Writer(schema)
    body = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
    written: dict[str, Any] = writer.write(body, ())
    if "#" in writer.kept:
        return schema
    if writer.kept:
        written.update((key, schema[key]) for key in _DEFINITIONS if key in schema)
    return written


class _Writer:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.kept: set[str] = set()
        self._nodes = 0

    def write(self, schema: Any, inside: tuple[str, ...]) -> Any:
        if is_array(schema):
            self._count()
            return [self.write(item, inside) for item in schema]
        if not is_object(schema):
            return schema
        self._count()
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return {key: self.write(value, inside) for key, value in schema.items()}
        rest = {key: self.write(value, inside) for key, value in schema.items() if key != "$ref"}
        if reference in inside:
            self.kept.add(reference)
            return schema
        target = resolve(self.root, reference)
        if target is None:
            raise UnresolvedReference(reference)
        written = self.write(target, (*inside, reference))
        if not is_object(written):
            return written
        if rest.keys() & written.keys() - _ANNOTATIONS:
            return {"allOf": [written], **rest}
        return {**written, **rest}

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise InvalidSchema(f"written out, the schema has more than {MOST_NODES} parts")


_DEFINITIONS: Final = ("$defs", "definitions")
_ANNOTATIONS: Final = {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
