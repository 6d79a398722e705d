"""Every host whose files are read here, in one table: how its files come together, and who decides.

Pure. Which files there are is for `locations`, and reading them for `files`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from dragoman.errors import UsageError
from dragoman.host.config import (
    claude,
    cline,
    codex,
    continue_dev,
    copilot,
    cursor,
    desktop,
    gemini,
    opencode,
)
from dragoman.host.config import roo as roo_code
from dragoman.host.config import vscode as vs_code
from dragoman.host.config import zed as zed_editor
from dragoman.host.config.record import Setup, Situation, Source
from dragoman.host.permissions import claude as claude_rules
from dragoman.host.permissions import codex as codex_rules
from dragoman.host.permissions import copilot as copilot_rules
from dragoman.host.permissions import cursor as cursor_rules
from dragoman.host.permissions import editors, ordered
from dragoman.host.permissions import gemini as gemini_rules
from dragoman.host.permissions.base import Call, Decision, unruled


class Judge(Protocol):
    """Decides on a call by what a host's files come to."""

    def __call__(self, setup: Setup, call: Call, *, situation: Situation) -> Decision: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One host: `name` is its word in options and records, `title` what people call it.

    `read` puts the texts of its files together, `judge` decides on a call by what they come to.
    """

    name: str
    title: str
    read: Callable[[Sequence[Source], Situation], Setup]
    judge: Judge


def _asks(setup: Setup, call: Call, *, situation: Situation) -> Decision:
    """A host whose files hold no rules."""
    del setup, call
    return unruled(can_ask=situation.interactive)


DIALECTS: Final[Mapping[str, Dialect]] = {
    item.name: item
    for item in (
        Dialect(claude.HOST, "Claude Code", claude.read, claude_rules.judge),
        Dialect(codex.HOST, "Codex", codex.read, codex_rules.judge),
        Dialect(cursor.HOST, "Cursor", cursor.read, cursor_rules.judge),
        Dialect(vs_code.HOST, "VS Code", vs_code.read, editors.vscode),
        Dialect(desktop.HOST, "Claude Desktop", desktop.read, _asks),
        Dialect(gemini.HOST, "Gemini CLI", gemini.read, gemini_rules.judge),
        Dialect(opencode.HOST, "opencode", opencode.read, ordered.opencode),
        Dialect(zed_editor.HOST, "Zed", zed_editor.read, editors.zed),
        Dialect(cline.HOST, "Cline", cline.read, editors.cline),
        Dialect(roo_code.HOST, "Roo Code", roo_code.read, editors.roo),
        Dialect(continue_dev.HOST, "Continue", continue_dev.read, ordered.continue_),
        Dialect(copilot.HOST, "Copilot CLI", copilot.read, copilot_rules.judge),
    )
}
"""The hosts, by name, in the order in which they are shown."""


def dialect(name: str) -> Dialect:
    """The host of that name.

    Raises:
        UsageError: there is none; the error lists those that there are.
    """
    found = DIALECTS.get(name)
    if found is None:
        raise UsageError(f"host {name!r} is not known: expected one of {', '.join(DIALECTS)}")
    return found
