"""Anthropic's Messages API: tools to definitions, `tool_use` to a call, a result to `tool_result`.

Pure conversion both ways; no client, no key, no network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dragoman.client import ToolResult
from dragoman.errors import UsageError
from dragoman.host.models.anthropic_rules import history_fault, tools_fault
from dragoman.host.models.anthropic_stream import AnthropicReader
from dragoman.host.models.base import (
    Block,
    Definitions,
    Dropped,
    Endpoint,
    Failed,
    Item,
    LeftOut,
    Shown,
    Stop,
    ToolUse,
    Usage,
)
from dragoman.host.models.defining import Prepared, prepare, report
from dragoman.host.models.pieces import FAILED, Media, Piece, Text, pieces, structured
from dragoman.host.models.requests import body, counts, number
from dragoman.host.models.schemas import UnfitError, properties, table, tables
from dragoman.host.models.strictness import anthropic as held
from dragoman.host.naming import API_NAMES
from dragoman.schema.validate import shape_fault

PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
MOST_TOOLS: Final = 10_000
LIMIT: Final = 8_192
"""Tokens of an answer where the caller sets no limit: the API has to be told one."""
SEARCH: Final[Mapping[str, str]] = {
    "type": "tool_search_tool_bm25_20251119",
    "name": "tool_search_tool_bm25",
}

_STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
    "pause_turn": "paused",
}


_RULE: Final = API_NAMES["anthropic-messages"]


class Messages:
    """The API as `Api` has it."""

    name: str = "anthropic-messages"
    searches: bool = True
    endpoint: Endpoint = Endpoint(
        "https://api.anthropic.com",
        "/v1/messages",
        "/v1/messages",
        "ANTHROPIC_API_KEY",
        key_header="x-api-key",
        key_prefix="",
        headers={"anthropic-version": "2023-06-01"},
    )

    def definitions(self, tools: Iterable[Shown], *, strict: bool = False) -> Definitions:
        """Definitions for a request. Where there are deferred tools, the API's own search stands last."""
        prepared, found = prepare(tools, _RULE, most=MOST_TOOLS)
        deferred = False
        for item in prepared:
            if (why := _refused(item.schema, item.shown.tool.input_schema)) is not None:
                found.left_out.append(LeftOut(item.shown.name, why))
                continue
            found.blocks.append(_definition(found, item, strict=strict))
            deferred = deferred or item.shown.deferred
        if deferred:
            found.blocks.append(dict(SEARCH))
        return found

    def user(self, text: str) -> list[Item]:
        """A message of the user."""
        return [{"role": "user", "content": text}]

    def result(self, use: ToolUse, result: ToolResult) -> Block:
        """A `tool_result` block."""
        return tool_result(use.id, result)

    def failure(self, use: ToolUse, text: str) -> Block:
        """A `tool_result` block that says so."""
        return failure(use.id, text)

    def answered(self, blocks: Sequence[Block]) -> list[Item]:
        """One message of the user, with all results."""
        return [{"role": "user", "content": [*blocks]}] if blocks else []

    def request(
        self,
        *,
        model: str,
        history: Sequence[Item],
        tools: Definitions | None = None,
        system: str | None = None,
        limit: int | None = None,
        stream: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body of a request, `LIMIT` tokens where no limit is given."""
        own: dict[str, Any] = {"model": model, "max_tokens": limit or LIMIT, "messages": [*history]}
        if system:
            own["system"] = system
        if tools is not None and tools.blocks:
            own["tools"] = tools.blocks
        if stream:
            own["stream"] = True
        whole = body(own, more)
        fault = tools_fault(tables(whole.get("tools"))) or history_fault(tables(whole["messages"]))
        if fault is not None:
            raise UsageError(f"the Messages API would refuse the request: {fault}")
        return whole

    def said(self, message: Mapping[str, Any]) -> list[Item]:
        """The assistant's message. Empty text, which the API gives but does not take, is left out."""
        content = [_again(block) for block in tables(message.get("content"))]
        kept = [block for block in content if block.get("type") != "text" or block.get("text")]
        return [{"role": "assistant", "content": kept}] if kept else []

    def uses(self, message: Mapping[str, Any]) -> list[ToolUse]:
        """Its `tool_use` blocks. Those of the API's own tools are not among them: it answers them itself."""
        return [_use(block) for block in tables(message.get("content")) if block.get("type") == "tool_use"]

    def text(self, message: Mapping[str, Any]) -> str:
        """Its text, or why it refused."""
        blocks = tables(message.get("content"))
        said = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
        details = table(message.get("stop_details")) or {}
        return said or str(details.get("explanation") or "")

    def stop(self, message: Mapping[str, Any]) -> Stop:
        """What its `stop_reason` says."""
        return _STOPS.get(str(message.get("stop_reason")), "other")

    def usage(self, message: Mapping[str, Any]) -> Usage:
        """Its tokens. What was written to a cache was read as well."""
        said = counts(message.get("usage"))
        cached = number(said, "cache_read_input_tokens")
        written = number(said, "cache_creation_input_tokens")
        return Usage(number(said, "input_tokens") + cached + written, number(said, "output_tokens"), cached)

    def error(self, body: Mapping[str, Any]) -> Failed | None:
        """The error of a body `{"type": "error", ...}`."""
        error = table(body.get("error"))
        if body.get("type") != "error" or error is None:
            return None
        return Failed(str(error.get("type", "error")), str(error.get("message", "")))

    def reader(self) -> AnthropicReader:
        """A reader for one streamed answer."""
        return AnthropicReader()


MESSAGES: Final = Messages()


# Tools ------------------------------------------------------------------------------------------------------


def _refused(schema: Mapping[str, Any], written: Mapping[str, Any]) -> str | None:
    """Why the API would refuse a schema: as it goes out, and as its server wrote it."""
    if (fault := shape_fault(dict(written))) is not None:
        return f"inputSchema: {fault}"
    for name in properties(schema):
        if PROPERTY.fullmatch(name) is None:
            return f"inputSchema: property {name!r}: expected 1 to 64 characters of A-Z a-z 0-9 _ . -"
    return None


def _definition(found: Definitions, item: Prepared, *, strict: bool) -> Block:
    block: Block = {"name": item.name, "description": item.description, "input_schema": item.schema}
    if strict:
        try:
            block["input_schema"], lost = held(item.schema)
            report(found, item.shown, lost=lost)
            block["strict"] = True
        except UnfitError as exc:
            found.dropped.append(Dropped(item.shown.name, "", "strict", str(exc)))
    if item.shown.deferred:
        block["defer_loading"] = True
    return block


# Calls ------------------------------------------------------------------------------------------------------


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


def _use(block: Mapping[str, Any]) -> ToolUse:
    given = block.get("input")
    id_, name = str(block.get("id", "")), str(block.get("name", ""))
    if isinstance(given, str):  # what a stream had when it ended, see AnthropicReader
        return ToolUse(id_, name, {}, raw=given, fault="the arguments are no whole JSON object")
    if (arguments := table(given)) is None:
        return ToolUse(id_, name, {}, fault=f"input: expected an object; received {_kind(block, 'input')}")
    return ToolUse(id_, name, arguments)


def _again(block: Mapping[str, Any]) -> Block:
    """A block of an answer as the API takes it back."""
    if block.get("type") == "tool_use" and not isinstance(block.get("input"), Mapping):
        return {**block, "input": {}}
    return dict(block)


def _kind(block: Mapping[str, Any], member: str) -> str:
    return type(block[member]).__name__ if member in block else "nothing"


# Results ----------------------------------------------------------------------------------------------------


def tool_result(id_: str, result: ToolResult) -> Block:
    """The `tool_result` block for the call with that id."""
    content = [_shown(piece) for piece in pieces(result)]
    if not content and result.has_structured:
        return _result(id_, structured(result), is_error=result.is_error)
    return _result(id_, content, is_error=result.is_error)


def failure(id_: str, text: str) -> Block:
    """The `tool_result` block for a call that did not take place, or came to nothing."""
    return _result(id_, text, is_error=True)


def references(use: ToolUse, names: Iterable[str]) -> Block:
    """The answer of a search of one's own: the API writes out the deferred tools of these names."""
    found: list[Block] = [{"type": "tool_reference", "tool_name": name} for name in names]
    return _result(use.id, found or "No tool was found.", is_error=False)


def _result(id_: str, content: str | list[Block], *, is_error: bool) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": id_, "content": content}
    if is_error:
        block["is_error"] = True
        block["content"] = content or FAILED  # an error must not be empty
    return block


def _shown(piece: Piece) -> Block:
    match piece:
        case Text(text=text, uri=""):
            return {"type": "text", "text": text}
        case Text(text=text, uri=uri):
            source = {"type": "text", "media_type": "text/plain", "data": text}
            return {"type": "document", "source": source, "title": uri}
        case Media(mime=mime, data=data) if mime in IMAGES:
            return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
        case Media(mime="application/pdf", data=data, uri=uri):
            source = {"type": "base64", "media_type": "application/pdf", "data": data}
            return {"type": "document", "source": source, "title": uri} if uri else _plain(piece)
        case Media():
            return _plain(piece)


def _plain(piece: Media) -> Block:
    return {"type": "text", "text": piece.unseen}
