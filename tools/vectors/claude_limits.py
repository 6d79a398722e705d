"""Cases of Claude Code about times, lengths, schemas, hooks, and tools that are searched for."""

from __future__ import annotations

import re
from typing import Any

from dragoman.host.config.limits import description_limit, output_limits
from dragoman.host.deferral import always_loaded, defers
from dragoman.host.hooks import hook_matches
from dragoman.host.models import MESSAGES
from dragoman.host.models.base import Shown
from dragoman.model import Tool

from .claude_files import setup
from .expecting import Fact, Says, agrees
from .findings import Length
from .forms import Case, facts, is_list, listed, table

_TRANSPORTS = {"stdio": {"command": "x"}}


def timeout(given: Case) -> dict[str, Any]:
    """How long the host waits for a server."""
    if "entry" not in given:
        kind = str(given["transport"])
        entry = _TRANSPORTS.get(kind, {"type": kind, "url": "https://x.example/mcp"})
        given = {"entry": entry, "env": table(given.get("env"))}
    found, told = setup(given, interactive=False)
    if not found.servers:
        raise ValueError(f"there is no server: {', '.join(problem.text for problem in found.problems)}")
    return facts(found.servers[0].config, told.env)


def hook(given: Case) -> dict[str, Any]:
    """Whether a hook's matcher means a tool."""
    matcher = str(given.get("matcher", given.get("hook_matcher")))
    found = hook_matches(matcher, str(given.get("tool", given.get("tool_name", given.get("call")))))
    return dict.fromkeys(("matches", "match", "runs", "fires"), found)


# Tools that are searched for -------------------------------------------------------------------------------


