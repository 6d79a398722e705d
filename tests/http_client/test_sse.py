"""The event stream format of the WHATWG HTML standard, section 9.2, on bytes."""

from __future__ import annotations

import pytest

from dragoman.jsonrpc.framing import TooLong
from dragoman.protocol.sse import Event, Parser, encode_event


def parse(*chunks: bytes, **options) -> list[Event | TooLong]:
    parser = Parser(**options)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in parse(*chunks)]


STREAM = (
    "\ufeff: welcome\r\n"
    "id: 1\r\ndata: \r\n\r\n"
    'event: message\ndata: {"text":"서울\u2028 날씨"}\n\n'
    "id: é2\rretry: 500\rdata: one\rdata: two\r\r"
    ":\r\n"
    "data:three\n\n"
).encode()
EVENTS = [
    Event(b"", "1"),
    Event('{"text":"서울\u2028 날씨"}'.encode(), "1", "message"),
    Event(b"one\ntwo", "é2", None, 500),
    Event(b"three", "é2"),
]


def test_whole_stream():
    assert parse(STREAM) == EVENTS


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_cut_in_two_anywhere(cut):
    assert parse(STREAM[:cut], STREAM[cut:]) == EVENTS


def test_one_byte_at_a_time():
    assert parse(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == EVENTS


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end(end):
    assert data(b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end) == [b"a\nb", b"c"]


def test_crlf_cut_between_its_bytes_is_one_line_end():
    assert data(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]


def test_a_lone_cr_at_the_end_of_a_chunk_ends_the_line_at_once():
    assert data(b"data: a\r\r") == [b"a"]


@pytest.mark.parametrize("text", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_other_line_separators_are_text(text):
    assert data(f"data: a{text}b\n\n".encode()) == [f"a{text}b".encode()]


def test_only_a_leading_byte_order_mark_is_passed_over():
    bom = b"\xef\xbb\xbf"
    assert data(bom + b"data: a\n\n") == [b"a"]
    assert data(b"\xef", b"\xbb", b"\xbf", b"data: a\n\n") == [b"a"]
    assert data(b"data: a\n\n" + bom + b"data: b\n\n") == [b"a"]  # the field's name is not "data"
    assert data(b"\xef\xbb", b"data: a\n\ndata: b\n\n") == [b"b"]


# The examples of the standard, section 9.2.6.
def test_examples_of_the_standard():
    assert data(b"data: YHOO\ndata: +2\ndata: 10\n\n") == [b"YHOO\n+2\n10"]
    stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event"
    assert parse(stream) == [
        Event(b"first event", "1"),
        Event(b"second event", ""),
    ]
    assert data(b"data\n\ndata\ndata\n\ndata:") == [b"", b"\n"]
    assert data(b"data:test\n\ndata: test\n\n") == [b"test", b"test"]


def test_what_is_incomplete_at_the_end_is_no_event():
    assert data(b"data: a\n") == []
    assert data(b"data: a") == []


def test_a_block_without_data_is_no_event_but_sets_what_a_reconnection_needs():
    parser = Parser()
    assert parser.feed(b"id: 7\nretry: 250\nevent: x\n\n") == []
    assert (parser.last_id, parser.retry) == ("7", 250)
    assert parser.feed(b"data: a\n\n") == [Event(b"a", "7")]


def test_fields_that_do_not_count():
    stream = b"retry: 5s\nretry: -1\nretry: \nid: a\0b\nDATA: x\nfoo: bar\ndata : y\ndata: z\n\n"
    assert parse(stream) == [Event(b"z")]


def test_a_retry_of_many_digits_is_still_a_number():
    parser = Parser()
    parser.feed(b"retry: " + b"9" * 10_000 + b"\n\n")
    assert parser.retry == 9_999_999_999


def test_only_one_space_after_the_colon_is_taken():
    assert data(b"data:  a \n\n") == [b" a "]


@pytest.mark.parametrize("step", [1, 3, 7, 1000])
def test_an_event_beyond_the_limit_is_told_once_and_the_stream_goes_on(step):
    long = b"id: 5\ndata: " + b"x" * 40 + b"\ndata: " + b"y" * 40 + b"\nid: 6\n\n"
    stream = b"data: a\n\n" + long + b"data: 0123456789\n\n"
    events = parse(*(stream[i : i + step] for i in range(0, len(stream), step)), max_bytes=10)
    assert [type(event) for event in events] == [Event, TooLong, Event]
    assert events[1].head.startswith(b"x" * 10)
    assert events[2] == Event(b"0123456789", "6")


def test_many_short_data_lines_count_together():
    events = parse(b"data: aaaa\n" * 3 + b"\ndata: b\n\n", max_bytes=10)
    assert [type(event) for event in events] == [TooLong, Event]
    assert data(b"data: aaaa\n" * 2 + b"\n") == [b"aaaa\naaaa"]


def test_comments_do_not_count():
    assert parse(b"data: a\n" + b": keep-alive\n" * 100 + b"\n", max_bytes=20) == [Event(b"a")]


def test_a_large_line_costs_linear_time():
    body = b"z" * (8 << 20)
    chunks = [b"data: ", *(body[i : i + 1024] for i in range(0, len(body), 1024)), b"\n\n"]
    assert data(*chunks) == [body]


def test_resumed_stream_starts_from_the_last_id():
    assert parse(b"data: a\n\n", last_id="41") == [Event(b"a", "41")]


def test_encode_one_line():
    assert encode_event(b'{"a":1}') == b'data: {"a":1}\n\n'
    assert encode_event(b"", id="1", retry=500) == b"id: 1\nretry: 500\ndata: \n\n"
    assert encode_event(b"x", event="message") == b"event: message\ndata: x\n\n"


def test_encode_then_parse_is_the_identity():
    for body in (b"", b"a", b"a\nb", "서울\u2028".encode(), b" leading"):
        assert parse(encode_event(body, id="é", retry=3, event="t")) == [Event(body, "é", "t", 3)]
    assert data(encode_event(b"a\r\nb\rc")) == [b"a\nb\nc"]


@pytest.mark.parametrize("bad", [{"id": "a\nb"}, {"id": "a\0"}, {"event": "a\rb"}, {"retry": -1}])
def test_encode_refuses_what_would_break_the_stream(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        encode_event(b"x", **bad)
