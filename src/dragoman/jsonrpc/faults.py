"""What is wrong with bytes that are no message: the slow, exact look behind a failed decode.

It names member, expected and received, saves the id where one can be read, and measures UTF-8
and nesting, which the decoder lets through in raw values. It decides nothing about valid input.
"""

from __future__ import annotations

import codecs
from itertools import accumulate
from typing import Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.jsonrpc.envelope import (
    ABSENT,
    MESSAGES,
    PARSE_ERROR,
    Id,
    Invalid,
    broken,
    misshapen,
)

_ID: Final = int | float | str | None
_SPACE: Final = b" \t\r\n"
_HEAD: Final = 4096


def _members(data: bytes | Raw) -> dict[str, Raw]:
    return msgspec.json.decode(data, type=dict[str, Raw])


def explain(data: bytes | Raw) -> Invalid:
    """Say what is wrong with one message (not a batch) that did not decode as an envelope."""
    try:
        # The wrong type is seen before the rest is read: see first whether all of it is JSON.
        members = _members(msgspec.json.decode(data, type=Raw))
    except msgspec.ValidationError:
        return misshapen(UNSET, f"message: expected an object, received {kind(data)}")
    except (msgspec.DecodeError, RecursionError) as error:
        return broken(syntax_fault(data, error))
    of_response = "method" not in members and ("result" in members or "error" in members)
    try:
        id_ = msgspec.json.decode(members["id"], type=_ID) if "id" in members else UNSET
    except msgspec.ValidationError:
        received = kind(members["id"])
        if received == "a number":
            received += " out of range"
        detail = f'member "id": expected a string, a number or null, received {received}'
        return misshapen(UNSET, detail, of_response=of_response)
    return misshapen(id_, _member_fault(members), of_response=of_response)


def _member_fault(members: dict[str, Raw]) -> str:
    version = members.get("jsonrpc", ABSENT)
    if kind(version) != "a string" or msgspec.json.decode(version, type=str) != "2.0":
        return f'member "jsonrpc": expected "2.0", received {shown(version)}'
    method = members.get("method", ABSENT)
    if kind(method) not in ("a string", "nothing"):
        return f'member "method": expected a string, received {kind(method)}'
    return _error_fault(members.get("error", ABSENT))


def _error_fault(error: Raw) -> str:
    if kind(error) != "an object":
        return f'member "error": expected an object, received {kind(error)}'
    members = _members(error)
    code, message = members.get("code", ABSENT), members.get("message", ABSENT)
    if kind(message) != "a string":
        return f'member "error.message": expected a string, received {kind(message)}'
    return f'member "error.code": expected an integer, received {shown(code)}'


def syntax_fault(data: bytes | Raw, error: Exception) -> str:
    """A decoder's complaint in words for whoever wrote the bytes, with the position where known."""
    if isinstance(error, RecursionError):
        return "nesting too deep to be read"
    text = str(error)
    if "truncated" not in text:
        return text.removeprefix("JSON is malformed: ")
    size = len(memoryview(data))
    return f"the JSON ends too early (byte {size})" if size else "expected a JSON value, received nothing"


_KINDS: Final = {
    "{": "an object",
    "[": "an array",
    '"': "a string",
    "t": "a boolean",
    "f": "a boolean",
    "n": "null",
    "": "nothing",
}


def kind(value: bytes | Raw) -> str:
    """The JSON type of a raw value, with its article; "nothing" for a member that is absent."""
    first = bytes(memoryview(value)[:_HEAD]).lstrip(_SPACE)[:1]
    return _KINDS.get(first.decode("ascii", "replace"), "a number")


def shown(value: Raw) -> str:
    """A scalar as it was written, cut short; the kind of anything else."""
    name = kind(value)
    if name in ("an object", "an array", "nothing"):
        return name
    return bytes(memoryview(value)[:40]).decode("utf-8", "replace")


def utf8_fault(data: bytes) -> str | None:
    """What is wrong with these bytes as UTF-8, with the position, or None. Needs little memory."""
    view = memoryview(data)
    start = 0
    while start < len(data):
        end = min(start + 0x10000, len(data))
        try:
            used = codecs.utf_8_decode(view[start:end], "strict", end == len(data))[1]
        except UnicodeDecodeError as error:
            return f"not UTF-8: {error.reason} (byte {start + error.start})"
        start += used
    return None


_NOISE: Final = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def depth(data: bytes) -> int:
    """The levels of nesting of well-formed JSON: 0 for a scalar, 1 for `[]`. Linear in its size."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(data.translate(None, _NOISE).split(b'"')[::2])
    # One signed byte a bracket: the running sum is the depth, computed without a Python loop.
    return max(accumulate(memoryview(outside.translate(_STEPS)).cast("b")), default=0)


def read_id(head: bytes) -> Id:
    """The id of a message of which only the first bytes are at hand; None where it is not among them.

    Members are read up to the first one that is no scalar: most writers put the id before it.
    """
    members, _ = _read_head(head[:_HEAD])
    try:
        return msgspec.json.decode(members["id"], type=_ID) if "id" in members else None
    except msgspec.DecodeError:
        return None


def too_large(size: int, limit: int, *, head: bytes) -> Invalid:
    """What to say of a message of more than `limit` bytes of which `head` is the beginning.

    With the id saved where it can be, the call fails at once instead of waiting for its time limit.
    """
    members, following = _read_head(head[:_HEAD])
    of_response = "method" not in members and following in (b"result", b"error")
    detail = f"message too large: expected at most {limit} bytes, received {size}"
    return Invalid(read_id(head), PARSE_ERROR, MESSAGES[PARSE_ERROR], detail, of_response)


def _read_head(head: bytes) -> tuple[dict[str, Raw], bytes]:
    """The members before the first one that is no scalar or is cut off, and that one's name."""
    end = min((at for at in (head.find(b"[", 1), head.find(b"{", 1)) if at > 0), default=len(head))
    cut = head[:end]
    while (comma := cut.rfind(b",")) > 0:
        following = head[comma + 1 : end].partition(b":")[0].strip(_SPACE + b'"')
        cut = cut[:comma]
        try:
            return _members(cut + b"}"), following
        except msgspec.DecodeError:
            continue  # that comma stood inside a string
    return {}, cut.lstrip(_SPACE + b"{").partition(b":")[0].strip(_SPACE + b'"')
