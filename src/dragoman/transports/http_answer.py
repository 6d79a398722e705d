"""From the reply to a POST to the JSON-RPC answer in it, or to the error that says why there is none.

It knows the two forms of an answer, JSON and an event stream; sessions and connections are not its
business.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from dragoman.errors import ClosedError, PeerFault
from dragoman.jsonrpc.message import Limits, Message, Notification, Request, Response
from dragoman.transports.base import Outgoing, Tap
from dragoman.transports.http_base import Reply
from dragoman.transports.http_fault import (
    EVENTS,
    EXCERPT,
    JSON,
    Place,
    answers,
    http_error,
    media_type,
    messages,
)
from dragoman.transports.http_stream import Again, AnswerStream, Other, Pause

_NO_POST: Final = 405
_OBJECTS: Final = (b"{", b"[", b"\xef\xbb\xbf")
_PATIENCE: Final = 2.0  # seconds for the body of an error, which some servers never end


class Reading(msgspec.Struct, kw_only=True):
    """How to read the answer to one request: its limits, and whom to tell and ask meanwhile."""

    outgoing: Outgoing
    limits: Limits
    place: Place
    other: Other
    again: Again | None
    pause: Pause
    tap: Tap | None = None


async def read_answer(reply: Reply, reading: Reading) -> Response:
    """The response to `reading.outgoing`, when it has come.

    A JSON-RPC error in the body counts, whatever the status is, but for 405 (method not allowed).

    Raises:
        HttpError: there is no JSON-RPC answer.
        PeerFault: what there is cannot be taken for it.
        ClosedError: the connection ended first.
    """
    kind = media_type(reply.headers)
    coding = reply.headers.get("content-encoding", "identity")
    if coding.lower() != "identity":
        raise PeerFault(f"the answer is in the content coding {coding!r}, which was not asked for")
    well = 200 <= reply.status < 300
    if well and kind == EVENTS:
        stream = AnswerStream(
            reading.outgoing,
            limits=reading.limits,
            other=reading.other,
            again=reading.again,
            pause=reading.pause,
            tap=reading.tap,
        )
        return await stream.answer(reply)
    plain = kind in ("", JSON)
    limits = reading.limits
    body = await (reply.read(limits.max_bytes) if well and plain else excerpt(reply, limits))
    # Whatever the body of a 405 says: this place takes no message, so it cannot have answered one.
    if (plain or not well) and reply.status != _NO_POST and body.lstrip().startswith(_OBJECTS):
        response = _pick(body, reading, well=well)
        if response is not None:
            return response
    raise http_error(reply, body, place=reading.place)


def _pick(body: bytes, reading: Reading, *, well: bool) -> Response | None:
    if reading.tap is not None:
        reading.tap("in", body)
    received = messages(body, reading.limits)
    for message in received:
        if answers(message, reading.outgoing.id) and (well or message.error is not None):
            return message
    if well:
        raise _mismatch(reading.outgoing, received[0])
    return None


def _mismatch(outgoing: Outgoing, first: Message) -> PeerFault:
    if isinstance(first, Response):
        text = f"it is for the id {first.id!r}, expected {outgoing.id!r}"
    elif isinstance(first, Notification | Request):
        text = f"it is the message {first.method!r}, expected a response"
    else:
        text = getattr(first, "detail", "it is no message")
    return PeerFault(f"the answer to {outgoing.method} is none: {text}", stage="call")


async def excerpt(reply: Reply, limits: Limits) -> bytes:
    """The beginning of a body that is no answer, for an error; all of it where it is JSON."""
    parts: list[bytes] = []
    size = 0
    enough = limits.max_bytes if media_type(reply.headers) == JSON else EXCERPT
    try:
        async with asyncio.timeout(_PATIENCE):
            while size < enough and (data := await reply.chunk()):
                parts.append(data)
                size += len(data)
    except (ClosedError, TimeoutError):
        reply.abort()
    reply.finish()
    return b"".join(parts)
