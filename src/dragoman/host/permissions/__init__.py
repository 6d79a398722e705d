"""May this call run? Pure functions over rules, with the rule that decided and those that lost.

`decide` weighs Claude Code's rules, `judge` those of any host; neither knows a file or a person.
"""

from __future__ import annotations

from dragoman.host.config.wildcard import fits as glob
from dragoman.host.permissions.base import Call, Decision
from dragoman.host.permissions.claude import check, decide, fault, hidden, matches

__all__ = ["Call", "Decision", "check", "decide", "fault", "glob", "hidden", "matches"]
