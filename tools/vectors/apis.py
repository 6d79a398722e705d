"""Cases of models' APIs: which names and schemas they take, and what becomes of a result."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.client import ToolResult
from dragoman.host.models import anthropic
from dragoman.host.models.base import Shown
from dragoman.host.naming import API_NAMES
from dragoman.model import ContentBlock, Tool

from .expecting import Fact, Says
from .forms import Case, table


def run(host: str, kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this API and kind."""
    if kind == "tool-name":
        rule = API_NAMES[host]
        accepted = rule.accepts(str(given["name"]))
        return {"accepted": _Accepted(accepted, rule.limit), "max": rule.limit, "pattern": _Pattern(rule)}
    if host == "anthropic-messages" and kind == "schema":
        schema = table(given["input_schema"])
        shown, left = anthropic.definitions([Shown("t", Tool(name="t", input_schema=schema))])
        refused = bool(left) or shown[0]["input_schema"] != schema
        return {"request": Says("refused", "400") if refused else Says("accepted", "200|accepted|ok")}
    if host == "anthropic-messages" and kind == "result":
        return _result(table(given["mcp_result"]))
    return {}


def _result(given: dict[str, Any]) -> dict[str, Any]:
    content: list[ContentBlock] = msgspec.convert(given.get("content", []), list[ContentBlock])
    result = ToolResult(
        content=[*content],
        structured=given.get("structuredContent"),
        has_structured="structuredContent" in given,
        is_error=given.get("isError") is True,
    )
    block = anthropic.tool_result("toolu_1", result)
    lost = "cannot be shown" in str(block["content"])
    return {"tool_result": block, "conversion": Says(block, "unsupported") if lost else Fact(block)}


class _Pattern(Fact):
    """The pattern of an API: agrees with one that takes the same characters."""

    def fits(self, wanted: Any) -> bool:
        signs = [chr(code) for code in range(128)]
        return all((re.search(str(wanted), sign) is not None) is self.value.accepts(sign) for sign in signs)


class _Accepted(Fact):
    """Whether a name is accepted. Where a case leaves open which limit holds, ours has to be one of those."""

    def __init__(self, accepted: bool, limit: int) -> None:  # it is the one value
        super().__init__(accepted)
        self.limit = limit

    def fits(self, wanted: Any) -> bool:
        if isinstance(wanted, bool):
            return wanted is self.value
        return str(self.limit) in str(wanted)
