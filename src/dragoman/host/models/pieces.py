"""What a tool's result is made of, apart from what an API can show of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from msgspec import UNSET

from dragoman.client import OtherContent, ToolResult
from dragoman.model import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

FAILED: Final = "The tool failed and said nothing."


@dataclass(frozen=True, slots=True)
class Text:
    """Text, never blank. `uri` where it is the contents of a resource."""

    text: str
    uri: str = ""


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes: `data` is base64, `mime` without parameters and in lower case, "" where it is unknown."""

    kind: Literal["image", "audio", "resource"]
    data: str
    mime: str
    uri: str = ""

    @property
    def unseen(self) -> str:
        """Words in its place, for an API that cannot show it."""
        what = f"{self.kind} {self.uri}" if self.uri else self.kind
        size = f"{len(self.data) * 3 // 4:,} bytes"
        return f"[{what}, {self.mime or 'of unknown type'}, {size}: cannot be shown to the model]"

    @property
    def url(self) -> str:
        """It as a `data:` URL."""
        return f"data:{self.mime or 'application/octet-stream'};base64,{self.data}"

    @property
    def filename(self) -> str:
        """A name for it as a file."""
        last = self.uri.rstrip("/").rpartition("/")[2].partition("?")[0]
        return last or f"{self.kind}.{self.mime.rpartition('/')[2] or 'bin'}"


Piece: TypeAlias = Text | Media


def pieces(result: ToolResult) -> list[Piece]:
    """The content of a result, in order, without blank text."""
    return [piece for block in result.content for piece in _pieces(block)]


def structured(result: ToolResult) -> str:
    """The structured content as JSON text, readable in every script."""
    return json.dumps(result.structured, ensure_ascii=False)


def texts(found: list[Piece]) -> str:
    """All of it as text, each piece on lines of its own."""
    return "\n".join(piece.text if isinstance(piece, Text) else piece.unseen for piece in found)


def _pieces(block: ContentBlock | OtherContent) -> Iterator[Piece]:
    match block:
        case TextContent(text=text):
            if text.strip():
                yield Text(text)
        case ImageContent(data=data, mime_type=mime):
            yield Media("image", data, _plain(mime))
        case AudioContent(data=data, mime_type=mime):
            yield Media("audio", data, _plain(mime))
        case ResourceLink():
            yield Text(_link(block))
        case EmbeddedResource(resource=resource):
            yield from _resource(resource)
        case OtherContent(type=kind):
            yield Text(f"[content of type {kind!r}: cannot be shown to the model]")


def _link(link: ResourceLink) -> str:
    title = link.name if link.title is UNSET else link.title
    lines = [f"[resource {title}: {link.uri}]"]
    if link.description is not UNSET:
        lines.append(link.description)
    return "\n".join(lines)


def _resource(resource: ResourceContents) -> Iterator[Piece]:
    if resource.text is not UNSET:
        if resource.text.strip():
            yield Text(resource.text, resource.uri)
        return
    mime = "" if resource.mime_type is UNSET else _plain(resource.mime_type)
    yield Media("resource", "" if resource.blob is UNSET else resource.blob, mime, resource.uri)


def _plain(mime: str) -> str:
    return mime.partition(";")[0].strip().lower()
