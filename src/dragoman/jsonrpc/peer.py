"""One JSON-RPC connection as a state machine: both directions at once, no clock and no socket.

Frames go in, events come out, and every method that says something returns the bytes to send. It
pairs answers with requests and answers of a batch with each other, and refuses to know what any
method means.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ClosedError, UsageError
from dragoman.jsonrpc.envelope import (
    DEFAULT,
    Batch,
    ErrorObject,
    Id,
    Limits,
    Message,
    Notification,
    Request,
    Response,
    Single,
    misshapen,
)
from dragoman.jsonrpc.message import (
    decode,
    encode_batch,
    encode_error,
    encode_invalid,
    encode_notification,
    encode_request,
    encode_result,
)


class RequestReceived(msgspec.Struct, frozen=True, gc=False):
    """The other side asks; answer with `respond`, `refuse` or, if it called it off, `drop`."""

    id: Id
    method: str
    params: Raw


class NotificationReceived(msgspec.Struct, frozen=True, gc=False):
    """The other side tells."""

    method: str
    params: Raw


class ResponseReceived(msgspec.Struct, frozen=True, gc=False):
    """The answer to our request `id`. `loose`: it came with the id as a string, "7" for 7."""

    id: Id
    result: Raw
    error: ErrorObject | None
    loose: bool = False


class ResponseBroken(msgspec.Struct, frozen=True, gc=False):
    """The answer to our request `id` is no answer; `detail` says why. The call has failed."""

    id: Id
    detail: str


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Bytes to send back for a message that was refused before anybody saw it."""

    frame: bytes


class Unmatched(msgspec.Struct, frozen=True, gc=False):
    """An answer that nobody waits for; `late`: somebody did, until `forget`.

    With `id` None it is most often the other side's word on a message that it could not read.
    """

    id: Id
    error: ErrorObject | None
    late: bool = False
    detail: str = ""


Event: TypeAlias = (
    RequestReceived | NotificationReceived | ResponseReceived | ResponseBroken | Reply | Unmatched
)

_REMEMBERED: Final = 1024


class _Answers:
    """The answers to one batch, in the order of its requests, sent when the last one is there."""

    __slots__ = ("frames", "missing")

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.missing = 0

    def expect(self) -> int:
        self.frames.append(b"")
        self.missing += 1
        return len(self.frames) - 1

    def whole(self) -> bytes:
        return b"" if self.missing else encode_batch([frame for frame in self.frames if frame])


