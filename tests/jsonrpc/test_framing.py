"""Framing: whole frames out of bytes cut anywhere, and a stream that survives a bad frame."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.jsonrpc.framing import (
    MAX_HEADER,
    BadHeader,
    ContentLength,
    Frame,
    Lines,
    TooLong,
    Truncated,
    encode_content_length,
    encode_line,
)


def run(framer: Lines | ContentLength, stream: bytes, cuts: list[int]) -> list[Frame]:
    frames: list[Frame] = []
    start = 0
    for cut in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
        frames += framer.feed(stream[start:cut])
        start = cut
    return [*frames, *framer.eof()]


CUTS = st.lists(st.integers(0, 10_000), max_size=12)

# LF, CRLF, blank lines, characters of several bytes, what is a line end elsewhere, no end at the end.
LINES = "첫째\n{}\r\n\n  \t\r\n\r\nu2028:\u2028 u0085:\u0085 cr:\r vt:\v\n🦜\r\nlast".encode()
LINES_FRAMES: list[Frame] = [
    "첫째".encode(),
    b"{}",
    "u2028:\u2028 u0085:\u0085 cr:\r vt:\v".encode(),
    "🦜".encode(),
    b"last",
]


@given(CUTS)
def test_lines_cut_anywhere(cuts: list[int]) -> None:
    assert run(Lines(), LINES, cuts) == LINES_FRAMES


def test_lines_byte_by_byte() -> None:
    assert run(Lines(), LINES, list(range(len(LINES)))) == LINES_FRAMES


@given(
    st.lists(
        st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip() and line[-1:] != b"\r")
    ),
    CUTS,
)
def test_lines_give_back_what_was_sent(payloads: list[bytes], cuts: list[int]) -> None:
    assert run(Lines(), b"".join(map(encode_line, payloads)), cuts) == payloads


def test_lines_are_given_as_soon_as_they_end() -> None:
    lines = Lines()
    assert lines.feed(b"a\nb") == [b"a"]
    assert lines.feed(b"") == []
    assert lines.feed(b"\n") == [b"b"]
    assert lines.eof() == []


@given(CUTS)
def test_a_line_too_long_is_given_once_and_the_next_ones_follow(cuts: list[int]) -> None:
    stream = b"0123456789\r\n0123456789a\nok\n" + b"x" * 500 + b"\nnext\n" + b"y" * 11
    frames = run(Lines(10), stream, cuts)
    kinds = [frame if isinstance(frame, bytes) else type(frame) for frame in frames]
    assert kinds == [b"0123456789", TooLong, b"ok", TooLong, b"next", TooLong]
    too_long = frames[3]
    assert isinstance(too_long, TooLong)
    assert 10 < too_long.size <= 500
    assert too_long.head.startswith(b"x")


def test_a_line_too_long_is_told_before_it_ends() -> None:
    lines = Lines(10)
    assert lines.feed(b"0123456789ab") == [TooLong(12, b"0123456789ab")]
    assert lines.feed(b"more and more") == []
    assert lines.feed(b"\nok\n") == [b"ok"]


def test_a_payload_with_a_line_feed_is_not_sent() -> None:
    with pytest.raises(ValueError, match=r"expected one line, received a line feed \(byte 2\)"):
        encode_line(b"{}\n{}")


HEADERS = (
    encode_content_length("안녕".encode())
    + b"\r\n\ncontent-TYPE: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-length:3\r\n\r\nabc"
    + b"Content-Length: 2\nX: y\n\nhi"
    + b"Content-Length: 2\r\nContent-Length:  2 \r\n\r\n\r\n"
    + b"Content-Length: x\r\n\r\n{lost}\r\nContent-Length: 4\r\n\r\ngood"
    + b"X: y\r\n\r\nlostContent-Length: 1\r\n\r\nk"
    + b"Content-Length: 0\r\n\r\n"
    + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nl\nContent-Length: 3\r\nX: y\r\n\r\nend"
    + b"Content-Length: 9\r\n\r\nab"
)
HEADERS_FRAMES: list[Frame] = [
    "안녕".encode(),
    b"abc",
    b"hi",
    b"\r\n",
    BadHeader('Content-Length: expected a number of bytes, received "x"'),
    b"good",
    BadHeader("Content-Length: expected one value, received none"),
    b"k",
    b"",
    BadHeader('Content-Length: expected one value, received "1" and "2"'),
    b"end",
    Truncated(9, 2),
]


@given(CUTS)
def test_headers_cut_anywhere(cuts: list[int]) -> None:
    assert run(ContentLength(), HEADERS, cuts) == HEADERS_FRAMES


def test_headers_byte_by_byte() -> None:
    assert run(ContentLength(), HEADERS, list(range(len(HEADERS)))) == HEADERS_FRAMES


@given(st.lists(st.binary()), CUTS)
def test_headers_give_back_what_was_sent(payloads: list[bytes], cuts: list[int]) -> None:
    assert run(ContentLength(), b"".join(map(encode_content_length, payloads)), cuts) == payloads


def test_the_length_counts_bytes() -> None:
    assert encode_content_length("é".encode()) == b"Content-Length: 2\r\n\r\n\xc3\xa9"


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (b"Content-Length: -1", 'Content-Length: expected a number of bytes, received "-1"'),
        (b"Content-Length: +1", 'Content-Length: expected a number of bytes, received "+1"'),
        (b"Content-Length: 1.0", 'Content-Length: expected a number of bytes, received "1.0"'),
        (b"Content-Length:", 'Content-Length: expected a number of bytes, received ""'),
        (
            b"Content-Length: " + b"9" * 30,
            f'Content-Length: expected a number of bytes, received "{"9" * 30}"',
        ),
        (b'{"jsonrpc":"2.0"}', "Content-Length: expected one value, received none"),
        (b"hello", 'header line "hello": expected ASCII text `Name: value`'),
        (
            "X: 안\r\nContent-Length: 1".encode(),
            'header line "X: \\xec\\x95\\x88": expected ASCII text `Name: value`',
        ),
    ],
)
def test_a_bad_header_is_named(block: bytes, reason: str) -> None:
    framer = ContentLength()
    frames = framer.feed(block + b"\r\n\r\nlost\r\n" + encode_content_length(b"next"))
    assert frames == [BadHeader(reason), b"next"]


@given(CUTS)
def test_a_body_too_long_is_passed_over(cuts: list[int]) -> None:
    stream = encode_content_length(b"x" * 500) + encode_content_length(b"0123456789")
    assert run(ContentLength(10), stream, cuts) == [TooLong(500), b"0123456789"]


def test_a_header_without_end_is_given_up() -> None:
    framer = ContentLength()
    frames = framer.feed(b"X: " + b"y" * 2 * MAX_HEADER)
    assert frames == [BadHeader(f"header of more than {MAX_HEADER} bytes")]
    assert framer.feed(b"\r\n\r\n" + encode_content_length(b"next")) == [b"next"]


def test_the_end_inside_a_header() -> None:
    framer = ContentLength()
    assert framer.feed(b"Content-Le") == []
    assert framer.eof() == [Truncated(0, 10)]
    assert framer.eof() == []


@pytest.mark.parametrize("framing", [Lines, ContentLength])
def test_a_message_of_64_mb_costs_linear_time(framing: type[Lines | ContentLength]) -> None:
    """In pieces of 1 KiB it takes a fraction of a second; copying what was there each time, 2 TB, minutes."""
    stream = framing.encode(b"x" * (64 * 1024 * 1024))
    framer = framing(64 * 1024 * 1024)
    start = time.process_time()
    frames = [frame for at in range(0, len(stream), 1024) for frame in framer.feed(stream[at : at + 1024])]
    assert time.process_time() - start < 10
    assert [len(frame) for frame in frames if isinstance(frame, bytes)] == [64 * 1024 * 1024]
