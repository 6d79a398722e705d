"""What a tool call came to: one typed reading of the result, kept even where it does not fit.

Knows no connection and no list of tools; what a tool promised is passed in.
"""

from __future__ import annotations

from typing import Any, Final, Self

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import PeerFault, ToolFailure
from dragoman.model import (
    COMPLETE,
    INPUT_REQUIRED,
    ContentBlock,
    InputRequest,
    Result,
    TextContent,
)
from dragoman.model.shown import record
from dragoman.protocol.lenient import reader, without_nulls
from dragoman.schema.shapes import is_array, is_object

MISSING_CONTENT: Final = "malformed result: content is missing"
MISSING_STRUCTURED: Final = "structuredContent is missing, which the tool's outputSchema asks for"


class OtherContent(msgspec.Struct, frozen=True):
    """A content block of a kind that is not known here, or that lacks what its kind needs: as it came."""

    type: str
    raw: Any

    def __repr__(self) -> str:
        return record(self)


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool answered.

    `content` are its blocks. `structured` is `structuredContent`, any JSON value, and None where there
    is none (`has_structured` tells that from null). `is_error`: the tool failed, and `text` says how.
    `invalid` says what of the result does not fit the tool's `outputSchema` or the protocol; the
    result is kept all the same. `meta` is the result's `_meta`.
    """

    content: list[ContentBlock | OtherContent]
    structured: Any = None
    has_structured: bool = False
    is_error: bool = False
    invalid: tuple[str, ...] = ()
    meta: dict[str, Any] = {}

    def __repr__(self) -> str:
        absent = {name for name in ("is_error", "invalid", "meta") if not getattr(self, name)}
        if not self.has_structured:
            absent.add("structured")
        return record(self, without={"has_structured", *absent})

    @property
    def text(self) -> str:
        """The text blocks, each on lines of its own."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    def raise_for_error(self) -> Self:
        """The result itself, unless the tool failed. What is `invalid` in it is not raised.

        Raises:
            ToolFailure: `is_error`; its message is `text`.
        """
        if self.is_error:
            raise ToolFailure(self.text or "the tool failed and did not say why", self)
        return self


class Answer(Result, kw_only=True):
    """A result of `tools/call` before it is known whether it is one or asks for input."""

    content: list[ContentBlock] | UnsetType = UNSET
    structured_content: Any = UNSET
    is_error: bool | UnsetType = UNSET
    input_requests: dict[str, InputRequest] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET


class _Salvage(Result, kw_only=True):
    content: Any = UNSET
    structured_content: Any = UNSET
    is_error: Any = UNSET
    input_requests: Any = UNSET


_read: Final = reader(Answer)
_decode_loosely: Final = msgspec.json.Decoder(_Salvage).decode
_convert: Any = msgspec.convert  # a union is not a `type` to the type checkers


def read(result: Raw) -> tuple[Answer, ToolResult]:
    """Read a result of `tools/call`: what it says, and the same as its caller gets it.

    Raises:
        PeerFault: it is no result at all, of a `resultType` that is not known here, or a request for
            input that cannot be read.
    """
    try:
        answer = _read(result)
    except msgspec.ValidationError as exc:
        return _salvage(result, str(exc))
    check_type(answer.result_type)
    return answer, ToolResult(
        content=[] if answer.content is UNSET else answer.content,  # type: ignore[arg-type]  # a list of fewer kinds
        structured=None if answer.structured_content is UNSET else answer.structured_content,
        has_structured=answer.structured_content is not UNSET,
        is_error=answer.is_error is True,
        invalid=(MISSING_CONTENT,)
        if answer.content is UNSET and answer.result_type != INPUT_REQUIRED
        else (),
        meta={} if answer.meta is UNSET else answer.meta,
    )


def check_type(result_type: str | UnsetType) -> None:
    """Pass a `resultType` that is known; an absent one is `complete` (basic: Result Responses).

    Raises:
        PeerFault: any other, which the specification has clients take as invalid.
    """
    if result_type not in (UNSET, COMPLETE, INPUT_REQUIRED):
        raise PeerFault(
            f"a result of unknown resultType {result_type!r}: expected {COMPLETE!r} or {INPUT_REQUIRED!r}"
        )


def _salvage(result: Raw, fault: str) -> tuple[Answer, ToolResult]:
    """Keep what can be kept of a result that breaks the protocol's shape."""
    try:
        loose = _decode_loosely(result)
    except msgspec.ValidationError as exc:
        raise PeerFault(f"malformed result of `tools/call`: {exc}") from None
    check_type(loose.result_type)
    if loose.result_type == INPUT_REQUIRED:
        raise PeerFault(f"malformed request for input: {fault}")
    blocks: list[Any] = (
        loose.content if is_array(loose.content) else [] if loose.content is UNSET else [loose.content]
    )
    kept = ToolResult(
        content=[_block(block) for block in blocks],
        structured=None if loose.structured_content is UNSET else loose.structured_content,
        has_structured=loose.structured_content is not UNSET,
        is_error=loose.is_error is True,
        invalid=(f"malformed result: {fault}",),
        meta={} if loose.meta is UNSET else loose.meta,
    )
    return Answer(), kept


def _block(value: Any) -> ContentBlock | OtherContent:
    try:
        block: ContentBlock = _convert(without_nulls(value), ContentBlock)
        return block
    except msgspec.ValidationError:
        return OtherContent(str(value.get("type", "")) if is_object(value) else "", value)
