"""Hosts whose rules are few: VS Code, Zed, Cline and Roo Code. Pure."""

from __future__ import annotations

from typing import Final

from dragoman.host.config.record import Effect, Rule, Setup, Situation
from dragoman.host.permissions.base import Call, Decision, asked, ruled, said, unlisted, unruled

_STRICT: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")


def vscode(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """Runs what says that it only reads, asks for everything else; the result of an open tool is shown."""
    review = call.annotations.get("openWorldHint") is True
    every = next((rule for rule in setup.rules if rule.detail.get("tool") == "*"), None)
    hits = [rule for rule in setup.rules if rule.detail.get("tool") in _names(call)]
    for rule in hits:
        if rule.effect == "ask":
            return ruled(rule, can_ask=situation.interactive, lost=() if every is None else (every,))
    if every is not None:
        return Decision("allow", f"{said(every)} asks for nothing", every, tuple(hits))
    if hits:
        return ruled(hits[0], can_ask=situation.interactive)
    if call.annotations.get("readOnlyHint") is True:
        return Decision("allow", "the tool says that it only reads", review=review)
    why = "the tool does not say that it only reads"
    decision = asked(why, can_ask=situation.interactive)
    return Decision(decision.effect, decision.why, review=review)


def _names(call: Call) -> tuple[str, ...]:
    return call.name.model, call.name.canonical, call.tool


def zed(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """The tool's own default, else the global one; patterns are for other tools."""
    key = f"mcp:{call.server}:{call.tool}"
    own = [rule for rule in setup.rules if rule.detail.get("tool") == key]
    every = [rule for rule in setup.rules if rule.detail.get("tool") is None]
    for group, lost in ((own, every), (every, [])):
        for effect in _STRICT:
            for rule in group:
                if rule.effect == effect:
                    return ruled(rule, can_ask=situation.interactive, lost=tuple(lost))
    return unruled(can_ask=situation.interactive)


def cline(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """A server's list of tools that are not asked about."""
    return _listed(setup, call, situation=situation)


def roo(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """As Cline, and with tools that are not there; the list counts only while approvals are automatic."""
    return _listed(setup, call, situation=situation)


def _listed(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    if (decision := unlisted(setup, call)) is not None:
        return decision
    config = setup.active.get(call.server)
    rules: tuple[Rule, ...] = () if config is None else config.rules
    for rule in rules:
        if rule.detail.get("tool") == call.tool and setup.settings.get("auto_approve", True) is True:
            return ruled(rule, can_ask=situation.interactive)
    return unruled(can_ask=situation.interactive)
