"""The request headers that repeat the body, held against it: `Mcp-Method`, `Mcp-Name`, `Mcp-Param-*`.

2026-07-28, Streamable HTTP, "Server Validation": whoever routed or filtered by a header must have
seen what is executed. It judges one admitted call and decides nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal
from dragoman.model import HEADER_MISMATCH, CallToolParams
from dragoman.protocol.call import Call
from dragoman.protocol.headers import PREFIX, decode_value

VERSION: Final = b"mcp-protocol-version"
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?")
_ABSENT: Final = object()
_MARK: Final = PREFIX.encode()
_BLANKS: Final = b" \t"


class Parameter(Protocol):
    """A tool's parameter that is mirrored: where its value stands in the arguments, and under which name."""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys from the arguments down to the value."""
        ...

    @property
    def header(self) -> str:
        """What follows `Mcp-Param-` in the header's name."""
        ...


Parameters = Callable[[str], tuple[Any, ...]]


def check(call: Call, fields: Mapping[bytes, bytes], *, parameters: Parameters) -> None:
    """Hold the headers of an admitted call against its body.

    `parameters` gives the mirrored parameters (`Parameter`) of a tool by its name.

    Raises:
        Refusal: -32020, naming the header, what it says, and what the body says.
    """
    method = call.method
    name, version = method.name, call.revision.version
    if fields.get(VERSION) != version.encode():
        _same("MCP-Protocol-Version", fields.get(VERSION), body=version)
    if fields.get(b"mcp-method") != name.encode():
        _same("Mcp-Method", fields.get(b"mcp-method"), body=name)
    if method.subject is None:
        return
    params = call.params
    subject: str = getattr(params, method.subject)
    said = fields.get(b"mcp-name", b"")
    # A plain value that is there byte for byte is right; all others are looked at closely.
    if said.startswith(_MARK) or said != subject.encode("utf-8", "replace") or not subject.isascii():
        _encoded("Mcp-Name", fields.get(b"mcp-name"), body=subject)
    if type(params) is CallToolParams:
        mirrored = parameters(subject)
        if mirrored:
            _arguments(params.arguments, fields, mirrored=mirrored)


def mismatch(header: str, said: str, *, body: str) -> Refusal:
    """The error for a header that says something else than the body."""
    return Refusal(
        HEADER_MISMATCH, f"Header mismatch: {header} header value {said!r} does not match body value {body!r}"
    )


def missing(header: str, body: str) -> Refusal:
    """The error for a header that has to be there."""
    return Refusal(HEADER_MISMATCH, f"Header mismatch: {header} header is missing; the body says {body!r}")


def _same(header: str, value: bytes | None, *, body: str) -> None:
    if value is None:
        raise missing(header, body)
    said = value.strip(_BLANKS).decode("latin-1")
    if said != body:
        raise mismatch(header, said, body=body)


def _encoded(header: str, value: bytes | None, *, body: str) -> None:
    if value is None:
        raise missing(header, body)
    said = _decoded(header, value)
    if said != body:
        raise mismatch(header, said, body=body)


def _decoded(header: str, value: bytes) -> str:
    text = value.decode("latin-1")
    try:
        return decode_value(text)
    except ValueError as exc:
        raise Refusal(
            HEADER_MISMATCH, f"Header mismatch: {header} header value {text!r} is malformed: {exc}"
        ) from None


def _arguments(raw: Any, fields: Mapping[bytes, bytes], *, mirrored: tuple[Parameter, ...]) -> None:
    arguments: Any = {} if raw is UNSET else msgspec.json.decode(raw)
    for parameter in mirrored:
        name = "Mcp-Param-" + parameter.header
        value = _at(arguments, parameter.path)
        header = fields.get(name.lower().encode("ascii"))
        place = "arguments." + ".".join(parameter.path)
        if header is None:
            if isinstance(value, str | int | float):
                raise Refusal(
                    HEADER_MISMATCH, f"Header mismatch: {name} header is missing; the body has {place}"
                )
        elif value is _ABSENT or value is None:
            raise Refusal(
                HEADER_MISMATCH, f"Header mismatch: {name} header is there, but the body has no {place}"
            )
        elif not _equal(_decoded(name, header), value):
            text = msgspec.json.encode(value).decode()
            said = _decoded(name, header)
            raise Refusal(
                HEADER_MISMATCH,
                f"Header mismatch: {name} header value {said!r} does not match body value {text} of {place}",
            )


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _ABSENT
        value = cast("dict[str, Any]", value)[key]
    return value


def _equal(said: str, value: Any) -> bool:
    if isinstance(value, bool):
        return said == ("true" if value else "false")
    if isinstance(value, int | float):
        return _NUMBER.fullmatch(said) is not None and Decimal(said) == value
    return bool(said == value)
