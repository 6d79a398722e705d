"""Answers of servers that do not keep to their API: nothing is raised, whatever comes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.host.models import APIS

from .streams import STREAMS

KEYS = """
    type index delta content_block message choices tool_calls function arguments name id text thinking
    partial_json content parts candidates functionCall args output output_index content_index item response
    status error usage
    finish_reason finishReason stop_reason usageMetadata promptFeedback input role code
"""
SIMPLE = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | st.text(max_size=3)
VALUES = st.recursive(
    SIMPLE
    | st.sampled_from(["text", "tool_use", "message", "function_call", "text_delta", "input_json_delta"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS.split()), inner, max_size=3)
    ),
    max_leaves=12,
)
KINDS = sorted({event["type"] for events in STREAMS.values() for event in events if "type" in event})
EVENTS = st.dictionaries(st.sampled_from(KEYS.split()), VALUES, max_size=5) | st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(KEYS.split()), VALUES, max_size=5),
)


@st.composite
def broken(draw):
    """An event of a sample stream, one value of which is something else."""
    event = json.loads(json.dumps(draw(st.sampled_from([e for events in STREAMS.values() for e in events]))))
    place, parent = event, None
    while isinstance(place, dict | list) and place:
        keys = [*place] if isinstance(place, dict) else [*range(len(place))]
        parent, key = place, draw(st.sampled_from(keys))
        place = place[key]
        if draw(st.booleans()):
            break
    if parent is not None:
        parent[key] = draw(VALUES)
    return event


def look(api, message):
    for use in api.uses(message):
        assert isinstance(use.id, str)
        assert isinstance(use.name, str)
        assert isinstance(use.arguments, dict)
    assert isinstance(api.text(message), str)
    api.stop(message), api.usage(message), api.said(message), api.error(message)


@settings(max_examples=250, deadline=None)
@given(events=st.lists(EVENTS | broken(), max_size=6))
@pytest.mark.parametrize("name", APIS)
def test_no_event_makes_a_reader_raise(name, events):
    api = APIS[name]
    reader = api.reader()
    for event in events:
        reader.feed(event)
    look(api, reader.message())


@settings(max_examples=250, deadline=None)
@given(message=EVENTS | broken())
@pytest.mark.parametrize("name", APIS)
def test_no_answer_makes_a_look_at_it_raise(name, message):
    look(APIS[name], message)
