"""A tool's result in the two forms that a command shows: text with descriptions, and plain JSON values.

It also knows how to save what is not text. It calls nothing and asks nothing.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET

from dragoman.client import OtherContent, ToolResult
from dragoman.errors import UsageError
from dragoman.model import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

Block = ContentBlock | OtherContent

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB")


class Payload(NamedTuple):
    """Something in a result that is not text: what it is, and its bytes."""

    kind: str
    mime_type: str
    data: bytes


def plain(result: ToolResult) -> dict[str, Any]:
    """The result as on the wire, and with `invalid` where it does not fit what the tool promised."""
    content = [block.raw if isinstance(block, OtherContent) else block for block in result.content]
    value: dict[str, Any] = {"content": msgspec.to_builtins(content)}
    if result.has_structured:
        value["structuredContent"] = result.structured
    if result.is_error:
        value["isError"] = True
    if result.meta:
        value["_meta"] = result.meta
    if result.invalid:
        value["invalid"] = list(result.invalid)
    return value


def told(result: ToolResult) -> str:
    """The result as text: its blocks one below the other, or its structured content where there are none."""
    if not result.content and result.has_structured:
        return msgspec.json.format(msgspec.json.encode(result.structured)).decode()
    return "\n".join(map(describe, result.content))


def describe(block: Block) -> str:
    """A block as text: its own, or in brackets what it is."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        label = block.title if block.title is not UNSET else block.name
        return f"[resource link: {label}, {block.uri}]"
    if isinstance(block, EmbeddedResource) and block.resource.text is not UNSET:
        return block.resource.text
    if isinstance(block, OtherContent):
        return f"[content of unknown kind: {msgspec.json.encode(block.raw).decode()}]"
    try:
        held = payload(block)
    except ValueError as exc:
        return f"[{exc}]"
    if held is None:
        return "[nothing]"
    return f"[{held.kind}: {held.mime_type}, {_size(len(held.data))}; --output FILE saves it]"


def payload(block: Block) -> Payload | None:
    """What of a block can be saved to a file; None for text, links and what is not known.

    Raises:
        ValueError: its data is no base64.
    """
    if isinstance(block, ImageContent | AudioContent):
        kind = "image" if isinstance(block, ImageContent) else "audio"
        return Payload(kind, block.mime_type, _bytes(block.data, kind))
    if isinstance(block, EmbeddedResource):
        resource = block.resource
        kind = f"resource {resource.uri}"
        mime_type = "unknown type" if resource.mime_type is UNSET else resource.mime_type
        if resource.blob is not UNSET:
            return Payload(kind, mime_type, _bytes(resource.blob, kind))
        return Payload(kind, mime_type, resource.data())
    return None


def _bytes(data: str, kind: str) -> bytes:
    try:
        return a2b_base64(data, strict_mode=True)
    except (Base64Error, ValueError):
        raise ValueError(f"{kind}: its data is no base64") from None


def save(result: ToolResult, path: Path) -> list[str]:
    """Write what is not text to `path`, several things with a number each; returns what was written.

    Where there is nothing but text, the text is written.

    Raises:
        UsageError: nothing can be written there.
    """
    try:
        held = [found for found in map(payload, result.content) if found is not None]
    except ValueError as exc:
        raise UsageError(f"--output: {exc}") from None
    if not held:
        held = [Payload("text", "text/plain", f"{told(result)}\n".encode())]
    written: list[str] = []
    for number, one in enumerate(held, start=1):
        target = path if len(held) == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            target.write_bytes(one.data)
        except OSError as exc:
            raise UsageError(f"--output: {exc}") from None
        written.append(f"{target}: {one.kind}, {one.mime_type}, {_size(len(one.data))}")
    return written


def _size(count: int) -> str:
    size = float(count)
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"
