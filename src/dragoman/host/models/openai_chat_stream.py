"""The chunks of a streamed answer of Chat Completions, and the completion that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.host.models.base import ArgumentsDelta, Delta, TextDelta, ThoughtDelta, UseStarted
from dragoman.host.models.openai_common import error_of
from dragoman.host.models.schemas import table, tables

# How servers other than OpenAI's name what a model thinks.
_THOUGHTS: Final = ("reasoning_content", "reasoning")


def identity(message: Mapping[str, Any], index: int) -> str:
    """An id for a call to which a server gave none."""
    return f"{message.get('id') or 'call'}.{index}"


class ChatReader:
    """Reads one answer. See `Reader`."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}
        self._reason: object = None

    @property
    def done(self) -> bool:
        """Whether a `finish_reason` came. A chunk with the usage may follow."""
        return self._reason is not None

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the next chunk."""
        failed = error_of(event)
        if failed is not None:
            return [failed]
        for name, value in event.items():
            if name not in ("choices", "object", "obfuscation") and value is not None:
                self._head[name] = value
        deltas: list[Delta] = []
        for choice in tables(event.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            deltas += self._delta(table(choice.get("delta")) or {})
            self._reason = choice.get("finish_reason") or self._reason
        return deltas

    def message(self) -> dict[str, Any]:
        """The completion as it would be without a stream."""
        message = {**self._message, "tool_calls": self._calls} if self._calls else self._message
        choice = {"index": 0, "message": message, "finish_reason": self._reason}
        return {**self._head, "object": "chat.completion", "choices": [choice]}

    def _delta(self, delta: Mapping[str, Any]) -> list[Delta]:
        deltas: list[Delta] = []
        for name, value in delta.items():
            if not isinstance(value, str) or not value or name == "role":
                continue
            self._message[name] = f"{self._message.get(name) or ''}{value}"
            if name in ("content", "refusal"):
                deltas.append(TextDelta(value))
            elif name in _THOUGHTS:
                deltas.append(ThoughtDelta(value))
        for call in tables(delta.get("tool_calls")):
            deltas += self._call(call)
        return deltas

    def _call(self, part: Mapping[str, Any]) -> list[Delta]:
        place = self._place(part)
        call = self._calls[place]
        function = table(part.get("function")) or {}
        known: dict[str, Any] = call["function"]
        started = not known["name"] and bool(function.get("name"))
        for name, value in part.items():
            if name not in ("index", "function") and value is not None:
                call[name] = value  # the id, and what some servers put beside it
        known["name"] = known["name"] or str(function.get("name") or "")
        text = str(function.get("arguments") or "")
        known["arguments"] += text
        id_ = str(call["id"] or identity(self._head, place))
        deltas: list[Delta] = [UseStarted(id_, known["name"])] if started else []
        return [*deltas, ArgumentsDelta(id_, text)] if text else deltas

    def _place(self, part: Mapping[str, Any]) -> int:
        """Which call a part belongs to. Some servers give no index: then an id begins a new call."""
        index = part.get("index")
        if isinstance(index, int) and index in self._places:
            known = self._calls[self._places[index]]["id"]
            if not part.get("id") or not known or part["id"] == known:
                return self._places[index]
        elif not isinstance(index, int) and self._calls and not self._new(part):
            return len(self._calls) - 1
        self._calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        if isinstance(index, int):
            self._places[index] = len(self._calls) - 1
        return len(self._calls) - 1

    def _new(self, part: Mapping[str, Any]) -> bool:
        if part.get("id"):
            return bool(part["id"] != self._calls[-1]["id"])
        return bool((table(part.get("function")) or {}).get("name"))
