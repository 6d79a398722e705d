"""The tools a server lists, read page by page, and what follows from a list for the calls.

Knows how long a list is fresh, which arguments HTTP mirrors into headers, and whether a result fits
the schema its tool promised. It sends nothing itself.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.client.result import MISSING_STRUCTURED, ToolResult, check_type
from dragoman.errors import PeerFault
from dragoman.model import ListToolsResult, PaginatedParams, PaginatedResult, Tool
from dragoman.protocol.headers import encode_value
from dragoman.protocol.lenient import reader, without_nulls
from dragoman.schema.errors import HeaderAnnotationError, SchemaError
from dragoman.schema.parameters import HeaderParameter, header_parameters
from dragoman.schema.validate import Validator

log = logging.getLogger("dragoman.client")

PARAM_HEADER: Final = "Mcp-Param-"
MAX_PAGES: Final = 10_000

Fetch = Callable[[PaginatedParams], Awaitable[Raw]]


class _LoosePage(PaginatedResult, kw_only=True):
    tools: list[Any]


_read_page: Final = reader(ListToolsResult)
_read_loosely: Final = reader(_LoosePage)


class Listed:
    """One tool of a list, with what was made of its schemas."""

    __slots__ = ("_faulty", "_validator", "headers", "tool")

    def __init__(self, tool: Tool, headers: tuple[HeaderParameter, ...]) -> None:
        self.tool = tool
        self.headers = headers
        self._validator: Validator | None = None
        self._faulty = False

    def faults(self, result: ToolResult, server: str) -> tuple[str, ...]:
        """How the structured content does not fit the tool's output schema."""
        schema = self.tool.output_schema
        if schema is UNSET or result.is_error or self._faulty:
            return ()
        if not result.has_structured:
            return (MISSING_STRUCTURED,)
        try:
            if self._validator is None:
                self._validator = Validator(schema)
            return tuple(f"structuredContent: {fault}" for fault in self._validator.errors(result.structured))
        except SchemaError as exc:
            self._faulty = True  # a schema that cannot be used says nothing against any result
            log.warning("server %r: the outputSchema of tool %r is not used: %s", server, self.tool.name, exc)
            return ()


