"""Claude Code's settings files: permission rules, approvals of servers, and an organisation's lists.

Pure: it is handed texts. What the settings come to among several files is for `scopes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.host.config import fields
from dragoman.host.config.located import JsonError, Node, parse
from dragoman.host.config.record import Effect, Origin, Problem, Rule, RuleFile, Scope, Source

_EFFECTS: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")


@dataclass(frozen=True, slots=True)
class Settings:
    """One settings file: its rules, names of servers that it speaks of, and the rest as it was written."""

    source: Source
    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()
    root: Node | None = None
    enabled: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    disabled: Mapping[str, Origin] = field(default_factory=dict[str, Origin])
    enable_all: Origin | None = None

    @property
    def scope(self) -> Scope:
        """Who speaks in this file."""
        return self.source.scope

    def value(self, name: str) -> Any:
        """A member as it was written, None where there is none."""
        node = self.node(name)
        return None if node is None else node.value

    def node(self, name: str) -> Node | None:
        """A member with its place."""
        return None if self.root is None else self.root.members.get(name)


def read_rules(text: str, file: str, *, scope: Scope = "project") -> RuleFile:
    """The permission rules of a `settings.json`, given its text and the name by which messages call it."""
    settings = read_settings(Source(text, file, scope, "settings"))
    return RuleFile(settings.rules, settings.problems)


def read_settings(source: Source) -> Settings:
    """One settings file. What cannot be read of it is among its problems."""
    file = source.file
    try:
        root = parse(source.text)
    except JsonError as exc:
        return Settings(source, problems=(fields.unreadable(exc, file),))
    if not isinstance(root.value, dict):
        text = fields.wrong("an object", root.value)
        return Settings(source, problems=(Problem(text, fields.origin(root, file)),))
    permissions = _rules(root, source)
    problems = list(permissions.problems)
    lists: list[dict[str, Origin]] = []
    for name in ("enabledMcpjsonServers", "disabledMcpjsonServers"):
        good, bad = fields.strings(root.members.get(name), file, what=name)
        lists.append({node.value: fields.origin(node, file) for node in good})
        problems += bad
    every = root.members.get("enableAllProjectMcpServers")
    return Settings(
        source,
        rules=permissions.rules,
        problems=tuple(problems),
        root=root,
        enabled=lists[0],
        disabled=lists[1],
        enable_all=fields.origin(every, file) if every is not None and every.value is True else None,
    )


def _rules(root: Node, source: Source) -> RuleFile:
    file = source.file
    block = root.members.get("permissions")
    if block is None:
        return RuleFile()
    # A rule that says no may have stood in the first of the two.
    problems = list(fields.twice(root, file, names=("permissions",)))
    if not isinstance(block.value, dict):
        text = f"`permissions`: {fields.wrong('an object', block.value)}"
        return RuleFile(problems=(*problems, Problem(text, fields.origin(block, file))))
    problems += fields.twice(block, file, names=_EFFECTS)
    rules: list[Rule] = []
    for effect in _EFFECTS:
        good, bad = fields.strings(block.members.get(effect), file, what=f"permissions.{effect}")
        rules += [Rule(effect, node.value, fields.origin(node, file), source.scope) for node in good]
        problems += bad
    return RuleFile(tuple(rules), tuple(problems))
