"""Zed's `settings.json`: `context_servers` and the permissions of tools. Pure.

An entry that is neither form may cost Zed the whole file; here it is left out alone, so that the rules of
the same file hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
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
    base,
    one_of_two,
    path,
    read_root,
    read_table,
    seconds,
    stand,
    strongest_first,
    switched,
)

HOST: Final = "zed"

_ORDER: Final[tuple[Scope, ...]] = ("project", "user")
_EFFECTS: Final[Mapping[str, Effect]] = {"allow": "allow", "confirm": "ask", "deny": "deny"}


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to. The one kind of source is `settings`; scopes user and project."""
    del situation  # nothing of it changes what is read
    servers: list[ServerConfig] = []
    rules: list[Rule] = []
    problems: list[Problem] = []
    globally = False
    for source in strongest_first(named(sources, "settings"), _ORDER):
        root, bad = read_root(source)
        found = read_table(path(root, "context_servers"), source, entry=_entry)
        servers += found.servers
        problems += [*bad, *found.problems]
        block = path(root, "agent", "tool_permissions")
        more, bad = _rules(block, source, globally=not globally)
        globally = globally or any(rule.detail["tool"] is None for rule in more)
        rules += more
        problems += bad
    standing = stand(servers, held=switched)
    return Setup(HOST, tuple(standing), tuple(rules), tuple(problems))


def _entry(given: Given) -> ServerConfig:
    stdio = one_of_two(given.node)
    config = base(given, HOST, transport="stdio" if stdio else "http")
    signed = any(name.lower() == "authorization" for name in config.headers)
    return replace(
        config,
        timeout=seconds(given.node, "timeout"),
        enabled=fields.flag(given.node, "enabled", default=True),
        sign_in=not stdio and not signed,
    )


def _rules(block: Node | None, source: Source, *, globally: bool) -> tuple[list[Rule], list[Problem]]:
    """The default of each tool; the global one of the strongest file that has one."""
    rules: list[Rule] = []
    problems: list[Problem] = []
    tools = path(block, "tools")
    pairs = [(None, path(block, "default"))] if globally else []
    named_ = () if tools is None else tools.members.items()
    for tool, node in (*pairs, *((name, path(member, "default")) for name, member in named_)):
        if node is None:
            continue
        effect = _EFFECTS.get(str(node.value))
        where = fields.origin(node, source.file)
        if effect is None:
            problems.append(Problem("`default`: expected allow, confirm or deny", where))
            effect = "ask"
        text = f"{'default' if tool is None else tool}: {node.value}"
        rules.append(Rule(effect, text, where, source.scope, {"tool": tool}))
    return rules, problems
