"""Streamable HTTP, the server's side, as pure functions: a request's head and body in, a decision out.

Both shapes of the transport are here, the stateless one and the one with sessions; which of them a
request follows is asked of the revision it names. No socket, no task and no clock: a transport
carries out what is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import (
    INVALID_REQUEST,
    Batch,
    Id,
    Invalid,
    Message,
    Notification,
    Request,
    Response,
    encode_error,
    encode_invalid,
)
from dragoman.model import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    HEADER_MISMATCH,
    PROTOCOL_VERSION_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from dragoman.protocol import mirror
from dragoman.protocol.admission import admit, unsupported
from dragoman.protocol.call import Call, Channel
from dragoman.protocol.head import JSON, Head, Say, accepts, fault, not_allowed, quoted
from dragoman.protocol.link import Link
from dragoman.protocol.mirror import Parameters
from dragoman.revisions import BY_VERSION, HANDSHAKE, LATEST, STATELESS
from dragoman.revisions.base import Method, Revision

SESSION: Final = b"mcp-session-id"
LAST_EVENT: Final = b"last-event-id"

_VERSIONS: Final = {version.encode(): revision for version, revision in BY_VERSION.items()}
_CARRIERS: Final = {version.encode(): revision for version, revision in STATELESS.items()}
_FIRST: Final = (
    "send `initialize` first and repeat the Mcp-Session-Id of its answer, or send MCP-Protocol-Version "
    f"and `_meta` for a revision without sessions ({', '.join(STATELESS)})"
)
_GONE: Final = "Session not found: it has ended or was never open; send `initialize` without Mcp-Session-Id"
_AGAIN: Final = (
    "Invalid request: this session has had its `initialize`; send it without Mcp-Session-Id for a new one"
)


class Seat(Protocol):
    """A session, as far as the binding has to know it."""

    @property
    def link(self) -> Link:
        """What the server remembers of it."""
        ...


S = TypeVar("S", bound=Seat)
S_co = TypeVar("S_co", bound=Seat, covariant=True)


class Seats(Protocol[S_co]):
    """The sessions that whoever sent a request may use: their own, and no others."""

    def get(self, key: str, /) -> S_co | None:
        """The session with this id, if there is one and it is theirs."""
        ...


class Facts(Protocol):
    """What the binding asks of a kernel; none of it runs anything."""

    @property
    def extra_methods(self) -> Mapping[str, Method]:
        """Requests that extensions add."""
        ...

    @property
    def header_parameters(self) -> Parameters:
        """The parameters of a tool that are mirrored into headers."""
        ...


class Serve(msgspec.Struct, Generic[S], frozen=True):
    """Let the kernel handle `call`. `seat` is its session; `opens` says that its success begins one."""

    call: Call
    seat: S | None = None
    opens: bool = False


class ServeBatch(msgspec.Struct, Generic[S], frozen=True):
    """Handle each call; the bytes among `items` are answers already. Then deal with `incoming`."""

    seat: S
    items: list[Call | bytes]
    incoming: list[Notification | Response]


class Take(msgspec.Struct, Generic[S], frozen=True):
    """A notification, or the answer to a request of ours: pass it on and say 202 (a late answer: 400)."""

    seat: S | None
    message: Notification | Response


class Hear(msgspec.Struct, Generic[S], frozen=True):
    """Open the session's own stream, or go on with one of its streams after the event `last`."""

    seat: S
    last: str | None = None


class End(msgspec.Struct, Generic[S], frozen=True):
    """End the session and say 204."""

    seat: S


# GET and DELETE -------------------------------------------------------------------------------------


def other_verb(head: Head, sessions: Seats[S]) -> Say | Hear[S] | End[S]:
    """GET opens a session's own stream, DELETE ends the session; without sessions there is neither."""
    fields = head.fields
    if head.verb not in ("GET", "DELETE"):
        return not_allowed(head.verb, "POST, GET, DELETE, OPTIONS")
    if _carrier(head) is not None:
        return not_allowed(head.verb, "POST")
    seat = _seat(head, sessions, id_=None)
    if isinstance(seat, Say):
        return seat
    if head.verb == "DELETE":
        return End(seat)
    if not accepts(fields.get(b"accept", b"*/*"), "text/event-stream"):
        return fault(406, f"Accept: expected text/event-stream, received {quoted(fields[b'accept'])}")
    last = fields.get(LAST_EVENT, b"").strip()
    return Hear(seat, last.decode("latin-1") or None)