def search(given: Case) -> dict[str, Any]:
    """Whether tools are deferred."""
    names = ("ENABLE_TOOL_SEARCH", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS")
    env = {name: str(given[name]) for name in names if given.get(name) is not None}
    env |= {name: str(value) for name, value in table(given.get("env")).items()}
    denied = [str(name) for key in ("deny", "deny_rules", "denied") for name in listed(given.get(key))]
    for block in ("permissions", "rules"):
        denied += [str(name) for name in listed(table(given.get(block)).get("deny"))]
    able = _able(given)
    meta, entry = table(given.get("tool_meta")), table(given.get("entry"))
    entry |= {"alwaysLoad": True} if given.get("alwaysLoad") is True else {}
    deferred = defers(env, share=_share(given), denied=denied, able=able) and not always_loaded(entry, meta)
    given.get("query")
    most = dict.fromkeys(("max_results", "results", "limit"), 5)
    return {"deferred": deferred, "defer": deferred, "eager": not deferred, "tool_search": deferred, **most}


def _share(given: Case) -> float:
    """What the definitions take of the context, in percent."""
    tokens = given.get("definition_tokens", given.get("definitions_tokens", given.get("tool_tokens")))
    if tokens is not None:
        return 100 * float(tokens) / float(given.get("context_window", given.get("context_tokens", 200_000)))
    names = ("definitions_pct_of_context", "definitions_pct", "context_pct", "pct_of_context", "pct")
    return float(next((given[name] for name in names if name in given), 100))


def _able(given: Case) -> bool:
    """Whether model and provider have such a search: not older models on Vertex, nor Azure's Foundry."""
    where = " ".join(
        str(given.get(name, "")) for name in ("provider", "platform", "model", "hosting")
    ).lower()
    if "foundry" in where or "azure" in where:
        return False
    if "vertex" not in where:
        return True
    if "pre" in where:
        return False
    version = re.search(r"claude-[a-z]+-(\d)(?:[-.@](\d)(?!\d))?", where)
    return version is None or (int(version[1]), int(version[2] or 0)) >= (4, 5)


# Lengths -------------------------------------------------------------------------------------------------


def output(given: Case) -> dict[str, Any]:
    """How much of a result, or of a description, the model sees."""
    env = {name: str(value) for name, value in table(given.get("env")).items()}
    found = output_limits(table(given.get("tool_meta")), env)
    names = ("tokens", "output_tokens", "result_tokens", "text_tokens", "size_tokens")
    tokens = next((given[name] for name in names if name in given), None)
    image = "image" in str(given.get("content", given.get("content_type", ""))).lower()
    # What a tool asks for is for text alone.
    characters = None if image else found.characters
    told = Says(characters, "token|not |never|none") if image else Fact(characters)
    most = description_limit(env)
    out: dict[str, Any] = {
        "limit_chars": _Unlimited(None) if image else told,
        "limit": Says(found.tokens, "token") if characters is None else Length(characters),
        "limit_tokens": found.tokens,
        "warn_tokens": found.warn,
        **dict.fromkeys(
            ("description_chars", "description_length", "truncated_to", "description_limit"), most
        ),
    }
    for name in ("description", "description_chars", "description_length", "instructions"):
        if name in given:
            length = given[name] if isinstance(given[name], int) else len(str(given[name]))
            out |= dict.fromkeys((name, "description_length", "truncated_to", "length"), min(length, most))
    chars = next(
        (given[name] for name in ("chars", "characters", "result_chars", "text_chars") if name in given), None
    )
    if tokens is not None or chars is not None:
        out |= _fate(found.warn, found.tokens, tokens=tokens, chars=chars, most=characters)
    return out


class _Unlimited(Fact):
    """No limit in characters, which is said by null or in words."""

    def fits(self, wanted: Any) -> bool:
        return wanted is None or (
            isinstance(wanted, str) and re.search("token|not |never|none", wanted) is not None
        )


def _fate(warn: int, limit: int, *, tokens: Any, chars: Any, most: int | None) -> dict[str, Any]:
    """What becomes of a text of that length."""
    if most is None or chars is None:
        over = tokens is not None and int(tokens) > limit
    else:
        over = int(chars) > most
    warned = tokens is not None and int(tokens) > warn
    if over:
        said = Says("in a file", "file|pointer|disk|persist|saved")
    elif warned:
        said = Says("warned of", "warn|inline|kept|whole|as is|unchanged")
    else:
        said = Says("as it is", "unchanged|inline|whole|as is|kept|shown|ok|none|full")
    names = ("result", "action", "outcome", "text", "fate")
    return {
        **dict.fromkeys(names, said),
        **dict.fromkeys(("warning", "warned", "warn"), warned),
        **dict.fromkeys(("saved", "to_file", "written_to_file", "file", "truncated"), over),
    }


# Schemas -------------------------------------------------------------------------------------------------


def schema(given: Case) -> dict[str, Any]:
    """What becomes of tools by their schemas."""
    told: list[Case] = [table(tool) for tool in listed(given.get("tools"))] or [given]
    tools = [
        Shown(str(tool.get("name", "t")), Tool(name="t", input_schema=table(_schema(tool)))) for tool in told
    ]
    found = MESSAGES.definitions(tools)
    left = [item.name for item in found.left_out]
    names = [str(block["name"]) for block in found.blocks]
    flat = any(not item.path and item.keyword in ("allOf", "anyOf", "oneOf") for item in found.dropped)
    out: dict[str, Any] = {
        "tool": Says(
            "excluded" if left else "kept",
            "exclu|skip|drop|hidden|left" if left else "kept|flat|ok|shown|load|includ|visible",
        ),
        **dict.fromkeys(("visible", "kept", "tools"), names),
        **dict.fromkeys(("excluded", "skipped", "dropped"), left),
        "flattened": flat,
        "accepted": not left,
    }
    if found.blocks:
        made = table(found.blocks[0]["input_schema"])
        out |= dict.fromkeys(("schema", "input_schema", "inputSchema"), made)
        out |= dict.fromkeys(("result", "outcome", "root"), _Made(made, out["tool"]))
        out |= {"properties": _Names(table(made.get("properties"))), "required": listed(made.get("required"))}
        out["type"] = made.get("type")
    return out


def _schema(tool: Case) -> Any:
    names = ("inputSchema", "input_schema", "schema", "parameters")
    return next((tool[name] for name in names if name in tool), None)


class _Made(Fact):
    """A schema, or words for what became of the tool."""

    def __init__(self, value: Any, said: Says) -> None:
        super().__init__(value)
        self.said = said

    def fits(self, wanted: Any) -> bool:
        return (
            self.said.fits(wanted) if isinstance(wanted, str) else agrees("schema", wanted, found=self.value)
        )


class _Names(Fact):
    """Properties: a table, or their names alone."""

    def fits(self, wanted: Any) -> bool:
        if is_list(wanted):
            return sorted(self.value) == sorted(wanted)
        return all(self.value.get(name) == value for name, value in table(wanted).items())
