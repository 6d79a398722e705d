"""Cases of what a tool's result becomes on its way to a model's API."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from dragoman.client import OtherContent, ToolResult
from dragoman.host.models.base import Api, ToolUse
from dragoman.model import ContentBlock

from .expecting import Fact
from .findings import Blocks, Json
from .forms import Case, listed, table

_USE: Final = ToolUse("call_1", "t", {})
_KNOWN: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})
_NATIVE: Final = (
    *(("image", "image|inlinedata|part"), ("input_image", "image"), ("image_url", "image")),
    *(("document", "document"), ("inlineData", "inlinedata|part|image|audio"), ("input_file", "file|pdf")),
)


def result(api: Api, given: Case) -> dict[str, Any]:
    """What is made of an MCP result."""
    told = table(given.get("mcp_result", given.get("result")))
    made = tool_result(told)
    block = api.result(_USE, made)
    messages = api.answered([block])
    inner = table(block.get("functionResponse"))
    told_block = _told(block, failed=made.is_error)
    response = table(inner.get("response"))
    out: dict[str, Any] = {
        "conversion": _Conversion(block, told),
        "messages": messages,
        "items": messages,
        **told_block,
        **inner,
        "response_key": next(iter(response), None),
        "error_flag": _Flag("is_error" in block),
        "has_error_flag": "is_error" in block,
    }
    out |= dict.fromkeys(("tool_result", "function_call_output", "item", "part", "block"), told_block)
    out |= dict.fromkeys(("functionResponse", "function_response"), inner)
    first = messages[0] if messages else block
    message = _told(first, failed=made.is_error) if "tool_call_id" in first else first
    return out | dict.fromkeys(("message", "tool_message"), message)


def tool_result(told: Case) -> ToolResult:
    """A result as a client has it."""
    return ToolResult(
        content=[_content(block) for block in listed(told.get("content"))],
        structured=told.get("structuredContent"),
        has_structured="structuredContent" in told,
        is_error=told.get("isError") is True,
    )


class _Flag(Fact):
    """Whether an API has a flag for errors; that it has none is said by null, or in words."""

    def fits(self, wanted: Any) -> bool:
        if self.value:
            return wanted is True or "is_error" in str(wanted)
        return (
            wanted is None
            or wanted is False
            or re.search(r"\bnone?\b|\bno\b", str(wanted).lower()) is not None
        )


def _told(block: dict[str, Any], *, failed: bool) -> dict[str, Any]:
    """A result with its content as cases may write it."""
    kinds = {"content": "text", "output": "input_text"}
    out: dict[str, Any] = dict(block)
    for name, kind in kinds.items():
        if name in block:
            out[name] = _Content(block[name], kind, failed=failed)
            out[f"{name}_contains"] = _Contains(block[name])
    return out


class _Content(Blocks):
    """Content: as blocks, as one text, as JSON of any layout, or in words that it tells of the failure."""

    def __init__(self, value: Any, kind: str, *, failed: bool) -> None:
        super().__init__(value, kind)
        self.failed = failed

    def fits(self, wanted: Any) -> bool:
        if super().fits(wanted) or (isinstance(self.value, str) and Json(self.value).fits(wanted)):
            return True
        words = isinstance(wanted, str) and re.search(r"text says|says it failed|tells? of the fail", wanted)
        return bool(self.failed and words and re.search("error|fail", str(self.value).lower()))


class _Contains(Fact):
    def fits(self, wanted: Any) -> bool:
        return str(wanted) in str(self.value)


class _Conversion(Fact):
    """What a content became: of a kind of the API's own, or words in its place."""

    def __init__(self, block: dict[str, Any], told: dict[str, Any]) -> None:
        super().__init__(block)
        text = str(block)
        links = any(table(item).get("type") == "resource_link" for item in listed(told.get("content")))
        # What an API has no form for stands there in words.
        self.worded = "cannot be shown" in text or links
        self.kinds = [words for kind, words in _NATIVE if f"'{kind}'" in text]

    def fits(self, wanted: Any) -> bool:
        text = str(wanted).lower()
        if self.worded:
            return re.search("unsupported|text|describe|words|placeholder", text) is not None
        if re.search("unsupported|refused|error|raises", text) is not None:
            return False
        return any(re.search(words, text) for words in self.kinds) or (not self.kinds and "text" in text)


def _content(block: object) -> ContentBlock | OtherContent:
    kind = str(table(block).get("type"))
    if kind not in _KNOWN:
        return OtherContent(kind, block)
    found: ContentBlock = msgspec.convert([block], list[ContentBlock])[0]
    return found
