"""Lists of a server, read page by page, each page for as long as it is fresh.

Knows what the pages of every kind look like, and keeps what can be kept of a malformed one. How a request is
sent is passed in.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.client.cache import Shelf
from dragoman.client.result import check_type
from dragoman.errors import LocalError, PeerFault, RemoteError
from dragoman.model import (
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedParams,
    PaginatedResult,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
)
from dragoman.model.skills_extension import ListSkillsResult, ReadDirectoryResult, Skill
from dragoman.protocol.lenient import reader, without_nulls

log = logging.getLogger("dragoman.client")

MAX_PAGES: Final = 10_000

# Sends one request for a page and returns its raw result.
Fetch = Callable[[str, PaginatedParams], Awaitable[Raw]]


class _LoosePage(PaginatedResult, kw_only=True):
    tools: list[Any] | UnsetType = UNSET
    resources: list[Any] | UnsetType = UNSET
    resource_templates: list[Any] | UnsetType = UNSET
    prompts: list[Any] | UnsetType = UNSET
    skills: list[Any] | UnsetType = UNSET


_convert: Any = msgspec.convert  # which kind of entry it is, the checkers do not see
_read_loosely: Final = reader(_LoosePage)


@dataclass(frozen=True, slots=True)
class ListKind:
    """A kind of list: how it is asked for, which member of a page holds the entries, and what those are."""

    method: str
    member: str
    entry: type
    read: Callable[[Raw], PaginatedResult]


TOOLS: Final = ListKind("tools/list", "tools", Tool, reader(ListToolsResult))
RESOURCES: Final = ListKind("resources/list", "resources", Resource, reader(ListResourcesResult))
TEMPLATES: Final = ListKind(
    "resources/templates/list", "resource_templates", ResourceTemplate, reader(ListResourceTemplatesResult)
)
PROMPTS: Final = ListKind("prompts/list", "prompts", Prompt, reader(ListPromptsResult))
SKILLS: Final = ListKind("skills/list", "skills", Skill, reader(ListSkillsResult))
DIRECTORY: Final = ListKind("resources/directory/read", "resources", Resource, reader(ReadDirectoryResult))


class Page(msgspec.Struct, frozen=True, eq=False):
    """One page as it was read; the same object for as long as it is served from the cache."""

    entries: list[Any]
    next_cursor: str | UnsetType


class Lists:
    """The lists of one server."""

    def __init__(self, server: str, shelf: Shelf, *, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._server = server
        self._shelf = shelf
        self._fetch = fetch
        self._clock = clock

    async def pages(self, kind: ListKind, *, refresh: bool = False) -> list[Page]:
        """All pages of a list, those anew that are not fresh; with `refresh`, all of them.

        Raises:
            PeerFault: an answer is no page, or there is no end of them.
        """
        kept: list[Page] = []  # those that came out of the cache
        try:
            return await self._walk(kind, refresh=refresh, kept=kept)
        except RemoteError:
            if not kept:
                raise
        # A cursor of a page that is kept may have become invalid: all of it from the beginning (Pagination).
        self._shelf.changed(kind.method)
        return await self._walk(kind, refresh=True, kept=kept)

    async def entries(self, kind: ListKind, *, refresh: bool = False) -> list[Any]:
        """The entries of all pages; a list of its own for each caller."""
        return [entry for page in await self.pages(kind, refresh=refresh) for entry in page.entries]

    async def _walk(self, kind: ListKind, *, refresh: bool, kept: list[Page]) -> list[Page]:
        """Page after page. An empty cursor is a cursor (pagination: Implementation Guidelines); one that was
        there before would go round for ever, and ends the list with a warning.
        """
        pages: list[Page] = []
        seen: set[str] = set()
        cursor: str | UnsetType = UNSET
        for _ in range(MAX_PAGES):
            page = await self._page(kind, cursor, refresh=refresh, kept=kept)
            pages.append(page)
            cursor = page.next_cursor
            if cursor is UNSET:
                return pages
            if cursor in seen:
                text = "server %r gave the cursor %r twice: its list of %s is cut there"
                log.warning(text, self._server, cursor[:100], _noun(kind))
                self._shelf.changed(kind.method)
                return pages
            seen.add(cursor)
        text = f"{kind.method} has more than {MAX_PAGES} pages"
        raise PeerFault(text, server=self._server, stage="call")

    async def _page(
        self, kind: ListKind, cursor: str | UnsetType, *, refresh: bool, kept: list[Page]
    ) -> Page:
        shelf, method = self._shelf, kind.method
        if not refresh:
            fresh: Page | None = shelf.fresh(method, cursor, now=self._clock())
            if fresh is not None:
                kept.append(fresh)
                return fresh
        mark = shelf.mark(method)
        try:
            raw = await self._fetch(method, PaginatedParams(cursor=cursor))
        except (LocalError, RemoteError) as exc:
            stale: Page | None = None if refresh else shelf.stale(method, cursor, fault=exc)
            if stale is None:
                raise
            log.warning("%s: %s failed, and the page read before is served: %s", self._server, method, exc)
            return stale
        received = self._clock()
        result = self._read(kind, raw)
        page = Page(getattr(result, kind.member), result.next_cursor)
        hints = (result.ttl_ms, result.cache_scope)
        shelf.keep(method, cursor, value=page, hints=hints, now=received, mark=mark)
        return page

    def _read(self, kind: ListKind, raw: Raw) -> PaginatedResult:
        try:
            page = kind.read(raw)
        except msgspec.ValidationError as exc:
            page = self._salvage(kind, raw, fault=str(exc))
        try:
            check_type(page.result_type)
        except PeerFault as exc:
            raise PeerFault(f"{kind.method}: {exc.message}", server=self._server, stage="call") from None
        return page

    def _salvage(self, kind: ListKind, raw: Raw, *, fault: str) -> PaginatedResult:
        """A page without its malformed entries: one of them does not take the others with it."""
        try:
            page = _read_loosely(raw)
        except msgspec.ValidationError:
            page = _LoosePage()
        entries = getattr(page, kind.member)
        if entries is UNSET:
            text = f"malformed result of {kind.method}: {fault}"
            raise PeerFault(text, server=self._server, stage="call")
        kept = [entry for entry in (self._entry(kind, entry) for entry in entries) if entry is not None]
        setattr(page, kind.member, kept)
        return page

    def _entry(self, kind: ListKind, entry: Any) -> Any:
        try:
            return _convert(without_nulls(entry), kind.entry)
        except msgspec.ValidationError as exc:
            text = "server %r: a malformed entry of its list of %s is left out: %s"
            log.warning(text, self._server, _noun(kind), exc)
            return None


def _noun(kind: ListKind) -> str:
    return kind.member.replace("_", " ")
