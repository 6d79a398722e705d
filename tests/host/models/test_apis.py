"""What holds for every model's API: definitions, histories and streams, beside the providers' own types."""

from __future__ import annotations

import json

import pytest

from dragoman.client import ToolResult
from dragoman.errors import UsageError
from dragoman.host.models import APIS
from dragoman.host.models.base import (
    ArgumentsDelta,
    Definitions,
    Failed,
    Shown,
    TextDelta,
    ThoughtDelta,
    ToolUse,
    Usage,
    UseStarted,
)
from dragoman.host.naming import API_NAMES
from dragoman.model import TextContent, Tool

from .samples import RESULTS, SCHEMAS, tool
from .streams import STREAMS, split

EACH = pytest.mark.parametrize("api", APIS.values(), ids=APIS)
FIND = ToolUse("call_1", "find", {"id": "A-1"})


def answer(api):
    """The message that the API's sample stream comes to."""
    reader = api.reader()
    for event in STREAMS[api.name]:
        reader.feed(event)
    return reader.message()


def turn(api, *results):
    """A history of one exchange: a prompt, calls, and these results to them, repeated to be enough."""
    message = answer(api)
    uses = api.uses(message)
    blocks = [api.result(use, results[index % len(results)]) for index, use in enumerate(uses)]
    return [*api.user("Find A-1."), *api.said(message), *api.answered(blocks)]


# --- definitions ----------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("strict", [False, True], ids=["loose", "strict"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_each_definition_is_of_the_published_type(api, name, strict, published):
    found = api.definitions([tool(schema=SCHEMAS[name])], strict=strict)
    assert found.left_out == []
    request = api.request(model="m", history=api.user("Hi."), tools=found)
    assert published.request(api.name, request) == []


def test_what_is_wrong_in_a_request_is_found(published):
    """The test of the test: an unknown member, one that is missing, and one of another type."""
    api = APIS["anthropic-messages"]
    request = api.request(model="m", history=api.user("Hi."), tools=api.definitions([tool()]))
    request["tools"][0]["colour"] = "red"
    request["messages"] = [{"role": "user", "content": [{"type": "tool_result"}]}]
    del request["max_tokens"]
    said = " ".join(published.request(api.name, request))
    assert all(place in said for place in (".max_tokens: is missing", ".tools[0]", ".messages[0]"))
    chat = {
        "model": "m",
        "messages": [{"role": "tool", "content": [{"type": "image_url"}], "tool_call_id": "1"}],
    }
    assert published.request("openai-chat", chat)
    assert published.request("gemini", {"contents": [{"parts": [{"functionResponse": {"colour": 1}}]}]})


@EACH
def test_deferred_tools_are_of_the_published_types_or_put_aside(api, published):
    tools = [tool("a"), tool("b", deferred=True, group="orders"), tool("c", deferred=True)]
    found = api.definitions(tools)
    request = api.request(model="m", history=api.user("Hi."), tools=found)
    assert published.request(api.name, request) == []
    assert found.deferred == ([] if api.searches else ["b", "c"])
    text = json.dumps(found.blocks)
    assert text.count('"defer_loading": true') == (2 if api.searches else 0)


@EACH
@pytest.mark.parametrize("name", ["admin tools", "한국어", "a" * 65, "é", "", "1/2", "a\nb"])
def test_a_name_that_the_api_does_not_take_has_another_and_leads_back(api, name):
    found = api.definitions([tool(name), tool("plain")])
    (wire,) = found.names
    assert API_NAMES[api.name].accepts(wire)
    assert found.shown(wire) == name
    assert found.shown("plain") == "plain"
    meant = found.meant(ToolUse("1", wire, {"id": "x"}))
    assert (meant.name, meant.arguments) == (name, {"id": "x"})


@EACH
def test_names_do_not_depend_on_other_tools_unless_one_has_the_name(api):
    alone = next(iter(api.definitions([tool("a b")]).names))
    assert [*api.definitions([tool("a/b"), tool("a b")]).names][1] == alone
    both = api.definitions([tool("a b"), tool(alone)])
    assert len({*both.names, alone}) == 2
    assert both.names != {alone: "a b"}


@EACH
def test_one_of_two_tools_of_a_name_is_left_out(api):
    found = api.definitions([tool("a"), tool("a")])
    assert len(found.blocks) == 1
    assert "another tool" in found.left_out[0].why


@EACH
@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "array"}, "expected type 'object'"),
        ({}, "expected type 'object'"),
        ({"type": ["object", "null"]}, "expected type 'object'"),
        ({"type": "object", "properties": []}, "`properties`: expected an object"),
    ],
)
def test_a_schema_that_no_api_takes_leaves_the_tool_out(api, schema, says):
    found = api.definitions([tool("a"), tool("b", schema)])
    assert [item.name for item in found.left_out] == ["b"]
    assert says in found.left_out[0].why
    assert len(found.blocks) == 1


