"""Cases of models' APIs: names, schemas and orders of messages that they take, and what a result becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from dragoman.client import OtherContent, ToolResult
from dragoman.host.models import (
    APIS,
    anthropic,
    anthropic_rules,
    gemini,
    gemini_schemas,
    openai_chat,
    openai_responses,
)
from dragoman.host.models.base import Api, Block, Shown, ToolUse
from dragoman.host.models.schemas import UnfitError
from dragoman.host.models.strictness import anthropic_faults, openai_faults
from dragoman.host.naming import API_NAMES
from dragoman.model import ContentBlock, Tool

from .expecting import Fact, Present, Says
from .forms import Case, listed, table

_USE: Final = ToolUse("call_1", "t", {})
_MEMBERS: Final = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "schema")
_KNOWN: Final = frozenset({"text", "image", "audio", "resource_link", "resource"})


def run(host: str, kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this API and kind."""
    api = APIS[host]
    if kind == "tool-name":
        return _name(host, given)
    if kind in ("schema", "strict", "strict-schema"):
        return _schema(api, given)
    if kind in ("result", "tool-result", "error"):
        return _result(api, table(given.get("mcp_result", given.get("result"))))
    if kind in ("tool-search", "deferred", "defer-loading"):
        return _search(api, given)
    if kind in ("message-order", "order", "parallel", "history"):
        return {"request": _request(_order(host, given))}
    if kind in ("parameter-name", "property-name"):
        return _parameter(host, given)
    if kind in ("tool-count", "limit", "limits"):
        return _count(api, given)
    return _tool(api, given) if kind in ("tool", "definition", "tools") else {}


def _request(fault: object) -> Says:
    """Whether a request is refused, and what for."""
    if fault:
        return Says(fault, "400|refus|reject|error|invalid|fail")
    return Says("accepted", "200|accept|ok|valid|fine|works")


def _name(host: str, given: Case) -> dict[str, Any]:
    rule = API_NAMES[host]
    accepted = rule.accepts(str(given["name"]))
    return {"accepted": _Accepted(accepted, rule.limit), "max": rule.limit, "pattern": _Pattern(rule)}


# Schemas ---------------------------------------------------------------------------------------------------


def _schema(api: Api, given: Case) -> dict[str, Any]:
    given = _declared(given)
    schema = table(next((given[name] for name in _MEMBERS if name in given), None))
    strict = given.get("strict") is True
    found = api.definitions([Shown("t", Tool(name="t", input_schema=schema))], strict=strict)
    out: dict[str, Any] = {"dropped": [item.keyword for item in found.dropped]}
    fault = _schema_fault(api, given, schema=schema)
    out |= {"request": _request(fault), "accepted": Present(not fault, str(fault))}
    for block in found.blocks:
        function = table(block.get("function")) or block
        made = next((function[name] for name in _MEMBERS if name in function), None)
        out |= {"strict": function.get("strict", False), **function, **dict.fromkeys(_MEMBERS, made)}
    if api.name == "gemini":
        out["parameters"] = _openapi(schema)
    return out


def _declared(given: Case) -> Case:
    """A definition of a tool, wherever a case has it."""
    for name in ("functionDeclaration", "declaration", "function", "tool", "definition"):
        if isinstance(given.get(name), Mapping):
            return {**given, **_declared(table(given[name]))}
    return given


def _parameter(host: str, given: Case) -> dict[str, Any]:
    """Whether a name may be that of an argument."""
    rules = {"anthropic-messages": anthropic.PROPERTY, "gemini": gemini_schemas.PARAMETER}
    name = str(given.get("name", given.get("parameter", given.get("property"))))
    accepted = host not in rules or rules[host].fullmatch(name) is not None
    return {"accepted": accepted, "request": _request(None if accepted else name)}


def _count(api: Api, given: Case) -> dict[str, Any]:
    """Whether so many tools go into one request."""
    said = given.get("count", given.get("tools"))
    count = said if isinstance(said, int) else len(listed(said))
    shown = [Shown(f"t{index}", Tool(name="t", input_schema={"type": "object"})) for index in range(count)]
    accepted = not api.definitions(shown).left_out
    return {"accepted": accepted, "request": _request(None if accepted else count)}


