"""What it means when the HTTP answer is no JSON-RPC answer: an `HttpError` that says what to try.

Pure functions over status, headers and the beginning of a body. Nothing that was sent is ever shown:
whatever a server echoes of it is taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeGuard

import msgspec

from dragoman.errors import HttpError
from dragoman.jsonrpc.message import (
    ABSENT,
    Batch,
    ErrorObject,
    Id,
    Invalid,
    Limits,
    Message,
    Response,
    decode,
)
from dragoman.transports.http_base import Head, shown_url

SHOWN: Final = 300  # characters of a body
EXCERPT: Final = 16 * 1024  # bytes of a body that are read in order to say what it is
JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
_PATH_HINT: Final = "the path of the URL: an MCP endpoint is often at /mcp"
_REDACTED: Final = "[...]"
_MIN_SECRET: Final = 4  # shorter values would take syllables out of the text, and are no secrets
_LONG: Final = 8  # from this length on, the value of any header may be a key

_HINTS: Final[dict[int, str]] = {
    401: "an Authorization header that this server accepts: it wants to know who calls",
    403: "other credentials, or another Host or Origin: the server knows the caller and says no",
    404: _PATH_HINT,
    405: _PATH_HINT + "; this one takes no POST (a server of the old HTTP+SSE transport answers so too)",
    406: "a proxy in between may change the Accept header: JSON and event streams were both asked for",
    407: "user and password in the proxy's URL",
    413: "a smaller request: this one is longer than the server takes",
    415: "a proxy in between may change the Content-Type header: application/json was sent",
    421: "the host name under which the server serves: it does not answer for this one",
    429: "again later: the server has had too many requests",
    502: "again later: the server behind this address did not answer",
    503: "again later: the server is not ready",
    504: "again later: the server behind this address did not answer in time",
}


def media_type(headers: Mapping[str, str]) -> str:
    """The `Content-Type` without its parameters, in lower case; "" when there is none."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


class Place(msgspec.Struct, frozen=True):
    """Where an answer came from, as it may be shown, and what of the request must not be."""

    shown: str  # the URL without secrets
    secrets: Sequence[str] = ()
    in_session: bool = False

    def __repr__(self) -> str:
        return f"<Place {self.shown}>"


def http_error(reply: Head, body: bytes, *, place: Place) -> HttpError:
    """The error for a reply without JSON-RPC in it; `body` is the beginning of its body."""
    status, headers, secrets = reply.status, reply.headers, place.secrets
    kind = media_type(headers)
    reason = clean(reply.reason, secrets)
    excerpt = clean(body[:EXCERPT].decode("utf-8", "replace"), secrets)[:SHOWN]
    target = headers.get("location")
    location = None if target is None else clean(shown_url(target), secrets)
    text = f"HTTP {status}{' ' + reason if reason else ''} from {place.shown}"
    text += f" ({kind})" if kind else " (no content type)" if body else ""
    if excerpt.strip():
        text += ": " + " ".join(excerpt.split())
    ended = status == 404 and place.in_session
    hint = _hint(status, page=_is_page(kind, body), location=location)
    error = HttpError(text, status=status, reason=reason, body=excerpt, hint=hint)
    if ended:
        error.hint = "a new connection: the server has ended this session"
    error.content_type = kind or None
    error.location = location
    error.challenge = headers.get("www-authenticate")
    error.retry_after = _seconds(headers.get("retry-after"))
    error.session_ended = error.undelivered = ended
    return error


def _seconds(text: str | None) -> float | None:
    """`Retry-After` in seconds; the date that it may also be is passed over, since clocks differ."""
    given = (text or "").strip()
    return float(given) if given.isascii() and given.isdigit() and len(given) < _LONG else None


def _hint(status: int, *, page: bool, location: str | None) -> str | None:
    if 300 <= status < 400:
        where = location or "another place that it does not name"
        return f"the URL {where}: the server points there, and redirects are not followed"
    if status in (401, 403, 407):
        return _HINTS[status]
    if page:
        return _PATH_HINT + "; this is a web page, not an MCP endpoint"
    if 200 <= status < 300:
        return _PATH_HINT + "; what came is neither JSON nor an event stream with an answer in it"
    if status in _HINTS:
        return _HINTS[status]
    return "the server's own log: it failed on this request" if status >= 500 else None


def _is_page(kind: str, body: bytes) -> bool:
    return kind in ("text/html", "application/xhtml+xml") or body[:256].lstrip().lower().startswith(
        (b"<!doctype html", b"<html")
    )


def clean(text: str, secrets: Iterable[str]) -> str:
    """A text without secrets, and without characters that would steer a terminal."""
    for secret in secrets:
        if len(secret) >= _MIN_SECRET:
            text = text.replace(secret, _REDACTED)
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def secrets_of(headers: Iterable[tuple[str, str]]) -> list[str]:
    """What must not be shown of headers that a caller gave: credentials, and every value of some length."""
    found: set[str] = set()
    for name, value in headers:
        if name.lower() in ("authorization", "proxy-authorization"):
            found.update((value, value.partition(" ")[2].strip()))
        elif name.lower() == "cookie":
            found.update(pair.partition("=")[2].strip() for pair in value.split(";"))
        elif len(value) >= _LONG:
            found.add(value)
    return sorted(found, key=len, reverse=True)


# JSON-RPC in the body ------------------------------------------------------------------------------


class _Refusal(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    error: ErrorObject


_read_refusal: Final = msgspec.json.Decoder(_Refusal).decode


def messages(body: bytes, limits: Limits) -> tuple[Message, ...]:
    """The messages of one body or one event. An error without `id` counts as one for id null.

    "The HTTP response body MAY comprise a JSON-RPC error response that has no `id`" (2026-07-28,
    Streamable HTTP): JSON-RPC 2.0 alone would have it null.
    """
    message = decode(body, limits)
    if isinstance(message, Batch):
        return message.items
    if isinstance(message, Invalid) and message.of_response and message.id is None:
        try:
            return (Response(None, ABSENT, _read_refusal(body).error),)
        except msgspec.DecodeError:
            pass
    return (message,)


def answers(message: Message, id: Id) -> TypeGuard[Response]:  # noqa: A002 - the member's own name
    """Whether this is the response to `id`: the same value of the same type, or an error for id null."""
    if not isinstance(message, Response):
        return False
    if message.id is None:
        return message.error is not None
    return message.id == id and type(message.id) is type(id)
