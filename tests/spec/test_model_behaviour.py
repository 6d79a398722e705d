"""What users of the model see: absence, errors, building, and what is kept as it was sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from dragoman import model


def read(data: bytes | str, kind: Any) -> Any:
    return msgspec.json.decode(data, type=kind)


def write(value: Any) -> bytes:
    return msgspec.json.encode(value)


def test_absent_members_stay_absent() -> None:
    tool = read(b'{"name":"t","inputSchema":{"type":"object"}}', model.Tool)
    assert tool.title is UNSET
    assert write(tool) == b'{"name":"t","inputSchema":{"type":"object"}}'


def test_unknown_members_are_ignored() -> None:
    assert read(b'{"type":"text","text":"x","shiny":1}', model.TextContent) == model.TextContent(text="x")


def test_null_structured_content_is_not_absent() -> None:
    assert read(b'{"content":[],"structuredContent":null}', model.CallToolResult).structured_content is None
    assert write(model.CallToolResult(content=[], structured_content=None)) == (
        b'{"content":[],"structuredContent":null}'
    )
    assert write(model.CallToolResult(content=[])) == b'{"content":[]}'


def test_false_is_not_absent() -> None:
    assert write(model.CallToolResult(content=[], is_error=False)) == b'{"content":[],"isError":false}'


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"{}", model.CallToolParams, "missing required field `name`"),
        (
            b'{"content":[{"type":"txet"}]}',
            model.CallToolResult,
            r"Invalid value 'txet' - at `\$.content\[0\].type`",
        ),
        (b'{"content":[{"type":"text"}]}', model.CallToolResult, r"`text` - at `\$.content\[0\]`"),
        (
            b'{"uri":"a:b","name":"n","size":1.5}',
            model.Resource,
            r"Expected `int`, got `float` - at `\$.size`",
        ),
        (b'{"requestId":true}', model.CancelledParams, r"at `\$.requestId`"),
        (
            b'{"level":"loud","data":1}',
            model.LoggingMessageParams,
            r"Invalid enum value 'loud' - at `\$.level`",
        ),
        (b'{"ref":{"type":"ref/tool"}}', model.CompleteParams, r"'ref/tool' - at `\$.ref.type`"),
    ],
)
def test_wrong_value_is_named_with_its_place(data: bytes, kind: Any, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        read(data, kind)


def test_arguments_and_meta_are_kept_as_sent() -> None:
    params = read(b'{"_meta":{"b":1, "a":2},"name":"t","arguments":{ "n": 1e2 }}', model.CallToolParams)
    assert bytes(params.meta) == b'{"b":1, "a":2}'
    assert bytes(params.arguments) == b'{ "n": 1e2 }'


def test_params_carry_encoded_meta() -> None:
    params = model.CallToolParams(name="t", arguments=Raw(b'{"n":1}'), meta=Raw(b'{"x":0}'))
    assert write(params) == b'{"_meta":{"x":0},"name":"t","arguments":{"n":1}}'


def test_meta_is_read_by_its_names() -> None:
    meta = read(
        b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":"p",'
        b'"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},'
        b'"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},'
        b'"io.modelcontextprotocol/logLevel":"info","traceparent":"00-0-0-00","com.example/x":1}',
        model.RequestMeta,
    )
    assert meta.protocol_version == "2026-07-28"
    assert meta.client_info == model.Implementation(name="c", version="1")
    assert meta.client_capabilities.elicitation == {"form": {}}
    assert (meta.log_level, meta.progress_token, meta.traceparent) == ("info", "p", "00-0-0-00")
    assert meta.subscription_id is UNSET


@pytest.mark.parametrize("number", ["1", "1.0", "0.25", "-3"])
def test_progress_keeps_whole_numbers_whole(number: str) -> None:
    data = f'{{"progressToken":7,"progress":{number}}}'
    assert write(read(data, model.ProgressParams)).decode() == data


@pytest.mark.parametrize("token", [b"7", b'"7"'])
def test_number_and_text_are_different_tokens(token: bytes) -> None:
    data = b'{"progressToken":' + token + b',"progress":1}'
    assert write(read(data, model.ProgressParams)) == data


@pytest.mark.parametrize(
    ("kind", "mime_type"), [(model.ImageContent, "image/png"), (model.AudioContent, "audio/wav")]
)
def test_binary_content_is_built_from_bytes(kind: Any, mime_type: str) -> None:
    content = kind.of(b"\x00\xff" * 40, mime_type)
    assert "\n" not in content.data
    assert content.data.startswith("AP8A/wD/")
    assert content.mime_type == mime_type


def test_resource_contents() -> None:
    blob = model.BlobResourceContents.of("a:b", b"\xff", mime_type="x/y")
    assert write(blob) == b'{"uri":"a:b","mimeType":"x/y","blob":"/w=="}'
    assert read(write(blob), model.ResourceContents).data() == b"\xff"
    text = read(b'{"uri":"a:b","text":"\xc3\xa9"}', model.ResourceContents)
    assert text.blob is UNSET
    assert text.data() == b"\xc3\xa9"
    assert model.TextResourceContents(uri="a:b", text="").data() == b""


def test_resource_contents_need_contents() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`text` or `blob` - at `\$.contents\[0\]`"):
        read(b'{"contents":[{"uri":"a:b"}]}', model.ReadResourceResult)


@pytest.mark.parametrize("blob", ["x", "aGk", "a*Gk=", "aGk=\n"])
def test_blob_that_is_not_base64_is_told(blob: str) -> None:
    with pytest.raises(ValueError, match=r"base64|padding"):
        model.BlobResourceContents(uri="a:b", blob=blob).data()


def test_elicitation_mode_defaults_to_form() -> None:
    params = read(b'{"message":"m","requestedSchema":{"type":"object","properties":{}}}', model.ElicitParams)
    assert params.mode is UNSET
    assert params.requested_schema == {"type": "object", "properties": {}}


def test_elicitation_by_url_names_its_mode() -> None:
    assert write(model.ElicitURLParams(message="m", url="u:v")) == b'{"mode":"url","message":"m","url":"u:v"}'


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"message":"m"}', "mode `form` needs a member `requestedSchema`"),
        (b'{"message":"m","mode":"form","url":"u:v"}', "mode `form` needs a member `requestedSchema`"),
        (b'{"message":"m","mode":"url","requestedSchema":{}}', "mode `url` needs a member `url`"),
        (b'{"message":"m","mode":"page"}', "Invalid enum value 'page'"),
    ],
)
def test_elicitation_without_what_its_mode_needs_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        read(data, model.ElicitParams)


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ({"type": "string", "format": "email"}, model.StringSchema),
        ({"type": "integer", "default": 30}, model.NumberSchema),
        ({"type": "number", "default": 95.5}, model.NumberSchema),
        ({"type": "boolean", "default": True}, model.BooleanSchema),
        ({"type": "string", "enum": ["a"]}, model.UntitledSingleSelectEnumSchema),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, model.TitledSingleSelectEnumSchema),
        ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, model.NamedEnumSchema),
        ({"type": "array", "items": {"type": "string", "enum": ["a"]}}, model.UntitledMultiSelectEnumSchema),
        (
            {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
            model.TitledMultiSelectEnumSchema,
        ),
    ],
)
def test_form_field_is_told_by_its_shape(field: dict[str, Any], kind: type) -> None:
    assert type(model.primitive_schema(field)) is kind


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"type": "object"}, r"'object' - at `\$.type`"),
        ({}, "missing required field `type`"),
        ({"type": "array", "items": {"type": "number"}}, r"at `\$.items"),
        ({"type": "string", "format": "color"}, r"'color' - at `\$.format`"),
    ],
)
def test_form_field_of_no_allowed_shape_is_refused(field: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        model.primitive_schema(field)


def test_sampling_content_is_one_block_or_several() -> None:
    one = read(b'{"role":"user","content":{"type":"text","text":"x"}}', model.SamplingMessage)
    assert one.content == model.TextContent(text="x")
    several = read(
        b'{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]}',
        model.SamplingMessage,
    )
    assert several.content == [model.ToolUseContent(id="1", name="t", input={})]


def test_input_requests_are_told_apart_by_method() -> None:
    result = read(
        b'{"resultType":"input_required","requestState":"s","inputRequests":{'
        b'"a":{"method":"roots/list"},'
        b'"b":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}},'
        b'"c":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}',
        model.InputRequiredResult,
    )
    assert [type(each) for each in result.input_requests.values()] == [
        model.ListRootsRequest,
        model.ElicitRequest,
        model.CreateMessageRequest,
    ]


def test_structs_of_content_are_built_by_keyword_only() -> None:
    with pytest.raises(TypeError, match="positional"):
        model.TextContent("x")  # type: ignore[call-arg]  # wrong on purpose