def _schema_fault(api: Api, given: Case, *, schema: dict[str, Any]) -> object:
    """Why the schema would be refused if it were sent as it is."""
    found = api.definitions([Shown("t", Tool(name="t", input_schema=schema))])
    if found.left_out:
        return found.left_out[0].why
    at_root = {item.keyword for item in found.dropped if not item.path}
    if at_root & {"allOf", "anyOf", "oneOf"} or (at_root & {"enum", "not"} and api.name != "gemini"):
        return "a combinator at the root"
    if api.name == "gemini":
        if "parameters" in given and "parametersJsonSchema" in given:
            return "the two forms exclude each other"
        return "not in OpenAPI's form" if "parameters" in given and _openapi(schema) is None else None
    if "allOf" in schema:
        return "a combinator at the root"
    if given.get("strict") is not True:
        return None
    return next((anthropic_faults if api.name == "anthropic-messages" else openai_faults)(schema), None)


def _openapi(schema: dict[str, Any]) -> Any:
    try:
        return gemini_schemas.openapi(schema)[0]
    except UnfitError:
        return None


# Results ---------------------------------------------------------------------------------------------------


def _result(api: Api, given: dict[str, Any]) -> dict[str, Any]:
    result = ToolResult(
        content=[_content(block) for block in listed(given.get("content"))],
        structured=given.get("structuredContent"),
        has_structured="structuredContent" in given,
        is_error=given.get("isError") is True,
    )
    block = api.result(_USE, result)
    messages = api.answered([block])
    # What an API has no form for stands there in words.
    words = "cannot be shown" in str(block) or any(
        table(item).get("type") == "resource_link" for item in listed(given.get("content"))
    )
    inner = table(block.get("functionResponse"))
    out: dict[str, Any] = {
        "conversion": Says(block, "unsupported|text|describe") if words else Fact(block),
        "messages": messages,
        "items": messages,
        **block,
        **inner,
    }
    out |= dict.fromkeys(("tool_result", "function_call_output", "item", "part", "block"), block)
    out |= dict.fromkeys(("functionResponse", "function_response"), inner)
    out |= dict.fromkeys(("message", "tool_message"), messages[0] if messages else block)
    return out


def _content(block: object) -> ContentBlock | OtherContent:
    kind = str(table(block).get("type"))
    if kind not in _KNOWN:
        return OtherContent(kind, block)
    found: ContentBlock = msgspec.convert([block], list[ContentBlock])[0]
    return found


# Tools and messages ----------------------------------------------------------------------------------------


def _search(api: Api, given: Case) -> dict[str, Any]:
    blocks = [table(tool) for tool in listed(given.get("tools"))]
    one = table(given.get("tool"))
    faults: list[object] = [anthropic_rules.tool_fault(one)]
    if blocks:
        faults.append(anthropic_rules.tools_fault(blocks))
    content = [table(block) for block in listed(given.get("content", given.get("assistant_content")))]
    uses = api.uses({"content": content})
    fault = next((fault for fault in faults if fault is not None), None)
    return {
        "request": _request(fault if api.name == "anthropic-messages" else None),
        "answers": len(uses),
        "answer": Says(uses, "yes|must|tool_result") if uses else Says("none", "never|none|not? |no$"),
        "native": api.searches,
        "supported": api.searches,
        "max_results": 5,
    }


def _order(host: str, given: Case) -> object:
    """Why the messages would be refused."""
    checks: dict[str, Callable[[list[Mapping[str, Any]]], str | None]] = {
        "anthropic-messages": anthropic_rules.history_fault,
        "openai-responses": openai_responses.history_fault,
        "openai-chat": openai_chat.history_fault,
        "gemini": gemini.history_fault,
    }
    if "user_content" in given:
        return anthropic_rules.order_fault(_tables(given["user_content"]))
    members = ("messages", "input", "contents", "history", "items")
    return checks[host](_tables(next((given[name] for name in members if name in given), None)))


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [table(item) for item in listed(value)]


def _tool(api: Api, given: Case) -> dict[str, Any]:
    """A tool's definition."""
    told = [table(tool) for tool in listed(given.get("tools"))] or [
        table(given.get("mcp_tool", given.get("tool", given)))
    ]
    tools: Iterable[Shown] = [
        Shown(str(tool.get("name", "t")), msgspec.convert({"inputSchema": {}, **tool}, Tool)) for tool in told
    ]
    found = api.definitions(tools, strict=given.get("strict") is True)
    blocks: list[Block] = found.blocks
    first = blocks[0] if blocks else {}
    out: dict[str, Any] = {**first, "tools": blocks, "left_out": [item.name for item in found.left_out]}
    return out | dict.fromkeys(("tool", "definition", "functionDeclaration", "declaration"), first)


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
