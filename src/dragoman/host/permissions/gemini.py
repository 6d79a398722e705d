"""Gemini CLI's policies: of all rules that match, the one with the highest priority decides. Pure.

`priority` in a rule's detail is the final one, tier and all: see `dragoman.host.config.gemini`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from dragoman.host.config.record import Effect, Rule, Setup, Situation
from dragoman.host.naming import name_of
from dragoman.host.permissions.base import Call, Decision, asked, said, unlisted, unruled

_PREFIX: Final = "mcp_"
_WEAKEST: Final[Mapping[Effect, int]] = {"deny": 0, "ask": 1, "allow": 2}
YOLO: Final = 1.999


def judge(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """By the highest priority; equals are settled for the stricter one."""
    if (decision := unlisted(setup, call)) is not None:
        return decision
    mode = situation.mode or str(setup.settings.get("mode", "default"))
    config = setup.active.get(call.server)
    rules = (*setup.rules, *(() if config is None else config.rules))
    hits = [rule for rule in rules if matches(rule, call, mode=mode, interactive=situation.interactive)]
    hits.sort(key=lambda rule: (-_priority(rule), _WEAKEST[rule.effect]))
    if mode == "yolo" and (not hits or _priority(hits[0]) < YOLO):
        return Decision("allow", "the mode is yolo, and no stronger rule matches", lost=tuple(hits))
    if not hits:
        return unruled(can_ask=situation.interactive)
    rule, *lost = hits
    why = f"{said(rule)} has the highest priority, {_priority(rule):g}"
    if rule.effect == "ask":
        return asked(why, can_ask=situation.interactive, rule=rule, lost=tuple(lost))
    return Decision(rule.effect, why, rule, tuple(lost), hidden=_hides(rule))


def _priority(rule: Rule) -> float:
    return float(rule.detail.get("priority", 0))


def _hides(rule: Rule) -> bool:
    """A refusal that no argument could change."""
    return rule.effect == "deny" and "argsPattern" not in rule.detail


def matches(rule: Rule, call: Call, *, mode: str, interactive: bool) -> bool:
    """Whether every condition of a rule holds for a call."""
    detail = rule.detail
    modes = cast("list[str] | None", detail.get("modes"))
    if modes and mode not in modes:
        return False
    if "interactive" in detail and detail["interactive"] is not interactive:
        return False
    return (
        _server(detail.get("mcpName"), call, allow=rule.effect == "allow")
        and _tool(detail.get("toolName"), detail.get("mcpName"), call=call)
        and _annotated(detail.get("toolAnnotations"), call)
        and _arguments(detail.get("argsPattern"), call, allow=rule.effect == "allow")
    )


def parsed(call: Call) -> str:
    """The server as the host reads it out of the name: up to the first `_`, however the name goes on."""
    return name_of("gemini-cli", server=call.server, tool=call.tool).removeprefix(_PREFIX).partition("_")[0]


def _server(wanted: Any, call: Call, *, allow: bool) -> bool:
    if wanted is None or wanted == "*":
        return True
    # The host may take a part of the name for the server's: an allow has to mean both, a deny either.
    names = (call.server, parsed(call))
    return all(name == wanted for name in names) if allow else wanted in names


def _tool(wanted: Any, server: Any, *, call: Call) -> bool:
    if wanted is None or wanted in ("*", f"{_PREFIX}*"):
        return True
    full = name_of("gemini-cli", server=call.server, tool=call.tool)
    text = str(wanted)
    if "*" in text:
        if not (text.startswith(_PREFIX) and text.endswith("_*")):
            return False  # other patterns are in the documents, and not in the program
        return parsed(call) == text[len(_PREFIX) : -2] and full.startswith(text[:-1])
    return text == full or (server is not None and text == call.tool)


def _annotated(wanted: Any, call: Call) -> bool:
    if not isinstance(wanted, Mapping):
        return True
    table = cast("Mapping[str, Any]", wanted)
    return all(name in call.annotations and call.annotations[name] == value for name, value in table.items())


def _arguments(pattern: Any, call: Call, *, allow: bool) -> bool:
    if pattern is None:
        return True
    text = json.dumps(dict(call.arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        return re.search(str(pattern), text) is not None
    except re.error:  # what cannot be read restricts nothing: a deny then holds for all arguments
        return not allow


def fault(rule: Rule) -> str | None:
    """Why a rule can never match a call of a server's tool; None if it can."""
    server, tool = rule.detail.get("mcpName"), rule.detail.get("toolName")
    if isinstance(server, str) and "_" in server and rule.effect == "allow":
        return f"`mcpName` {server!r}: the host reads a server's name up to the first `_`"
    if isinstance(tool, str) and "*" in tool and tool != "*":
        if not (tool.startswith(_PREFIX) and tool.endswith("*") and tool.count("*") == 1):
            return f"`toolName` {tool!r}: only *, mcp_* and mcp_<server>_* are patterns"
    return None
