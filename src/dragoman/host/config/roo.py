"""Roo Code's `mcp_settings.json` and `.roo/mcp.json`: the project's entry over the person's. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.cline import approvals, clamped
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node
from dragoman.host.config.places import known
from dragoman.host.config.record import ServerConfig, Setup, Situation, Source, Wire, named
from dragoman.host.config.tables import Given, Layout, base, read_files, stand, switched

HOST: Final = "roo-code"

_REMOTE: Final[dict[str, Wire]] = {"sse": "sse", "streamable-http": "http"}
_TYPES: Final[dict[str, Wire]] = {"stdio": "stdio", "sse": "sse", "streamable-http": "http"}


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to. The one kind of source is `servers`; scopes user and project."""
    found = read_files(named(sources, "servers"), _LAYOUT, variables=known(situation))
    return Setup(HOST, tuple(stand(found.servers, held=switched)), problems=found.problems)


def _entry(given: Given) -> ServerConfig:
    node = given.node
    config = base(given, HOST, transport=_transport(node))
    return replace(
        config,
        timeout=clamped(node),
        enabled=not fields.flag(node, "disabled"),
        without_tools=fields.words(node, "disabledTools"),
        rules=approvals(node, "alwaysAllow", given=given),
    )


def _transport(node: Node) -> Wire:
    if "command" in node.members and "url" in node.members:
        raise Bad("`command` and `url` are mixed: expected one of the two", node.members["url"])
    kind = fields.choice(node, "type", among=_TYPES)
    if "command" in node.members:
        if kind not in (None, "stdio"):
            raise Bad("`type`: expected stdio where there is a `command`", node.members["type"])
        return "stdio"
    if "url" not in node.members:
        raise Bad("expected `command` or `url`", node)
    if kind is None or kind == "stdio":
        raise Bad(f"`url` without `type`: expected one of {', '.join(_REMOTE)}", node.members["url"])
    return kind


_LAYOUT: Final = Layout(("mcpServers",), _entry, order=("project", "user"), comments=False)
