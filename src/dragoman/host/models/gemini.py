"""Google's Gemini API: tools to declarations, `functionCall` to a call, a result to `functionResponse`.

Pure conversion both ways; no client, no key, no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from dragoman.client import ToolResult
from dragoman.errors import UsageError
from dragoman.host.models.base import (
    Block,
    Definitions,
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
from dragoman.host.models.gemini_schemas import json_schema, openapi
from dragoman.host.models.gemini_stream import GeminiReader, error_of
from dragoman.host.models.pieces import FAILED, Media, Text, pieces, structured
from dragoman.host.models.requests import body, counts, number
from dragoman.host.models.schemas import UnfitError, table, tables
from dragoman.host.naming import API_NAMES

IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
_SHOWN: Final = ("audio/", "video/", "application/pdf")

_STOPS: Final[Mapping[str, Stop]] = {
    "STOP": "end",
    "MAX_TOKENS": "length",
    "CONTINUATION": "paused",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
    "IMAGE_SAFETY": "refused",
    "IMAGE_PROHIBITED_CONTENT": "refused",
    "IMAGE_RECITATION": "refused",
    "MODEL_ARMOR": "refused",
}


_RULE: Final = API_NAMES["gemini"]


class Gemini:
    """The API as `Api` has it.

    Schemas go as JSON Schema (`parametersJsonSchema`), or with `openapi` in the older form (`parameters`),
    which says less.
    """

    name: str = "gemini"
    searches: bool = False
    endpoint: Endpoint = Endpoint(
        "https://generativelanguage.googleapis.com",
        "/v1beta/models/{model}:generateContent",
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        "GEMINI_API_KEY",
        key_header="x-goog-api-key",
        key_prefix="",
    )

    def __init__(self, *, openapi: bool = False) -> None:
        self._openapi = openapi

    def definitions(self, tools: Iterable[Shown], *, strict: bool = False) -> Definitions:
        """Function declarations for a request; `strict` has no equivalent here.

        Deferred ones are put aside: this API cannot search.
        """
        offered = [*tools]
        prepared, found = prepare([item for item in offered if not item.deferred], _RULE)
        found.deferred.extend(item.name for item in offered if item.deferred)
        for item in prepared:
            try:
                found.blocks.append(self._declaration(found, item))
            except UnfitError as exc:
                found.left_out.append(LeftOut(item.shown.name, f"inputSchema: {exc}"))
        return found

    def _declaration(self, found: Definitions, item: Prepared) -> Block:
        block: Block = {"name": item.name, "description": item.description}
        if self._openapi:
            schema, lost = openapi(item.schema)
            if schema.get("properties"):  # an object without any is refused; none at all is not
                block["parameters"] = schema
        else:
            block["parametersJsonSchema"], lost = json_schema(item.schema)
        report(found, item.shown, lost=lost)
        return block

    def user(self, text: str) -> list[Item]:
        """A turn of the user."""
        return [{"role": "user", "parts": [{"text": text}]}]

    def result(self, use: ToolUse, result: ToolResult) -> Block:
        """A part with a `functionResponse`: success under `output`, failure under `error`."""
        text = [piece for piece in pieces(result) if not _can_show(piece)]
        media = [piece for piece in pieces(result) if isinstance(piece, Media) and _can_show(piece)]
        said = "\n".join(piece.text if isinstance(piece, Text) else piece.unseen for piece in text)
        if result.is_error:
            response: dict[str, Any] = {"error": said or _json(result) or FAILED}
        else:
            response = {"output": _output(said, result)}
        parts = [{"inlineData": {"mimeType": piece.mime, "data": piece.data}} for piece in media]
        return _response(use, response, parts=parts)

    def failure(self, use: ToolUse, text: str) -> Block:
        """A part with a `functionResponse` that says so."""
        return _response(use, {"error": text})

    def answered(self, blocks: Sequence[Block]) -> list[Item]:
        """One turn of the user, with all results. Where calls have no id, their order is what links them."""
        return [{"role": "user", "parts": [*blocks]}] if blocks else []

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
        """The body of a request. Model and streaming are in the path."""
        own: dict[str, Any] = {"contents": [*history]}
        if system:
            own["systemInstruction"] = {"parts": [{"text": system}]}
        if tools is not None and tools.blocks:
            own["tools"] = [{"functionDeclarations": tools.blocks}]
        if limit is not None:
            own["generationConfig"] = {"maxOutputTokens": limit}
        whole = body(own, more)
        fault = history_fault(tables(whole["contents"]))
        if fault is not None:
            raise UsageError(f"the Gemini API would refuse the request: {fault}")
        return whole

    def said(self, message: Mapping[str, Any]) -> list[Item]:
        """The turn of the model, with the signatures of its thoughts."""
        found = table(_candidate(message).get("content")) or {}
        return [{"role": "model", **found}] if tables(found.get("parts")) else []

    def uses(self, message: Mapping[str, Any]) -> list[ToolUse]:
        """Its `functionCall` parts. One without an id gets `#`, the response's id and its place."""
        calls = [call for part in _parts(message) if (call := table(part.get("functionCall"))) is not None]
        return [_use(message, index, call=call) for index, call in enumerate(calls)]

    def text(self, message: Mapping[str, Any]) -> str:
        """Its text, or why the prompt was blocked."""
        said = "".join(
            str(part.get("text", "")) for part in _parts(message) if part.get("thought") is not True
        )
        return said or str(_candidate(message).get("finishMessage") or _feedback(message) or "")

    def stop(self, message: Mapping[str, Any]) -> Stop:
        """What its `finishReason` says. There is none for calls, which end an answer as text does."""
        if not _candidate(message):
            return "refused" if table(message.get("promptFeedback")) is not None else "other"
        stop: Stop = _STOPS.get(str(_candidate(message).get("finishReason")), "other")
        return "tools" if stop == "end" and self.uses(message) else stop

    def usage(self, message: Mapping[str, Any]) -> Usage:
        """Its tokens. Thoughts are output."""
        said = counts(message.get("usageMetadata"))
        read = number(said, "promptTokenCount") + number(said, "toolUsePromptTokenCount")
        written = number(said, "candidatesTokenCount") + number(said, "thoughtsTokenCount")
        return Usage(read, written, number(said, "cachedContentTokenCount"))

    def error(self, body: Mapping[str, Any]) -> Failed | None:
        """The error of a body `{"error": {...}}`."""
        return error_of(body)

    def reader(self) -> GeminiReader:
        """A reader for one streamed answer."""
        return GeminiReader()


