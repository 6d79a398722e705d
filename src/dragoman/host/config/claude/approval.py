"""Whether Claude Code may start a server at all: a person's approval, and switches per project.

A project's file waits for a yes that does not come from the project itself; a no counts wherever it
stands. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.claude.settings import Settings
from dragoman.host.config.located import Node
from dragoman.host.config.record import Scope, ServerConfig, Situation, Standing

# Files whose approvals count in a folder that nobody has trusted: none of them comes with the project.
_OWN: Final[tuple[Scope, ...]] = ("managed", "cli", "user")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """What the settings and the person's choices for this project say about servers.

    `project` is this project's part of `~/.claude.json`, which `file` names.
    """

    settings: Sequence[Settings]
    project: Node | None
    file: str
    situation: Situation
    trusted: bool

    def held(self, config: ServerConfig) -> Standing | None:
        """What keeps the server from being used, or None."""
        held = self._project_file(config) if config.scope == "project" else None
        return held or self._switched_off(config)

    def _switched_off(self, config: ServerConfig) -> Standing | None:
        off = None if self.project is None else self.project.members.get("disabledMcpServers")
        for node in () if off is None else off.items:
            if node.value == config.name:
                where = fields.origin(node, self.file)
                return Standing(config, "disabled", "switched off for this project", where)
        return None

    def _project_file(self, config: ServerConfig) -> Standing | None:
        name = config.name
        for item in self.settings:
            if name in item.disabled:
                return Standing(config, "rejected", "in `disabledMcpjsonServers`", item.disabled[name])
        if any(name in item.enabled or item.enable_all is not None for item in self._counted()):
            return None
        if not self.situation.interactive or self._skips():
            return None
        return Standing(config, "pending", "a person has to approve servers of a project's file")

    def _counted(self) -> Iterator[Settings]:
        """The files whose approvals count here."""
        for item in self.settings:
            waits = item.scope == "project" or (item.scope == "local" and not self._at_home())
            if self.trusted or item.scope in _OWN or not waits:
                yield item

    def _at_home(self) -> bool:
        """Whether the folder is the configuration's own home, whose local settings need no trust."""
        moved = self.situation.env.get("CLAUDE_CONFIG_DIR")
        home = moved or (f"{self.situation.home}/.claude" if self.situation.home else "")
        return bool(home) and self.situation.folder == home

    def _skips(self) -> bool:
        """A session in which nobody is ever asked, by the person's own or the organisation's setting."""
        return self.situation.mode == "bypassPermissions" and any(
            item.scope in ("user", "managed") and item.value("skipDangerousModePermissionPrompt") is True
            for item in self.settings
        )
