"""Anthropic's Messages API: tools to definitions, `tool_use` to a call, a result to `tool_result`.

Pure conversion both ways; no client, no key, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, cast

from msgspec import UNSET

from dragoman.client import OtherContent, ToolResult
from dragoman.errors import UsageError
from dragoman.host.models.base import LeftOut, Shown, ToolUse
from dragoman.model import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_COMBINATORS: Final = ("allOf", "anyOf", "oneOf")
_FAILED: Final = "The tool failed and said nothing."

Block = dict[str, Any]


def definitions(tools: Iterable[Shown]) -> tuple[list[Block], list[LeftOut]]:
    """Definitions for a request, in the order given, and the tools for which there can be none.

    One bad schema fails a whole request, so what the API would refuse is left out here with the reason.
    A combinator at the root of a schema, which it refuses too, is folded into the root.
    """
    shown: list[Block] = []
    left_out: list[LeftOut] = []
    for item in tools:
        schema, note = _flat(item.tool.input_schema)
        why = _refused(item.name, schema)
        if why is not None:
            left_out.append(LeftOut(item.name, why))
            continue
        said = item.tool.description
        description = "\n\n".join(part for part in ("" if said is UNSET else said, note) if part)
        shown.append({"name": item.name, "description": description, "input_schema": schema})
    return shown, left_out


def tool_use(block: Mapping[str, Any]) -> ToolUse:
    """Read a `tool_use` block.

    Raises:
        UsageError: it is none; the error names the member, what was expected and what came.
    """
    if block.get("type") != "tool_use":
        raise UsageError(f"tool_use: `type`: expected 'tool_use'; received {block.get('type')!r}")
    for member in ("id", "name"):
        if not isinstance(block.get(member), str):
            raise UsageError(f"tool_use: `{member}`: expected a string; received {_kind(block, member)}")
    if not isinstance(block.get("input"), Mapping):
        raise UsageError(f"tool_use: `input`: expected an object; received {_kind(block, 'input')}")
    return ToolUse(block["id"], block["name"], block["input"])


def tool_result(id_: str, result: ToolResult) -> Block:
    """The `tool_result` block for the call with that id."""
    content = [converted for block in result.content for converted in _blocks(block)]
    if not content and result.has_structured:
        text = json.dumps(result.structured, ensure_ascii=False)
        return _result(id_, text, is_error=result.is_error)
    return _result(id_, content, is_error=result.is_error)


def failure(id_: str, text: str) -> Block:
    """The `tool_result` block for a call that did not take place, or came to nothing."""
    return _result(id_, text, is_error=True)


def _result(id_: str, content: str | list[Block], *, is_error: bool) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": id_, "content": content}
    if is_error:
        block["is_error"] = True
        block["content"] = content or _FAILED  # an error must not be empty
    return block


# Content ------------------------------------------------------------------------------------------


def _blocks(block: ContentBlock | OtherContent) -> list[Block]:
    """What the API takes for one block; nothing for blank text, which it refuses."""
    match block:
        case TextContent(text=text):
            return _text(text)
        case ImageContent(data=data, mime_type=mime):
            return [_image(data, mime)]
        case AudioContent(data=data, mime_type=mime):
            return _text(f"[audio, {mime}, {_size(data)}: cannot be shown to the model]")
        case ResourceLink():
            return _text(_link(block))
        case EmbeddedResource(resource=resource):
            return _resource(resource)
        case OtherContent(type=kind):
            return _text(f"[content of type {kind!r}: cannot be shown to the model]")


def _text(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _image(data: str, mime: str) -> Block:
    if mime not in IMAGES:
        return {"type": "text", "text": f"[image, {mime}, {_size(data)}: cannot be shown to the model]"}
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def _link(link: ResourceLink) -> str:
    title = link.name if link.title is UNSET else link.title
    lines = [f"[resource {title}: {link.uri}]"]
    if link.description is not UNSET:
        lines.append(link.description)
    return "\n".join(lines)


def _resource(resource: ResourceContents) -> list[Block]:
    mime = "" if resource.mime_type is UNSET else resource.mime_type.partition(";")[0].strip().lower()
    if resource.text is not UNSET:
        if not resource.text.strip():
            return []
        source = {"type": "text", "media_type": "text/plain", "data": resource.text}
        return [{"type": "document", "source": source, "title": resource.uri}]
    data = "" if resource.blob is UNSET else resource.blob
    if mime == "application/pdf":
        source = {"type": "base64", "media_type": mime, "data": data}
        return [{"type": "document", "source": source, "title": resource.uri}]
    if mime in IMAGES:
        return [_image(data, mime)]
    return _text(
        f"[resource {resource.uri}, {mime or 'of unknown type'}, {_size(data)}: cannot be shown to the model]"
    )


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4:,} bytes"


# Schemas ------------------------------------------------------------------------------------------


def _refused(name: str, schema: Mapping[str, Any]) -> str | None:
    """Why the API would refuse the tool."""
    if NAME.fullmatch(name) is None:
        return f"name {name!r}: expected 1 to 64 characters of A-Z a-z 0-9 _ -"
    if schema.get("type") != "object":
        return f"inputSchema: expected type 'object' at the root; received {schema.get('type')!r}"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "inputSchema: `properties`: expected an object"
    for property_ in cast("Mapping[str, Any]", properties):
        if PROPERTY.fullmatch(property_) is None:
            return f"inputSchema: property {property_!r}: expected 1 to 64 characters of A-Z a-z 0-9 _ . -"
    return None


def _flat(schema: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The schema without combinators at its root, and words for what its root can no longer say.

    `allOf` keeps what it requires. Alternatives only lend their properties: the server still checks them.
    """
    flat = dict(schema)
    notes: list[str] = []
    for combinator in _COMBINATORS:
        branches = flat.pop(combinator, None)
        if not isinstance(branches, list):
            continue
        parts = [
            cast("Mapping[str, Any]", branch)
            for branch in cast("list[object]", branches)
            if isinstance(branch, Mapping)
        ]
        properties = {name: value for part in reversed(parts) for name, value in _object(part).items()}
        properties.update(_object(flat))
        if properties:
            flat["properties"] = properties
        needed = [_required(part) for part in parts]
        if combinator == "allOf":
            flat["required"] = list(dict.fromkeys(chain(_required(flat), *needed)))
        elif any(needed):
            ways = "; or ".join(", ".join(names) if names else "nothing more" for names in needed)
            how = "Exactly one" if combinator == "oneOf" else "At least one"
            notes.append(f"{how} of these sets of arguments is required: {ways}.")
    return flat, "\n".join(notes)


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return dict(cast("Mapping[str, Any]", found)) if isinstance(found, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    found = schema.get("required")
    return [str(name) for name in cast("list[object]", found)] if isinstance(found, list) else []


def _kind(block: Mapping[str, Any], member: str) -> str:
    return type(block[member]).__name__ if member in block else "nothing"
