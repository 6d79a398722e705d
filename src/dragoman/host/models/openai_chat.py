"""OpenAI's Chat Completions, which many servers speak: tools, calls and results, there and back.

A message with the answer of a tool is text alone; images and files follow in one of the user. Pure
conversion both ways; no client, no key, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dragoman.client import ToolResult
from dragoman.errors import UsageError
from dragoman.host.models.base import (
    Block,
    Definitions,
    Endpoint,
    Failed,
    Item,
    Shown,
    Stop,
    ToolUse,
    Usage,
)
from dragoman.host.models.defining import Prepared, prepare
from dragoman.host.models.openai_chat_stream import ChatReader, identity
from dragoman.host.models.openai_common import FILES, IMAGES, error_of, failed, parameters
from dragoman.host.models.pieces import Media, Piece, Text, pieces, structured, texts
from dragoman.host.models.requests import body, counts, number, read_use
from dragoman.host.models.schemas import table, tables
from dragoman.host.naming import API_NAMES

MOST_TOOLS: Final = 128

_STOPS: Final[Mapping[str, Stop]] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}
_PLACES: Final[Mapping[str, str]] = {"image_url": "image", "file": "file"}


_RULE: Final = API_NAMES["openai-chat"]


class Chat:
    """The API as `Api` has it."""

    name: str = "openai-chat"
    searches: bool = False
    endpoint: Endpoint = Endpoint(
        "https://api.openai.com/v1", "/chat/completions", "/chat/completions", "OPENAI_API_KEY"
    )

    def definitions(self, tools: Iterable[Shown], *, strict: bool = False) -> Definitions:
        """Functions for a request. Deferred ones are put aside: this API cannot search."""
        offered = [*tools]
        prepared, found = prepare([item for item in offered if not item.deferred], _RULE, most=MOST_TOOLS)
        found.deferred.extend(item.name for item in offered if item.deferred)
        found.blocks.extend(_function(found, item, strict=strict) for item in prepared)
        return found

    def user(self, text: str) -> list[Item]:
        """A message of the user."""
        return [{"role": "user", "content": text}]

    def result(self, use: ToolUse, result: ToolResult) -> Block:
        """A message of the tool. `answered` moves the images and files in it to where the API takes them."""
        found = pieces(result)
        if not found and result.has_structured:
            found.append(Text(structured(result)))
        shown = [_shown(piece) for piece in found]
        if all(part["type"] == "text" for part in shown):
            text = texts(found)
            return _message(use, failed(text) if result.is_error else text)
        if result.is_error:
            shown.insert(0, {"type": "text", "text": failed("")})
        return _message(use, shown)

    def failure(self, use: ToolUse, text: str) -> Block:
        """A message of the tool that says so: the API has no flag for it."""
        return _message(use, failed(text))

    def answered(self, blocks: Sequence[Block]) -> list[Item]:
        """The messages of the tools, and behind all of them one of the user with their images and files."""
        messages: list[Item] = []
        moved: list[Block] = []
        for block in blocks:
            parts = tables(block.get("content"))
            media = [dict(part) for part in parts if part["type"] != "text"]
            text = "\n".join(_in_text(part) for part in parts)
            messages.append({**block, "content": text} if parts else block)
            if media:
                moved.append({"type": "text", "text": f"From the result of call {block['tool_call_id']}:"})
                moved.extend(media)
        return [*messages, {"role": "user", "content": moved}] if moved else messages

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
        """The body of a request. A stream is asked to tell its tokens."""
        first: list[Item] = [{"role": "system", "content": system}] if system else []
        own: dict[str, Any] = {"model": model, "messages": [*first, *history]}
        if tools is not None and tools.blocks:
            own["tools"] = tools.blocks
        if limit is not None:
            own["max_completion_tokens"] = limit
        if stream:
            own |= {"stream": True, "stream_options": {"include_usage": True}}
        whole = body(own, more)
        fault = history_fault(tables(whole["messages"]))
        if fault is not None:
            raise UsageError(f"Chat Completions would refuse the request: {fault}")
        return whole

    def said(self, message: Mapping[str, Any]) -> list[Item]:
        """The assistant's message, without what the API gives and does not take."""
        found = _choice(message)[1]
        if not found:
            return []
        kept: Item = {name: value for name, value in found.items() if value is not None}
        kept.pop("annotations", None)
        if (audio := table(kept.get("audio"))) is not None:
            kept["audio"] = {"id": audio.get("id")}
        if calls := tables(kept.pop("tool_calls", None)):
            kept["tool_calls"] = [{**call, "id": id_} for id_, call in _identified(message, calls)]
        kept.setdefault("content", None if "tool_calls" in kept else "")
        return [{"role": "assistant", **kept}]

    def uses(self, message: Mapping[str, Any]) -> list[ToolUse]:
        """Its `tool_calls`. Where a server gives no id, one is made of the message's own, as in `said`."""
        calls = tables(_choice(message)[1].get("tool_calls"))
        return [_use(id_, call) for id_, call in _identified(message, calls)]

    def text(self, message: Mapping[str, Any]) -> str:
        """Its content, or its refusal."""
        found = _choice(message)[1]
        content = found.get("content")
        if not isinstance(content, str):
            content = "".join(str(part.get("text", "")) for part in tables(content))
        return content or str(found.get("refusal") or "")

    def stop(self, message: Mapping[str, Any]) -> Stop:
        """What its `finish_reason` says. Some servers say `stop` where there are calls."""
        reason, found = _choice(message)
        stop: Stop = _STOPS.get(str(reason), "other")
        if stop in ("end", "tools"):
            if tables(found.get("tool_calls")):
                return "tools"
            return "refused" if found.get("refusal") else "end"
        return stop

    def usage(self, message: Mapping[str, Any]) -> Usage:
        """Its tokens."""
        said = counts(message.get("usage"))
        cached = number(counts(said.get("prompt_tokens_details")), "cached_tokens")
        return Usage(number(said, "prompt_tokens"), number(said, "completion_tokens"), cached)

    def error(self, body: Mapping[str, Any]) -> Failed | None:
        """The error of a body."""
        return error_of(body)

    def reader(self) -> ChatReader:
        """A reader for one streamed answer."""
        return ChatReader()


