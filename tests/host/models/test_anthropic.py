"""Anthropic's Messages API: what it takes for a tool, a call and a result, and what it refuses."""

from __future__ import annotations

import json

import pytest
from msgspec import UNSET

from dragoman.client import OtherContent, ToolResult
from dragoman.errors import UsageError
from dragoman.host.models import anthropic
from dragoman.host.models.base import Shown, ToolUse
from dragoman.model import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def definitions(tools):
    found = anthropic.MESSAGES.definitions(tools)
    return found.blocks, found.left_out


def shown(schema=OBJECT, name="mcp__s__t", description="Does it."):
    return Shown(name, Tool(name="t", description=description, input_schema=schema))


def defined(schema):
    blocks, left_out = definitions([shown(schema)])
    assert left_out == []
    return blocks[0]


# --- tools ----------------------------------------------------------------------------------------------


def test_a_tool_is_name_description_and_input_schema():
    assert defined(OBJECT) == {"name": "mcp__s__t", "description": "Does it.", "input_schema": OBJECT}


def test_a_tool_without_a_description_has_an_empty_one():
    blocks, _ = definitions([shown(description=UNSET)])
    assert blocks[0]["description"] == ""


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (shown({"type": "string"}, name="x"), "expected type 'object'"),
        (shown({}, name="x"), "expected type 'object'"),
        (shown({"type": "object", "properties": {"a b": {"type": "string"}}}, name="x"), "property 'a b'"),
        (shown({"type": "object", "properties": {"": {}}}, name="x"), "property ''"),
        (shown({"type": "object", "properties": []}, name="x"), "expected an object"),
        (shown(), "another tool has it"),
    ],
)
def test_what_would_fail_the_whole_request_is_left_out_with_the_reason(item, says):
    blocks, left_out = definitions([shown(), item])
    assert [block["name"] for block in blocks] == ["mcp__s__t"]
    assert says in left_out[0].why


def test_alternatives_at_the_root_become_properties_and_words():
    schema = {
        "type": "object",
        "properties": {"c": {"type": "integer"}},
        "oneOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}, "c": {"type": "null"}}, "required": ["b", "c"]},
        ],
    }
    block = defined(schema)
    assert block["input_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}},
    }
    assert block["description"] == (
        "Does it.\n\nExactly one of these sets of arguments is required: a; or b, c."
    )
    assert "oneOf" in schema


def test_all_of_at_the_root_keeps_what_it_requires():
    parts = [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b", "a"]}]
    block = defined({"type": "object", "required": ["c"], "properties": {"c": {}}, "allOf": parts})
    assert block["input_schema"]["required"] == ["c", "a", "b"]
    assert set(block["input_schema"]["properties"]) == {"a", "b", "c"}
    assert block["description"] == "Does it."


def test_combinators_below_the_root_stay():
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}
    assert defined(schema)["input_schema"] == schema


# --- calls ----------------------------------------------------------------------------------------------


def test_a_call_is_read():
    block = {"type": "tool_use", "id": "toolu_1", "name": "mcp__s__t", "input": {"a": 1}, "caller": {}}
    assert anthropic.tool_use(block) == ToolUse("toolu_1", "mcp__s__t", {"a": 1})


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("type", "text", "`type`: expected 'tool_use'; received 'text'"),
        ("id", 7, "`id`: expected a string; received int"),
        ("name", None, "`name`: expected a string; received NoneType"),
        ("input", "{}", "`input`: expected an object; received str"),
    ],
)
def test_what_is_no_call_says_which_member(member, value, says):
    block = {"type": "tool_use", "id": "1", "name": "n", "input": {}}
    with pytest.raises(UsageError, match=f"^tool_use: {says}".replace("`", ".")):
        anthropic.tool_use(block | {member: value})
    del block[member]
    with pytest.raises(UsageError, match=r"received (nothing|None)"):
        anthropic.tool_use(block)


# --- results --------------------------------------------------------------------------------------------


def content(*blocks, **members):
    return anthropic.tool_result("toolu_1", ToolResult(content=list(blocks), **members))["content"]


