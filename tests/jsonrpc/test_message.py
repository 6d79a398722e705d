"""The envelope: what is a message, what is not, and the exact answer to what is not."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from dragoman.jsonrpc.faults import depth
from dragoman.jsonrpc.message import (
    Batch,
    Invalid,
    Limits,
    Notification,
    Request,
    Response,
    decode,
    encode_batch,
    encode_error,
    encode_invalid,
    encode_notification,
    encode_request,
    encode_result,
    envelopes,
    read_id,
    too_large,
)

PARSE, INVALID = (-32700, "Parse error"), (-32600, "Invalid Request")

# bytes, id of the answer, code and message, detail. Of trailing characters msgspec counts the first as read.
MALFORMED = {
    "nothing": (b"", None, PARSE, "expected a JSON value, received nothing"),
    "white space": (b"  ", None, PARSE, "the JSON ends too early (byte 2)"),
    "no JSON": (b"hello", None, PARSE, "invalid character (byte 0)"),
    "a log line": (b"Server listening on 8000", None, PARSE, "invalid character (byte 0)"),
    "cut off": (b'{"jsonrpc":"2.0","id":1', None, PARSE, "the JSON ends too early (byte 23)"),
    "trailing comma": (b'{"jsonrpc":"2.0","id":1,}', None, PARSE, "trailing comma in object (byte 24)"),
    "trailing text": (
        b'{"jsonrpc":"2.0","id":1,"method":"a"} x',
        None,
        PARSE,
        "trailing characters (byte 39)",
    ),
    "two messages": (b'{"jsonrpc":"2.0","method":"a"}{}', None, PARSE, "trailing characters (byte 31)"),
    "a number and more": (b'0"jsonrpc":"2.0"}', None, PARSE, "trailing characters (byte 2)"),
    "single quotes": (b"{'jsonrpc':'2.0'}", None, PARSE, "expected '\"' (byte 1)"),
    "NaN": (b'{"jsonrpc":"2.0","method":"a","params":[NaN]}', None, PARSE, "invalid character (byte 40)"),
    "leading zero": (
        b'{"jsonrpc":"2.0","method":"a","params":[01]}',
        None,
        PARSE,
        "invalid number (byte 41)",
    ),
    "a control character in a string": (
        b'{"jsonrpc":"2.0","method":"a\x01"}',
        None,
        PARSE,
        "invalid character (byte 28)",
    ),
    "a line break in a string": (
        b'{"jsonrpc":"2.0","method":"a","params":["x\ny"]}',
        None,
        PARSE,
        "invalid character (byte 42)",
    ),
    "a wrong escape": (
        b'{"jsonrpc":"2.0","method":"\\x"}',
        None,
        PARSE,
        "invalid escaped character (byte 28)",
    ),
    "bad UTF-8 in the method": (
        b'{"jsonrpc":"2.0","method":"\xff"}',
        None,
        PARSE,
        "not UTF-8: invalid start byte (byte 27)",
    ),
    "bad UTF-8 in the parameters": (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":["\xc3("]}',
        None,
        PARSE,
        "not UTF-8: invalid continuation byte (byte 48)",
    ),
    "a surrogate in UTF-8": (
        b'{"jsonrpc":"2.0","method":"\xed\xa0\x80"}',
        None,
        PARSE,
        "not UTF-8: invalid continuation byte (byte 27)",
    ),
    "UTF-8 cut off at the end": (b'"\xed\x95', None, PARSE, "not UTF-8: unexpected end of data (byte 1)"),
    "UTF-16": ('{"a":1}'.encode("utf-16-le"), None, PARSE, "expected '\"' (byte 1)"),
    "Windows code page": (
        b'{"jsonrpc":"2.0","method":"a \x97 b"}',
        None,
        PARSE,
        "not UTF-8: invalid start byte (byte 29)",
    ),
    "half a surrogate pair as the id": (
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"a"}',
        None,
        PARSE,
        "unexpected end of hex escape (byte 29)",
    ),
    "a number": (b"5", None, INVALID, "message: expected an object, received a number"),
    "a string": (b'"x"', None, INVALID, "message: expected an object, received a string"),
    "null": (b"null", None, INVALID, "message: expected an object, received null"),
    "true": (b"true", None, INVALID, "message: expected an object, received a boolean"),
    "an empty object": (b"{}", None, INVALID, 'member "jsonrpc": expected "2.0", received nothing'),
    "an empty batch": (b"[]", None, INVALID, "batch: expected at least one message, received an empty array"),
    "an empty batch with spaces": (
        b"  [ ] ",
        None,
        INVALID,
        "batch: expected at least one message, received an empty array",
    ),
    "no jsonrpc": (
        b'{"id":5,"method":"a"}',
        5,
        INVALID,
        'member "jsonrpc": expected "2.0", received nothing',
    ),
    "jsonrpc 1.0": (
        b'{"jsonrpc":"1.0","id":"a","method":"a"}',
        "a",
        INVALID,
        'member "jsonrpc": expected "2.0", received "1.0"',
    ),
    "jsonrpc as a number": (
        b'{"jsonrpc":2.0,"id":5,"method":"a"}',
        5,
        INVALID,
        'member "jsonrpc": expected "2.0", received 2.0',
    ),
    "jsonrpc null": (
        b'{"jsonrpc":null,"id":5,"method":"a"}',
        5,
        INVALID,
        'member "jsonrpc": expected "2.0", received null',
    ),
    "jsonrpc an object": (
        b'{"jsonrpc":{"v":2},"id":5,"method":"a"}',
        5,
        INVALID,
        'member "jsonrpc": expected "2.0", received an object',
    ),
    "no method": (
        b'{"jsonrpc":"2.0","id":5}',
        5,
        INVALID,
        'member "method": expected a string, received nothing',
    ),
    "method a number": (
        b'{"jsonrpc":"2.0","id":5,"method":1}',
        5,
        INVALID,
        'member "method": expected a string, received a number',
    ),
    "method null": (
        b'{"jsonrpc":"2.0","id":1.5,"method":null}',
        1.5,
        INVALID,
        'member "method": expected a string, received null',
    ),
    "method an array": (
        b'{"jsonrpc":"2.0","id":"7","method":["a"]}',
        "7",
        INVALID,
        'member "method": expected a string, received an array',
    ),
    "params a string": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","params":"x"}',
        5,
        INVALID,
        'member "params": expected an object or an array, received a string',
    ),
    "params a number": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","params":0}',
        5,
        INVALID,
        'member "params": expected an object or an array, received a number',
    ),
    "params null": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","params":null}',
        5,
        INVALID,
        'member "params": expected an object or an array, received null',
    ),
    "params a boolean, in a notification": (
        b'{"jsonrpc":"2.0","method":"a","params":false}',
        None,
        INVALID,
        'member "params": expected an object or an array, received a boolean',
    ),
    "id a boolean": (
        b'{"jsonrpc":"2.0","id":true,"method":"a"}',
        None,
        INVALID,
        'member "id": expected a string, a number or null, received a boolean',
    ),
    "id an object": (
        b'{"jsonrpc":"2.0","id":{"n":1},"method":"a"}',
        None,
        INVALID,
        'member "id": expected a string, a number or null, received an object',
    ),
    "id an array": (
        b'{"jsonrpc":"2.0","id":[1],"method":"a"}',
        None,
        INVALID,
        'member "id": expected a string, a number or null, received an array',
    ),
    "id out of range": (
        b'{"jsonrpc":"2.0","id":1e400,"method":"a"}',
        None,
        INVALID,
        'member "id": expected a string, a number or null, received a number out of range',
    ),
    "method and result": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","result":1}',
        5,
        INVALID,
        'members "method" and "result" in one message: expected a request or a response',
    ),
    "method and error": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","error":{"code":1,"message":"m"}}',
        5,
        INVALID,
        'members "method" and "error" in one message: expected a request or a response',
    ),
    "nested beyond the limit": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","params":' + b"[" * 128 + b"]" * 128 + b"}",
        5,
        PARSE,
        "nesting of 129 levels: expected at most 128",
    ),
    "nested beyond all reason": (
        b'{"jsonrpc":"2.0","id":5,"method":"a","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        None,
        PARSE,
        "nesting too deep to be read",
    ),
    "nested and never closed": (b"[" * 100_000, None, PARSE, "nesting too deep to be read"),
    "nested in a batch": (
        b"[" * 200 + b"]" * 200,
        None,
        PARSE,
        "nesting of 200 levels: expected at most 128",
    ),
}


@pytest.mark.parametrize(("data", "id_", "kind", "detail"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed(data: bytes, id_: object, kind: tuple[int, str], detail: str) -> None:
    invalid = decode(data)
    assert isinstance(invalid, Invalid)
    assert not invalid.of_response
    assert json.loads(encode_invalid(invalid)) == {
        "jsonrpc": "2.0",
        "id": id_,
        "error": {"code": kind[0], "message": kind[1], "data": invalid.detail},
    }
    assert type(invalid.id) is type(id_)
    assert invalid.detail == detail


# A broken answer is owed nothing: the call that it meant fails.
BROKEN_RESPONSES = {
    "no id": (
        b'{"jsonrpc":"2.0","result":1}',
        None,
        'member "id" of a response: expected a string, a number or null, received nothing',
    ),
    "result and error": (
        b'{"jsonrpc":"2.0","id":5,"result":1,"error":{"code":1,"message":"m"}}',
        5,
        'members "result" and "error" in one response: expected exactly one of them',
    ),
    "error null": (
        b'{"jsonrpc":"2.0","id":5,"error":null}',
        5,
        'member "error": expected an object, received null',
    ),
    "error a string": (
        b'{"jsonrpc":"2.0","id":5,"error":"no"}',
        5,
        'member "error": expected an object, received a string',
    ),
    "error without a code": (
        b'{"jsonrpc":"2.0","id":5,"error":{"message":"m"}}',
        5,
        'member "error.code": expected an integer, received nothing',
    ),
    "error code a string": (
        b'{"jsonrpc":"2.0","id":5,"error":{"code":"E1","message":"m"}}',
        5,
        'member "error.code": expected an integer, received "E1"',
    ),
    "error code a fraction": (
        b'{"jsonrpc":"2.0","id":5,"error":{"code":1.5,"message":"m"}}',
        5,
        'member "error.code": expected an integer, received 1.5',
    ),
    "error without a message": (
        b'{"jsonrpc":"2.0","id":5,"error":{"code":1}}',
        5,
        'member "error.message": expected a string, received nothing',
    ),
    "error message a number": (
        b'{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":2}}',
        5,
        'member "error.message": expected a string, received a number',
    ),
    "another version": (
        b'{"jsonrpc":"1.0","id":5,"result":1}',
        5,
        'member "jsonrpc": expected "2.0", received "1.0"',
    ),
    "id a boolean": (
        b'{"jsonrpc":"2.0","id":false,"result":1}',
        None,
        'member "id": expected a string, a number or null, received a boolean',
    ),
    "nested beyond the limit": (
        b'{"jsonrpc":"2.0","id":5,"result":' + b"[" * 128 + b"]" * 128 + b"}",
        5,
        "nesting of 129 levels: expected at most 128",
    ),
}


@pytest.mark.parametrize(("data", "id_", "detail"), BROKEN_RESPONSES.values(), ids=BROKEN_RESPONSES.keys())
def test_broken_response(data: bytes, id_: object, detail: str) -> None:
    invalid = decode(data)
    assert isinstance(invalid, Invalid)
    assert (invalid.of_response, invalid.id, invalid.detail) == (True, id_, detail)


VALID = {
    "a request": (
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}',
        Request("a", 1, Raw(b'{"x":1}')),
    ),
    "params absent": (b'{"jsonrpc":"2.0","id":1,"method":"a"}', Request("a", 1, Raw(b""))),
    "members in another order": (
        b' {"params":[],"method":"a","id":"1","jsonrpc":"2.0"} ',
        Request("a", "1", Raw(b"[]")),
    ),
    "id null": (b'{"jsonrpc":"2.0","id":null,"method":"a"}', Request("a", None, Raw(b""))),
    "id a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"a"}', Request("a", 1.5, Raw(b""))),
    "id beyond 64 bits": (
        b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"a"}',
        Request("a", 123456789012345678901234567890, Raw(b"")),
    ),
    "id zero": (b'{"jsonrpc":"2.0","id":0,"method":"a"}', Request("a", 0, Raw(b""))),
    "id empty": (b'{"jsonrpc":"2.0","id":"","method":"a"}', Request("a", "", Raw(b""))),
    "the empty method": (b'{"jsonrpc":"2.0","id":1,"method":""}', Request("", 1, Raw(b""))),
    "a reserved method": (b'{"jsonrpc":"2.0","id":1,"method":"rpc.x"}', Request("rpc.x", 1, Raw(b""))),
    "unknown members": (
        b'{"jsonrpc":"2.0","id":1,"method":"a","trace":[1]}',
        Request("a", 1, Raw(b"")),
    ),
    "escapes in names and version": (
        b'{"jsonrpc":"\\u0032.0","\\u0069d":1,"method":"\\u0061"}',
        Request("a", 1, Raw(b"")),
    ),
    "duplicate members: the last counts": (
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b"}',
        Request("b", 2, Raw(b"")),
    ),
    "a byte order mark": (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"a"}', Notification("a", Raw(b""))),
    "line breaks between members": (
        b'{\r\n"jsonrpc":"2.0",\n"method":"a"}',
        Notification("a", Raw(b"")),
    ),
    "a notification": (
        '{"jsonrpc":"2.0","method":"진행","params":["\u2028"]}'.encode(),
        Notification("진행", Raw('["\u2028"]'.encode())),
    ),
    "brackets in strings do not nest": (
        b'{"jsonrpc":"2.0","method":"a","params":["' + b'\\"[{' * 500 + b'\\\\"]}',
        Notification("a", Raw(b'["' + b'\\"[{' * 500 + b'\\\\"]')),
    ),
    "at the limit of nesting": (
        b'{"jsonrpc":"2.0","method":"a","params":' + b"[" * 127 + b"]" * 127 + b"}",
        Notification("a", Raw(b"[" * 127 + b"]" * 127)),
    ),
    "a result": (b'{"jsonrpc":"2.0","id":1,"result":{"x":1}}', Response(1, Raw(b'{"x":1}'), None)),
    "a result null": (b'{"jsonrpc":"2.0","id":"a","result":null}', Response("a", Raw(b"null"), None)),
}


@pytest.mark.parametrize(("data", "expected"), VALID.values(), ids=VALID.keys())
def test_valid(data: bytes, expected: Request | Notification | Response) -> None:
    message = decode(data)
    assert type(message) is type(expected)
    for name in expected.__struct_fields__:
        got, wanted = getattr(message, name), getattr(expected, name)
        assert (bytes(got), bytes(wanted)) if isinstance(wanted, Raw) else (got, wanted)
        assert type(got) is type(wanted)
        assert (bytes(got) == bytes(wanted)) if isinstance(wanted, Raw) else (got == wanted)


def test_error_response() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m","data":[1]}}')
    assert isinstance(message, Response)
    assert message.error is not None
    assert (message.id, message.error.code, message.error.message) == (None, -32000, "m")
    assert isinstance(message.error.data, Raw)
    assert bytes(message.error.data) == b"[1]"


def test_batch_keeps_order_and_names_each_fault() -> None:
    batch = decode(
        b'[{"jsonrpc":"2.0","id":1,"method":"a"},1,{"jsonrpc":"2.0","method":"b"},[],'
        b'{"jsonrpc":"2.0","id":2,"result":3}]'
    )
    assert isinstance(batch, Batch)
    assert [type(item) for item in batch.items] == [Request, Invalid, Notification, Invalid, Response]
    assert isinstance(batch.items[3], Invalid)
    assert batch.items[3].detail == "message: expected an object, received an array"


def test_limits_fail_one_message() -> None:
    limits = Limits(max_bytes=100, max_depth=2, max_batch=2)
    large = decode(b'{"jsonrpc":"2.0","id":9,"method":"a","params":["' + b"x" * 100 + b'"]}', limits)
    assert large == Invalid(
        9, -32700, "Parse error", "message too large: expected at most 100 bytes, received 151"
    )
    deep = decode(b'{"jsonrpc":"2.0","id":9,"method":"a","params":[[]]}', limits)
    assert deep == Invalid(9, -32700, "Parse error", "nesting of 3 levels: expected at most 2")
    many = decode(b"[1,2,3]", limits)
    assert many == Invalid(None, -32600, "Invalid Request", "batch of 3 messages: expected at most 2")
    assert isinstance(decode(b'{"jsonrpc":"2.0","id":9,"method":"a","params":[]}', limits), Request)


@pytest.mark.parametrize("limit", [1, 2, 5, 40, 128])
@pytest.mark.parametrize(("start", "end"), [(b'{"":', b"}"), (b"[", b"]"), (b'[{"":', b"}]")])
def test_nesting_is_counted_to_the_level(limit: int, start: bytes, end: bytes) -> None:
    """As tight as JSON can be written: no bound that is looked at first lets a level too many through."""
    step = start.count(b"[") + start.count(b"{")
    limits = Limits(max_depth=limit)
    for count in range(limit // step + 3):
        data = b'{"jsonrpc":"2.0","method":"a","params":' + start * count + b"[]" + end * count + b"}"
        levels = 2 + count * step
        message = decode(data, limits)
        if levels <= limit:
            assert isinstance(message, Notification)
        else:
            assert isinstance(message, Invalid)
            assert message.detail == f"nesting of {levels} levels: expected at most {limit}"


@pytest.mark.parametrize("name", ["max_bytes", "max_depth", "max_batch"])
def test_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"Limits\.{name}: expected a whole number above 0, received 0"):
        Limits(**{name: 0})


@pytest.mark.parametrize(
    ("head", "id_", "of_response"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":[', 7, True),
        (b'{"jsonrpc":"2.0", "id": "a,}b" , "error" : {"code', "a,}b", True),
        (b'{"jsonrpc":"2.0","id":7,"method":"a","params":{"x":', 7, False),
        (b'{"jsonrpc":"2.0","method":"a","params":{"id":4,', None, False),
        (b'{"jsonrpc":"2.0","result":{"id":4,', None, True),
        (b'{"result":{"id":4,', None, True),
        (b'{"id":true,"result":{', None, True),
        (b'[{"jsonrpc":"2.0","id":4,', None, False),
        (b"xxxxxxxxxxxx", None, False),
        (b"", None, False),
    ],
)
def test_a_message_too_large_saves_the_id(head: bytes, id_: object, of_response: bool) -> None:
    invalid = too_large(1000, 10, head=head)
    assert (invalid.id, invalid.of_response, invalid.code) == (id_, of_response, -32700)
    assert read_id(head) == id_


# With the shapes of params ----------------------------------------------------------------------


class Move(msgspec.Struct):
    x: int
    label: str = ""
    more: Raw | msgspec.UnsetType = UNSET


class Stop(msgspec.Struct):
    pass


KNOWN = envelopes({"move": Move, "stop": Stop})

FITTING = {
    "in the usual order": (b'{"jsonrpc":"2.0","id":1,"method":"move","params":{"x":2}}', 1, Move(2)),
    "with spaces": (b' { "jsonrpc" : "2.0", "id":"a", "method":"stop" , "params" : {} } ', "a", Stop()),
    "the method last": (b'{"id":1,"params":{"x":2},"jsonrpc":"2.0","method":"move"}', 1, Move(2)),
    "a large id": (b'{"jsonrpc":"2.0","id":36893488147419103232,"method":"stop","params":{}}', 2**65, Stop()),
    "unknown members": (
        b'{"jsonrpc":"2.0","id":1,"meta":{"a":[]},"method":"move","params":{"y":1,"x":2,"label":"\xc3\xa9"}}',
        1,
        Move(2, "\u00e9"),
    ),
    "twice the same member": (
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"move","params":{"x":2},"params":{"x":3,"x":4}}',
        2,
        Move(4),
    ),
}

UNFITTING = {
    "another method": b'{"jsonrpc":"2.0","id":1,"method":"other","params":{"x":2}}',
    "two methods": b'{"jsonrpc":"2.0","id":1,"method":"move","method":"stop","params":{"x":2}}',
    "two methods reversed": b'{"jsonrpc":"2.0","id":1,"method":"stop","method":"move","params":{"x":2}}',
    "no params": b'{"jsonrpc":"2.0","id":1,"method":"stop"}',
    "params in an array": b'{"jsonrpc":"2.0","id":1,"method":"move","params":[2]}',
    "params of another shape": b'{"jsonrpc":"2.0","id":1,"method":"move","params":{"x":"2"}}',
    "params that are null": b'{"jsonrpc":"2.0","id":1,"method":"move","params":null}',
    "a fractional id": b'{"jsonrpc":"2.0","id":1.0,"method":"move","params":{"x":2}}',
    "an id of null": b'{"jsonrpc":"2.0","id":null,"method":"move","params":{"x":2}}',
    "a notification": b'{"jsonrpc":"2.0","method":"move","params":{"x":2}}',
    "a response": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "a request and a response": b'{"jsonrpc":"2.0","id":1,"method":"move","params":{"x":2},"result":""}',
    "a request and an error": b'{"jsonrpc":"2.0","id":1,"method":"move","params":{"x":2},"error":null}',
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"move","params":{"x":2}}]',
    "a byte order mark and no request": b"\xef\xbb\xbf5",
    "nesting": b'{"jsonrpc":"2.0","id":1,"method":"move","params":{"x":2,"more":'
    + b"[" * 128
    + b"]" * 128
    + b"}}",
    "nesting elsewhere": b'{"jsonrpc":"2.0","id":1,"m":'
    + b"[" * 128
    + b"]" * 128
    + b',"method":"stop","params":{}}',
}


@pytest.mark.parametrize(("data", "id_", "params"), FITTING.values(), ids=FITTING.keys())
def test_params_of_a_known_shape_come_with_the_envelope(data: bytes, id_: object, params: object) -> None:
    message = decode(data, known=KNOWN)
    assert isinstance(message, Request)
    assert (message.id, message.params) == (id_, params)
    plain = decode(data)
    assert isinstance(plain, Request)
    assert (plain.method, plain.id) == (message.method, message.id)
    assert msgspec.json.decode(plain.params, type=type(params)) == params


@pytest.mark.parametrize("data", UNFITTING.values(), ids=UNFITTING.keys())
def test_what_does_not_fit_a_shape_is_read_as_if_there_were_none(data: bytes) -> None:
    assert decode(data, known=KNOWN) == decode(data)


@pytest.mark.parametrize("data", [case[0] for case in (*MALFORMED.values(), *BROKEN_RESPONSES.values())])
def test_what_is_no_message_is_none_with_shapes_either(data: bytes) -> None:
    assert decode(data, known=KNOWN) == decode(data)


@given(st.sampled_from([data for data, *_ in FITTING.values()]), st.integers(0, 120), st.binary(max_size=3))
def test_shapes_change_nothing_but_the_form_of_params(data: bytes, at: int, wrong: bytes) -> None:
    data = data[:at] + wrong + data[at + len(wrong) :]
    plain, shaped = decode(data), decode(data, known=KNOWN)
    if isinstance(shaped, Request) and isinstance(shaped.params, (Move, Stop)):
        assert isinstance(plain, Request)
        assert (plain.method, plain.id) == (shaped.method, shaped.id)
        assert msgspec.json.decode(plain.params, type=type(shaped.params)) == shaped.params
    else:
        assert plain == shaped


# Encoding ---------------------------------------------------------------------------------------


def test_encode_says_what_is_there_and_no_more() -> None:
    assert encode_request(1, "a") == b'{"jsonrpc":"2.0","id":1,"method":"a"}'
    assert encode_request("1", "a", [1]) == b'{"jsonrpc":"2.0","id":"1","method":"a","params":[1]}'
    assert encode_notification("a", {"x": Raw(b"1")}) == b'{"jsonrpc":"2.0","method":"a","params":{"x":1}}'
    assert encode_notification("a") == b'{"jsonrpc":"2.0","method":"a"}'
    assert encode_result(None, None) == b'{"jsonrpc":"2.0","id":null,"result":null}'
    assert encode_result(1.5, Raw(b"[]")) == b'{"jsonrpc":"2.0","id":1.5,"result":[]}'
    assert (
        encode_error(1, -32000, "m", UNSET)
        == b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m"}}'
    )
    assert (
        encode_error(1, 5, "m", None)
        == b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"m","data":null}}'
    )
    assert encode_batch([b"{}", b"{}"]) == b"[{},{}]"
    assert encode_batch([]) == b""


def test_a_raw_value_cannot_begin_a_second_line() -> None:
    smuggled = Raw(b'{"a":\r\n1,"b":"x\\ny",\n"c":[\n]}')
    for frame in (
        encode_result(1, smuggled),
        encode_request(1, "m", {"deep": [smuggled]}),
        encode_notification("m", smuggled),
        encode_error(1, 2, "m", smuggled),
    ):
        assert b"\n" not in frame
        assert b"\r" not in frame
    assert json.loads(encode_result(1, smuggled))["result"] == {"a": 1, "b": "x\ny", "c": []}


def test_a_raw_value_that_is_no_json_is_not_sent_over_two_lines() -> None:
    with pytest.raises(msgspec.DecodeError):
        encode_result(1, Raw(b'1}\n{"jsonrpc":"2.0","id":2,"method":"evil"}'))


def test_text_is_sent_as_utf_8() -> None:
    frame = encode_result("서울", "서울 \u2028")
    assert frame == '{"jsonrpc":"2.0","id":"서울","result":"서울 \u2028"}'.encode()


# Properties ---------------------------------------------------------------------------------------

IDS = st.one_of(
    st.none(),
    st.integers(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('abc[]{}"\\'), inner, max_size=4),
    max_leaves=20,
)


@given(
    IDS,
    st.text(st.characters(exclude_categories=["Cs"])),
    st.one_of(st.lists(VALUES), st.dictionaries(st.text("ab"), VALUES)),
)
def test_a_request_comes_back_as_it_was(id_: int | float | str | None, method: str, params: object) -> None:
    message = decode(encode_request(id_, method, params))
    assert isinstance(message, Request)
    assert (message.id, message.method, json.loads(bytes(message.params))) == (id_, method, params)
    assert type(message.id) is type(id_)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_message_and_an_answer(data: bytes) -> None:
    message = decode(data)
    if isinstance(message, Invalid):
        answer = json.loads(encode_invalid(message))
        assert answer["error"]["code"] in (-32700, -32600)


@given(st.data())
def test_a_damaged_request_gives_a_message(data: st.DataObject) -> None:
    whole = bytearray(b'{"jsonrpc":"2.0","id":12,"method":"a","params":{"k":[1,"x\\u00e9",null]}}')
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    message = decode(bytes(whole))
    if not isinstance(message, Invalid):
        return
    try:
        json.loads(bytes(whole).decode())
    except ValueError:
        assert message.code == -32700
    else:
        assert message.code == -32600 or "surrogate" in message.detail or "hex escape" in message.detail


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(VALUES)
def test_depth_is_the_depth(value: object) -> None:
    assert depth(json.dumps(value).encode()) == _depth(value)
