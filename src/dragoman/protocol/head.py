"""The head of an HTTP request, and the ways to say no to a request as such.

It judges what stands before the body: size, media types, verbs. It knows no session, no revision
and no method of MCP.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.jsonrpc.message import INVALID_REQUEST
from dragoman.protocol.origin import Denied

Headers = Sequence[tuple[bytes, bytes]]
JSON: Final = (b"content-type", b"application/json")
_EXPOSED: Final = b"Mcp-Session-Id, WWW-Authenticate, Retry-After"
_SENT: Final = (
    b"Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id"
)
_VERBS: Final = b"POST, GET, DELETE, OPTIONS"
_USUAL: Final = (b"application/json, text/event-stream", b"text/event-stream, application/json")
_NEVER: Final = re.compile(r"q\s*=\s*0(?:\.0*)?")


class Say(msgspec.Struct, frozen=True, gc=False):
    """Answer with this, and nothing else happens."""

    status: int
    body: bytes = b""
    headers: Headers = ()


class Head(msgspec.Struct, gc=False):
    """A request's head: `fields` by lower-case name.

    `doubled` is an `Mcp-*` header given twice with different values; `fault` is what to say if the
    head cannot be taken at all.
    """

    verb: str
    fields: dict[bytes, bytes]
    doubled: str | None = None
    fault: Say | None = None


def read_head(verb: str, headers: Iterable[tuple[bytes, bytes]], *, limit: int = 32_768) -> Head:
    """A head from header pairs with lower-case names, as ASGI gives them; beyond `limit` bytes, a fault."""
    pairs = headers if isinstance(headers, list) else list(headers)
    fields = dict(pairs)
    if len(fields) == len(pairs) and len(b"".join(chain.from_iterable(pairs))) <= limit:
        return Head(verb, fields)
    total = sum(len(name) + len(value) for name, value in pairs)
    if total > limit:
        said = fault(431, f"Request headers of {total} bytes: expected at most {limit}")
        return Head(verb, fields, None, said)
    return _combine(verb, pairs)


def _combine(verb: str, pairs: list[tuple[bytes, bytes]]) -> Head:
    fields: dict[bytes, bytes] = {}
    doubled = None
    for name, value in pairs:
        before = fields.setdefault(name, value)
        if before == value:
            continue
        fields[name] = before + b", " + value  # one list (RFC 9110, section 5.2)
        if name.startswith(b"mcp-"):
            doubled = name.decode("latin-1")
    return Head(verb, fields, doubled)


def check_post(head: Head, max_body: int) -> Say | None:
    """What is wrong with the head of a POST, or None: content type, length, and what it accepts."""
    fields = head.fields
    content_type = fields.get(b"content-type", b"")
    if content_type != b"application/json" and not _is_json(content_type):
        return fault(415, f"Content-Type: expected application/json, received {quoted(content_type)}")
    if fields.get(b"content-encoding", b"identity") != b"identity":
        return fault(415, f"Content-Encoding: expected none, received {quoted(fields[b'content-encoding'])}")
    accept = fields.get(b"accept")
    if accept is not None and accept not in _USUAL:  # without one, anything goes (RFC 9110, section 12.5.1)
        lacking = [kind for kind in ("application/json", "text/event-stream") if not accepts(accept, kind)]
        if lacking:
            text = f"Accept: expected application/json and text/event-stream, received {quoted(accept)}"
            return fault(406, text, data={"missing": lacking})
    length = fields.get(b"content-length", b"0")
    if len(length) > 20 or (length.isdigit() and int(length) > max_body):
        return too_large(max_body)
    return None


def too_large(max_body: int) -> Say:
    """The answer to a body beyond the limit."""
    return fault(413, f"Request body: expected at most {max_body} bytes")


def _is_json(content_type: bytes) -> bool:
    kind, _, rest = content_type.decode("latin-1").lower().partition(";")
    name, _, value = rest.strip().partition("=")
    fits = name != "charset" or value.strip('"') in ("utf-8", "utf8", "us-ascii")
    return kind.strip() == "application/json" and fits


def accepts(accept: bytes, kind: str) -> bool:
    """Whether an Accept header admits a media type; its most specific range decides (RFC 9110, 12.5.1)."""
    ranges: dict[str, bool] = {}
    for entry in accept.decode("latin-1").lower().split(","):
        name, *parameters = [part.strip() for part in entry.split(";")]
        ranges[name] = not any(_NEVER.fullmatch(parameter) for parameter in parameters)
    for name in (kind, kind.partition("/")[0] + "/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return False


def quoted(value: bytes) -> str:
    """A header value for a message."""
    return repr(value.decode("latin-1")) if value else "nothing"


# Saying no ------------------------------------------------------------------------------------------


class _Fault(msgspec.Struct, gc=False):
    code: int
    message: str
    data: Any = UNSET


class _Faceless(msgspec.Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """An error response that has no `id` (Streamable HTTP, "Sending Messages"): it answers no request."""

    error: _Fault


_encode: Final = msgspec.json.Encoder().encode


def fault(
    status: int, message: str, *, data: Any = UNSET, code: int = INVALID_REQUEST, headers: Headers = ()
) -> Say:
    """Say no to an HTTP request as such, with an error response that has no `id`."""
    return Say(status, _encode(_Faceless(_Fault(code, message, data))), (JSON, *headers))


def not_allowed(verb: str, allow: str) -> Say:
    """The answer to a verb that the endpoint does not have (for this revision)."""
    return fault(405, f"{verb} is not allowed here; allowed: {allow}", headers=((b"allow", allow.encode()),))


def denial(denied: Denied) -> Say:
    """The answer to a Host or an Origin that is not allowed: what came, what would do, how to allow it."""
    text = f"{denied.header} {denied.received!r} is not allowed here"
    data = {"received": denied.received, "allowed": list(denied.allowed), "fix": denied.fix}
    return fault(
        denied.status, f"{text}; allowed: {', '.join(denied.allowed) or 'none'}. Fix: {denied.fix}", data=data
    )


# Web pages --------------------------------------------------------------------------------------------


def cors(head: Head) -> list[tuple[bytes, bytes]]:
    """What lets the page of an allowed origin read the response."""
    return [
        (b"access-control-allow-origin", head.fields[b"origin"]),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    ]


def preflight(head: Head) -> list[tuple[bytes, bytes]]:
    """What answers a browser that asks beforehand whether it may send a request (Fetch standard, CORS)."""
    # What was asked for, `Mcp-Param-*` among it: which origins may ask at all is decided elsewhere.
    asked = head.fields.get(b"access-control-request-headers", _SENT)
    headers = [
        (b"allow", _VERBS),
        (b"access-control-allow-methods", _VERBS),
        (b"access-control-allow-headers", asked),
        (b"access-control-max-age", b"600"),
    ]
    if head.fields.get(b"access-control-request-private-network") == b"true":
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers
