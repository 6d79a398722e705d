"""The events of a streamed answer of Anthropic's Messages API, and the message that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.host.models.base import ArgumentsDelta, Delta, Failed, TextDelta, ThoughtDelta, UseStarted
from dragoman.host.models.requests import number
from dragoman.host.models.schemas import table


class AnthropicReader:
    """Reads one answer. See `Reader`."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {"role": "assistant", "content": [], "stop_reason": None}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._done = False

    @property
    def done(self) -> bool:
        """Whether `message_stop` came."""
        return self._done

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the next event."""
        match event.get("type"):
            case "message_start":
                self._message.update(table(event.get("message")) or {})
            case "content_block_start":
                return self._start(number(event, "index"), dict(table(event.get("content_block")) or {}))
            case "content_block_delta":
                return self._more(number(event, "index"), table(event.get("delta")) or {})
            case "message_delta":
                self._message.update(table(event.get("delta")) or {})
                usage = table(self._message.get("usage")) or {}
                said = table(event.get("usage")) or {}
                self._message["usage"] = {**usage, **{k: v for k, v in said.items() if v is not None}}
            case "message_stop":
                self._done = True
            case "error":
                error = table(event.get("error")) or {}
                return [Failed(str(error.get("type", "error")), str(error.get("message", "")))]
            case _:
                pass
        return []

    def message(self) -> dict[str, Any]:
        """What came so far. Where a call's arguments are no whole JSON, `input` is their text."""
        content = [self._whole(index, block) for index, block in sorted(self._blocks.items())]
        return {**self._message, "content": content}

    def _start(self, index: int, block: dict[str, Any]) -> list[Delta]:
        self._blocks[index] = block
        if block.get("type") == "tool_use":
            return [UseStarted(str(block.get("id", "")), str(block.get("name", "")))]
        if block.get("type") == "text" and block.get("text"):
            return [TextDelta(str(block["text"]))]
        return []

    def _more(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "text_delta":
                block["text"] = f"{block.get('text', '')}{delta.get('text', '')}"
                return [TextDelta(str(delta.get("text", "")))]
            case "thinking_delta":
                block["thinking"] = f"{block.get('thinking', '')}{delta.get('thinking', '')}"
                return [ThoughtDelta(str(delta.get("thinking", "")))]
            case "signature_delta":
                block["signature"] = f"{block.get('signature', '')}{delta.get('signature', '')}"
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
            case "input_json_delta":
                text = str(delta.get("partial_json", ""))
                self._inputs[index] = self._inputs.get(index, "") + text
                if block.get("type") == "tool_use" and text:
                    return [ArgumentsDelta(str(block.get("id", "")), text)]
            case _:
                pass
        return []

    def _whole(self, index: int, block: Mapping[str, Any]) -> dict[str, Any]:
        text = self._inputs.get(index, "")
        if not text:
            return dict(block)
        try:
            found: object = msgspec.json.decode(text)
        except (ValueError, RecursionError):
            return {**block, "input": text}
        return {**block, "input": found if isinstance(found, Mapping) else text}
