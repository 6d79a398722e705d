"""What a server asks of a client, as revisions before 2025-11-25 write it.

It knows what those revisions lack, and neither how a question travels nor what a client declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import ToolError
from dragoman.model import (
    CreateMessageRequest,
    ElicitParams,
    ElicitRequest,
    InputRequest,
    SamplingMessage,
    ToolResultContent,
    ToolUseContent,
)

if TYPE_CHECKING:
    from dragoman.revisions.base import Ask

Block = Callable[[Any], Any]


def as_it_is(request: InputRequest) -> InputRequest:
    """A question in the newest shape."""
    return request


def asker(version: str, change: Block = lambda block: block) -> Ask:
    """A `Revision.ask` for `version`; `change` is applied to each content block of a conversation."""

    def ask(request: InputRequest) -> InputRequest:
        if isinstance(request, ElicitRequest):
            return replace(request, params=_form(request.params, version))
        if isinstance(request, CreateMessageRequest):
            params = request.params
            if params.tools is not UNSET or params.tool_choice is not UNSET:
                raise _lacks(version, "tools in sampling")
            messages = [each for m in params.messages for each in _messages(m, version, change=change)]
            return replace(request, params=replace(params, messages=messages))
        return request

    return ask


def _lacks(version: str, what: str) -> ToolError:
    return ToolError(f"revision {version} has no {what}: the client cannot be asked")


def _form(params: ElicitParams, version: str) -> ElicitParams:
    if params.mode == "url":
        raise _lacks(version, "elicitation by URL")
    schema = params.requested_schema
    if schema is UNSET:
        return params
    fields = {
        name: _field(name, field, version=version) for name, field in schema.get("properties", {}).items()
    }
    return replace(params, requested_schema={**schema, "properties": fields})


def _field(name: str, field: dict[str, Any], *, version: str) -> dict[str, Any]:
    kind = field.get("type")
    if kind == "array":
        raise _lacks(version, f"form field for several choices ({name})")
    # Only a yes or no had a default; what the person leaves out is read as the author's default all the same.
    dropped = {"oneOf"} if kind == "boolean" else {"oneOf", "default"}
    kept = {key: value for key, value in field.items() if key not in dropped}
    options = field.get("oneOf")
    if options is None:
        return kept
    titles = [option["title"] for option in options]
    return {**kept, "enum": [option["const"] for option in options], "enumNames": titles}


def _messages(message: SamplingMessage, version: str, *, change: Block) -> Iterable[SamplingMessage]:
    """One message for each block: content was one block, not several."""
    content = message.content
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, (ToolUseContent, ToolResultContent)):
            raise _lacks(version, "tools in sampling")
        yield SamplingMessage(role=message.role, content=change(block))
