"""Cases of models' APIs: names, schemas and orders of messages that they take, and what a result becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from dragoman.host.models import (
    APIS,
    anthropic,
    anthropic_rules,
    gemini,
    gemini_schemas,
    openai_chat,
    openai_responses,
)
from dragoman.host.models.base import Api, Block, Shown
from dragoman.host.models.schemas import UnfitError
from dragoman.host.models.strictness import anthropic_faults, openai_faults
from dragoman.host.naming import API_NAMES
from dragoman.model import Tool

from . import api_results
from .expecting import Fact, Present, Says
from .forms import Case, listed, table

_MEMBERS: Final = ("input_schema", "inputSchema", "parameters", "parametersJsonSchema", "schema")


def run(host: str, kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of this API and kind."""
    api = APIS[host]
    if kind in ("tool-name", "naming"):
        return _name(host, given)
    if kind in ("schema", "strict", "strict-schema"):
        return _schema(api, given)
    if kind in ("result", "tool-result", "error"):
        return api_results.result(api, given)
    if kind in ("tool-search", "deferred", "defer-loading"):
        return _search(api, given)
    if kind in ("message-order", "order", "parallel", "history"):
        return {"request": _request(_order(host, given))}
    if kind in ("parameter-name", "property-name"):
        return _parameter(host, given)
    if kind in ("tool-count", "limit", "limits"):
        return _count(api, given)
    if kind in ("tool", "definition", "tools", "conversion"):
        return _tool(api, given)
    raise ValueError(f"kind {kind!r} is not known of this API")


def _request(fault: object) -> Says:
    """Whether a request is refused, and what for."""
    if fault:
        return Says(fault, "400|refus|reject|error|invalid|fail|bad request")
    return Says("accepted", "200|accept|ok|^valid|fine|works|(?<!not )allowed")


def _name(host: str, given: Case) -> dict[str, Any]:
    rule = API_NAMES[host]
    accepted = rule.accepts(str(given["name"]))
    return {"accepted": _Accepted(accepted, rule.limit), "max": rule.limit, "pattern": _Pattern(rule)}


# Schemas ---------------------------------------------------------------------------------------------------


def _schema(api: Api, given: Case) -> dict[str, Any]:
    if "mcp_tool" in given:
        return _tool(api, given)
    told = [table(tool) for tool in listed(given.get("tools"))]
    if told:
        # One bad schema costs the whole request.
        found = [_schema(api, tool) for tool in told]
        fault = next((one["request"].value for one in found if one["request"].value != "accepted"), None)
        return {"request": _request(fault), "accepted": Present(not fault, str(fault))}
    given = _declared(given)
    strict = given.get("strict") is True
    if _empty(api, given):
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        given = {"parameters": schema, "strict": given.get("strict")}
    schema = table(next((given[name] for name in _MEMBERS if name in given), None))
    found_one = api.definitions([Shown("t", Tool(name="t", input_schema=schema))], strict=strict)
    out: dict[str, Any] = {"dropped": [item.keyword for item in found_one.dropped]}
    fault = _schema_fault(api, given, schema=schema)
    out |= {"request": _request(fault), "accepted": Present(not fault, str(fault))}
    for block in found_one.blocks:
        out |= _block(block)
    if api.name == "gemini":
        out["parameters"] = _openapi(schema)
    return out


def _empty(api: Api, given: Case) -> bool:
    """Whether a definition has no schema, where an API takes that for one without arguments."""
    if any(given.get(name) is not None for name in _MEMBERS):
        return False
    return api.name == "openai-chat" or (api.name == "openai-responses" and "parameters" in given)


def _block(block: Block) -> dict[str, Any]:
    """What a case may ask of a definition as it goes out."""
    function = table(block.get("function")) or block
    made = next((function[name] for name in _MEMBERS if name in function), None)
    member = next((name for name in _MEMBERS if name in function), None)
    return {
        "strict": function.get("strict", False),
        **function,
        **dict.fromkeys((*_MEMBERS, "result"), made),
        **dict.fromkeys(("use", "prefer", "member", "form", "field"), member),
        **dict.fromkeys(("tool", "definition", "functionDeclaration", "declaration", "function"), block),
    }


def _declared(given: Case) -> Case:
    """A definition of a tool, wherever a case has it."""
    for name in ("functionDeclaration", "declaration", "function", "tool", "definition"):
        if isinstance(given.get(name), Mapping):
            inner = _declared(table(given[name]))
            return {"strict": given.get("strict"), **inner}
    given.get("name")
    return given


def _parameter(host: str, given: Case) -> dict[str, Any]:
    """Whether a name may be that of an argument."""
    rules = {"anthropic-messages": anthropic.PROPERTY, "gemini": gemini_schemas.PARAMETER}
    name = str(given.get("name", given.get("parameter", given.get("property"))))
    accepted = host not in rules or rules[host].fullmatch(name) is not None
    return {"accepted": accepted, "request": _request(None if accepted else name)}


