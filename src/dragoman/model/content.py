"""Content blocks: what tools, prompts and models say, as tagged unions on `type`.

Binary data is base64 text here, as on the wire; the struct neither decodes nor checks it unasked.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from typing import Any, Self

from msgspec import UNSET, UnsetType, field

from dragoman.model.base import Annotations, Icon, Model


class ResourceContents(Model, kw_only=True):
    """The contents of one resource: `text`, or `blob` in base64.

    The wire does not tag which of the two it is, so one struct reads both and refuses neither
    being there; `TextResourceContents` and `BlobResourceContents` are for building.
    """

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)

    def __post_init__(self) -> None:
        if self.text is UNSET and self.blob is UNSET:
            raise ValueError("resource contents need a member `text` or `blob`")

    def data(self) -> bytes:
        """The contents as bytes: `blob` decoded, or `text` in UTF-8.

        Raises `binascii.Error` (a `ValueError`) when `blob` is not base64.
        """
        if self.blob is not UNSET:
            return a2b_base64(self.blob, strict_mode=True)
        return self.text.encode() if self.text is not UNSET else b""


class TextResourceContents(ResourceContents, kw_only=True):
    """Contents of a resource that is text."""

    text: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  # required of who builds one


class BlobResourceContents(ResourceContents, kw_only=True):
    """Contents of a resource that is bytes, in base64."""

    blob: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]  # required of who builds one

    @classmethod
    def of(cls, uri: str, data: bytes, *, mime_type: str | UnsetType = UNSET) -> Self:
        """Contents made of raw bytes."""
        return cls(uri=uri, blob=_base64(data), mime_type=mime_type)


class TextContent(Model, kw_only=True, tag_field="type", tag="text", gc=False):
    """Text to or from a model."""

    text: str
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ImageContent(Model, kw_only=True, tag_field="type", tag="image"):
    """A picture: `data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)

    @classmethod
    def of(cls, data: bytes, mime_type: str) -> Self:
        """A picture made of raw bytes."""
        return cls(data=_base64(data), mime_type=mime_type)


class AudioContent(Model, kw_only=True, tag_field="type", tag="audio"):
    """Sound: `data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)

    @classmethod
    def of(cls, data: bytes, mime_type: str) -> Self:
        """Sound made of raw bytes."""
        return cls(data=_base64(data), mime_type=mime_type)


class ResourceLink(Model, kw_only=True, tag_field="type", tag="resource_link"):
    """A resource that can be read by its URI; it need not be in the server's list."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class EmbeddedResource(Model, kw_only=True, tag_field="type", tag="resource"):
    """A resource whose contents are inside the message."""

    resource: ResourceContents
    annotations: Annotations | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class ToolUseContent(Model, kw_only=True, tag_field="type", tag="tool_use"):
    """A model's wish to call a tool, inside sampling."""

    id: str
    name: str
    input: dict[str, Any]
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


class ToolResultContent(Model, kw_only=True, tag_field="type", tag="tool_result"):
    """What a tool answered to the `ToolUseContent` with that id, inside sampling."""

    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)


SamplingMessageContentBlock = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")
