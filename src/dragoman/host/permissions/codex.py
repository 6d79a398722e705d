"""Codex: approval modes of servers and tools, and what a tool says of itself. Pure."""

from __future__ import annotations

from typing import Any, Final

from dragoman.host.config.record import Setup, Situation
from dragoman.host.permissions.base import Call, Decision, asked, said, unlisted

_FULL: Final = frozenset({"danger-full-access", "external-sandbox"})


def judge(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """Filter, mode of the tool, of the server, or `auto`; `never` asks nobody and refuses instead."""
    if (decision := unlisted(setup, call) or _unseen(call)) is not None:
        return decision
    config = setup.active.get(call.server)
    rules = () if config is None else config.rules
    own = next((rule for rule in rules if rule.detail.get("tool") == call.tool), None)
    default = next((rule for rule in rules if rule.detail.get("tool") is None), None)
    rule = own or default
    lost = (default,) if own is not None and default is not None else ()
    mode = "auto" if rule is None else str(rule.detail.get("mode"))
    why = _needs(mode, call)
    place = f"approval mode {mode!r}" if rule is None else said(rule)
    if why is None:
        return Decision(
            "allow", f"{place}: {_FINE.get(mode, 'the tool says that it does no harm')}", rule, lost
        )
    policy = situation.mode or str(setup.settings.get("approval_policy", "on-request"))
    if policy == "never":
        if str(setup.settings.get("sandbox_mode", "")) in _FULL:
            return Decision("allow", f"{place}: {why}, but with full access nobody is asked", rule, lost)
        return Decision("deny", f"{place}: {why}, and `approval_policy` is never", rule, lost)
    # A yes is remembered in the mode `auto` alone.
    return asked(f"{place}: {why}", can_ask=situation.interactive, rule=rule, lost=lost, once=mode != "auto")


_FINE: Final = {"approve": "never asks", "writes": "the tool only reads"}


def _unseen(call: Call) -> Decision | None:
    """A tool that is for a user interface alone."""
    ui: Any = call.meta.get("ui")
    seen: Any = ui.get("visibility") if isinstance(ui, dict) else None  # type: ignore[unused-ignore]  # Any narrows
    if isinstance(seen, list) and "model" not in seen:
        return Decision("deny", "the tool's `_meta.ui.visibility` leaves out the model", hidden=True)
    return None


def _needs(mode: str, call: Call) -> str | None:
    """Why a person has to be asked; None if nobody has to."""
    hints = call.annotations
    reads = hints.get("readOnlyHint") is True
    if mode == "approve":
        return None
    if mode == "prompt":
        return "always asks"
    if mode == "writes":
        return None if reads else "the tool does not say that it only reads"
    # A hint that is missing counts as true: a tool that says nothing may destroy and reach out.
    if hints.get("destructiveHint") is True:
        return "the tool says that it may destroy"
    if reads:
        return None
    if hints.get("destructiveHint") is False and hints.get("openWorldHint") is False:
        return None
    return "the tool does not say that it only reads, or destroys nothing and reaches nobody"
