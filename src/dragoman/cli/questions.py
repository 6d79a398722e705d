"""What a server asks while a command runs: answered on the terminal, and not offered where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable

from dragoman.client.options import ClientKeywords
from dragoman.client.terminal import terminal_form
from dragoman.model import ElicitParams, ElicitResult


def on_terminal(before: Callable[[], None] = lambda: None) -> ClientKeywords:
    """The client's options for it; `before` makes room for a question."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return {}

    async def ask(params: ElicitParams) -> ElicitResult:
        before()
        return await terminal_form(params)

    return {"elicitation_handler": ask, "elicitation_modes": ("form", "url")}
