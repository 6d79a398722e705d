"""Cursor: the editor's allowlist of `server:tool`, and the command line's `Mcp(server:tool)`. Pure.

The allowlist spares a question and protects nothing: its own makers say that it is no security boundary.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.host.config.record import Rule, Setup, Situation
from dragoman.host.config.wildcard import fits, shell
from dragoman.host.permissions.base import Call, Decision, asked, said, unruled

_MCP: Final = re.compile(r"Mcp\((?P<server>[^:()]*):(?P<tool>.*)\)", re.DOTALL)
_EVERYTHING: Final = frozenset({"run-everything", "yolo"})
_ASKING: Final = frozenset({"ask", "ask-every-time"})
CLI: Final = "cli"


def judge(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """By the run mode: `ask-every-time`, `allowlist` (also ""), `auto-review`, `run-everything`, or `cli`."""
    mode = re.sub(r"[\s_]+", "-", situation.mode.lower())
    if mode == CLI:
        return _cli(setup, call, situation=situation)
    if mode in _EVERYTHING:
        return Decision("allow", "the run mode is to run everything")
    if mode in _ASKING:
        return asked("the run mode asks every time", can_ask=situation.interactive, once=True)
    hits = [rule for rule in setup.rules if rule.effect == "allow" and matches(rule, call)]
    if hits:
        return Decision("allow", f"{said(hits[0])} is on the allowlist", hits[0])
    if mode == "auto-review":
        why = "not on the allowlist, and there is no reviewer here to judge it"
        return asked(why, can_ask=situation.interactive)
    return unruled(can_ask=situation.interactive)


def _cli(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    hits = [rule for rule in setup.rules if matches(rule, call, surface=CLI)]
    denied = next((rule for rule in hits if rule.effect == "deny"), None)
    lost = tuple(rule for rule in hits if rule.effect == "allow")
    if denied is not None:
        return Decision("deny", f"{said(denied)} in permissions.deny", denied, lost)
    if lost:
        return Decision("allow", f"{said(lost[0])} in permissions.allow", lost[0])
    return unruled(can_ask=situation.interactive)


def matches(rule: Rule, call: Call, *, surface: str = "") -> bool:
    """Whether a rule speaks of a call, in the editor or with `surface` on the command line."""
    if str(rule.detail.get("surface", "")) != surface:
        return False
    if surface == CLI:
        found = _MCP.fullmatch(rule.text.strip())
        return found is not None and _both(found["server"], found["tool"], call=call)
    server, colon, tool = rule.text.partition(":")
    if not colon:
        return False
    return fits(server.strip().lower(), call.server.lower()) and fits(tool.strip().lower(), call.tool.lower())


def _both(server: str, tool: str, *, call: Call) -> bool:
    # `**` reaches no further than `*` in names, which have no parts.
    return shell(server.strip(), call.server) and shell(tool.strip(), call.tool)


def fault(rule: Rule) -> str | None:
    """Why a rule can never match a call of a server's tool; None if it can, or means other things."""
    if rule.detail.get("surface") == CLI:
        wrong = rule.text.startswith("Mcp") and _MCP.fullmatch(rule.text.strip()) is None
        return "expected Mcp(server:tool)" if wrong else None
    return None if ":" in rule.text else "expected server:tool"
