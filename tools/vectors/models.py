"""Cases of what a host makes of schemas and results on their way to its model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from dragoman.host.config.record import Origin, ServerConfig
from dragoman.host.models import APIS
from dragoman.host.models.gemini_schemas import openapi
from dragoman.host.output import fitted
from dragoman.model import TextContent, Tool

from . import api_results
from .expecting import Fact, Says
from .findings import Json
from .forms import Case, is_list, is_table, table


def run(host: str, kind: str, given: Case) -> dict[str, Any]:
    """What is found for a case of a schema or of a result."""
    if kind == "schema" and host == "gemini-cli":
        return _schema(given)
    if kind == "result" and host == "gemini-cli":
        return _gemini(given)
    if kind == "result" and host == "vscode":
        return _seen(host, given)
    raise ValueError(f"what {host} does for the kind {kind!r} is not part of what is matched")


def _schema(given: Case) -> dict[str, Any]:
    """A schema as Gemini has it: the subset of OpenAPI's."""
    names = ("inputSchema", "input_schema", "schema", "parameters")
    made, lost = openapi(table(next((given[name] for name in names if name in given), None)))
    found = _small(made)
    return {**dict.fromkeys((*names, "result"), found), "dropped": [item.keyword for item in lost]}


def _small(value: Any) -> Any:
    """A schema whose types are written as JSON Schema has them."""
    if is_list(value):
        return [_small(item) for item in value]
    if not is_table(value):
        return value
    return {
        name: item.lower() if name == "type" and isinstance(item, str) else _small(item)
        for name, item in value.items()
    }


def _gemini(given: Case) -> dict[str, Any]:
    """A result as Gemini's API takes it, of which a failure is told as one."""
    found = api_results.result(APIS["gemini"], given)
    failed = found["response_key"] == "error"
    said = Says(failed, "error|fail" if failed else "^(?!.*(?:error|fail))")
    return {**found, **dict.fromkeys(("result", "outcome", "status"), said), "error": failed}


def _seen(host: str, given: Case) -> dict[str, Any]:
    """What the model sees of a result."""
    told = table(given.get("mcp_result", given.get("result")))
    told |= {name: given[name] for name in ("content", "structuredContent", "isError") if name in given}
    config = ServerConfig("s", "stdio", Origin("mcp.json"), command="x", host=host)
    made = fitted(
        api_results.tool_result(told), Tool(name="t", input_schema={}), config=config, env={}, keep=Path
    )
    texts = [block.text for block in made.content if isinstance(block, TextContent)]
    seen = _Shown(msgspec.to_builtins(made.content), texts, structured="structuredContent" in told)
    return dict.fromkeys(("model_sees", "model", "content", "shown", "text", "sees", "to_model"), seen)


class _Shown(Fact):
    """What a model sees: blocks, a text, the JSON that it is, or which part of the result it is."""

    def __init__(self, value: Any, texts: list[str], *, structured: bool) -> None:
        super().__init__(value)
        self.texts = texts
        self.structured = structured

    def fits(self, wanted: Any) -> bool:
        if wanted in (self.value, self.texts) or (isinstance(wanted, str) and [wanted] == self.texts):
            return True
        if isinstance(wanted, str):
            return self.structured and "structuredcontent" in wanted.lower().replace(" ", "").replace("_", "")
        return len(self.texts) == 1 and Json(self.texts[0]).fits(json.dumps(wanted))
