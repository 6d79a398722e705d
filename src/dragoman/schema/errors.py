"""What can be wrong with arguments, results and schemas, as exceptions and as `Fault` records.

It holds the words in which a fault is told, and knows neither how faults are found nor how a
server answers them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from dragoman.errors import DragomanError

SNIPPET = 200
"""Received values are shown as JSON, cut at this many characters."""


class Fault(Struct, frozen=True, kw_only=True):
    """One place where a value does not fit its schema.

    `field` is the path in the caller's terms (`arch`, `user.emails[0]`; empty for the whole value),
    `expected` says what would fit, `received` is a JSON snippet of what came (at most 200
    characters; `nothing` for a missing member), `allowed` lists the values of an enumeration, and
    `rule` is the JSON Pointer of the schema keyword that refused. `unknown`: there is no member of the
    last name in `field`, and `close`, if anything, is the one that may have been meant.
    """

    field: str
    expected: str
    received: str
    allowed: tuple[Any, ...] | None = None
    rule: str = ""
    unknown: bool = False
    close: str | None = None

    def __str__(self) -> str:
        return self.told("member")

    def told(self, noun: str) -> str:
        """The fault in a line, where a member is called that `noun`."""
        if self.unknown:
            meant = "" if self.close is None else f"; did you mean {_quoted(self.close)}?"
            field = self.field if '"' in self.field else _quoted(self.field)  # `headers["x y"]`
            return f"unknown {noun} {field}{meant}"
        text = f"expected {self.expected}; received {self.received}"
        return f"{self.field}: {text}" if self.field else text


def _quoted(name: str) -> str:
    return msgspec.json.encode(name).decode()


class ArgumentError(DragomanError):
    """Arguments do not fit the signature; `faults` has every fault that was found.

    `str()` is a text that a model can act on: a line for each fault with field, what was expected
    and what was received, or the name that there is not.
    """

    def __init__(self, faults: tuple[Fault, ...], name: str | None = None) -> None:
        self.faults = faults
        self.name = name
        super().__init__(faults, name)

    def __str__(self) -> str:
        head = f"Invalid arguments for {self.name}:" if self.name else "Invalid arguments:"
        return "\n".join([head, *(f"- {fault.told('argument')}" for fault in self.faults)])


class OutputError(DragomanError):
    """A tool returned what cannot be sent, or what its own output schema refuses.

    `path` is where, as in `Fault.field`; empty for the whole value.
    """

    def __init__(self, message: str, path: str = "") -> None:
        self.message = message
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)


class SchemaError(DragomanError):
    """Base of the faults of a schema itself; `place` is a JSON Pointer into it."""

    def __init__(self, message: str, place: str = "") -> None:
        self.message = message
        self.place = place
        super().__init__(f"{message} (at #{place})" if place else message)


class InvalidSchema(SchemaError):
    """The document is no JSON Schema of its dialect, or exceeds the limits set for schemas."""


class UnsupportedDialect(SchemaError):
    """`$schema` names a dialect that is not spoken here; `dialect` is its URI."""

    def __init__(self, dialect: str) -> None:
        super().__init__(
            f"JSON Schema dialect {dialect!r} is not supported: 2020-12 and draft-07 are", "/$schema"
        )
        self.dialect = dialect


class UnresolvedReference(SchemaError):
    """`$ref` leads out of the document, or to nothing in it. Nothing is ever fetched."""

    def __init__(self, reference: str, place: str = "") -> None:
        super().__init__(
            f"reference {reference!r} does not resolve inside the schema, and nothing is fetched", place
        )
        self.reference = reference


class HeaderAnnotationError(SchemaError):
    """An `x-mcp-header` annotation that the specification forbids; the message is the reason."""