@EACH
@pytest.mark.parametrize("strict", [False, True], ids=["loose", "strict"])
def test_a_schema_without_end_is_left_out_and_ends(api, strict):
    deep: dict = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "object", "properties": {"a": deep}}
    found = api.definitions([tool("deep", deep)], strict=strict)
    assert "levels deep" in found.left_out[0].why


@EACH
def test_a_few_references_that_mean_millions_of_schemas_are_not_written_out(api):
    node = {
        "type": "object",
        "properties": {"a": {"$ref": "#/properties/p0"}, "b": {"$ref": "#/properties/p0"}},
    }
    wide = {"p0": {"type": "string"}}
    for level in range(1, 30):
        ref = f"#/properties/p{level - 1}"
        wide[f"p{level}"] = {**node, "properties": {"a": {"$ref": ref}, "b": {"$ref": ref}}}
    schema = {"type": "object", "properties": wide}
    for strict in (False, True):
        found = api.definitions([tool("wide", schema)], strict=strict)
        assert found.left_out or len(json.dumps(found.blocks)) < 1_000_000


@EACH
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_conversion_leaves_the_tool_as_it_was(api, name):
    before = json.dumps(SCHEMAS[name])
    for strict in (False, True):
        api.definitions([tool(schema=SCHEMAS[name])], strict=strict)
    assert json.dumps(SCHEMAS[name]) == before


# --- histories ------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("name", RESULTS)
def test_each_result_is_of_the_published_type_in_a_whole_history(api, name, published):
    history = turn(api, RESULTS[name])
    request = api.request(model="m", history=history, system="Be brief.", limit=99)
    assert published.request(api.name, request) == []


@EACH
def test_a_streamed_request_is_of_the_published_type(api, published):
    history = turn(api, RESULTS["text"])
    request = api.request(model="m", history=history, tools=api.definitions([tool()]), stream=True)
    assert published.request(api.name, request) == []


@EACH
def test_a_failure_says_what_failed(api, published):
    block = api.failure(FIND, "Not permitted: rule 3")
    assert "Not permitted: rule 3" in json.dumps(block)
    message = answer(api)
    blocks = [api.failure(use, "Not permitted: rule 3") for use in api.uses(message)]
    history = [*api.user("Hi."), *api.said(message), *api.answered(blocks)]
    assert published.request(api.name, api.request(model="m", history=history)) == []


@EACH
def test_a_failed_result_cannot_be_taken_for_a_success(api):
    good = ToolResult(content=[TextContent(text="no such order")])
    assert api.result(FIND, RESULTS["failed"]) != api.result(FIND, good)
    assert "no such order" in json.dumps(api.result(FIND, RESULTS["failed"]))
    assert "failed" in json.dumps(api.result(FIND, RESULTS["failed in silence"])).lower()


@EACH
def test_calls_without_answers_are_refused_before_they_are_sent(api):
    message = answer(api)
    first, *_ = api.uses(message)
    history = [*api.user("Hi."), *api.said(message)]
    with pytest.raises(UsageError, match="would refuse the request"):
        api.request(model="m", history=history)
    with pytest.raises(UsageError, match="would refuse the request"):
        api.request(model="m", history=[*history, *api.user("Never mind.")])
    with pytest.raises(UsageError, match="would refuse the request"):
        api.request(model="m", history=[*history, *api.answered([api.failure(first, "no")])])


@EACH
def test_answers_without_calls_are_refused_before_they_are_sent(api):
    history = [*api.user("Hi."), *api.answered([api.failure(FIND, "no")])]
    with pytest.raises(UsageError, match="would refuse the request"):
        api.request(model="m", history=history)


@EACH
def test_more_members_win_and_objects_are_joined(api):
    request = api.request(model="m", history=api.user("Hi."), limit=5, more={"metadata": {"a": "b"}})
    assert request["metadata"] == {"a": "b"}
    joined = APIS["gemini"].request(
        model="m", history=APIS["gemini"].user("Hi."), limit=5, more={"generationConfig": {"seed": 1}}
    )
    assert joined["generationConfig"] == {"maxOutputTokens": 5, "seed": 1}


# --- streams --------------------------------------------------------------------------------------------


@EACH
def test_the_sample_streams_have_published_shapes(api, published):
    assert [published.event(api.name, event) for event in STREAMS[api.name]] == [[]] * len(STREAMS[api.name])


@EACH
def test_a_stream_comes_to_a_message_of_the_published_type(api, published):
    message = answer(api)
    assert published.message(api.name, message) == []
    assert api.text(message) == "I look them up."
    assert api.stop(message) == "tools"
    assert api.usage(message) == Usage(25, 30, 5)
    assert [(use.name, use.arguments, use.fault) for use in api.uses(message)] == [
        ("find", {"id": "A-1"}, None),
        ("list", {}, None),
    ]
    assert len({use.id for use in api.uses(message)}) == 2


