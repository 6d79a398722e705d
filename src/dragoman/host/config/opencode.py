"""opencode's `opencode.json`, in both of its forms. Pure.

In the first form files are put together field by field, in the second a stronger file's entry counts
whole. Permissions keep their order: the last one that matches decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node
from dragoman.host.config.record import (
    Effect,
    Problem,
    Rule,
    Scope,
    ServerConfig,
    Setup,
    Situation,
    Source,
    named,
)
from dragoman.host.config.tables import (
    Given,
    merged,
    milliseconds,
    path,
    read_root,
    read_table,
    stand,
    strongest_first,
    switched,
)

HOST: Final = "opencode"

_ORDER: Final[tuple[Scope, ...]] = ("managed", "cli", "project", "user")
_EFFECTS: Final[Mapping[str, Effect]] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_KINDS: Final = {"local": "local", "remote": "remote"}


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to. The one kind of source is `config`; scopes user, project, cli, managed."""
    del situation  # nothing of it changes what is read
    first = Node({}, 1, 1)
    servers: list[ServerConfig] = []
    rules: list[Rule] = []
    problems: list[Problem] = []
    ranked = strongest_first(named(sources, "config"), _ORDER)
    for source in reversed(ranked):
        root, bad = read_root(source)
        problems += bad
        table = path(root, "mcp")
        second = path(table, "servers")
        if table is not None and (second is None or "type" in second.members):
            first = merged(first, _filed(table, source.file))
        elif second is not None:
            found = read_table(second, source, entry=_second)
            servers = [*found.servers, *servers]
            problems += found.problems
        found_rules, bad = _rules(root, source)
        rules += found_rules
        problems += bad
    place = ranked[0] if ranked else Source("", "opencode.json")
    found = read_table(first, place, entry=_first)
    standing = stand((*servers, *found.servers), held=switched)
    return Setup(HOST, tuple(standing), tuple(rules), (*problems, *found.problems))


def _filed(node: Node, file: str) -> Node:
    members = {name: _filed(member, file) for name, member in node.members.items()}
    items = tuple(_filed(item, file) for item in node.items)
    return replace(node, members=members, items=items, file=file)


def _first(given: Given) -> ServerConfig:
    """An entry in the first form: a remote one falls back to the old transport."""
    config = _entry(given)
    enabled = fields.flag(given.node, "enabled", default=True)
    return replace(
        config,
        then_sse=config.transport == "http",
        timeout=milliseconds(given.node, "timeout"),
        enabled=enabled,
    )


def _second(given: Given) -> ServerConfig:
    """An entry in the second form."""
    return replace(_entry(given), enabled=not fields.flag(given.node, "disabled"))


def _entry(given: Given) -> ServerConfig:
    node = given.node
    kind = fields.choice(node, "type", among=_KINDS)
    if kind is None:
        raise Bad("expected a member `type`, local or remote", node)
    local = kind == "local"
    command, args = _program(node) if local else (None, ())
    oauth = node.members.get("oauth")
    return ServerConfig(
        name=given.name,
        transport="stdio" if local else "http",
        origin=given.origin,
        command=command,
        args=args,
        env=fields.table(node, "environment") if local else {},
        cwd=fields.maybe(node, "cwd") if local else None,
        url=None if local else fields.text(node, "url"),
        headers={} if local else fields.table(node, "headers"),
        host=HOST,
        scope=given.scope,
        sign_in=not local and (oauth is None or oauth.value is not False),
        syntax=HOST,
        raw=node.value,
    )


def _program(node: Node) -> tuple[str, tuple[str, ...]]:
    """The program and its arguments, which stand in one list."""
    words = fields.words(node, "command")
    if not words:
        raise Bad("`command`: expected a list of the program and its arguments", node)
    return words[0], words[1:]


# Permissions ---------------------------------------------------------------------------------------------


def _rules(root: Node | None, source: Source) -> tuple[list[Rule], list[Problem]]:
    """The rules of a file in the order in which they stand there."""
    node = path(root, "permission") or path(root, "permissions")
    if node is None:
        return [], []
    if node.items or isinstance(node.value, list):
        pairs = [_written(item) for item in node.items]
    elif isinstance(node.value, dict):
        pairs = [(name, _general(member)) for name, member in node.members.items()]
    else:
        pairs = [("*", node)]
    rules: list[Rule] = []
    problems: list[Problem] = []
    for pattern, member in pairs:
        effect = None if member is None else _EFFECTS.get(str(member.value))
        where = fields.origin(member or node, source.file)
        if pattern is None or effect is None:
            # Where there are patterns of arguments for a tool of the program itself, nothing is amiss.
            if member is not None:
                problems.append(Problem("a permission: expected allow, ask or deny", where))
            continue
        rules.append(Rule(effect, f"{pattern}: {effect}", where, source.scope, {"tool": pattern}))
    return rules, problems


def _general(node: Node) -> Node | None:
    """What a tool's permission is for all arguments: a server's tool has no patterns of its own."""
    return node.members.get("*") if isinstance(node.value, dict) else node


def _written(node: Node) -> tuple[str | None, Node | None]:
    """An entry of the second form: `action` is the tool, and `resource` of a server's tool is everything."""
    action, effect = path(node, "action"), path(node, "effect")
    resource = path(node, "resource")
    if resource is not None and resource.value != "*":
        return None, None
    return (None if action is None else str(action.value)), effect
