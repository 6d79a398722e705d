"""Cline's `cline_mcp_settings.json`: one entry that is none costs the whole file. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node
from dragoman.host.config.record import (
    Problem,
    Rule,
    Scope,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Wire,
    named,
)
from dragoman.host.config.tables import Given, Layout, base, read_files, stand, strongest_first, switched

HOST: Final = "cline"

_ORDER: Final[tuple[Scope, ...]] = ("project", "user")
_TYPES: Final[dict[str, Wire]] = {"stdio": "stdio", "sse": "sse", "streamableHttp": "http"}
_OLD_TYPES: Final[dict[str, Wire]] = {"stdio": "stdio", "sse": "sse", "http": "http"}
DEFAULT_TIMEOUT: Final = 60.0


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to. The one kind of source is `servers`."""
    del situation  # nothing of it changes what is read
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    for source in strongest_first(named(sources, "servers"), _ORDER):
        found = read_files([source], _LAYOUT)
        wrong = [problem for problem in found.problems if "is left out" in problem.text]
        if wrong:
            text = f"nothing of the file is read, because {wrong[0].text}"
            problems.append(Problem(text, wrong[0].origin))
        else:
            servers += found.servers
        problems += found.problems
    failure = next((item for item in problems if item.text.startswith("nothing of the file")), None)
    return Setup(HOST, tuple(stand(servers, held=switched)), problems=tuple(problems), failure=failure)


def _entry(given: Given) -> ServerConfig:
    node = _flat(given.node)
    config = base(replace(given, node=node), HOST, transport=_transport(node))
    return replace(
        config,
        timeout=clamped(node),
        enabled=not fields.flag(node, "disabled"),
        rules=approvals(node, "autoApprove", given=given),
        raw=given.node.value,
    )


def _flat(node: Node) -> Node:
    """An entry whose `transport` is an object of its own, as one in which it is not."""
    inner = fields.block(node, "transport")
    if inner is None:
        return node
    return replace(node, members={**node.members, **inner.members}, value={**node.value, **inner.value})


def _transport(node: Node) -> Wire:
    kind = fields.choice(node, "type", among=_TYPES)
    if kind is None:
        kind = fields.choice(node, "transportType", among=_OLD_TYPES)
    if kind is not None:
        return kind
    if "command" in node.members:
        return "stdio"
    if "url" not in node.members:
        raise Bad("expected `command` or `url`", node)
    return "sse"  # of all transports: what a URL alone means here


_LAYOUT: Final = Layout(("mcpServers",), _entry, comments=False)


def clamped(node: Node) -> float:
    """Seconds between 1 and 3600; what is no number is 60."""
    value = node.value.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DEFAULT_TIMEOUT
    return float(min(max(value, 1), 3600))


def approvals(node: Node, member: str, *, given: Given) -> tuple[Rule, ...]:
    """Allow rules for the tools that an entry lists."""
    good, _ = fields.strings(node.members.get(member), given.origin.file, what=member)
    return tuple(
        Rule(
            "allow",
            f"{member} of server {given.name!r}: {item.value}",
            fields.origin(item, given.origin.file),
            given.scope,
            {"server": given.name, "tool": item.value},
        )
        for item in good
    )