def _carrier(head: Head) -> Revision | None:
    """The stateless revision that the header names, if it names one."""
    named = head.fields.get(mirror.VERSION)
    if named is None:
        return None
    return _CARRIERS.get(named) or _CARRIERS.get(named.strip())


def _seat(head: Head, sessions: Seats[S], *, id_: Id | UnsetType) -> S | Say:
    """The session that a request names, or what to say when it names none that is open."""
    named = head.fields.get(mirror.VERSION)
    if head.doubled is not None:
        return _no(400, _twice(head.doubled), id_=id_)
    if named is not None and named.strip() not in _VERSIONS:
        return _no(400, _unknown_version(named), id_=id_)
    key = head.fields.get(SESSION)
    if key is None:
        return _no(400, Refusal(INVALID_REQUEST, f"Missing Mcp-Session-Id header: {_FIRST}"), id_=id_)
    seat = sessions.get(key.strip().decode("latin-1"))
    if seat is None:
        return _no(404, Refusal(INVALID_REQUEST, _GONE), id_=id_)
    return seat


# POST -----------------------------------------------------------------------------------------------


def post(
    head: Head, message: Message, *, sessions: Seats[S], channel: Channel, kernel: Facts
) -> Say | Serve[S] | ServeBatch[S] | Take[S]:
    """What to do with one decoded message. Never raises for anything a client can send.

    `channel` is the way back for the call; of the `kernel` only facts are asked.
    """
    if type(message) is Request:
        carrier = _carrier(head)
        if carrier is not None:
            return _stateless(head, message, carrier=carrier, channel=channel, kernel=kernel)
        return _in_session(head, message, sessions=sessions, channel=channel, kernel=kernel)
    if isinstance(message, Invalid):
        return Say(400, encode_invalid(message), (JSON,))
    if isinstance(message, Batch):
        return _batch(head, message, sessions=sessions, channel=channel, kernel=kernel)
    return _one_way(head, message, sessions=sessions)  # type: ignore[arg-type]  # requests were dealt with above


def _stateless(
    head: Head, request: Request, *, carrier: Revision, channel: Channel, kernel: Facts
) -> Say | Serve[Any]:
    try:
        if head.doubled is not None:
            raise _twice(head.doubled)
        call = admit(request, Link(), channel=channel, carrier=carrier, extra=kernel.extra_methods)
        mirror.check(call, head.fields, parameters=kernel.header_parameters)
    except Refusal as exc:
        refusal = _mismatch_first(exc, carrier.version)
        return _no(carrier.http.status.get(refusal.code, 200), refusal, id_=request.id)
    return Serve(call)


def _mismatch_first(exc: Refusal, header: str) -> Refusal:
    """A body that names another revision than its header is a mismatch before it is unsupported."""
    if exc.code == UNSUPPORTED_PROTOCOL_VERSION and exc.data["requested"] != header:
        return mirror.mismatch("MCP-Protocol-Version", header, body=exc.data["requested"])
    return exc


def _in_session(
    head: Head, request: Request, *, sessions: Seats[S], channel: Channel, kernel: Facts
) -> Say | Serve[S]:
    refusal = _version_fault(head, request)
    if refusal is not None:
        return _no(400, refusal, id_=request.id)
    opens = request.method == "initialize" and SESSION not in head.fields
    seat: S | None = None
    if not opens:
        found = _seat(head, sessions, id_=request.id)
        if isinstance(found, Say):
            return found
        seat = found
        if request.method == "initialize":
            return _no(400, Refusal(INVALID_REQUEST, _AGAIN), id_=request.id)
    try:
        link = Link() if seat is None else seat.link
        spoken = None if link.session is None else link.session.revision
        call = admit(request, link, channel=channel, carrier=spoken, extra=kernel.extra_methods)
    except Refusal as exc:
        return _no(HANDSHAKE.http.status.get(exc.code, 200), exc, id_=request.id)
    return Serve(call, seat, opens)


class _PeekMeta(msgspec.Struct, gc=False):
    version: Any = msgspec.field(name=PROTOCOL_VERSION_KEY, default=UNSET)
    capabilities: Raw | UnsetType = msgspec.field(name=CLIENT_CAPABILITIES_KEY, default=UNSET)
    info: Raw | UnsetType = msgspec.field(name=CLIENT_INFO_KEY, default=UNSET)


class _Peek(msgspec.Struct, gc=False):
    meta: _PeekMeta | UnsetType = msgspec.field(name="_meta", default=UNSET)