@EACH
def test_deltas_tell_what_the_message_tells(api):
    reader = api.reader()
    assert not reader.done
    deltas = [delta for event in STREAMS[api.name] for delta in reader.feed(event)]
    assert reader.done
    message = reader.message()
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == api.text(message)
    started = [delta for delta in deltas if isinstance(delta, UseStarted)]
    assert [(delta.id, delta.name) for delta in started] == [(use.id, use.name) for use in api.uses(message)]
    pieces = "".join(
        delta.text for delta in deltas if isinstance(delta, ArgumentsDelta) and delta.id == started[0].id
    )
    assert api.name == "gemini" or json.loads(pieces) == {"id": "A-1"}
    thoughts = "".join(delta.text for delta in deltas if isinstance(delta, ThoughtDelta))
    assert thoughts == ("" if api.name == "openai-chat" else "Two orders.")


@EACH
def test_a_stream_that_is_cut_anywhere_is_not_whole_and_raises_nothing(api):
    for cut in range(len(STREAMS[api.name])):
        reader = api.reader()
        for event in STREAMS[api.name][:cut]:
            reader.feed(event)
        message = reader.message()
        api.uses(message), api.text(message), api.usage(message), api.said(message)
        assert not reader.done or cut == len(STREAMS[api.name]) - 1


@EACH
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_deltas_may_be_split_anywhere(api, size, published):
    events = [piece for event in STREAMS[api.name] for piece in split(event, size)]
    assert len(events) > len(STREAMS[api.name])
    assert published.event(api.name, events[len(events) // 2]) == []
    reader = api.reader()
    deltas = [delta for event in events for delta in reader.feed(event)]
    assert reader.message() == answer(api)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "I look them up."


@EACH
def test_events_of_unknown_kinds_are_passed_over(api):
    reader = api.reader()
    for event in STREAMS[api.name]:
        reader.feed({"type": "ping"})
        reader.feed({"type": "response.brand_new", "delta": {"x": 1}})
        reader.feed(event)
    assert api.uses(reader.message()) == api.uses(answer(api))


@pytest.mark.parametrize("name", ["anthropic-messages", "openai-chat", "openai-responses"])
def test_the_providers_own_reader_comes_to_the_same_message(name, published):
    api = APIS[name]
    theirs = published.read(name, STREAMS[name])
    ours = answer(api)
    assert api.said(ours) == api.said(without_none(theirs))
    assert api.usage(ours) == api.usage(theirs)
    assert api.stop(ours) == api.stop(theirs)


def without_none(value):
    """What the provider's reader adds of its own: members that are null, what it parsed, a call's place."""
    if isinstance(value, dict):
        own = ("parsed", "parsed_arguments", "index")
        return {k: without_none(v) for k, v in value.items() if v is not None and k not in own}
    return [without_none(item) for item in value] if isinstance(value, list) else value


@EACH
@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {
            "type": "error",
            "code": "server_error",
            "message": "Overloaded",
            "param": None,
            "sequence_number": 1,
        },
        {"error": {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded"}},
        {"error": {"type": "server_error", "code": None, "message": "Overloaded"}},
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_error", "message": "Overloaded"}},
        },
    ],
)
def test_an_error_in_the_stream_is_told(api, event):
    fits = {
        "anthropic-messages": "error" in event and "type" in event,
        "openai-responses": event.get("type") in ("error", "response.failed"),
        "openai-chat": "error" in event,
        "gemini": "error" in event,
    }
    if not fits[api.name]:
        return
    (failed,) = api.reader().feed(event)
    assert isinstance(failed, Failed)
    assert failed.text == "Overloaded"
    assert failed.code not in ("", "None")


@EACH
def test_the_error_of_a_body(api):
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}
    assert api.error(body).text == "No."
    assert api.error(answer(api)) is None
    assert api.error({}) is None


# --- hostile answers ------------------------------------------------------------------------------------

STRANGE = [None, 1, "x", [], {}, [None], [1], {"a": None}, [{}], [[]], {"type": 1}]


@EACH
def test_whatever_a_server_answers_nothing_is_raised(api):
    shapes = [
        {"content": strange, "choices": strange, "output": strange, "candidates": strange, "usage": strange}
        for strange in STRANGE
    ]
    shapes += [
        {
            "choices": [
                {"message": {"tool_calls": [{"id": strange, "function": strange}], "content": strange}}
            ],
            "content": [{"type": "tool_use", "id": strange, "name": strange, "input": strange}],
            "output": [{"type": "function_call", "call_id": strange, "arguments": strange}],
            "candidates": [{"content": {"parts": [{"functionCall": strange}, {"text": strange}]}}],
        }
        for strange in STRANGE
    ]
    for message in shapes:
        for use in api.uses(message):
            assert isinstance(use.id, str)
            assert use.fault is not None or isinstance(use.arguments, dict)
        api.text(message), api.stop(message), api.usage(message), api.said(message), api.error(message)
        api.reader().feed(message)


def test_apis_have_their_names():
    assert [*APIS] == ["anthropic-messages", "openai-responses", "openai-chat", "gemini"]
    assert all(api.name == name for name, api in APIS.items())
    assert API_NAMES.keys() == APIS.keys()
    assert Definitions().shown("x") == "x"
    assert Shown("x", Tool(name="x", input_schema={})).deferred is False
