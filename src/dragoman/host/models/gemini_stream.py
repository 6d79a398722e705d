"""The chunks of a streamed answer of Google's Gemini API, and the response that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.host.models.base import Delta, Failed, TextDelta, ThoughtDelta, UseStarted
from dragoman.host.models.schemas import table, tables


def error_of(body: Mapping[str, Any]) -> Failed | None:
    """The error of a body `{"error": {...}}`."""
    error = table(body.get("error"))
    if error is None:
        return None
    return Failed(str(error.get("status") or error.get("code") or "error"), str(error.get("message", "")))


class GeminiReader:
    """Reads one answer. See `Reader`. A call comes whole in one chunk."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []
        self._calls = 0

    @property
    def done(self) -> bool:
        """Whether a `finishReason` came, or that the prompt was blocked."""
        return "finishReason" in self._candidate or "promptFeedback" in self._head

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the next chunk, which is a response with a part of the answer."""
        failed = error_of(event)
        if failed is not None:
            return [failed]
        self._head.update({name: value for name, value in event.items() if name != "candidates"})
        deltas: list[Delta] = []
        for candidate in tables(event.get("candidates")):
            if candidate.get("index", 0) != 0:
                continue
            self._candidate.update({name: value for name, value in candidate.items() if name != "content"})
            content = table(candidate.get("content")) or {}
            for part in tables(content.get("parts")):
                deltas += self._part(dict(part))
        return deltas

    def message(self) -> dict[str, Any]:
        """The response as it would be without a stream."""
        content = {"role": "model", "parts": self._parts}
        whole = {**self._candidate, "content": content} if self._parts else self._candidate
        return {**self._head, "candidates": [whole]} if whole else dict(self._head)

    def _part(self, part: dict[str, Any]) -> list[Delta]:
        call = table(part.get("functionCall"))
        text = part.get("text")
        if call is not None:
            self._parts.append(part)
            id_ = str(call.get("id") or f"#{self._head.get('responseId', '')}.{self._calls}")
            self._calls += 1
            return [UseStarted(id_, str(call.get("name", "")))]
        if not isinstance(text, str):
            self._parts.append(part)
            return []
        if self._parts and _joins(self._parts[-1], part):
            self._parts[-1]["text"] += text
        else:
            self._parts.append(part)
        if not text:
            return []
        return [ThoughtDelta(text) if part.get("thought") is True else TextDelta(text)]


def _joins(last: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether two parts are one text. What is signed stays as it came, or its signature is worth nothing."""
    plain = {"text", "thought"}
    alike = last.get("thought") == part.get("thought")
    return alike and isinstance(last.get("text"), str) and not (last.keys() | part.keys()) - plain