_peek: Final = msgspec.json.Decoder(_Peek).decode


def _version_fault(head: Head, request: Request) -> Refusal | None:
    """Why a request whose header names no stateless revision is none of a session either; else None."""
    if head.doubled is not None:
        return _twice(head.doubled)
    named = head.fields.get(mirror.VERSION)
    said = _said(request)
    if said is not None:
        if named is None:
            return mirror.missing("MCP-Protocol-Version", said)
        header = named.strip().decode("latin-1")
        return (
            unsupported(said)
            if header == said
            else mirror.mismatch("MCP-Protocol-Version", header, body=said)
        )
    if named is not None and named.strip() not in _VERSIONS:
        return _unknown_version(named)
    if named is None and request.method not in HANDSHAKE.methods and request.method in LATEST.methods:
        return mirror.missing("MCP-Protocol-Version", request.method)
    return None


def _said(request: Request) -> str | None:
    """The revision that `_meta` names; any text where it only half says that it is stateless."""
    try:
        meta = _peek(request.params or b"{}").meta
    except msgspec.ValidationError:
        return None  # admission says what is wrong with it
    if isinstance(meta, UnsetType):
        return None
    if isinstance(meta.version, str):
        return meta.version
    half_said = meta.capabilities is not UNSET or meta.info is not UNSET
    return LATEST.version if half_said else None


def _one_way(head: Head, message: Notification | Response, *, sessions: Seats[S]) -> Say | Take[S]:
    if _carrier(head) is not None:
        if head.doubled is not None:
            return _no(400, _twice(head.doubled), id_=UNSET)
        if isinstance(message, Response):
            return fault(
                400,
                "Invalid request: this revision has no requests from the server, and so no responses to them",
            )
        return Take(None, message)
    seat = _seat(head, sessions, id_=UNSET)
    return seat if isinstance(seat, Say) else Take(seat, message)


def _batch(
    head: Head, batch: Batch, *, sessions: Seats[S], channel: Channel, kernel: Facts
) -> Say | ServeBatch[S]:
    carrier = _carrier(head)
    if carrier is not None:
        return _no_batches(carrier)
    seat = _seat(head, sessions, id_=None)
    if isinstance(seat, Say):
        return seat
    session = seat.link.session
    if session is None or not session.revision.batches:
        return _no_batches(HANDSHAKE if session is None else session.revision)
    plan: ServeBatch[S] = ServeBatch(seat, [], [])
    for item in batch.items:
        if isinstance(item, Request):
            plan.items.append(_admitted(item, seat.link, channel=channel, kernel=kernel))
        elif isinstance(item, Invalid):
            if not item.of_response:
                plan.items.append(encode_invalid(item))
        else:
            plan.incoming.append(item)
    return plan


def _admitted(request: Request, link: Link, *, channel: Channel, kernel: Facts) -> Call | bytes:
    if request.method == "initialize":
        return encode_error(
            request.id, INVALID_REQUEST, "Invalid request: `initialize` cannot be part of a batch"
        )
    try:
        spoken = link.session.revision if link.session else None
        who, extra = link.principal, kernel.extra_methods
        return admit(request, link, channel=channel, carrier=spoken, principal=who, extra=extra)
    except Refusal as exc:
        return encode_error(request.id, exc.code, exc.message, exc.data)


def _no_batches(revision: Revision) -> Say:
    text = (
        f"Invalid request: there are no batches in revision {revision.version}; send one message in each POST"
    )
    return _no(400, Refusal(INVALID_REQUEST, text), id_=None)


# Saying no ------------------------------------------------------------------------------------------


def _no(status: int, exc: Refusal, *, id_: Id | UnsetType) -> Say:
    if isinstance(id_, UnsetType):
        return fault(status, exc.message, data=exc.data, code=exc.code)
    return Say(status, encode_error(id_, exc.code, exc.message, exc.data), (JSON,))


def _twice(header: str) -> Refusal:
    return Refusal(HEADER_MISMATCH, f"Header mismatch: {header} is there twice, with different values")


def _unknown_version(named: bytes) -> Refusal:
    refusal = unsupported(named.strip().decode("latin-1"))
    with_handshake = [version for version in BY_VERSION if version not in STATELESS]
    text = f"{refusal.message} (with the `initialize` handshake: {', '.join(with_handshake)})"
    return Refusal(refusal.code, text, refusal.data)