GEMINI: Final = Gemini()


def history_fault(contents: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a history would be refused: each turn with calls is followed by one with as many responses."""
    waiting: list[Mapping[str, Any]] = []
    for index, turn in enumerate(contents):
        parts = tables(turn.get("parts"))
        responses = [found for part in parts if (found := table(part.get("functionResponse"))) is not None]
        if len(responses) != len(waiting):
            return (
                f"contents[{index}]: {len(responses)} functionResponse parts; "
                f"the turn before it has {len(waiting)} functionCall parts"
            )
        ids = {str(call["id"]) for call in waiting if "id" in call}
        strange = [str(found["id"]) for found in responses if "id" in found and str(found["id"]) not in ids]
        if strange:
            return f"contents[{index}]: a response to {', '.join(strange)}, which was not called"
        waiting = [found for part in parts if (found := table(part.get("functionCall"))) is not None]
    return f"contents: no functionResponse for {len(waiting)} functionCall parts" if waiting else None


def _use(message: Mapping[str, Any], index: int, *, call: Mapping[str, Any]) -> ToolUse:
    id_ = str(call.get("id") or f"#{message.get('responseId', '')}.{index}")
    name, given = str(call.get("name", "")), call.get("args")
    arguments = table({} if given is None else given)
    if arguments is None:
        return ToolUse(id_, name, {}, fault=f"args: expected an object; received {type(given).__name__}")
    return ToolUse(id_, name, arguments)


def _response(use: ToolUse, response: dict[str, Any], *, parts: Sequence[Block] = ()) -> Block:
    found: Block = {"name": use.name, "response": response}
    if not use.id.startswith("#"):
        found["id"] = use.id
    if parts:
        found["parts"] = [*parts]
    return {"functionResponse": found}


def _output(said: str, result: ToolResult) -> Any:
    """Structured content as it is; with it, text that says something else."""
    if not result.has_structured:
        return said
    if not said or _same(said, result.structured):
        return result.structured
    return {"structuredContent": result.structured, "text": said}


def _same(text: str, value: object) -> bool:
    try:
        return bool(msgspec.json.decode(text) == value)
    except (ValueError, RecursionError):
        return False


def _json(result: ToolResult) -> str:
    return structured(result) if result.has_structured else ""


def _can_show(piece: Text | Media) -> bool:
    return isinstance(piece, Media) and (piece.mime in IMAGES or piece.mime.startswith(_SHOWN))


def _candidate(message: Mapping[str, Any]) -> Mapping[str, Any]:
    candidates = tables(message.get("candidates"))
    return candidates[0] if candidates else {}


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return tables((table(_candidate(message).get("content")) or {}).get("parts"))


def _feedback(message: Mapping[str, Any]) -> str:
    said = table(message.get("promptFeedback")) or {}
    return str(said.get("blockReasonMessage") or said.get("blockReason") or "")
