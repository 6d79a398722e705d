"""Google's Gemini API: declarations, responses and turns."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.host.models import GEMINI
from dragoman.host.models.base import ToolUse
from dragoman.host.models.gemini import Gemini

from .samples import PNG, RESULTS, SCHEMAS, tool

USE = ToolUse("id1", "find", {})


def response(name, use=USE):
    block = GEMINI.result(use, RESULTS[name])
    assert [*block] == ["functionResponse"]
    return block["functionResponse"]


# --- declarations ---------------------------------------------------------------------------------------


def test_a_declaration_has_the_schema_as_json_schema():
    (block,) = GEMINI.definitions([tool("find", SCHEMAS["one"])]).blocks
    assert block == {"name": "find", "description": "Finds it.", "parametersJsonSchema": SCHEMAS["one"]}


def test_or_in_the_older_form():
    (block,) = Gemini(openapi=True).definitions([tool("find", SCHEMAS["one"])]).blocks
    assert block["parameters"] == {
        "type": "OBJECT",
        "properties": {"id": {"type": "STRING"}},
        "required": ["id"],
    }
    assert "parametersJsonSchema" not in block


def test_a_function_without_parameters_has_none_in_the_older_form():
    (block,) = Gemini(openapi=True).definitions([tool("find", {"type": "object"})]).blocks
    assert [*block] == ["name", "description"]


def test_a_name_of_a_property_can_be_too_much_for_the_older_form_alone():
    schema = {"type": "object", "properties": {"a-b": {"type": "string"}}}
    assert GEMINI.definitions([tool("find", schema)]).left_out == []
    (left,) = Gemini(openapi=True).definitions([tool("find", schema)]).left_out
    assert "property 'a-b'" in left.why


@pytest.mark.parametrize("strict", [False, True])
def test_what_a_schema_lost_is_told(strict):
    found = GEMINI.definitions([tool("find", SCHEMAS["bounds"])], strict=strict)
    assert ("/properties/s", "pattern") in [(item.path, item.keyword) for item in found.dropped]
    assert {item.name for item in found.dropped} == {"find"}


# --- results --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("empty", {"output": ""}),
        ("text", {"output": "one\ntwo"}),
        ("structured", {"output": {"a": 1, "city": "서울"}}),
        ("structured and text", {"output": {"a": 1}}),
        ("null", {"output": None}),
        ("document", {"output": "body"}),
        ("bytes", {"output": "[resource x://1, of unknown type, 3 bytes: cannot be shown to the model]"}),
        ("failed", {"error": "no such order"}),
        ("failed in silence", {"error": "The tool failed and said nothing."}),
    ],
)
def test_success_is_under_output_and_failure_under_error(name, becomes):
    assert response(name) == {"id": "id1", "name": "find", "response": becomes}


def test_text_that_is_not_the_structured_content_stays_beside_it():
    result = RESULTS["structured and text"]
    other = type(result)(content=RESULTS["text"].content, structured={"a": 1}, has_structured=True)
    assert GEMINI.result(USE, other)["functionResponse"]["response"] == {
        "output": {"structuredContent": {"a": 1}, "text": "one\ntwo"}
    }


@pytest.mark.parametrize(
    ("name", "output", "mime", "data"),
    [
        ("image", "x", "image/png", PNG),
        ("audio", "", "audio/wav", "AAAA"),
        ("pdf", "", "application/pdf", "AAAA"),
    ],
)
def test_media_are_parts_of_the_response(name, output, mime, data):
    found = response(name)
    assert found["response"] == {"output": output}
    assert found["parts"] == [{"inlineData": {"mimeType": mime, "data": data}}]


def test_an_image_that_the_api_does_not_read_is_described():
    assert "image/svg+xml" in response("drawing")["response"]["output"]


# --- answers --------------------------------------------------------------------------------------------


def answer(*parts, **more):
    return {
        "responseId": "r1",
        "candidates": [{"content": {"role": "model", "parts": [*parts]}, "finishReason": "STOP", **more}],
    }


def call(name="find", **more):
    return {"functionCall": {"name": name, "args": {"a": 1}, **more}}


def test_calls_without_an_id_are_linked_by_their_order():
    message = answer(call(), call())
    uses = GEMINI.uses(message)
    assert [use.id for use in uses] == ["#r1.0", "#r1.1"]
    (turn,) = GEMINI.answered([GEMINI.failure(use, "no") for use in uses])
    assert turn["role"] == "user"
    assert all("id" not in part["functionResponse"] for part in turn["parts"])
    GEMINI.request(model="m", history=[*GEMINI.said(message), turn])


def test_an_id_that_the_api_gave_goes_back():
    (use,) = GEMINI.uses(answer(call(id="x")))
    assert GEMINI.failure(use, "no")["functionResponse"]["id"] == "x"


@pytest.mark.parametrize(
    ("given", "read", "fault"),
    [({"a": 1}, {"a": 1}, False), (None, {}, False), ([1], {}, True), ("x", {}, True)],
)
def test_arguments(given, read, fault):
    (use,) = GEMINI.uses(answer({"functionCall": {"name": "find", "args": given}}))
    assert (use.arguments, use.fault is not None) == (read, fault)


def test_thoughts_are_no_text_and_their_signatures_go_back():
    parts = [
        {"text": "Hm.", "thought": True},
        {"text": "x"},
        {"text": "", "thoughtSignature": "c2ln"},
        {**call(), "thoughtSignature": "c2ln"},
    ]
    assert GEMINI.text(answer(*parts)) == "x"
    assert GEMINI.said(answer(*parts)) == [{"role": "model", "parts": parts}]


@pytest.mark.parametrize(
    ("message", "stop"),
    [
        (answer({"text": "x"}), "end"),
        (answer(call()), "tools"),
        (answer({"text": "x"}, finishReason="MAX_TOKENS"), "length"),
        (answer(call(), finishReason="MAX_TOKENS"), "length"),
        (answer(finishReason="SAFETY"), "refused"),
        (answer(finishReason="MALFORMED_FUNCTION_CALL"), "other"),
        (answer({"text": "x"}, finishReason="CONTINUATION"), "paused"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "refused"),
        ({}, "other"),
    ],
)
def test_why_it_stopped(message, stop):
    assert GEMINI.stop(message) == stop


def test_why_a_prompt_was_blocked_is_the_text():
    assert GEMINI.text({"promptFeedback": {"blockReason": "SAFETY"}}) == "SAFETY"


# --- histories ------------------------------------------------------------------------------------------


def told(*ids):
    parts = [{"functionResponse": {"name": "find", "response": {}, **({"id": i} if i else {})}} for i in ids]
    return {"role": "user", "parts": parts}


def asked(*ids):
    return {"role": "model", "parts": [call(**({"id": i} if i else {})) for i in ids]}


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ([asked("", ""), told("")], "1 functionResponse parts; the turn before it has 2 functionCall parts"),
        ([told("")], r"contents\[0\]"),
        ([asked("a")], "no functionResponse for 1 functionCall parts"),
        ([asked("a"), told("b")], "a response to b, which was not called"),
        ([asked("a", "b"), told("b", "a")], None),
        ([asked("", ""), told("", "")], None),
    ],
)
def test_each_turn_with_calls_is_followed_by_as_many_responses(history, fault):
    if fault is None:
        assert GEMINI.request(model="m", history=history)["contents"] == history
        return
    with pytest.raises(UsageError, match=fault):
        GEMINI.request(model="m", history=history)


def test_model_and_streaming_are_in_the_path():
    assert GEMINI.endpoint.streamed.replace("{model}", "gemini-x").endswith(
        "/models/gemini-x:streamGenerateContent?alt=sse"
    )
    assert "model" not in GEMINI.request(model="m", history=GEMINI.user("Hi."), stream=True)


# --- streams --------------------------------------------------------------------------------------------


def test_parts_with_a_signature_are_not_joined():
    reader = GEMINI.reader()
    for part in ({"text": "a"}, {"text": "b"}, {"text": "c", "thoughtSignature": "x"}, {"text": "d"}):
        reader.feed(answer(part))
    parts = reader.message()["candidates"][0]["content"]["parts"]
    assert parts == [{"text": "ab"}, {"text": "c", "thoughtSignature": "x"}, {"text": "d"}]


def test_a_blocked_prompt_ends_the_stream():
    reader = GEMINI.reader()
    reader.feed({"promptFeedback": {"blockReason": "SAFETY"}})
    assert reader.done
    assert GEMINI.stop(reader.message()) == "refused"