def test_a_result_is_linked_to_its_call():
    block = anthropic.tool_result("toolu_1", ToolResult(content=[TextContent(text="hi")]))
    assert block == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [{"type": "text", "text": "hi"}],
    }


def test_an_error_says_so_and_is_never_empty():
    block = anthropic.tool_result("t", ToolResult(content=[TextContent(text="no")], is_error=True))
    assert (block["is_error"], block["content"]) == (True, [{"type": "text", "text": "no"}])
    assert anthropic.tool_result("t", ToolResult(content=[], is_error=True))["content"]
    assert anthropic.failure("t", "no")["is_error"] is True


def test_structured_content_is_told_as_json_where_there_is_no_other():
    assert content(structured={"a": 1}, has_structured=True) == '{"a": 1}'
    assert json.loads(content(structured=None, has_structured=True)) is None
    text = content(TextContent(text="one"), structured={"a": 1}, has_structured=True)
    assert text == [{"type": "text", "text": "one"}]


def test_structured_text_stays_readable_in_every_script():
    assert content(structured={"city": "서울"}, has_structured=True) == '{"city": "서울"}'


@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/gif", "image/webp"])
def test_images_of_the_four_kinds(mime):
    source = {"type": "base64", "media_type": mime, "data": "AAAA"}
    assert content(ImageContent(data="AAAA", mime_type=mime)) == [{"type": "image", "source": source}]
    blob = BlobResourceContents(uri="x://1", blob="AAAA", mime_type=mime)
    assert content(EmbeddedResource(resource=blob)) == [{"type": "image", "source": source}]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (ImageContent(data="AAAA", mime_type="image/svg+xml"), "[image, image/svg+xml, 3 bytes"),
        (AudioContent(data="AAAA", mime_type="audio/wav"), "[audio, audio/wav, 3 bytes"),
        (OtherContent("video", {}), "'video'"),
        (
            ResourceLink(uri="x://1", name="one", description="The first."),
            "[resource one: x://1]\nThe first.",
        ),
        (
            EmbeddedResource(resource=BlobResourceContents(uri="x://1", blob="AAAA")),
            "[resource x://1, of unknown",
        ),
    ],
)
def test_what_the_api_does_not_take_is_described(block, says):
    (told,) = content(block)
    assert told["type"] == "text"
    assert says in told["text"]


def test_embedded_text_and_pdf_are_documents():
    text = TextResourceContents(uri="x://1", text="body", mime_type="text/markdown")
    (block,) = content(EmbeddedResource(resource=text))
    assert block["type"] == "document"
    assert block["source"] == {"type": "text", "media_type": "text/plain", "data": "body"}
    pdf = BlobResourceContents(uri="x://1", blob="AAAA", mime_type="application/pdf")
    (block,) = content(EmbeddedResource(resource=pdf))
    assert block["source"] == {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}


def test_blank_text_is_passed_over():
    assert content(TextContent(text=" \n"), TextContent(text="x")) == [{"type": "text", "text": "x"}]


# --- deferred tools and the order of blocks -------------------------------------------------------------

DEFERRED = Shown("mcp__s__later", Tool(name="later", input_schema=OBJECT), deferred=True)
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


def test_deferred_tools_come_with_the_tool_that_searches():
    blocks, _ = definitions([shown(), DEFERRED])
    assert [block.get("defer_loading") for block in blocks] == [None, True, None]
    assert blocks[-1] == SEARCH


@pytest.mark.parametrize(
    ("tools", "fault"),
    [
        (
            [{"name": "a", "defer_loading": True, "cache_control": {"type": "ephemeral"}}, SEARCH],
            "cache_control",
        ),
        ([{"name": "a", "defer_loading": True}, {**SEARCH, "defer_loading": True}], "the tool that searches"),
        ([{"name": "a", "defer_loading": True}], "all have defer_loading"),
        ([{"name": "a"}, {"name": "a"}], "more than one is called 'a'"),
        ([{"name": "a", "cache_control": {"type": "ephemeral"}}, SEARCH], None),
        ([{"name": "a", "defer_loading": True}, SEARCH], None),
        ([], None),
    ],
)
def test_forms_of_deferred_tools(tools, fault):
    history = anthropic.MESSAGES.user("Hi.")
    if fault is None:
        anthropic.MESSAGES.request(model="m", history=history, more={"tools": tools})
        return
    with pytest.raises(UsageError, match=fault):
        anthropic.MESSAGES.request(model="m", history=history, more={"tools": tools})


