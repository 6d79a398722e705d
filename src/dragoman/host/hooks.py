"""Matchers of Claude Code's hooks: for which tools a hook is asked. Runs none. Pure."""

from __future__ import annotations

import re
from typing import Final

_EXACT: Final = re.compile(r"[A-Za-z0-9_-]+")


def hook_matches(matcher: str, tool: str) -> bool:
    """Whether a hook with this matcher is asked about a tool, by the tool's full name.

    A matcher of plain characters is the whole name, so that a server's name alone matches nothing; an
    empty one and `*` match everything; all others are regular expressions.
    """
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher) is not None:
        return matcher == tool
    try:
        return re.search(matcher, tool) is not None
    except re.error:
        return False
