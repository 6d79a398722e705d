"""Hosts whose rules stand in an order: opencode, where the last match decides, and Continue, the first.

Pure. Here what is written where matters, as these hosts have it.
"""

from __future__ import annotations

from typing import Final

from dragoman.host.config.record import Rule, Setup, Situation
from dragoman.host.config.wildcard import shell
from dragoman.host.naming import name_of
from dragoman.host.permissions.base import Call, Decision, ruled, unruled

_HEADLESS: Final = "nobody is there to be asked, and this host then allows"


def opencode(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """The last rule that matches; none means allow."""
    hits = [rule for rule in setup.rules if _matches(rule, call)]
    if not hits:
        return Decision("allow", "no rule matches, and this host then allows")
    return ruled(hits[-1], can_ask=situation.interactive, lost=tuple(hits[:-1]))


def continue_(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """The first rule that matches; none means ask, and allow where nobody can be asked."""
    hits = [rule for rule in setup.rules if _matches(rule, call)]
    if hits:
        return ruled(hits[0], can_ask=situation.interactive, lost=tuple(hits[1:]))
    if not situation.interactive:
        return Decision("allow", f"no rule matches, {_HEADLESS}")
    return unruled(can_ask=True)


def _matches(rule: Rule, call: Call) -> bool:
    pattern = str(rule.detail.get("tool", rule.text))
    host = str(rule.detail.get("host", "opencode"))
    return shell(pattern, name_of(host, server=call.server, tool=call.tool))