def _count(api: Api, given: Case) -> dict[str, Any]:
    """Whether so many tools go into one request."""
    names = ("count", "tools", "tool_count", "catalogue", "enabled_tools")
    said = next((given[name] for name in names if name in given), None)
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


# Tools and messages ----------------------------------------------------------------------------------------


def _search(api: Api, given: Case) -> dict[str, Any]:
    blocks = [table(tool) for tool in listed(given.get("tools"))]
    if given.get("all_tools_deferred") is True or given.get("tools") == "all deferred":
        blocks = [{"name": "a", "defer_loading": True}]
    if isinstance(given.get("tool"), Mapping):
        faults: list[object] = [anthropic_rules.tool_fault(table(given["tool"]))]
    else:
        faults = [anthropic_rules.tool_fault({"defer_loading": given.get("defer_loading")})]
    if blocks:
        faults.append(anthropic_rules.tools_fault(blocks))
    if any(name in given for name in ("tool_count", "catalogue")):
        faults.append(_count(api, given)["request"].value != "accepted" or None)
    content = [table(block) for block in listed(given.get("content", given.get("assistant_content")))]
    content += [table(given["block"])] if "block" in given else []
    content += [{"type": "server_tool_use", "id": given["id"]}] if "id" in given else []
    uses = api.uses({"content": content})
    fault = next((fault for fault in faults if fault is not None), None)
    given.get("query")
    native = Says(api.searches, "^yes|native|supported|^true" if api.searches else "no|not|client|unsupp")
    return {
        "request": _request(fault if api.name == "anthropic-messages" else None),
        "answers": len(uses),
        **dict.fromkeys(("answer", "tool_result"), _answers(uses)),
        **dict.fromkeys(("native", "supported", "deferral", "search", "where", "tool_search"), native),
        **dict.fromkeys(("max_results", "default_results", "results", "default_limit"), 5),
    }


def _answers(uses: object) -> Says:
    return Says(uses, "yes|must|tool_result") if uses else Says("none", "never|none|not? |no$")


def _order(host: str, given: Case) -> object:
    """Why the messages would be refused."""
    checks: dict[str, Callable[[list[Mapping[str, Any]]], str | None]] = {
        "anthropic-messages": anthropic_rules.history_fault,
        "openai-responses": openai_responses.history_fault,
        "openai-chat": openai_chat.history_fault,
        "gemini": gemini.history_fault,
    }
    turns = _turns(given)
    if turns is not None:
        return anthropic_rules.history_fault(turns)
    if "user_content" in given:
        return anthropic_rules.order_fault(_tables(given["user_content"]))
    members = ("messages", "input", "contents", "history", "items")
    return checks[host](_tables(next((given[name] for name in members if name in given), None)))


def _turns(given: Case) -> list[Mapping[str, Any]] | None:
    """The calls and the answers to them, where a case has them apart."""
    said = next((given[name] for name in ("assistant_content", "assistant") if name in given), None)
    told = next((given[name] for name in ("user_content", "user") if name in given), None) if said else None
    for calls, answers in _APART:
        if calls in given:
            ids = [str(table(item).get("id", item)) for item in _counted(given[calls])]
            back = [str(table(item).get("tool_use_id", item)) for item in _counted(given.get(answers))]
            said = [{"type": "tool_use", "id": id_} for id_ in ids]
            told = [{"type": "tool_result", "tool_use_id": id_} for id_ in back]
    if said is None:
        return None
    return [{"role": "assistant", "content": said}, {"role": "user", "content": told or []}]


_APART: Final = (
    ("tool_uses", "tool_results"),
    ("tool_use_ids", "tool_result_ids"),
    ("assistant_tool_uses", "user_tool_results"),
)


def _counted(value: object) -> list[Any]:
    """Items, or so many of them."""
    return list(range(value)) if isinstance(value, int) else listed(value)


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [table(item) for item in listed(value)]


def _tool(api: Api, given: Case) -> dict[str, Any]:
    """A tool's definition."""
    told = [table(tool) for tool in listed(given.get("tools"))]
    if not told:
        told = [table(given.get("mcp_tool", given.get("tool"))) or dict(given)]
    tools: Iterable[Shown] = [
        Shown(str(tool.get("name", "t")), msgspec.convert({"inputSchema": {}, **tool}, Tool)) for tool in told
    ]
    found = api.definitions(tools, strict=given.get("strict") is True)
    blocks: list[Block] = found.blocks
    first = blocks[0] if blocks else {}
    gone = [name for name in ("outputSchema", "annotations", "title", "icons", "_meta") if name in told[0]]
    return {
        **first,
        **_block(first),
        "tools": blocks,
        "left_out": [item.name for item in found.left_out],
        "dropped": [*gone, *(item.keyword for item in found.dropped)],
        "request": _request(None if not found.left_out else found.left_out[0].why),
    }


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
