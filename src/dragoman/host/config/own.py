"""Dragoman's own `permissions.toml`: rules by server, tool, argument, annotation and time. Pure.

A rule that cannot be read is never weaker for it: an allow that is none is left out, and a deny or an ask
whose conditions are none holds for every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node
from dragoman.host.config.record import Effect, Problem, Rule, Setup, Situation, Source, named
from dragoman.host.config.toml import TomlError, parse

HOST: Final = "dragoman"

_EFFECTS: Final[Mapping[str, Effect]] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_MEMBERS: Final = frozenset({"effect", "server", "tool", "arguments", "annotations", "until"})


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to. The one kind of source is `permissions`; scopes user, project, managed.

    Which servers are trusted to speak of their own tools only a file of the person's or an
    organisation's can say.
    """
    rules: list[Rule] = []
    problems: list[Problem] = []
    trusted_servers: list[str] = []
    for source in named(sources, "permissions"):
        try:
            root = parse(source.text, source.file)
        except TomlError as exc:
            problems.append(fields.unreadable(exc, source.file))
            continue
        if source.scope != "project":
            good, bad = fields.strings(
                root.members.get("trusted_servers"), source.file, what="trusted_servers"
            )
            trusted_servers += [node.value for node in good]
            problems += bad
        table = root.members.get("rule")
        for node in () if table is None else table.items:
            rule, bad = _rule(node, source)
            rules += [] if rule is None else [rule]
            problems += bad
    settings = {"trusted": situation.trusted is True, "trusted_servers": tuple(trusted_servers)}
    return Setup(HOST, rules=tuple(rules), problems=tuple(problems), settings=settings)


def _rule(node: Node, source: Source) -> tuple[Rule | None, list[Problem]]:
    """A rule, and what is wrong with it."""
    where = fields.origin(node, source.file)
    try:
        fields.need(node, "a table")
        effect = fields.choice(node, "effect", among=_EFFECTS)
        if effect is None:
            raise Bad("expected `effect`: allow, ask or deny", node)
    except Bad as bad:
        return None, [Problem(f"a rule is left out: {bad.text}", where)]
    try:
        detail = _detail(node)
    except Bad as bad:
        if effect == "allow":
            return None, [Problem(f"an allow rule is left out: {bad.text}", where)]
        # What cannot be read restricts nothing: what it was to hold for, it holds for, and more.
        text = f"{effect} everything"
        told = Problem(f"a rule holds for every call: {bad.text}", fields.origin(bad.node, source.file))
        return Rule(effect, text, where, source.scope), [told]
    return Rule(effect, _text(effect, detail), where, source.scope, detail), []


def _detail(node: Node) -> dict[str, Any]:
    for name, member in node.members.items():
        if name not in _MEMBERS:
            raise Bad(f"`{name}` is no part of a rule: expected {', '.join(sorted(_MEMBERS))}", member)
    detail: dict[str, Any] = {}
    for name in ("server", "tool"):
        if name in node.members:
            detail[name] = fields.text(node, name)
    for name in ("arguments", "annotations"):
        found = fields.block(node, name)
        if found is not None:
            detail[name] = found.value
    until = node.members.get("until")
    if until is not None:
        if not isinstance(until.value, datetime) or until.value.tzinfo is None:
            raise Bad("`until`: expected a time with its offset, such as 2030-01-31T00:00:00Z", until)
        detail["until"] = until.value.timestamp()
    return detail


def _text(effect: Effect, detail: Mapping[str, Any]) -> str:
    name = f"{detail.get('server', '*')}:{detail.get('tool', '*')}"
    rest = [word for word in ("arguments", "annotations", "until") if word in detail]
    return f"{effect} {name}{' by ' + ', '.join(rest) if rest else ''}"
