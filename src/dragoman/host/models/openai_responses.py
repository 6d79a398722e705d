"""OpenAI's Responses API: tools to functions, `function_call` to a call, a result to `function_call_output`.

Pure conversion both ways; no client, no key, no network.
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
from dragoman.host.models.names import legal
from dragoman.host.models.openai_common import FILES, IMAGES, error_of, failed, parameters
from dragoman.host.models.openai_responses_stream import ResponsesReader
from dragoman.host.models.pieces import Media, Piece, Text, pieces, structured, texts
from dragoman.host.models.requests import body, counts, number, read_use
from dragoman.host.models.schemas import table, tables
from dragoman.host.naming import API_NAMES

SEARCH: Final[Mapping[str, str]] = {"type": "tool_search"}
_LISTED: Final = 20  # names that the description of a namespace lists at most


_RULE: Final = API_NAMES["openai-responses"]


class Responses:
    """The API as `Api` has it."""

    name: str = "openai-responses"
    searches: bool = True
    endpoint: Endpoint = Endpoint("https://api.openai.com/v1", "/responses", "/responses", "OPENAI_API_KEY")

    def definitions(self, tools: Iterable[Shown], *, strict: bool = False) -> Definitions:
        """Functions for a request.

        Deferred ones stand in a namespace for each group, and the API's own search behind them.
        """
        prepared, found = prepare(tools, _RULE)
        groups: dict[str, list[Prepared]] = {}
        for item in prepared:
            if item.shown.deferred:
                groups.setdefault(item.shown.group, []).append(item)
            else:
                found.blocks.append(_function(found, item, strict=strict))
        taken: set[str] = set()
        for group, members in groups.items():
            functions = [_function(found, item, strict=strict) for item in members]
            if not group:
                found.blocks.extend(functions)
                continue
            accepted = _RULE.accepts(group)
            name = group if accepted else legal(group, _RULE, taken=taken)
            taken.add(name)
            found.blocks.append(_namespace(name, group, functions=functions))
        if groups:
            found.blocks.append(dict(SEARCH))
        return found

    def user(self, text: str) -> list[Item]:
        """A message of the user."""
        return [{"role": "user", "content": text}]

    def result(self, use: ToolUse, result: ToolResult) -> Block:
        """A `function_call_output`: text, or a list where there are images or files."""
        return _output(use, _content(result))

    def failure(self, use: ToolUse, text: str) -> Block:
        """A `function_call_output` that says so: the API has no flag for it."""
        return _output(use, failed(text))

    def answered(self, blocks: Sequence[Block]) -> list[Item]:
        """The outputs as they are: each is an item of its own."""
        return [*blocks]

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
        """The body of a request. The history is in it whole, whatever the API keeps of it."""
        own: dict[str, Any] = {"model": model, "input": [*history]}
        if system:
            own["instructions"] = system
        if tools is not None and tools.blocks:
            own["tools"] = tools.blocks
        if limit is not None:
            own["max_output_tokens"] = limit
        if stream:
            own["stream"] = True
        whole = body(own, more)
        fault = None if "previous_response_id" in whole else history_fault(tables(whole["input"]))
        if fault is not None:
            raise UsageError(f"the Responses API would refuse the request: {fault}")
        return whole

    def said(self, message: Mapping[str, Any]) -> list[Item]:
        """Its items, reasoning among them, unchanged."""
        return [dict(item) for item in tables(message.get("output"))]

    def uses(self, message: Mapping[str, Any]) -> list[ToolUse]:
        """Its `function_call` items."""
        return [
            read_use(str(item.get("call_id", "")), str(item.get("name", "")), arguments=item.get("arguments"))
            for item in tables(message.get("output"))
            if item.get("type") == "function_call"
        ]

    def text(self, message: Mapping[str, Any]) -> str:
        """The text of its messages, refusals among it."""
        parts = _parts(message)
        return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)

    def stop(self, message: Mapping[str, Any]) -> Stop:
        """What its status and its items come to."""
        status = message.get("status")
        if status == "incomplete":
            details = table(message.get("incomplete_details")) or {}
            reasons: dict[str, Stop] = {"max_output_tokens": "length", "content_filter": "refused"}
            return reasons.get(str(details.get("reason")), "other")
        if status != "completed":
            return "other"
        if any(item.get("type") == "function_call" for item in tables(message.get("output"))):
            return "tools"
        return "refused" if any(part.get("type") == "refusal" for part in _parts(message)) else "end"

    def usage(self, message: Mapping[str, Any]) -> Usage:
        """Its tokens."""
        said = counts(message.get("usage"))
        cached = number(counts(said.get("input_tokens_details")), "cached_tokens")
        return Usage(number(said, "input_tokens"), number(said, "output_tokens"), cached)

    def error(self, body: Mapping[str, Any]) -> Failed | None:
        """The error of a body, or of a response that failed."""
        return error_of(body)

    def reader(self) -> ResponsesReader:
        """A reader for one streamed answer."""
        return ResponsesReader()


RESPONSES: Final = Responses()


def history_fault(history: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a history would be refused: a call without its output, or an output without its call."""
    called: list[str] = []
    answered: list[str] = []
    for index, item in enumerate(history):
        id_ = str(item.get("call_id"))
        if item.get("type") == "function_call":
            called.append(id_)
        elif item.get("type") == "function_call_output":
            if id_ not in called:
                return f"input[{index}]: the output of {id_!r}, which was not called before"
            if id_ in answered:
                return f"input[{index}]: a second output of {id_!r}"
            answered.append(id_)
    missing = [id_ for id_ in called if id_ not in answered]
    return f"input: no function_call_output for {', '.join(missing)}" if missing else None


def _function(found: Definitions, item: Prepared, *, strict: bool) -> Block:
    schema, held = parameters(found, item, strict=strict)
    block: Block = {
        "type": "function",
        "name": item.name,
        "description": item.description,
        "parameters": schema,
        "strict": held,
    }
    if item.shown.deferred:
        block["defer_loading"] = True
    return block


def _namespace(name: str, group: str, *, functions: list[Block]) -> Block:
    """A group of deferred functions: of it the model sees name and description before it has searched."""
    names = [str(function["name"]) for function in functions]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    description = f"Tools of {group}: {', '.join(names[:_LISTED])}{more}"
    return {"type": "namespace", "name": name, "description": description, "tools": functions}


def _output(use: ToolUse, output: str | list[Block]) -> Block:
    return {"type": "function_call_output", "call_id": use.id, "output": output}


def _content(result: ToolResult) -> str | list[Block]:
    found = pieces(result)
    if not found and result.has_structured:
        found.append(Text(structured(result)))
    shown = [_shown(piece) for piece in found]
    if all(block["type"] == "input_text" for block in shown):
        text = texts(found)
        return failed(text) if result.is_error else text
    if result.is_error:
        shown.insert(0, {"type": "input_text", "text": failed("")})
    return shown


def _shown(piece: Piece) -> Block:
    match piece:
        case Text(text=text):
            return {"type": "input_text", "text": text}
        case Media(mime=mime) if mime in IMAGES:
            return {"type": "input_image", "image_url": piece.url}
        case Media(mime=mime) if mime in FILES:
            return {"type": "input_file", "filename": piece.filename, "file_data": piece.url}
        case Media():
            return {"type": "input_text", "text": piece.unseen}


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    messages = (item for item in tables(message.get("output")) if item.get("type") == "message")
    return [part for item in messages for part in tables(item.get("content"))]
