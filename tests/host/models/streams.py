"""Streamed answers, one of each API: a thought, text, and two calls side by side.

Their shapes are those of the providers' published types, which a test checks; what they say is made up.
"""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]

ANTHROPIC: list[Event] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1},
        },
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Two "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "orders."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I look "}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "them up."}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": "find", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '{"id": "A'},
    },
    {
        "type": "content_block_delta",
        "index": 2,
        "delta": {"type": "input_json_delta", "partial_json": '-1"}'},
    },
    {"type": "content_block_stop", "index": 2},
    {
        "type": "content_block_start",
        "index": 3,
        "content_block": {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}},
    },
    {"type": "content_block_stop", "index": 3},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 30},
    },
    {"type": "message_stop"},
]


def _chunk(delta: Event | None, *, reason: str | None = None, **more: Any) -> Event:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-x"}
    return {**head, "choices": choices, **more}


def _call(index: int, **more: Any) -> Event:
    return {"tool_calls": [{"index": index, **more}]}


CHAT: list[Event] = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"content": "I look "}),
    _chunk({"content": "them up."}),
    _chunk(_call(0, id="call_1", type="function", function={"name": "find", "arguments": ""})),
    _chunk(_call(0, function={"arguments": '{"id": "A'})),
    _chunk(_call(1, id="call_2", type="function", function={"name": "list", "arguments": ""})),
    _chunk(_call(0, function={"arguments": '-1"}'})),
    _chunk(_call(1, function={"arguments": "{}"})),
    _chunk({}, reason="tool_calls"),
    _chunk(
        None,
        usage={
            "prompt_tokens": 25,
            "completion_tokens": 30,
            "total_tokens": 55,
            "prompt_tokens_details": {"cached_tokens": 5},
        },
    ),
]

_REASONING: Event = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Two orders."}],
    "encrypted_content": "c2VjcmV0",
}
_MESSAGE: Event = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "I look them up.", "annotations": []}],
}
_FIND: Event = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "find",
    "arguments": '{"id": "A-1"}',
    "status": "completed",
}
_LIST: Event = {
    "id": "fc_2",
    "type": "function_call",
    "call_id": "call_2",
    "name": "list",
    "arguments": "{}",
    "status": "completed",
}


def _response(status: str, output: list[Event], **more: Any) -> Event:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-x",
        "status": status,
        "output": output,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        **more,
    }


_USAGE: Event = {
    "input_tokens": 25,
    "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 10},
    "total_tokens": 55,
}


def _numbered(events: list[Event]) -> list[Event]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


RESPONSES: list[Event] = _numbered(
    [
        {"type": "response.created", "response": _response("in_progress", [])},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"id": "rs_1", "type": "reasoning", "summary": []},
        },
        {
            "type": "response.reasoning_summary_text.delta",
            "item_id": "rs_1",
            "output_index": 0,
            "summary_index": 0,
            "delta": "Two orders.",
        },
        {"type": "response.output_item.done", "output_index": 0, "item": _REASONING},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": {**_MESSAGE, "status": "in_progress", "content": []},
        },
        {
            "type": "response.content_part.added",
            "item_id": "msg_1",
            "output_index": 1,
            "content_index": 0,
            "part": {"type": "output_text", "text": "", "annotations": []},
        },
        *(
            {
                "type": "response.output_text.delta",
                "item_id": "msg_1",
                "output_index": 1,
                "content_index": 0,
                "delta": delta,
                "logprobs": [],
            }
            for delta in ("I look ", "them up.")
        ),
        {"type": "response.output_item.done", "output_index": 1, "item": _MESSAGE},
        {
            "type": "response.output_item.added",
            "output_index": 2,
            "item": {**_FIND, "arguments": "", "status": "in_progress"},
        },
        {
            "type": "response.output_item.added",
            "output_index": 3,
            "item": {**_LIST, "arguments": "", "status": "in_progress"},
        },
        *(
            {
                "type": "response.function_call_arguments.delta",
                "item_id": f"fc_{index - 1}",
                "output_index": index,
                "delta": delta,
            }
            for index, delta in ((2, '{"id": "A'), (3, "{}"), (2, '-1"}'))
        ),
        {"type": "response.output_item.done", "output_index": 2, "item": _FIND},
        {"type": "response.output_item.done", "output_index": 3, "item": _LIST},
        {
            "type": "response.completed",
            "response": _response("completed", [_REASONING, _MESSAGE, _FIND, _LIST], usage=_USAGE),
        },
    ]
)


def _parts(*parts: Event, **more: Any) -> Event:
    candidate = {"index": 0, "content": {"role": "model", "parts": [*parts]}, **more}
    return {"candidates": [candidate], "modelVersion": "gemini-x", "responseId": "r1"}


GEMINI: list[Event] = [
    _parts({"text": "Two ", "thought": True}),
    _parts({"text": "orders.", "thought": True}),
    _parts({"text": "I look "}),
    _parts({"text": "them up."}),
    _parts({"functionCall": {"name": "find", "args": {"id": "A-1"}}, "thoughtSignature": "c2ln"}),
    {
        **_parts({"functionCall": {"name": "list", "args": {}}}, finishReason="STOP"),
        "usageMetadata": {
            "promptTokenCount": 25,
            "cachedContentTokenCount": 5,
            "candidatesTokenCount": 20,
            "thoughtsTokenCount": 10,
            "totalTokenCount": 55,
        },
    },
]

STREAMS: dict[str, list[Event]] = {
    "anthropic-messages": ANTHROPIC,
    "openai-responses": RESPONSES,
    "openai-chat": CHAT,
    "gemini": GEMINI,
}


def split(event: Event, size: int) -> list[Event]:
    """The event as several of the same kind, with at most so many characters of a delta in each."""
    place = _place(event)
    if place is None or len(_at(event, place)) <= size:
        return [event]
    text = _at(event, place)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [_with(event, place, piece) for piece in pieces]


def _place(event: Event) -> tuple[Any, ...] | None:
    """Where the text of a delta stands, in any of the four forms."""
    places: list[tuple[Any, ...]] = [
        *(("delta", name) for name in ("text", "thinking", "partial_json")),
        ("delta",),
        ("choices", 0, "delta", "content"),
        ("candidates", 0, "content", "parts", 0, "text"),
    ]
    calls = event.get("choices") and event["choices"][0]["delta"].get("tool_calls")
    if calls and not calls[0].get("id"):
        places.append(("choices", 0, "delta", "tool_calls", 0, "function", "arguments"))
    return next((place for place in places if isinstance(_at(event, place), str)), None)


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _with(value: Any, place: tuple[Any, ...], text: str) -> Any:
    if not place:
        return text
    changed = _with(value[place[0]], place[1:], text)
    if isinstance(value, list):
        return [changed if index == place[0] else item for index, item in enumerate(value)]
    return {**value, place[0]: changed}
