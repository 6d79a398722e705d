"""Sessions that fit into their own id, and the ids of events on their streams.

What `initialize` agreed on is sealed into the text that the client repeats, so that every process
with the same secret can take the session up. No clock: whoever seals or opens says what time it is.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import INVALID_PARAMS
from dragoman.model import ClientCapabilities, Implementation
from dragoman.protocol.link import Session
from dragoman.protocol.sealing import BrokenSeal, Keys
from dragoman.revisions import BY_VERSION
from dragoman.revisions.base import Caller

MAX_ID: Final = 4096  # characters: with all other headers it has to pass the proxies on the way
_PURPOSE: Final = "session"
_NAME: Final = 128  # characters of a client's name, version and title that a long id keeps
_DIGITS: Final = 18


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """What a session id says. `key` names the session in logs of events and in stores; times are in
    seconds since 1970.
    """

    key: str
    version: str
    info: Implementation | None
    capabilities: ClientCapabilities
    principal: str | None
    issued: int
    expires: int

    def session(self) -> Session | None:
        """What `initialize` agreed on; None if the revision is no longer spoken here."""
        revision = BY_VERSION.get(self.version)
        if revision is None or not revision.handshake:
            return None
        return Session(revision, Caller(UNSET if self.info is None else self.info, self.capabilities))


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Ticket).decode


def issue(key: str, session: Session, *, principal: str | None, now: float, lifetime: float) -> Ticket:
    """The ticket of a session that has just been agreed on; `lifetime` is in seconds."""
    caller = session.caller
    info = None if caller.info is UNSET else caller.info
    return Ticket(
        key, session.revision.version, info, caller.capabilities, principal, int(now), int(now + lifetime)
    )


def seal(ticket: Ticket, keys: Keys, *, server: str) -> str:
    """The session id: visible ASCII (2025-11-25, Streamable HTTP, "Session Management").

    Bound to the name of the server. What only describes a client is left out of an id that would
    be too long.

    Raises:
        Refusal: -32602, what the client says of itself is too long for any id.
    """
    text = _seal(ticket, keys, server=server)
    if len(text) > MAX_ID:
        text = _seal(_slim(ticket), keys, server=server)
    if len(text) <= MAX_ID:
        return text
    detail = f"clientInfo and capabilities make a session id of {len(text)} characters; expected {MAX_ID}"
    raise Refusal(INVALID_PARAMS, f"Invalid params: {detail} at most")


def _seal(ticket: Ticket, keys: Keys, *, server: str) -> str:
    return keys.seal_text(_encode(ticket), purpose=_PURPOSE, bound=server.encode())


def unseal(text: str, keys: Keys, *, server: str, now: float) -> Ticket | None:
    """What a session id says; None once its time is up.

    Raises:
        BrokenSeal: it is none, or was sealed with a secret that is not known here.
    """
    if len(text) > MAX_ID:
        raise BrokenSeal("too long to be a session id")
    plain = keys.open_text(text, purpose=_PURPOSE, bound=server.encode())
    try:
        ticket = _decode(plain)
    except msgspec.DecodeError:
        raise BrokenSeal("sealed by another version") from None
    return ticket if now < ticket.expires else None


def _slim(ticket: Ticket) -> Ticket:
    info = ticket.info
    if info is not None:
        title = UNSET if info.title is UNSET else info.title[:_NAME]
        info = Implementation(name=info.name[:_NAME], version=info.version[:_NAME], title=title)
    return replace(ticket, info=info, capabilities=replace(ticket.capabilities, experimental=UNSET))


# Event ids ----------------------------------------------------------------------------------------


def event_id(stream: str, number: int) -> str:
    """The id of an event: its stream and its place there ("Resumability and Redelivery")."""
    return f"{stream}.{number}"


def read_event_id(text: str) -> tuple[str, int] | None:
    """Stream and place of an event; None for text that is no id of ours."""
    stream, dot, number = text.rpartition(".")
    if not dot or not stream or not number.isascii() or not number.isdigit() or len(number) > _DIGITS:
        return None
    return stream, int(number)
