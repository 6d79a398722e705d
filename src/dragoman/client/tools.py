"""The tools a server lists, and what follows from the list for the calls.

Knows which arguments HTTP mirrors into headers, and whether a result fits the schema its tool
promised. It reads no pages and sends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from operator import is_
from typing import Any, Final, cast

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.client.lists import Page
from dragoman.client.result import MISSING_STRUCTURED, ToolResult
from dragoman.model import Tool
from dragoman.protocol.headers import encode_value
from dragoman.schema.errors import HeaderAnnotationError, SchemaError
from dragoman.schema.parameters import HeaderParameter, header_parameters
from dragoman.schema.validate import Validator

log = logging.getLogger("dragoman.client")

PARAM_HEADER: Final = "Mcp-Param-"


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

    def __init__(self, server: str, *, mirrors: bool) -> None:
        self._server = server
        self._mirrors = mirrors
        self._pages: list[Page] = []
        self._listed: dict[str, Listed] = {}
        self._tools: list[Tool] = []

    def update(self, pages: list[Page]) -> list[Tool]:
        """Take in a list that was read; returns its tools, without those that cannot be used."""
        same = len(pages) == len(self._pages) and all(map(is_, pages, self._pages))
        if not same:
            self._keep([tool for page in pages for tool in page.entries])
            self._pages = pages
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

    # For calls ---------------------------------------------------------------------------------------

    def get(self, name: str) -> Tool | None:
        """The tool as it was listed last."""
        listed = self._listed.get(name)
        return None if listed is None else listed.tool

    def safe(self, name: str) -> bool:
        """Whether the tool says that a second call does no more than the first."""
        tool = self.get(name)
        said = UNSET if tool is None else tool.annotations
        return said is not UNSET and (said.read_only_hint is True or said.idempotent_hint is True)

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
