"""The JSON-RPC 2.0 envelope as records: five kinds of message, the reserved codes, the limits.

It holds shapes only, and refuses to know how bytes become one of them.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

Id: TypeAlias = int | float | str | None
"""A request id. `7`, `"7"` and `null` are three ids; a fractional number is one too (section 4)."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

MESSAGES: Final[dict[int, str]] = {
    PARSE_ERROR: "Parse error",
    INVALID_REQUEST: "Invalid Request",
    METHOD_NOT_FOUND: "Method not found",
    INVALID_PARAMS: "Invalid params",
    INTERNAL_ERROR: "Internal error",
}
"""The message of each reserved code as section 5.1 of JSON-RPC 2.0 spells it."""

ABSENT: Final = Raw(b"")
"""The raw value of a member that is not there: zero bytes, which no JSON value has."""


class ErrorObject(msgspec.Struct, frozen=True, gc=False):
    """The `error` member of a response (section 5.1)."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


class Request(msgspec.Struct, frozen=True, gc=False):
    """A call that is owed an answer; `params` is an object, an array, or `Raw(b"")` when absent.

    Where `decode` was told the shapes of params, `params` is a struct of its method's shape instead.
    """

    method: str
    id: Id
    params: Raw


class Notification(msgspec.Struct, frozen=True, gc=False):
    """A request without an `id` member: it is never answered."""

    method: str
    params: Raw


class Response(msgspec.Struct, frozen=True, gc=False):
    """An answer: `result` is `Raw(b"")` when `error` is there; `error` is None when it is not."""

    id: Id
    result: Raw
    error: ErrorObject | None


class Invalid(msgspec.Struct, frozen=True, gc=False):
    """Bytes that are no message, and what to answer to them.

    `message` is the standard text of `code`; `detail` says what was wrong, where, and what was
    expected. `id` is None where it could not be read. `of_response` is true for a broken
    *response*: whoever waits for `id` fails, and nothing is sent back (an answer to an answer
    could go on for ever).
    """

    id: Id
    code: int
    message: str
    detail: str
    of_response: bool = False


class Batch(msgspec.Struct, frozen=True):
    """The members of an array of messages in their order; never empty."""

    items: tuple[Request | Notification | Response | Invalid, ...]


Single: TypeAlias = Request | Notification | Response | Invalid
Message: TypeAlias = Single | Batch


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one message may be: bytes, levels of nesting (the envelope is one), members of a batch.

    A message beyond a limit is answered with an error; the stream goes on.
    """

    max_bytes: int = 64 * 1024 * 1024
    max_depth: int = 128
    max_batch: int = 1000

    def __post_init__(self) -> None:
        """Raise ValueError for a limit under which no message could pass."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f"Limits.{name}: expected a whole number above 0, received {value}")


DEFAULT: Final = Limits()


def broken(detail: str, id_: Id = None) -> Invalid:
    """Bytes that could not be read as JSON, or were not, because they are beyond a limit."""
    return Invalid(id_, PARSE_ERROR, MESSAGES[PARSE_ERROR], detail)


def misshapen(id_: Id | UnsetType, detail: str, *, of_response: bool = False) -> Invalid:
    """JSON that is no message; `id_` is UNSET where it could not be read."""
    known = None if isinstance(id_, UnsetType) else id_
    return Invalid(known, INVALID_REQUEST, MESSAGES[INVALID_REQUEST], detail, of_response)