CHAT: Final = Chat()


def history_fault(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a history would be refused: answers to all calls stand directly behind the message with them."""
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            id_ = str(message.get("tool_call_id"))
            if id_ not in waiting:
                return f"messages[{index}]: an answer to {id_!r}, which the message before it does not call"
            waiting.remove(id_)
        elif waiting:
            return f"messages[{index}]: before it, there is no answer to {', '.join(waiting)}"
        else:
            waiting = [str(call.get("id")) for call in tables(message.get("tool_calls"))]
    return f"messages: no answer to {', '.join(waiting)}" if waiting else None


def _function(found: Definitions, item: Prepared, *, strict: bool) -> Block:
    schema, held = parameters(found, item, strict=strict)
    function: Block = {"name": item.name, "description": item.description, "parameters": schema}
    if held:
        function["strict"] = True
    return {"type": "function", "function": function}


def _message(use: ToolUse, content: str | list[Block]) -> Block:
    return {"role": "tool", "tool_call_id": use.id, "content": content}


def _shown(piece: Piece) -> Block:
    match piece:
        case Text(text=text):
            return {"type": "text", "text": text}
        case Media(mime=mime) if mime in IMAGES:
            return {"type": "image_url", "image_url": {"url": piece.url}}
        case Media(mime=mime) if mime in FILES:
            return {"type": "file", "file": {"filename": piece.filename, "file_data": piece.url}}
        case Media():
            return {"type": "text", "text": piece.unseen}


def _in_text(part: Mapping[str, Any]) -> str:
    if part["type"] == "text":
        return str(part["text"])
    return f"[{_PLACES[part['type']]}: in the message of the user behind the results]"


def _choice(message: Mapping[str, Any]) -> tuple[object, Mapping[str, Any]]:
    choices = tables(message.get("choices"))
    if not choices:
        return None, {}
    return choices[0].get("finish_reason"), table(choices[0].get("message")) or {}


def _identified(
    message: Mapping[str, Any], calls: list[Mapping[str, Any]]
) -> list[tuple[str, Mapping[str, Any]]]:
    return [(str(call.get("id") or identity(message, index)), call) for index, call in enumerate(calls)]


def _use(id_: str, call: Mapping[str, Any]) -> ToolUse:
    function = table(call.get("function"))
    if function is None:
        custom = table(call.get("custom")) or {}
        given = custom.get("input")
        raw = given if isinstance(given, str) else None
        return ToolUse(id_, str(custom.get("name", "")), {}, raw=raw, fault="it is no call of a function")
    return read_use(id_, str(function.get("name", "")), arguments=function.get("arguments"))