def test_a_search_of_ones_own_answers_with_references():
    block = anthropic.references(ToolUse("toolu_1", "tool_search", {}), ["mcp__s__later"])
    assert block["content"] == [{"type": "tool_reference", "tool_name": "mcp__s__later"}]
    assert anthropic.references(ToolUse("toolu_1", "tool_search", {}), [])["content"]


def use(id_):
    return {"type": "tool_use", "id": id_, "name": "n", "input": {}}


def told(id_):
    return {"type": "tool_result", "tool_use_id": id_, "content": "x"}


TEXT = {"type": "text", "text": "and"}


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        (
            [("assistant", [use("a")]), ("user", [TEXT, told("a")])],
            r"messages\[1\].content\[1\]: .* results come first",
        ),
        ([("assistant", [use("a")]), ("user", "and"), ("user", [told("a")])], "results come first"),
        ([("assistant", [use("a"), use("b")]), ("user", [told("a")])], "no tool_result for b"),
        ([("assistant", [use("a")]), ("user", [told("b"), told("a")])], "a tool_result for b, which"),
        ([("assistant", [use("a")]), ("user", [told("a"), told("a")])], "more than one tool_result"),
        ([("assistant", [use("a")]), ("user", "no")], "no tool_result for a"),
        ([("user", [told("a")])], "a tool_result for a, which"),
        ([("assistant", [use("a")])], "no tool_result for a of the last one"),
        ([("assistant", [use("a")]), ("user", [told("a"), TEXT])], None),
        ([("assistant", [use("a"), use("b")]), ("user", [told("b")]), ("user", [told("a"), TEXT])], None),
        ([("user", "hi"), ("assistant", [{**use("s"), "type": "server_tool_use"}])], None),
    ],
)
def test_the_order_of_results(messages, fault):
    history = [{"role": role, "content": content} for role, content in messages]
    if fault is None:
        anthropic.MESSAGES.request(model="m", history=history)
        return
    with pytest.raises(UsageError, match=fault):
        anthropic.MESSAGES.request(model="m", history=history)


# --- answers --------------------------------------------------------------------------------------------


def test_the_history_gets_thoughts_and_searches_back_as_they_came():
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"x": 1}},
        {"type": "text", "text": ""},
        use("toolu_1"),
    ]
    (item,) = anthropic.MESSAGES.said({"content": content})
    assert item["content"] == [*content[:3], content[4]]  # empty text is what the API does not take back
    assert [call.id for call in anthropic.MESSAGES.uses({"content": content})] == ["toolu_1"]
    assert anthropic.MESSAGES.said({"content": []}) == []


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "tools"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("pause_turn", "paused"),
        ("brand_new", "other"),
        (None, "other"),
    ],
)
def test_stop_reasons(reason, stop):
    assert anthropic.MESSAGES.stop({"stop_reason": reason}) == stop


def test_why_it_refused_is_its_text():
    message = {"content": [], "stop_reason": "refusal", "stop_details": {"explanation": "Not this."}}
    assert anthropic.MESSAGES.text(message) == "Not this."


def test_arguments_that_a_stream_did_not_end_are_a_fault_and_no_part_of_the_history():
    reader = anthropic.MESSAGES.reader()
    reader.feed({"type": "content_block_start", "index": 0, "content_block": use("toolu_1")})
    reader.feed(
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"a": '},
        }
    )
    message = reader.message()
    (call,) = anthropic.MESSAGES.uses(message)
    assert (call.arguments, call.raw) == ({}, '{"a": ')
    assert "no whole JSON" in call.fault
    assert anthropic.MESSAGES.said(message)[0]["content"] == [use("toolu_1")]


def test_the_api_has_to_be_told_a_limit():
    request = anthropic.MESSAGES.request(model="m", history=anthropic.MESSAGES.user("Hi."))
    assert request["max_tokens"] == anthropic.LIMIT
    assert "tools" not in request
