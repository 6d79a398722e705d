"""What a server asks, as older revisions write it: each is held against the schema of its revision."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman.errors import ToolError
from dragoman.jsonrpc.message import encode_request
from dragoman.model import (
    Annotations,
    AudioContent,
    CreateMessageParams,
    CreateMessageRequest,
    ElicitFormParams,
    ElicitRequest,
    ElicitURLParams,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
    Tool,
    ToolUseContent,
)
from dragoman.revisions import BY_VERSION
from tests.spec.oracle import validate_frame

FORM = {
    "type": "object",
    "properties": {
        "size": {
            "type": "string",
            "title": "Size",
            "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}],
            "default": "s",
        },
        "note": {"type": "string", "maxLength": 20, "default": "none"},
        "seats": {"type": "integer", "minimum": 1, "default": 2},
        "window": {"type": "boolean", "default": True},
    },
    "required": ["size"],
}


def written(version: str, request: Any) -> dict[str, Any]:
    """The params of the request that goes to a client of that revision."""
    asked = BY_VERSION[version].ask(request)
    method = type(asked).__struct_config__.tag
    frame = encode_request(1, method, getattr(asked, "params", msgspec.UNSET))
    validate_frame(version, frame, None, "to_client", exact=True)
    return json.loads(frame).get("params", {})


def form(schema: dict[str, Any]) -> ElicitRequest:
    return ElicitRequest(params=ElicitFormParams(message="Which?", requested_schema=schema))


def sampling(*messages: SamplingMessage, **options: Any) -> CreateMessageRequest:
    return CreateMessageRequest(params=CreateMessageParams(messages=list(messages), max_tokens=10, **options))


def test_a_form_is_as_it_was_written_where_the_revision_has_all_of_it() -> None:
    assert written("2025-11-25", form(FORM))["requestedSchema"] == FORM


def test_titles_of_choices_and_defaults_on_2025_06_18() -> None:
    asked = written("2025-06-18", form(FORM))["requestedSchema"]
    assert asked == {
        "type": "object",
        "properties": {
            "size": {"type": "string", "title": "Size", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            "note": {"type": "string", "maxLength": 20},
            "seats": {"type": "integer", "minimum": 1},
            "window": {"type": "boolean", "default": True},
        },
        "required": ["size"],
    }
    assert FORM["properties"]["size"]["default"] == "s"  # the author's own is untouched


@pytest.mark.parametrize(
    ("request_", "what"),
    [
        (
            form({"type": "object", "properties": {"days": {"type": "array", "items": {"enum": ["a"]}}}}),
            "form field for several choices (days)",
        ),
        (
            ElicitRequest(params=ElicitURLParams(message="Go", url="https://example.com")),
            "elicitation by URL",
        ),
        (
            sampling(
                SamplingMessage(role="user", content=TextContent(text="a")),
                tools=[Tool(name="t", input_schema={})],
            ),
            "tools in sampling",
        ),
        (
            sampling(
                SamplingMessage(role="assistant", content=ToolUseContent(id="1", name="t", input={})),
            ),
            "tools in sampling",
        ),
    ],
)
def test_what_2025_06_18_cannot_say_is_not_sent(request_: Any, what: str) -> None:
    with pytest.raises(ToolError, match="revision 2025-06-18 has no") as caught:
        written("2025-06-18", request_)
    assert what in str(caught.value)


SAID = SamplingMessage(
    role="user",
    content=[
        TextContent(
            text="Listen:", annotations=Annotations(priority=1, last_modified="2026-07-28T12:00:00Z")
        ),
        AudioContent.of(b"RIFF", "audio/wav"),
    ],
)


def test_one_message_for_each_block_where_a_message_is_one_block() -> None:
    (one,) = written("2025-11-25", sampling(SAID))["messages"]
    assert [block["type"] for block in one["content"]] == ["text", "audio"]
    first, second = written("2025-06-18", sampling(SAID))["messages"]
    assert first["content"]["annotations"] == {"priority": 1, "lastModified": "2026-07-28T12:00:00Z"}
    assert (second["role"], second["content"]["type"]) == ("user", "audio")


@pytest.mark.parametrize(("version", "kind"), [("2025-03-26", "audio"), ("2024-11-05", "text")])
def test_content_that_a_revision_does_not_have_is_told_in_text(version: str, kind: str) -> None:
    first, second = written(version, sampling(SAID))["messages"]
    assert first["content"] == {"type": "text", "text": "Listen:", "annotations": {"priority": 1}}
    assert second["content"]["type"] == kind


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_roots_are_asked_for_alike(version: str) -> None:
    assert written(version, ListRootsRequest()) == {}
