"""Runs in the peer `providers`: says whether a value is of a published type, and what their own readers make
of a stream.

Reads one JSON object a line, `{"what": ..., "value": ...}`, and answers with one line: `{"faults": [...]}`
or `{"message": ...}`.

`TypedDict`s are walked here and not given to pydantic, which reads an `Iterable` only when it is asked for,
and passes over keys that no type has.
"""

from __future__ import annotations

import json
import sys
import types as python_types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import anthropic.types
import openai.types.chat
import openai.types.responses
import typing_extensions
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import message_create_params
from google.genai import types as gemini
from openai.lib.streaming.chat._completions import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import BaseModel, TypeAdapter, ValidationError

PLAIN = {str: str, bool: bool, int: int, float: (int, float), type(None): type(None)}
WRAPPERS = (Required, NotRequired, typing_extensions.Required, typing_extensions.NotRequired, Annotated)


def faults(kind: Any, value: Any, path: str = "") -> Iterator[str]:
    origin, inside = get_origin(kind), get_args(kind)
    if origin in WRAPPERS:
        yield from faults(inside[0], value, path)
    elif origin in (Union, python_types.UnionType):
        yield from either(inside, value, path)
    elif origin is Literal:
        if value not in inside:
            yield f"{path}: {value!r} is none of {inside}"
    elif typing_extensions.is_typeddict(kind):
        yield from members(kind, value, path)
    elif origin is not None:
        yield from collection(origin, inside, value, path)
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from model_faults(kind, value, path)
    elif kind is not Any and kind is not object:
        yield from plain(kind, value, path)


def plain(kind: Any, value: Any, path: str) -> Iterator[str]:
    if kind not in PLAIN:
        yield f"{path}: {kind!r} has no form in JSON"
    elif not isinstance(value, PLAIN[kind]) or (kind is not bool and isinstance(value, bool)):
        yield f"{path}: {value!r} is no {kind.__name__}"


def collection(origin: Any, inside: Sequence[Any], value: Any, path: str) -> Iterator[str]:
    if issubclass(origin, Mapping):
        if not isinstance(value, dict):
            yield f"{path}: {value!r} is no object"
            return
        for name, part in value.items():
            yield from faults(inside[1], part, f"{path}.{name}")
        return
    if not (origin.__name__ == "SequenceNotStr" or issubclass(origin, Iterable)):
        yield f"{path}: {origin!r} has no form in JSON"
    elif not isinstance(value, list):
        yield f"{path}: {value!r} is no array"
    else:
        for index, part in enumerate(value):
            yield from faults(inside[0], part, f"{path}[{index}]")


def either(kinds: Sequence[Any], value: Any, path: str) -> Iterator[str]:
    """Of what is wrong in all alternatives, that of the one which has the least wrong with it."""
    found = [[*faults(kind, value, path)] for kind in kinds]
    if all(found):
        yield from min(found, key=lambda each: (len(each), -max(map(len, each))))


def members(kind: Any, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: {value!r} is no object"
        return
    hints = get_type_hints(kind, include_extras=True)
    extra = getattr(kind, "__pydantic_config__", {}).get("extra") == "allow"
    for name, hint in hints.items():
        if name not in value and get_origin(hint) in (Required, typing_extensions.Required):
            yield f"{path}.{name}: is missing"
    for name, part in value.items():
        if name in hints:
            yield from faults(hints[name], part, f"{path}.{name}")
        elif not extra:
            yield f"{path}.{name}: {kind.__name__} has no such member"


def model_faults(kind: Any, value: Any, path: str) -> Iterator[str]:
    try:
        found = TypeAdapter(kind).validate_json(json.dumps(value))
    except ValidationError as exc:
        yield from (f"{path}.{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in exc.errors())
        return
    yield from (f"{path}{each}: no such member" for each in extras(found))


def extras(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from (f"{path}.{name}" for name in value.model_extra or {})
        for name in type(value).model_fields:
            yield from extras(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from extras(part, f"{path}[{index}]")


def gemini_request(value: dict[str, Any]) -> Iterator[str]:
    kinds = {
        "contents": list[gemini.Content],
        "tools": list[gemini.Tool],
        "systemInstruction": gemini.Content,
        "generationConfig": gemini.GenerationConfig,
    }
    for name, part in value.items():
        if name in kinds:
            yield from model_faults(kinds[name], part, name)
        else:
            yield f"{name}: no such member"


PARAMS = {
    "anthropic-messages": (
        message_create_params.MessageCreateParamsStreaming,
        message_create_params.MessageCreateParamsNonStreaming,
    ),
    "openai-responses": (
        response_create_params.ResponseCreateParamsStreaming,
        response_create_params.ResponseCreateParamsNonStreaming,
    ),
    "openai-chat": (
        completion_create_params.CompletionCreateParamsStreaming,
        completion_create_params.CompletionCreateParamsNonStreaming,
    ),
}
ANSWERS = {
    "anthropic-messages": (anthropic.types.RawMessageStreamEvent, anthropic.types.Message),
    "openai-responses": (openai.types.responses.ResponseStreamEvent, openai.types.responses.Response),
    "openai-chat": (openai.types.chat.ChatCompletionChunk, openai.types.chat.ChatCompletion),
    "gemini": (gemini.GenerateContentResponse, gemini.GenerateContentResponse),
}


def read_anthropic(events: list[dict[str, Any]]) -> Any:
    snapshot, buffers = None, {}
    adapter = TypeAdapter(anthropic.types.RawMessageStreamEvent)
    for event in events:
        found = adapter.validate_python(event)
        snapshot = accumulate_event(event=found, current_snapshot=snapshot, json_bufs=buffers)
    return snapshot.to_dict(mode="json")


def read_chat(events: list[dict[str, Any]]) -> Any:
    state = ChatCompletionStreamState()
    for event in events:
        state.handle_chunk(openai.types.chat.ChatCompletionChunk.model_validate(event))
    return state.get_final_completion().to_dict(mode="json")


def read_responses(events: list[dict[str, Any]]) -> Any:
    state = ResponseStreamState(input_tools=[], text_format=openai.omit)
    adapter = TypeAdapter(openai.types.responses.ResponseStreamEvent)
    for event in events:
        said = state.handle_event(adapter.validate_python(event))
    return said[-1].response.to_dict(mode="json")


READERS = {"anthropic-messages": read_anthropic, "openai-chat": read_chat, "openai-responses": read_responses}


def answer(what: str, api: str, value: Any) -> dict[str, Any]:
    match what:
        case "request" if api == "gemini":
            return {"faults": [*gemini_request(value)]}
        case "request":
            streaming, whole = PARAMS[api]
            return {"faults": [*members(streaming if value.get("stream") else whole, value, "")]}
        case "event":
            return {"faults": [*model_faults(ANSWERS[api][0], value, "")]}
        case "message":
            return {"faults": [*model_faults(ANSWERS[api][1], value, "")]}
        case "openapi":
            return {"faults": [*model_faults(gemini.Schema, value, "")]}
        case "read":
            return {"message": READERS[api](value)}
        case _:
            raise ValueError(what)


for line in sys.stdin:
    asked = json.loads(line)
    try:
        said = answer(asked["what"], asked.get("api", ""), asked["value"])
    except Exception as exc:
        said = {"faults": [f"{type(exc).__name__}: {exc}"]}
    print(json.dumps(said), flush=True)
