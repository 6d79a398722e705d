"""Gemini CLI's policy files, and the rules that its settings come to. Pure.

A rule's detail has the members of its table under their own names, and the final priority.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node
from dragoman.host.config.record import Effect, Problem, Rule, Scope, Source
from dragoman.host.config.tables import path
from dragoman.host.config.toml import TomlError, parse

_TIERS: Final[Mapping[Scope, int]] = {"system": 1, "plugin": 2, "project": 3, "user": 4, "managed": 5}
_DECISIONS: Final[Mapping[str, Effect]] = {"allow": "allow", "deny": "deny", "ask_user": "ask"}
_TEXTS: Final = ("toolName", "mcpName", "argsPattern")


def read_policies(sources: Sequence[Source]) -> tuple[list[Rule], list[Problem]]:
    """The rules of policy files. Those of a workspace are switched off in the program, and here."""
    rules: list[Rule] = []
    problems: list[Problem] = []
    for source in sources:
        if source.scope == "project":
            continue
        try:
            root = parse(source.text, source.file)
        except TomlError as exc:
            problems.append(fields.unreadable(exc, source.file))
            continue
        table = root.members.get("rule")
        for node in () if table is None else table.items:
            try:
                rules += _rule(node, source)
            except Bad as bad:
                problems.append(fields.problem(bad, source.file))
    return rules, problems


def _rule(node: Node, source: Source) -> Iterable[Rule]:
    """The rules of one table: one for each of the tools that it lists."""
    fields.need(node, "a table")
    effect = fields.choice(node, "decision", among=_DECISIONS)
    priority = fields.number(node, "priority", unit="priority")
    if effect is None or priority is None:
        raise Bad("a rule has to have `decision` and `priority`", node)
    if not 0 <= priority < 1000:
        raise Bad("`priority`: expected 0 to 999", node.members["priority"])
    detail: dict[str, Any] = {"priority": _TIERS.get(source.scope, 1) + priority / 1000}
    for name in _TEXTS:
        found = node.members.get(name)
        if found is not None and not isinstance(found.value, list):
            detail[name] = fields.text(node, name)
    for name in ("modes", "toolAnnotations", "interactive"):
        if name in node.members:
            detail[name] = node.members[name].value
    listed = node.members.get("toolName")
    tools = [None] if listed is None or not listed.items else [item.value for item in listed.items]
    where = fields.origin(node, source.file)
    for tool in tools:
        own = detail if tool is None else {**detail, "toolName": tool}
        yield Rule(effect, _text(effect, own), where, source.scope, own)


def _text(effect: Effect, detail: Mapping[str, Any]) -> str:
    shown = [f"{name} {detail[name]!r}" for name in ("mcpName", "toolName", "argsPattern") if name in detail]
    return f"{effect} {', '.join(shown) or 'everything'}"


def rules_of_settings(whole: Node, file: str) -> list[Rule]:
    """What lists of servers and tools in the settings come to."""
    rules: list[Rule] = []
    lists: tuple[tuple[tuple[str, str], Effect, str, float], ...] = (
        (("mcp", "excluded"), "deny", "mcpName", 4.9),
        (("tools", "exclude"), "deny", "toolName", 4.4),
        (("tools", "allowed"), "allow", "toolName", 4.3),
        (("mcp", "allowed"), "allow", "mcpName", 4.1),
    )
    for names, effect, member, priority in lists:
        node = path(whole, *names)
        for item in () if node is None else node.items:
            if not isinstance(item.value, str):
                continue
            detail: dict[str, Any] = {member: item.value, "priority": priority}
            if effect == "allow":
                detail["modes"] = ["default", "autoEdit", "yolo"]
            text = f"{'.'.join(names)} {item.value}"
            rules.append(Rule(effect, text, fields.origin(item, file), "user", detail))
    return rules