class ToolList:
    """What is known of a server's tools. `mirrors`: arguments are mirrored into headers (HTTP)."""

    def __init__(self, server: str, *, mirrors: bool, cache: bool) -> None:
        self._server = server
        self._mirrors = mirrors
        self._cache = cache
        self._listed: dict[str, Listed] = {}
        self._tools: list[Tool] = []
        self._fresh_until = 0.0
        self._changes = 0
        self.read = False  # whether a list was read yet

    def changed(self) -> None:
        """The server says that its list is another one now."""
        self._changes += 1
        self._fresh_until = 0.0

    def fresh(self, now: float) -> list[Tool] | None:
        """The tools, while the server's word is that they are still the same."""
        return list(self._tools) if now < self._fresh_until else None

    async def fetch(self, page: Fetch, clock: Callable[[], float]) -> list[Tool]:
        """Read all pages anew. `page` sends one request; `clock` tells seconds.

        An empty cursor is a cursor (pagination: Implementation Guidelines); one that was there before
        would go round for ever, and ends the list with a warning.

        Raises:
            PeerFault: an answer is no page of tools, or there is no end of them.
        """
        changes = self._changes
        tools: list[Tool] = []
        seen: set[str] = set()
        until = float("inf")
        params = PaginatedParams()
        for _ in range(MAX_PAGES):
            raw = await page(params)
            received = clock()
            result = self._page(raw)
            tools += result.tools
            # The list as a whole is as fresh as its stalest page.
            until = min(until, received + _seconds(result))
            cursor = result.next_cursor
            if cursor is UNSET:
                break
            if cursor in seen:
                log.warning(
                    "server %r gave the cursor %r twice: its list of tools is cut there",
                    self._server,
                    cursor[:100],
                )
                until = 0.0
                break
            seen.add(cursor)
            params = PaginatedParams(cursor=cursor)
        else:
            raise PeerFault(f"tools/list has more than {MAX_PAGES} pages", server=self._server, stage="call")
        self._keep(tools)
        if self._cache and changes == self._changes:
            self._fresh_until = until
        return list(self._tools)

    def _keep(self, tools: list[Tool]) -> None:
        listed: dict[str, Listed] = {}
        for tool in tools:
            headers: tuple[HeaderParameter, ...] = ()
            if self._mirrors:
                try:
                    headers = header_parameters(tool.input_schema)
                except HeaderAnnotationError as exc:
                    log.warning("server %r: tool %r is left out: %s", self._server, tool.name, exc)
                    continue
            if tool.name in listed:
                log.warning("server %r lists tool %r twice: the first one counts", self._server, tool.name)
                continue
            listed[tool.name] = Listed(tool, headers)
        self._listed = listed
        self._tools = [entry.tool for entry in listed.values()]
        self.read = True

    def _page(self, raw: Raw) -> ListToolsResult:
        try:
            page = _read_page(raw)
        except msgspec.ValidationError as exc:
            page = self._salvage(raw, str(exc))
        try:
            check_type(page.result_type)
        except PeerFault as exc:
            raise PeerFault(f"tools/list: {exc.message}", server=self._server, stage="call") from None
        return page

    def _salvage(self, raw: Raw, fault: str) -> ListToolsResult:
        """A page without its malformed entries: one of them does not take the others with it."""
        try:
            loose = _read_loosely(raw)
        except msgspec.ValidationError:
            text = f"malformed result of tools/list: {fault}"
            raise PeerFault(text, server=self._server, stage="call") from None
        tools = [tool for tool in map(self._tool, loose.tools) if tool is not None]
        return ListToolsResult(
            tools=tools, next_cursor=loose.next_cursor, ttl_ms=loose.ttl_ms, result_type=loose.result_type
        )

    def _tool(self, entry: Any) -> Tool | None:
        try:
            return msgspec.convert(without_nulls(entry), Tool)
        except msgspec.ValidationError as exc:
            log.warning(
                "server %r: a malformed entry of its list of tools is left out: %s", self._server, exc
            )
            return None

    # For calls ---------------------------------------------------------------------------------------

    def get(self, name: str) -> Tool | None:
        """The tool as it was listed last."""
        listed = self._listed.get(name)
        return None if listed is None else listed.tool

    def mirrored(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, str]:
        """The `Mcp-Param-*` headers for a call (Streamable HTTP: Custom Headers from Tool Parameters)."""
        listed = self._listed.get(name)
        if listed is None or not listed.headers:
            return {}
        headers: dict[str, str] = {}
        for parameter in listed.headers:
            text = _text(_value(arguments, parameter.path))
            if text is not None:
                headers[PARAM_HEADER + parameter.header] = encode_value(text)
        return headers

    def check(self, name: str, result: ToolResult) -> ToolResult:
        """The result, marked where it does not fit what the tool promised; never thrown away."""
        listed = self._listed.get(name)
        faults = () if listed is None else listed.faults(result, self._server)
        return replace(result, invalid=(*result.invalid, *faults)) if faults else result


def _seconds(page: PaginatedResult) -> float:
    """How long a page is fresh: absent, negative and zero are all "not at all" (caching: TTL Field)."""
    return 0.0 if page.ttl_ms is UNSET or page.ttl_ms < 0 else page.ttl_ms / 1000


def _value(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for member in path:
        if not isinstance(value, Mapping) or member not in value:
            return None
        value = cast("Mapping[str, Any]", value)[member]
    return value


def _text(value: Any) -> str | None:
    """A primitive as a header says it (Value Encoding); None for what has no header."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not value.is_integer():
        return repr(value)
    return str(int(value)) if isinstance(value, int | float) else None
