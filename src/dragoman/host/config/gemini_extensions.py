"""Gemini CLI's extensions: the servers of their manifests, and where each extension is switched off. Pure.

An extension's `trust` counts for nothing: it would be its author's word on itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.host.config import fields
from dragoman.host.config.located import Node
from dragoman.host.config.places import known
from dragoman.host.config.record import (
    Origin,
    Problem,
    ServerConfig,
    ServerFile,
    Situation,
    Source,
    Standing,
    named,
)
from dragoman.host.config.tables import Entry, path, read_root, read_table
from dragoman.host.config.wildcard import fits


class Extensions:
    """The extensions among the sources, and which of them are off in the folder."""

    def __init__(self, sources: Sequence[Source], situation: Situation) -> None:
        self._sources = list(named(sources, "extension"))
        self._places = {**known(situation), "workspacePath": situation.folder}
        self._folder = f"{situation.folder.rstrip('/')}/"
        self._problems: list[Problem] = []
        self._off: dict[str, Origin] = {}
        self._names: dict[str, str] = {}
        for source in named(sources, "enablement"):
            root, bad = read_root(source, comments=False)
            self._problems += bad
            members = () if root is None else root.members.items()
            for name, node in members:
                self._switch(name, path(node, "overrides"), source=source)

    def _switch(self, name: str, overrides: Node | None, *, source: Source) -> None:
        """Paths, with `!` before those in which it is off; the last that matches counts."""
        for item in () if overrides is None else overrides.items:
            text = str(item.value)
            pattern = text.removeprefix("!").rstrip("/")
            pattern = pattern if pattern.endswith("*") else f"{pattern}/"
            if not fits(pattern, self._folder):
                continue
            if text.startswith("!"):
                self._off[name] = fields.origin(item, source.file)
            else:
                self._off.pop(name, None)

    def read(self, entry: Entry) -> ServerFile:
        """Their servers, and what is wrong with them."""
        servers: list[ServerConfig] = []
        problems = list(self._problems)
        for source in self._sources:
            root, bad = read_root(source)
            places = {**self._places, **source.variables}
            found = read_table(path(root, "mcpServers"), source, entry=entry, variables=places)
            servers += found.servers
            self._names |= dict.fromkeys((config.origin.file for config in found.servers), source.name)
            problems += [*bad, *found.problems]
        return ServerFile(tuple(servers), tuple(problems))

    def held(self, config: ServerConfig) -> Standing | None:
        """What becomes of an extension's server where the extension is off."""
        off = self._off.get(self._names.get(config.origin.file, "")) if config.scope == "plugin" else None
        return (
            None if off is None else Standing(config, "disabled", "the extension is switched off here", off)
        )

    def counts(self, source: Source) -> bool:
        """Whether a policy file is not one of an extension that is off."""
        return source.scope != "plugin" or source.name not in self._off
