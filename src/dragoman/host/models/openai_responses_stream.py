"""The events of a streamed answer of OpenAI's Responses API, and the response that they come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.host.models.base import ArgumentsDelta, Delta, Failed, TextDelta, ThoughtDelta, UseStarted
from dragoman.host.models.requests import number
from dragoman.host.models.schemas import table, tables

_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "response.output_text.delta": ("output_text", "text"),
    "response.refusal.delta": ("refusal", "refusal"),
}
_THOUGHTS: Final = frozenset({"response.reasoning_text.delta", "response.reasoning_summary_text.delta"})


class ResponsesReader:
    """Reads one answer. See `Reader`."""

    def __init__(self) -> None:
        self._response: dict[str, Any] = {"object": "response", "status": "in_progress"}
        self._items: dict[int, dict[str, Any]] = {}
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the response came whole, be it that it failed."""
        return self._done

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Take the next event."""
        kind = str(event.get("type"))
        if kind in _ENDS or kind in ("response.created", "response.in_progress"):
            return self._take(kind, table(event.get("response")) or {})
        if kind == "error":
            inner = table(event.get("error")) or event
            return [Failed(str(inner.get("code") or "error"), str(inner.get("message", "")))]
        index = number(event, "output_index")
        if kind in ("response.output_item.added", "response.output_item.done"):
            return self._item(index, dict(table(event.get("item")) or {}))
        return self._more(kind, index, event=event)

    def message(self) -> dict[str, Any]:
        """The response: as the API said it at the end, or as far as it came."""
        if self._done and tables(self._response.get("output")):
            return dict(self._response)
        return {**self._response, "output": [item for _, item in sorted(self._items.items())]}

    def _take(self, kind: str, response: Mapping[str, Any]) -> list[Delta]:
        self._response.update(response)
        self._done = self._done or kind in _ENDS
        error = table(response.get("error"))
        if kind == "response.failed":
            said = error or {}
            return [Failed(str(said.get("code") or "failed"), str(said.get("message", "")))]
        return []

    def _item(self, index: int, item: dict[str, Any]) -> list[Delta]:
        known = self._items.get(index)
        self._items[index] = item
        if known is None and item.get("type") == "function_call":
            return [UseStarted(str(item.get("call_id", "")), str(item.get("name", "")))]
        return []

    def _more(self, kind: str, index: int, *, event: Mapping[str, Any]) -> list[Delta]:
        delta = event.get("delta")
        if not isinstance(delta, str):
            return []
        if kind in _TEXTS:
            part_type, member = _TEXTS[kind]
            part = self._part(index, number(event, "content_index"), kind=part_type)
            part[member] = f"{part.get(member, '')}{delta}"
            return [TextDelta(delta)]
        if kind in _THOUGHTS:
            return [ThoughtDelta(delta)]
        if kind == "response.function_call_arguments.delta":
            item = self._items.setdefault(index, {"type": "function_call"})
            item["arguments"] = f"{item.get('arguments', '')}{delta}"
            return [ArgumentsDelta(str(item.get("call_id", "")), delta)]
        return []

    def _part(self, index: int, place: int, *, kind: str) -> dict[str, Any]:
        item = self._items.setdefault(index, {"type": "message", "role": "assistant"})
        content = tables(item.get("content"))
        parts = [dict(part) for part in content]
        place = min(place, len(parts))  # parts come in their order, whatever a server counts
        if place == len(parts):
            parts.append({"type": kind, "annotations": []} if kind == "output_text" else {"type": kind})
        item["content"] = parts
        return parts[place]
