"""Servers of models on this machine: each provider's wire form, streamed and whole, cut anywhere.

The shapes are those of the providers' published types (anthropic, openai, google-genai).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

CUT = object()
"""In place of a piece: close the connection there."""
HANG = object()
"""In place of a piece: say nothing any more."""


@dataclass
class Reply:
    """One answer: `pieces` are written one by one, each on its way before the next."""

    pieces: Sequence[Any]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """Answers requests from a list of replies, in order; a function makes its reply from the request."""

    def __init__(self, replies: Sequence[Reply | Callable[[Request], Reply]]) -> None:
        self.replies = list(replies)
        self.requests: list[Request] = []
        self.closed = asyncio.Event()  # a client went away in the middle
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in head[1:] if line}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        request = Request(head[0].split(" ")[1], headers, body)
        self.requests.append(request)
        reply = self.replies.pop(0)
        if callable(reply):
            reply = reply(request)
        told = {"transfer-encoding": "chunked", **reply.headers}
        lines = [f"HTTP/1.1 {reply.status} X", *(f"{name}: {value}" for name, value in told.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for piece in reply.pieces:
            if piece is CUT:
                return False
            if piece is HANG:
                await reader.read()
                self.closed.set()
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@asynccontextmanager
async def model_server(*replies: Reply | Callable[[Request], Reply]):
    """A server for these replies, on a free port."""
    server = ModelServer(replies)
    tasks: set[asyncio.Task] = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        await server.serve(reader, writer)

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await listening.wait_closed()


def sse(*events: Any, names: bool = False, done: bool = False) -> bytes:
    """A stream of events, each a JSON object."""
    out = b""
    for event in events:
        if names:
            out += f"event: {event['type']}\n".encode()
        out += b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
    return out + (b"data: [DONE]\n\n" if done else b"")


def cut(data: bytes, size: int) -> list[bytes]:
    """Bytes in pieces of a size, wherever that cuts them."""
    return [data[start : start + size] for start in range(0, len(data), size)]


EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Use:
    id: str
    name: str
    arguments: dict[str, Any]


class Provider:
    """One API: messages in its forms, and what a request of ours says in it."""

    api: str
    path: str
    streamed: str
    key: tuple[str, str]
    error: dict[str, Any]

    def events(self, text: str, uses: Sequence[Use] = ()) -> bytes:
        raise AssertionError

    def whole(self, text: str, uses: Sequence[Use] = ()) -> dict[str, Any]:
        raise AssertionError

    def results(self, body: dict[str, Any]) -> list[tuple[str, str]]:
        """Ids and texts of the last results of calls in a request."""
        raise AssertionError

    def tools(self, body: dict[str, Any]) -> list[str]:
        raise AssertionError

    def stream(self, text: str, uses: Sequence[Use] = (), *, size: int = 1 << 20) -> Reply:
        return Reply(cut(self.events(text, uses), size), headers=EVENTS)

    def plain(self, text: str, uses: Sequence[Use] = ()) -> Reply:
        return Reply([json.dumps(self.whole(text, uses)).encode()], headers=JSON)

    def refused(self, status: int, **headers: str) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Reply([json.dumps(self.error).encode()], status=status, headers={**JSON, **named})


class Anthropic(Provider):
    api = "anthropic-messages"
    path = streamed = "/v1/messages"
    key = ("x-api-key", "")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    broken = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    def _message(self, content, stop):
        return {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 20, "cache_read_input_tokens": 10, "output_tokens": 7},
        }

    def whole(self, text, uses=()):
        content = [{"type": "text", "text": text}] if text else []
        content += [
            {"type": "tool_use", "id": use.id, "name": use.name, "input": use.arguments} for use in uses
        ]
        return self._message(content, "tool_use" if uses else "end_turn")

    def events(self, text, uses=()):
        start = self._message([], None)
        start["usage"] = {**start["usage"], "output_tokens": 1}
        events = [{"type": "message_start", "message": start}, {"type": "ping"}]
        index = 0
        if text:
            block = {"type": "text", "text": ""}
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            for piece in (text[:3], text[3:]):
                delta = {"type": "text_delta", "text": piece}
                events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
            index += 1
        for use in uses:
            block = {"type": "tool_use", "id": use.id, "name": use.name, "input": {}}
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            told = json.dumps(use.arguments)
            for piece in ("", told[:4], told[4:]):
                delta = {"type": "input_json_delta", "partial_json": piece}
                events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
            index += 1
        stop = {"stop_reason": "tool_use" if uses else "end_turn", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}})
        return sse(*events, {"type": "message_stop"}, names=True)

    def results(self, body):
        blocks = body["messages"][-1]["content"]
        return [
            (block["tool_use_id"], "".join(piece["text"] for piece in block["content"])) for block in blocks
        ]

    def tools(self, body):
        return [tool["name"] for tool in body["tools"]]


class OpenAIChat(Provider):
    api = "openai-chat"
    path = streamed = "/v1/chat/completions"
    key = ("authorization", "Bearer ")
    error = {
        "error": {"message": "Slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    }
    broken = {
        "error": {"message": "Overloaded", "type": "server_error", "param": None, "code": "server_error"}
    }

    _USAGE = {
        "prompt_tokens": 30,
        "completion_tokens": 7,
        "total_tokens": 37,
        "prompt_tokens_details": {"cached_tokens": 10},
    }

    def _calls(self, uses):
        return [
            {
                "id": use.id,
                "type": "function",
                "function": {"name": use.name, "arguments": json.dumps(use.arguments)},
            }
            for use in uses
        ]

    def whole(self, text, uses=()):
        message = {"role": "assistant", "content": text or None, "refusal": None}
        if uses:
            message["tool_calls"] = self._calls(uses)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if uses else "stop",
            "logprobs": None,
        }
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1",
            "choices": [choice],
            "usage": self._USAGE,
        }

    def events(self, text, uses=()):
        def chunk(delta, reason=None):
            choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
            return {**head, "choices": [choice], "usage": None}

        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-1"}
        events = [chunk({"role": "assistant", "content": "" if text else None})]
        if text:
            events += [chunk({"content": text[:3]}), chunk({"content": text[3:]})]
        for index, call in enumerate(self._calls(uses)):
            told = call["function"]["arguments"]
            first = {"index": index, **call, "function": {**call["function"], "arguments": ""}}
            events.append(chunk({"tool_calls": [first]}))
            for piece in (told[:4], told[4:]):
                events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
        events.append(chunk({}, "tool_calls" if uses else "stop"))
        return sse(*events, {**head, "choices": [], "usage": self._USAGE}, done=True)

    def results(self, body):
        return [
            (item["tool_call_id"], item["content"]) for item in body["messages"] if item["role"] == "tool"
        ]

    def tools(self, body):
        return [tool["function"]["name"] for tool in body["tools"]]


class OpenAIResponses(Provider):
    api = "openai-responses"
    path = streamed = "/v1/responses"
    key = ("authorization", "Bearer ")
    error = {
        "error": {"message": "Slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    }
    broken = {
        "type": "error",
        "code": "server_error",
        "message": "Overloaded",
        "param": None,
        "sequence_number": 3,
    }

    def _output(self, text, uses):
        reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "opaque"}
        output = [reasoning]
        if text:
            part = {"type": "output_text", "text": text, "annotations": []}
            output.append(
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        output += [
            {
                "id": f"fc_{number}",
                "type": "function_call",
                "status": "completed",
                "call_id": use.id,
                "name": use.name,
                "arguments": json.dumps(use.arguments),
            }
            for number, use in enumerate(uses)
        ]
        return output

    def whole(self, text, uses=(), status="completed"):
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "m-1",
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "output": self._output(text, uses) if status == "completed" else [],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": {
                "input_tokens": 30,
                "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 0},
                "output_tokens": 7,
                "output_tokens_details": {"reasoning_tokens": 2},
                "total_tokens": 37,
            },
        }

    def events(self, text, uses=()):
        events = [
            {"type": "response.created", "response": self.whole("", (), "in_progress")},
            {"type": "response.in_progress", "response": self.whole("", (), "in_progress")},
        ]
        for place, item in enumerate(self._output(text, uses)):
            begun = {**item}
            if item["type"] == "message":
                begun |= {"status": "in_progress", "content": []}
            elif item["type"] == "function_call":
                begun |= {"status": "in_progress", "arguments": ""}
            events.append({"type": "response.output_item.added", "output_index": place, "item": begun})
            events += self._parts(item, {"item_id": item["id"], "output_index": place}, text)
            events.append({"type": "response.output_item.done", "output_index": place, "item": item})
        events.append({"type": "response.completed", "response": self.whole(text, uses)})
        return sse(*({**event, "sequence_number": number} for number, event in enumerate(events)), names=True)

    def _parts(self, item, at, text):
        if item["type"] == "message":
            at = {**at, "content_index": 0}
            empty = {"type": "output_text", "text": "", "annotations": []}
            return [
                {"type": "response.content_part.added", **at, "part": empty},
                {"type": "response.output_text.delta", **at, "delta": text[:3], "logprobs": []},
                {"type": "response.output_text.delta", **at, "delta": text[3:], "logprobs": []},
                {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
                {"type": "response.content_part.done", **at, "part": item["content"][0]},
            ]
        if item["type"] == "function_call":
            told = item["arguments"]
            kind = "response.function_call_arguments"
            return [
                {"type": f"{kind}.delta", **at, "delta": told[:4]},
                {"type": f"{kind}.delta", **at, "delta": told[4:]},
                {"type": f"{kind}.done", **at, "arguments": told},
            ]
        return []

    def results(self, body):
        items = [item for item in body["input"] if item.get("type") == "function_call_output"]
        return [(item["call_id"], self._text(item["output"])) for item in items]

    def _text(self, output):
        return output if isinstance(output, str) else "".join(part["text"] for part in output)

    def tools(self, body):
        return [tool["name"] for tool in body["tools"]]


class Gemini(Provider):
    api = "gemini"
    path = "/v1beta/models/m-1:generateContent"
    streamed = "/v1beta/models/m-1:streamGenerateContent?alt=sse"
    key = ("x-goog-api-key", "")
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    broken = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}

    _USAGE = {
        "promptTokenCount": 30,
        "cachedContentTokenCount": 10,
        "candidatesTokenCount": 7,
        "totalTokenCount": 37,
    }

    def _body(self, parts, *, last):
        candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if last:
            candidate["finishReason"] = "STOP"
        return {
            "candidates": [candidate],
            "usageMetadata": self._USAGE,
            "modelVersion": "m-1",
            "responseId": "r-1",
        }

    def _calls(self, uses):
        return [
            {
                "functionCall": {"id": use.id, "name": use.name, "args": use.arguments},
                "thoughtSignature": "c2ln",
            }
            for use in uses
        ]

    def whole(self, text, uses=()):
        return self._body([*([{"text": text}] if text else []), *self._calls(uses)], last=True)

    def events(self, text, uses=()):
        events = []
        if text:
            events += [
                self._body([{"text": text[:3]}], last=False),
                self._body([{"text": text[3:]}], last=False),
            ]
        events += [self._body([call], last=False) for call in self._calls(uses)]
        return sse(*events, self._body([{"text": ""}], last=True))

    def results(self, body):
        parts = body["contents"][-1]["parts"]
        return [
            (part["functionResponse"]["id"], self._text(part["functionResponse"]["response"]))
            for part in parts
        ]

    def _text(self, response):
        value = response.get("output", response.get("error"))
        return value if isinstance(value, str) else value["text"]

    def tools(self, body):
        return [tool["name"] for group in body["tools"] for tool in group["functionDeclarations"]]


PROVIDERS = [Anthropic(), OpenAIChat(), OpenAIResponses(), Gemini()]