class Peer:
    """One end of one connection.

    `request`, `notify`, `respond`, `refuse` and `drop` return the frame to send, `b""` where there
    is nothing to send yet. After `close` they raise ClosedError. `details=False` leaves the reason
    out of the answers to messages that could not be taken.
    """

    __slots__ = ("_closed", "_details", "_forgotten", "_last_id", "_limits", "_owed", "_pending", "late")

    def __init__(self, limits: Limits = DEFAULT, *, details: bool = True) -> None:
        self._limits = limits
        self._details = details
        self._last_id = 0
        self._pending: dict[Id, None] = {}
        self._forgotten: dict[Id, None] = {}
        self._owed: dict[Id, tuple[_Answers, int] | None] = {}
        self._closed: str | None = None
        self.late = 0
        """Answers that came after `forget`."""

    @property
    def pending(self) -> int:
        """How many of our requests wait for an answer."""
        return len(self._pending)

    @property
    def owed(self) -> int:
        """How many requests of the other side wait for ours."""
        return len(self._owed)

    def owes(self, id: Id) -> bool:  # noqa: A002 - the member's own name
        """Whether the request `id` of the other side is still to be answered."""
        return id in self._owed

    # What we say --------------------------------------------------------------------------------

    def request(self, method: str, params: Any = UNSET) -> tuple[Id, bytes]:
        """Ask: the id of the request, and its frame. Ids count 1, 2, 3 and on."""
        self._open()
        id_ = self._last_id + 1
        frame = encode_request(id_, method, params)
        self._last_id = id_
        self._pending[id_] = None
        return id_, frame

    def notify(self, method: str, params: Any = UNSET) -> bytes:
        """Tell."""
        self._open()
        return encode_notification(method, params)

    def respond(self, id: Id, result: Any) -> bytes:  # noqa: A002 - the member's own name
        """Answer a request. TypeError where `result` cannot be encoded: the answer is still owed."""
        self._open()
        return self._settle(id, encode_result(id, result))

    def refuse(self, id: Id, code: int, message: str, data: Any = UNSET) -> bytes:  # noqa: A002 - as above
        """Answer a request with an error."""
        self._open()
        return self._settle(id, encode_error(id, code, message, data))

    def drop(self, id: Id) -> bytes:  # noqa: A002 - the member's own name
        """Leave a request without an answer, because the other side called it off."""
        self._open()
        return self._settle(id, b"")

    def forget(self, id: Id) -> None:  # noqa: A002 - the member's own name
        """Stop waiting for the answer to our request; if it comes, it is counted in `late`."""
        if id in self._pending:
            del self._pending[id]
            self._forgotten[id] = None
            if len(self._forgotten) > _REMEMBERED:
                del self._forgotten[next(iter(self._forgotten))]

    def close(self, reason: str = "the connection is closed") -> list[Id]:
        """End it. Returns the ids of our requests that will have no answer; the second time, none."""
        if self._closed is None:
            self._closed = reason
        failed = list(self._pending)
        self._pending.clear()
        self._owed.clear()
        return failed

    # What we hear -------------------------------------------------------------------------------

    def receive(self, frame: bytes) -> list[Event]:
        """Take one frame; return what it means, in order. Never raises, whatever the bytes are."""
        return self.take(decode(frame, self._limits))

    def take(self, message: Message) -> list[Event]:
        """The same for a message that is decoded already, or was too large to be."""
        if self._closed is not None:
            return []
        if not isinstance(message, Batch):
            return self._take(message, None)
        answers = _Answers()
        events: list[Event] = []
        for item in message.items:
            events += self._take(item, answers)
        if answers.frames and not answers.missing:
            events.append(Reply(answers.whole()))
        return events

    def _take(self, message: Single, answers: _Answers | None) -> list[Event]:
        if isinstance(message, Request):
            return self._take_request(message, answers)
        if isinstance(message, Notification):
            return [NotificationReceived(message.method, message.params)]
        if isinstance(message, Response):
            return [self._take_response(message)]
        if not message.of_response:
            return _reply(encode_invalid(message, self._details), answers)
        id_, _ = self._match(message.id)
        if id_ is None:
            return [Unmatched(message.id, None, self._was_forgotten(message.id), message.detail)]
        return [ResponseBroken(id_, message.detail)]

    def _take_request(self, request: Request, answers: _Answers | None) -> list[Event]:
        id_ = request.id
        if id_ in self._owed:
            detail = "id already in use: expected an id that no request in flight has"
            return _reply(encode_invalid(misshapen(id_, detail), self._details), answers)
        self._owed[id_] = None if answers is None else (answers, answers.expect())
        return [RequestReceived(id_, request.method, request.params)]

    def _take_response(self, response: Response) -> Event:
        id_, loose = self._match(response.id)
        if id_ is None:
            return Unmatched(response.id, response.error, self._was_forgotten(response.id))
        return ResponseReceived(id_, response.result, response.error, loose)

    def _match(self, id_: Id) -> tuple[Id, bool]:
        """The id of ours that is meant, no longer pending now, and whether it was meant loosely."""
        if id_ in self._pending:
            del self._pending[id_]
            return id_, False
        number = _number(id_)
        if number in self._pending:
            del self._pending[number]
            return number, True
        return None, False

    def _was_forgotten(self, id_: Id) -> bool:
        for candidate in (id_, _number(id_)):
            if candidate in self._forgotten:
                del self._forgotten[candidate]
                self.late += 1
                return True
        return False

    def _settle(self, id_: Id, frame: bytes) -> bytes:
        if id_ not in self._owed:
            raise UsageError(f"no answer is owed to a request with the id {id_!r}")
        place = self._owed.pop(id_)
        if place is None:
            return frame
        answers, slot = place
        answers.frames[slot] = frame
        answers.missing -= 1
        return answers.whole()

    def _open(self) -> None:
        if self._closed is not None:
            raise ClosedError(self._closed)


def _reply(frame: bytes, answers: _Answers | None) -> list[Event]:
    if answers is None:
        return [Reply(frame)]
    answers.frames.append(frame)
    return []


def _number(id_: Id) -> Id:
    """The number that a string spells exactly as we would write it: some peers send ids as text."""
    if isinstance(id_, str) and len(id_) < 20 and id_.isdecimal() and id_.isascii() and id_[0] != "0":
        return int(id_)
    return None
