"""OpenAI's Responses API: functions, namespaces, outputs and items."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.host.models import RESPONSES
from dragoman.host.models.base import ToolUse

from .samples import PNG, RESULTS, SCHEMAS, tool

USE = ToolUse("call_1", "find", {})


def output(name):
    block = RESPONSES.result(USE, RESULTS[name])
    assert (block["type"], block["call_id"]) == ("function_call_output", "call_1")
    return block["output"]


# --- functions ------------------------------------------------------------------------------------------


def test_a_function_names_its_parameters_and_that_it_is_not_strict():
    (block,) = RESPONSES.definitions([tool("find", SCHEMAS["one"])]).blocks
    assert block == {
        "type": "function",
        "name": "find",
        "description": "Finds it.",
        "parameters": SCHEMAS["one"],
        "strict": False,
    }


def test_a_function_without_parameters_has_an_empty_object():
    (block,) = RESPONSES.definitions([tool("find", {"type": "object"})]).blocks
    assert block["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("keyword", ["enum", "not"])
def test_what_is_not_taken_at_the_root_is_dropped_there(keyword, strict):
    schema = {**SCHEMAS["one"], keyword: [{"id": "x"}] if keyword == "enum" else {"required": ["z"]}}
    found = RESPONSES.definitions([tool("find", schema)], strict=strict)
    assert keyword not in found.blocks[0]["parameters"]
    assert found.blocks[0]["strict"] is strict
    assert [(item.path, item.keyword) for item in found.dropped] == [("", keyword)]


def test_an_array_says_something_of_its_items():
    schema = {
        "type": "object",
        "properties": {"o": {"anyOf": [{"type": "object", "properties": {"l": {"type": "array"}}}]}},
        "$defs": {"A": {"type": ["array", "null"]}},
    }
    (block,) = RESPONSES.definitions([tool("find", schema)]).blocks
    assert block["parameters"]["properties"]["o"]["anyOf"][0]["properties"]["l"] == {
        "type": "array",
        "items": {},
    }
    assert block["parameters"]["$defs"]["A"] == {"type": ["array", "null"], "items": {}}


def test_deferred_functions_stand_in_the_namespace_of_their_server():
    tools = [
        tool("a"),
        tool("orders__b", deferred=True, group="orders"),
        tool("files__c", deferred=True, group="my files"),
        tool("orders__d", deferred=True, group="orders"),
        tool("e", deferred=True),
    ]
    first, orders, files, alone, search = RESPONSES.definitions(tools).blocks
    assert first["name"] == "a"
    assert "defer_loading" not in first
    assert (orders["type"], orders["name"]) == ("namespace", "orders")
    assert orders["description"] == "Tools of orders: orders__b, orders__d"
    assert [(each["name"], each["defer_loading"]) for each in orders["tools"]] == [
        ("orders__b", True),
        ("orders__d", True),
    ]
    assert files["name"].startswith("my_files_")
    assert (alone["type"], alone["defer_loading"]) == ("function", True)
    assert search == {"type": "tool_search"}


def test_the_description_of_a_namespace_has_an_end():
    tools = [tool(f"t{n}", deferred=True, group="many") for n in range(30)]
    (many, _) = RESPONSES.definitions(tools).blocks
    assert many["description"].endswith("t19 and 10 more")


# --- results --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("empty", ""),
        ("text", "one\ntwo"),
        ("structured", '{"a": 1, "city": "서울"}'),
        ("structured and text", '{"a": 1}'),
        ("null", "null"),
        ("link", "[resource one: x://1]\nThe first."),
        ("document", "body"),
        ("audio", "[audio, audio/wav, 3 bytes: cannot be shown to the model]"),
        ("failed", "Error: no such order"),
        ("failed in silence", "Error: The tool failed and said nothing."),
        (
            "image",
            [
                {"type": "input_text", "text": "x"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
            ],
        ),
        (
            "pdf",
            [
                {
                    "type": "input_file",
                    "filename": "b.pdf",
                    "file_data": "data:application/pdf;base64,AAAA",
                }
            ],
        ),
    ],
)
def test_a_result_is_text_or_a_list_where_there_is_more(name, becomes):
    assert output(name) == becomes


def test_a_failure_with_an_image_says_that_it_is_one():
    first, image = output("failed with image")
    assert first == {"type": "input_text", "text": "Error: The tool failed and said nothing."}
    assert image["type"] == "input_image"


def test_what_says_error_already_does_not_say_it_twice():
    assert RESPONSES.failure(USE, "Error 7: gone")["output"] == "Error 7: gone"


# --- answers --------------------------------------------------------------------------------------------


def call(**members):
    return {"type": "function_call", "call_id": "call_1", "name": "find", "arguments": "{}", **members}


@pytest.mark.parametrize(
    ("arguments", "read", "fault"),
    [
        ("{}", {}, None),
        ('{"a": 1}', {"a": 1}, None),
        ("", {}, None),
        ("{", {}, "the arguments are no JSON"),
        ("[1]", {}, "no object but list"),
        ("1.5", {}, "no object but float"),
        ('{"a": NaN}', {}, "the arguments are no JSON"),
        ("[" * 100_000, {}, "the arguments are no JSON"),
        ('{"a":' * 100_000, {}, "the arguments are no JSON"),
        (None, {}, "expected text; received NoneType"),
    ],
)
def test_arguments_that_cannot_be_read_are_a_fault(arguments, read, fault):
    (use,) = RESPONSES.uses({"output": [call(arguments=arguments)]})
    assert use.arguments == read
    assert (use.fault is None) if fault is None else (fault in use.fault)


def test_items_go_on_as_they_came():
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "tool_search_call", "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "execution": "server", "tools": []},
        call(namespace="orders", id="fc_1", status="completed"),
    ]
    assert RESPONSES.said({"output": items}) == items
    assert [use.name for use in RESPONSES.uses({"output": items})] == ["find"]


def message(*parts):
    return {"type": "message", "role": "assistant", "content": [*parts]}


@pytest.mark.parametrize(
    ("response", "stop"),
    [
        ({"status": "completed", "output": [message({"type": "output_text", "text": "x"})]}, "end"),
        ({"status": "completed", "output": [call()]}, "tools"),
        ({"status": "completed", "output": [message({"type": "refusal", "refusal": "No."})]}, "refused"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "refused"),
        ({"status": "incomplete"}, "other"),
        ({"status": "failed"}, "other"),
        ({}, "other"),
    ],
)
def test_why_it_stopped(response, stop):
    assert RESPONSES.stop(response) == stop


def test_a_refusal_is_text():
    assert RESPONSES.text({"output": [message({"type": "refusal", "refusal": "No."})]}) == "No."


# --- histories ------------------------------------------------------------------------------------------

OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "x"}


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ([call()], "no function_call_output for call_1"),
        ([OUTPUT], r"input\[0\]: the output of 'call_1', which was not called before"),
        ([call(), OUTPUT, OUTPUT], r"input\[2\]: a second output"),
        ([call(), {"role": "user", "content": "x"}, OUTPUT], None),
    ],
)
def test_calls_and_outputs_go_together(history, fault):
    if fault is None:
        assert RESPONSES.request(model="m", history=history)["input"] == history
        return
    with pytest.raises(UsageError, match=fault):
        RESPONSES.request(model="m", history=history)


def test_the_api_may_know_the_beginning_itself():
    request = RESPONSES.request(model="m", history=[OUTPUT], more={"previous_response_id": "resp_1"})
    assert request["previous_response_id"] == "resp_1"


# --- streams --------------------------------------------------------------------------------------------


def test_a_message_that_is_cut_keeps_what_came():
    reader = RESPONSES.reader()
    reader.feed({"type": "response.output_item.added", "output_index": 0, "item": message()})
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Half"}
    reader.feed(delta)
    assert RESPONSES.text(reader.message()) == "Half"
    assert not reader.done
    assert RESPONSES.stop(reader.message()) == "other"


def test_deltas_before_their_item_are_not_lost():
    reader = RESPONSES.reader()
    delta = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"a": 1}'}
    reader.feed(delta)
    assert RESPONSES.uses(reader.message())[0].arguments == {"a": 1}


def test_an_end_without_items_leaves_those_that_came():
    reader = RESPONSES.reader()
    reader.feed({"type": "response.output_item.done", "output_index": 0, "item": call()})
    reader.feed({"type": "response.completed", "response": {"status": "completed", "output": []}})
    assert reader.done
    assert RESPONSES.stop(reader.message()) == "tools"
