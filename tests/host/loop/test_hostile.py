"""Servers of models that say anything at all: a run ends with an answer or an error of the one known kind."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.host import ModelError
from dragoman.host.models import APIS
from dragoman.host.provider.fault import Cover
from dragoman.host.provider.http import _Attempt
from tests.host.loop.wire import PROVIDERS, Use

USES = [Use("c1", "price", {"item": "apple"}), Use("c2", "buy", {"item": "배"})]
STREAMS = {provider.api: provider.events("잠깐, one moment.", USES) for provider in PROVIDERS}
WHOLES = {provider.api: provider.whole("잠깐, one moment.", USES) for provider in PROVIDERS}

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "text", "tool_use", "error"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id", "text"]), inner)
    ),
    max_leaves=4,
)


def read(api: str, feed) -> None:
    """Read an answer as the loop does; only a ModelError may come of it."""
    face = APIS[api]
    attempt = _Attempt(face, lambda heard: None, server="m", cover=Cover([]))
    try:
        message = feed(attempt)
    except ModelError:
        return
    face.said(message)
    face.usage(message)
    face.stop(message)
    assert isinstance(face.text(message), str)
    for use in face.uses(message):
        assert isinstance(use.id, str)
        assert isinstance(use.name, str)
        assert isinstance(use.arguments, dict)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inner:
        yield from places(member, (*path, key))


def put(value, path, other):
    """The value with another one at a place."""
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], other)
    return copy


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_a_stream_with_bytes_changed(api, data):
    stream = bytearray(STREAMS[api])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.sampled_from(["flip", "cut", "drop", "double"])):
            case "flip":
                stream[at] = data.draw(st.integers(0, 255))
            case "cut":
                del stream[at + 1 :]
            case "drop":
                del stream[at : at + data.draw(st.integers(1, 200))]
            case "double":
                stream[at:at] = stream[at : at + 200]
        if not stream:
            break

    def feed(attempt):
        attempt.feed(bytes(stream))
        return attempt.message()

    read(api, feed)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_a_stream_with_a_value_of_another_kind(api, data):
    lines = [line for line in STREAMS[api].split(b"\n") if line.startswith(b"data: {")]
    events = [json.loads(line.removeprefix(b"data: ")) for line in lines]
    number = data.draw(st.integers(0, len(events) - 1))
    path = data.draw(st.sampled_from(list(places(events[number]))))
    events[number] = put(events[number], path, data.draw(values))

    def feed(attempt):
        for event in events:
            attempt.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
        return attempt.message()

    read(api, feed)


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(sorted(WHOLES)), st.data())
def test_an_answer_with_a_value_of_another_kind(api, data):
    whole = WHOLES[api]
    path = data.draw(st.sampled_from(list(places(whole))))
    changed = put(whole, path, data.draw(values))
    read(api, lambda attempt: attempt.whole(json.dumps(changed).encode()))
