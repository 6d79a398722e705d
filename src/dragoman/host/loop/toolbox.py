"""The tools of one round of the loop, as a model's API takes them, and the search among those held back.

It decides what a model is shown, not what it may call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.client import ToolResult
from dragoman.host.models.base import Api, Definitions, Shown, ToolUse
from dragoman.host.outcome import Outcome
from dragoman.host.search import LIMIT, ToolIndex
from dragoman.model import TextContent, Tool

SEARCH: Final = "tool_search"
_MOST: Final = 20
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "description": "What the tool should do, in a few words.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST, "description": "How many at most."},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_DESCRIPTION: Final = (
    "Finds tools among {count} that are not listed here. Those found can be called from the next message on."
)


class _Query(msgspec.Struct):
    query: str
    limit: int = LIMIT


class Toolbox:
    """Tools for an API. `found` are names of deferred tools that were searched for; `search` adds to them."""

    def __init__(self, api: Api, found: list[str], *, strict: bool = False) -> None:
        self._api = api
        self._strict = strict
        self._found = found
        self._tools: dict[str, Shown] = {}
        self._held: dict[str, Shown] = {}
        self._key: tuple[list[Shown], list[str]] = ([], [])
        self._search = SEARCH
        self.definitions = Definitions()

    def fill(self, shown: Sequence[Shown]) -> Definitions:
        """Take the tools as they are now; returns what goes into the next request."""
        key = (list(shown), list(self._found))
        if key == self._key and self._tools:
            return self.definitions
        self._key = key
        self._tools = {tool.name: tool for tool in shown}
        # What was found comes last: the beginning stays as it was, and in the provider's cache.
        early = [tool for tool in shown if tool.name not in self._found]
        late = [replace(self._tools[name], deferred=False) for name in self._found if name in self._tools]
        made = self._api.definitions([*early, *late], strict=self._strict)
        self._held = {name: self._tools[name] for name in made.deferred}
        if self._held:
            made = self._api.definitions([self._searching(), *early, *late], strict=self._strict)
        self.definitions = made
        return made

    def tool(self, name: str) -> Tool | None:
        """The tool that is shown under a name."""
        shown = self._tools.get(name)
        return None if shown is None else shown.tool

    def finds(self, name: str) -> bool:
        """Whether this is the name of the search."""
        return bool(self._held) and name == self._search

    def search(self, use: ToolUse) -> Outcome:
        """Answer a call of the search."""
        try:
            query = msgspec.convert(use.arguments, _Query)
        except msgspec.ValidationError as exc:
            return Outcome(use, "schema", f"Invalid arguments for {use.name}: {use.fault or exc}")
        limit = min(max(query.limit, 1), _MOST)
        hits = [hit.tool for hit in ToolIndex(self._held.values()).search(query.query, limit=limit)]
        self._found += [hit.name for hit in hits if hit.name not in self._found]
        lines = [f"{hit.name}: {_first_line(hit.tool)}" for hit in hits]
        text = "\n".join(lines) or f"No tool fits {query.query!r}. Try other words."
        return Outcome(use, "host", result=ToolResult(content=[TextContent(text=text)]))

    def _searching(self) -> Shown:
        self._search = SEARCH
        while self._search in self._tools:
            self._search += "_"
        said = _DESCRIPTION.format(count=len(self._held))
        return Shown(self._search, Tool(name=self._search, description=said, input_schema=_SCHEMA))


def _first_line(tool: Tool) -> str:
    text = "" if tool.description is UNSET else tool.description.strip()
    return text.split("\n", 1)[0] or "no description"
