"""JSON-RPC 2.0 messages: bytes to one of five kinds, and back, within limits.

It knows the envelope and nothing inside it: `params`, `result` and `error.data` stay raw JSON.
It refuses to know methods, connections and framing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.jsonrpc.envelope import (
    ABSENT,
    DEFAULT,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MESSAGES,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Batch,
    ErrorObject,
    Id,
    Invalid,
    Limits,
    Message,
    Notification,
    Request,
    Response,
    Single,
    broken,
    misshapen,
)
from dragoman.jsonrpc.faults import depth, explain, kind, read_id, syntax_fault, too_large, utf8_fault

__all__ = [
    "ABSENT",
    "DEFAULT",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "MESSAGES",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "Batch",
    "Envelopes",
    "ErrorObject",
    "Id",
    "Invalid",
    "Limits",
    "Message",
    "Notification",
    "Request",
    "Response",
    "Single",
    "decode",
    "decode_envelope",
    "encode_batch",
    "encode_error",
    "encode_invalid",
    "encode_notification",
    "encode_request",
    "encode_result",
    "envelopes",
    "read_id",
    "too_large",
]


class _Envelope(msgspec.Struct, gc=False):
    jsonrpc: Literal["2.0"]
    id: int | float | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: ErrorObject | UnsetType = UNSET


Envelopes: TypeAlias = Callable[[bytes], Any]
"""What `decode` reads an envelope by."""

decode_envelope: Final[Envelopes] = msgspec.json.Decoder(_Envelope).decode


def envelopes(shapes: Mapping[str, type[msgspec.Struct]]) -> Envelopes:
    """What reads requests of these methods, params and all, in one typed decode.

    A request that fits has a struct of its method's shape for `params`. Whatever does not fit is
    read by `decode` as if there were no shapes, so that they change nothing but the time it takes.
    """
    kinds = tuple([_envelope(method, shape) for method, shape in shapes.items()])
    return msgspec.json.Decoder(Union[kinds]).decode


def _envelope(method: str, shape: type[msgspec.Struct]) -> type[msgspec.Struct]:
    # What fits is a request without a doubt. A message with `result` or `error` too does not fit.
    nothing = Annotated[str, msgspec.Meta(min_length=1, max_length=0)] | UnsetType
    return msgspec.defstruct(
        "Envelope",
        [
            ("jsonrpc", Literal["2.0"]),
            ("id", int | str),
            ("params", shape),
            ("result", nothing, UNSET),
            ("error", nothing, UNSET),
        ],
        tag_field="method",
        tag=method,
        namespace={"method": method},
        gc=False,
    )


_BOM: Final = b"\xef\xbb\xbf"
_BRACKET: Final = ord("[")
_BRACES: Final = b"{["
# Single bytes are looked for as numbers: for bytes in bytes, Python makes an exception and throws it away.
_LF, _CR = b"\n\r"


# Decoding: one typed decode for a valid message; a closer look only at what failed -----------------


def decode(data: bytes, limits: Limits = DEFAULT, *, known: Envelopes = decode_envelope) -> Message:
    """Read one frame. Any bytes give a message; what is wrong with them comes back as `Invalid`.

    With `known`, from `envelopes`, the params of requests that it knows are read along with them.

    Of duplicate members the last one counts. Members that the envelope does not know are passed
    over. One leading byte order mark is passed over too, since some writers cannot help it.
    """
    size = len(data)
    if size > limits.max_bytes:
        return too_large(size, limits.max_bytes, head=data)
    if not data.isascii():
        data = data.removeprefix(_BOM)
        # msgspec passes a raw value over without looking at its text, so that bad UTF-8 inside
        # params would come through as it is.
        fault = utf8_fault(data)
        if fault is not None:
            return broken(fault)
    try:
        envelope = known(data)
    except (msgspec.DecodeError, RecursionError):
        if known is not decode_envelope:
            return decode(data, limits)
        return _decode_batch(data, limits) if kind(data) == "an array" else explain(data)
    # A level of an object that holds another takes five bytes at least, `{"":}`. Most messages hold no
    # arrays and are too short for as many levels.
    if (size > 5 * limits.max_depth or _BRACKET in data) and _too_deep(data, limits.max_depth):
        return _deep(data, limits.max_depth, envelope=envelope)
    if known is not decode_envelope:
        return Request(envelope.method, envelope.id, envelope.params)
    return _classify(envelope)


def _classify(envelope: _Envelope) -> Single:
    id_, method, params = envelope.id, envelope.method, envelope.params
    if method is UNSET:
        return _classify_response(envelope)
    if envelope.result is not UNSET or envelope.error is not UNSET:
        member = "error" if envelope.result is UNSET else "result"
        detail = f'members "method" and "{member}" in one message: expected a request or a response'
        return misshapen(id_, detail)
    if params is UNSET:
        params = ABSENT
    elif memoryview(params)[0] not in _BRACES:
        return misshapen(id_, f'member "params": expected an object or an array, received {kind(params)}')
    return Notification(method, params) if id_ is UNSET else Request(method, id_, params)


def _classify_response(envelope: _Envelope) -> Single:
    id_, result, error = envelope.id, envelope.result, envelope.error
    if result is UNSET and error is UNSET:
        return misshapen(id_, 'member "method": expected a string, received nothing')
    if result is not UNSET and error is not UNSET:
        detail = 'members "result" and "error" in one response: expected exactly one of them'
        return misshapen(id_, detail, of_response=True)
    if id_ is UNSET:
        detail = 'member "id" of a response: expected a string, a number or null, received nothing'
        return misshapen(id_, detail, of_response=True)
    if error is not UNSET:
        return Response(id_, ABSENT, error)
    return Response(id_, ABSENT if result is UNSET else result, None)


def _decode_batch(data: bytes, limits: Limits) -> Message:
    try:
        members = msgspec.json.decode(data, type=list[Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        return broken(syntax_fault(data, error))
    if _too_deep(data, limits.max_depth):
        return _deep(data, limits.max_depth, envelope=None)
    if not members:
        return misshapen(UNSET, "batch: expected at least one message, received an empty array")
    if len(members) > limits.max_batch:
        return misshapen(UNSET, f"batch of {len(members)} messages: expected at most {limits.max_batch}")
    return Batch(tuple([_decode_member(member) for member in members]))


def _decode_member(data: Raw) -> Single:
    try:
        return _classify(decode_envelope(data))
    except (msgspec.DecodeError, RecursionError):
        return explain(data)


def _too_deep(data: bytes, max_depth: int) -> bool:
    # The count is a bound that is found at once; only beyond it the text is walked through.
    if len(data) <= 2 * max_depth or data.count(b"{") + data.count(b"[") <= max_depth:
        return False
    return depth(data) > max_depth


def _deep(data: bytes, max_depth: int, *, envelope: _Envelope | None) -> Invalid:
    detail = f"nesting of {depth(data)} levels: expected at most {max_depth}"
    if envelope is None:
        return broken(detail)
    id_ = None if envelope.id is UNSET else envelope.id
    return Invalid(id_, PARSE_ERROR, MESSAGES[PARSE_ERROR], detail, envelope.method is UNSET)


# Encoding: one pass, one line ------------------------------------------------------------------------


class _Call(msgspec.Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0"):
    id: Id
    method: str
    params: Any = UNSET


class _Notice(msgspec.Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any = UNSET


class _Result(msgspec.Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: Any


class _Fault(msgspec.Struct, frozen=True, gc=False):
    code: int
    message: str
    data: Any = UNSET


class _Error(msgspec.Struct, frozen=True, gc=False, tag_field="jsonrpc", tag="2.0"):
    id: Id
    error: _Fault


_encode: Final = msgspec.json.Encoder().encode


def encode_request(id: Id, method: str, params: Any = UNSET) -> bytes:  # noqa: A002 - the member's own name
    """One line of JSON for a request; `params` is anything msgspec encodes, `Raw` included."""
    return _one_line(_encode(_Call(id, method, params)))


def encode_notification(method: str, params: Any = UNSET) -> bytes:
    """One line of JSON for a notification."""
    return _one_line(_encode(_Notice(method, params)))


def encode_result(id: Id, result: Any) -> bytes:  # noqa: A002 - the member's own name
    """One line of JSON for an answer. Raises what msgspec raises for a value that is no JSON.

    That is TypeError for most, UnicodeEncodeError for half a surrogate pair, RecursionError for a
    value that contains itself.
    """
    frame = _encode(_Result(id, result))
    return _one_line(frame) if _LF in frame or _CR in frame else frame


def encode_error(id: Id, code: int, message: str, data: Any = UNSET) -> bytes:  # noqa: A002 - the member's own name
    """One line of JSON for an answer that says no."""
    return _one_line(_encode(_Error(id, _Fault(code, message, data))))


def encode_invalid(invalid: Invalid, with_detail: bool = True) -> bytes:
    """What to answer to bytes that are no message; `with_detail` puts it into `error.data`."""
    return encode_error(invalid.id, invalid.code, invalid.message, invalid.detail if with_detail else UNSET)


def encode_batch(frames: Sequence[bytes]) -> bytes:
    """One array of frames that are encoded already; `b""` of none (section 6: nothing is sent)."""
    return b"[" + b",".join(frames) + b"]" if frames else b""


def _one_line(frame: bytes) -> bytes:
    # msgspec writes no line break of its own: one that is here came in with a Raw, and on a line
    # transport whatever follows it would be a message of its own that nobody has looked at.
    if _LF in frame or _CR in frame:
        return _encode(msgspec.json.decode(frame))
    return frame
