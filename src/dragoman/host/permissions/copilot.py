"""Copilot CLI: which tools there are, and which of them are not asked about. Pure."""

from __future__ import annotations

from dragoman.host.config.record import Rule, Setup, Situation
from dragoman.host.permissions.base import Call, Decision, said, unlisted, unruled


def judge(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """A denial beats every allowance, even that of all tools; available tools beat excluded ones.

    Rules are of the command line: `detail["option"]` is its option, such as `--deny-tool`.
    """
    if (decision := unlisted(setup, call) or _away(setup, call)) is not None:
        return decision
    hits = [rule for rule in setup.rules if _option(rule) in _CALLS and matches(rule, call)]
    denied = next((rule for rule in hits if rule.effect == "deny"), None)
    lost = tuple(rule for rule in hits if rule.effect == "allow")
    if denied is not None:
        return Decision("deny", said(denied), denied, lost)
    if lost:
        return Decision("allow", said(lost[0]), lost[0])
    return unruled(can_ask=situation.interactive)


_CALLS = frozenset({"--allow-tool", "--deny-tool", "--allow-all", "--allow-all-tools", "--yolo"})


def _away(setup: Setup, call: Call) -> Decision | None:
    """The refusal of a tool that this run does not have."""
    available = [rule for rule in setup.rules if _option(rule) == "--available-tools"]
    excluded = [rule for rule in setup.rules if _option(rule) == "--excluded-tools"]
    if available:
        if any(matches(rule, call) for rule in available):
            return None
        return Decision("deny", "not among `--available-tools`", available[0], hidden=True)
    rule = next((rule for rule in excluded if matches(rule, call)), None)
    return None if rule is None else Decision("deny", said(rule), rule, hidden=True)


def matches(rule: Rule, call: Call) -> bool:
    """`Server` is every tool of it, `Server(tool)` that tool."""
    if _option(rule) in ("--allow-all", "--allow-all-tools", "--yolo"):
        return True
    server, bracket, tool = rule.text.strip().partition("(")
    if server.strip() != call.server:
        return False
    return not bracket or tool.removesuffix(")").strip() in (call.tool, "*", "")


def _option(rule: Rule) -> str:
    return str(rule.detail.get("option", ""))
