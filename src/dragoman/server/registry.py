"""The tools of one server, in the order in which they were added.

A list is built once and kept until the set of tools changes. It refuses to know who is asking.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator

from msgspec import UNSET

from dragoman.errors import Refusal, UsageError
from dragoman.model import CacheScope, ListToolsResult
from dragoman.server.tool import Tool

_CURSOR = b"after:"


class Registry:
    """Tools by name."""

    def __init__(self, *, page_size: int | None, ttl_ms: int, cache_scope: CacheScope) -> None:
        if page_size is not None and page_size < 1:
            raise UsageError(f"page_size: expected a whole number above 0, received {page_size}")
        if ttl_ms < 0:
            raise UsageError(f"ttl_ms: expected 0 or more milliseconds, received {ttl_ms}")
        self._tools: dict[str, Tool] = {}
        self._pages: dict[str | None, ListToolsResult] = {}
        self._page_size = page_size
        self._ttl_ms = ttl_ms
        self._cache_scope: CacheScope = cache_scope
        self.on_change: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        """How many tools there are."""
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        """The tools in their order."""
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def add(self, tool: Tool) -> None:
        """Add a tool.

        Raises:
            UsageError: there is one of that name already.
        """
        name = tool.entry.name
        if name in self._tools:
            raise UsageError(
                f"there is a tool {name!r} already: give this one another name, or remove that one"
            )
        self._tools[name] = tool
        self._changed()

    def remove(self, name: str) -> None:
        """Take a tool away.

        Raises:
            UsageError: there is none of that name.
        """
        if self._tools.pop(name, None) is None:
            raise UsageError(f"there is no tool {name!r} to remove")
        self._changed()

    def _changed(self) -> None:
        self._pages.clear()
        self.on_change()

    def page(self, cursor: str | None) -> ListToolsResult:
        """One page of the list; the same object until the tools change.

        Raises:
            Refusal: -32602 for a cursor that no list of this server gave out.
        """
        found = self._pages.get(cursor)
        if found is None:
            found = self._pages[cursor] = self._build(cursor)
        return found

    def _build(self, cursor: str | None) -> ListToolsResult:
        tools = list(self._tools.values())
        start = 0 if cursor is None else self._after(cursor, tools)
        size = self._page_size or len(tools) or 1
        page = tools[start : start + size]
        more = start + size < len(tools)
        return ListToolsResult(
            tools=[tool.entry for tool in page],
            next_cursor=_cursor(page[-1].entry.name) if more else UNSET,
            ttl_ms=self._ttl_ms,
            cache_scope=self._cache_scope,
        )

    def _after(self, cursor: str, tools: list[Tool]) -> int:
        # A cursor names the last tool of its page, so that it stays right when others come and go.
        name = _named(cursor)
        for index, tool in enumerate(tools):
            if tool.entry.name == name:
                return index + 1
        raise Refusal(
            -32602, "Invalid params: unknown cursor; list again from the first page", {"cursor": cursor}
        )


def _cursor(name: str) -> str:
    return urlsafe_b64encode(_CURSOR + name.encode()).decode("ascii")


def _named(cursor: str) -> str | None:
    try:
        text = urlsafe_b64decode(cursor.encode("ascii"))
        return text.removeprefix(_CURSOR).decode() if text.startswith(_CURSOR) else None
    except ValueError:
        return None
