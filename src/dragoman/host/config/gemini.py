"""Gemini CLI's `settings.json` and policies: layers by name, gates, and rules with priorities.

Pure. A rule's final priority is its file's tier and a thousandth of its own; the tiers of what the settings
say of tools are the program's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.gemini_extensions import Extensions
from dragoman.host.config.gemini_policy import read_policies, rules_of_settings
from dragoman.host.config.located import Node
from dragoman.host.config.record import (
    Origin,
    Problem,
    Rule,
    Scope,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Standing,
    Wire,
    named,
)
from dragoman.host.config.tables import (
    Given,
    base,
    merged,
    milliseconds,
    path,
    read_root,
    read_table,
    stand,
    strongest_first,
)

HOST: Final = "gemini-cli"

# `cloud` is the file of defaults, below everything; `system` overrides everything.
_ORDER: Final[tuple[Scope, ...]] = ("cli", "system", "project", "user", "plugin", "cloud")
_TYPES: Final[dict[str, Wire]] = {"http": "http", "sse": "sse"}
_TRUST: Final = 4.2
_NOT_PLAN: Final = ("default", "autoEdit", "yolo")


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `settings` (scopes cloud for the defaults' file, user, project, system, cli) and
    `policy` (TOML; scopes user, plugin for an extension's, project, managed), `extension` (the manifest of
    one, with its name) and `enablement` (which of them are switched off where).
    """
    roots: list[tuple[Source, Node]] = []
    problems: list[Problem] = []
    for source in strongest_first(named(sources, "settings"), _ORDER):
        root, bad = read_root(source)
        problems += bad
        if root is not None:
            roots.append((source, root))
    trusted = _trusted(roots, situation)
    used = [(source, root) for source, root in roots if trusted or source.scope != "project"]
    servers: list[ServerConfig] = []
    for source, root in roots:
        found = read_table(
            path(root, "mcpServers"), source, entry=lambda given: _entry(given, trusted=trusted)
        )
        servers += found.servers
        problems += found.problems
    extensions = Extensions(sources, situation)
    brought = extensions.read(_entry)
    # Above the file of defaults, and below all others.
    servers = sorted((*servers, *brought.servers), key=lambda config: _ORDER.index(config.scope))
    problems += brought.problems
    whole = _together(used)
    gate = _Gate(whole, used, trusted=trusted)
    rules, bad = read_policies([item for item in named(sources, "policy") if extensions.counts(item)])
    rules += rules_of_settings(whole, used[0][0].file if used else "settings.json")
    mode = path(whole, "general", "defaultApprovalMode")
    settings: dict[str, Any] = {"trusted": trusted}
    if mode is not None and isinstance(mode.value, str):
        settings["mode"] = _MODES.get(mode.value, mode.value)
    standing = stand(servers, held=lambda config: extensions.held(config) or gate.held(config))
    return Setup(HOST, tuple(standing), tuple(rules), (*problems, *bad), settings=settings)


_MODES: Final[Mapping[str, str]] = {"auto_edit": "autoEdit"}


def _together(roots: Sequence[tuple[Source, Node]]) -> Node:
    whole = Node({}, 1, 1)
    for source, root in reversed(roots):
        whole = merged(whole, _filed(root, source.file))
    return whole


def _filed(node: Node, file: str) -> Node:
    """A node that says which file it and all below it are of."""
    members = {name: _filed(member, file) for name, member in node.members.items()}
    items = tuple(_filed(item, file) for item in node.items)
    return replace(node, members=members, items=items, file=file)


def _trusted(roots: Sequence[tuple[Source, Node]], situation: Situation) -> bool:
    """Folders are trusted where nobody has switched the question on."""
    for source, root in roots:
        node = path(root, "security", "folderTrust", "enabled")
        if source.scope != "project" and node is not None:
            return node.value is not True or situation.trusted is True
    return situation.trusted is not False


class _Gate:
    """What keeps an entry from being loaded: the administrator, the lists, the folder's trust."""

    def __init__(self, whole: Node, used: Sequence[tuple[Source, Node]], *, trusted: bool) -> None:
        self._file = used[0][0].file if used else ""
        self._trusted = trusted
        self._admin = path(whole, "admin", "mcp", "enabled")
        self._allowed = path(whole, "mcp", "allowed")
        self._excluded = path(whole, "mcp", "excluded")

    def held(self, config: ServerConfig) -> Standing | None:
        """What becomes of the entry, None if nothing holds it back."""
        name = config.name.lower()
        if self._admin is not None and self._admin.value is False:
            return Standing(config, "blocked", "`admin.mcp.enabled` is false", self._where(self._admin))
        if not self._trusted and (config.scope == "project" or config.transport == "stdio"):
            return Standing(config, "untrusted", "the folder is not trusted", config.origin)
        if self._allowed is not None and name not in _lowered(self._allowed):
            return Standing(config, "blocked", "not in `mcp.allowed`", self._where(self._allowed))
        if self._excluded is not None and name in _lowered(self._excluded):
            return Standing(config, "blocked", "in `mcp.excluded`", self._where(self._excluded))
        return None

    def _where(self, node: Node) -> Origin:
        return fields.origin(node, self._file)


def _lowered(node: Node) -> set[str]:
    return {item.value.lower() for item in node.items if isinstance(item.value, str)}


# Entries -------------------------------------------------------------------------------------------------


def _entry(given: Given, *, trusted: bool = False) -> ServerConfig:
    node = given.node
    old = fields.maybe(node, "httpUrl")
    kind = fields.choice(node, "type", among=_TYPES)
    if old is not None:
        config = base(replace(given, node=_renamed(node)), HOST, transport="http")
        config = replace(config, raw=node.value, warnings=("`httpUrl` is deprecated: use `url`",))
    elif "url" in node.members:
        config = replace(base(given, HOST, transport=kind or "http"), then_sse=kind is None)
    elif "command" in node.members:
        config = base(given, HOST, transport="stdio")
    elif "tcp" in node.members:
        raise Bad("`tcp` is not spoken here", node.members["tcp"])
    else:
        raise Bad("expected `httpUrl`, `url` or `command`", node)
    listed = "includeTools" in node.members
    # An entry may name parameters behind the tool, which say nothing of which tool it is.
    names = tuple(word.partition("(")[0] for word in fields.words(node, "includeTools"))
    trust = fields.flag(node, "trust")
    return replace(
        config,
        cwd=fields.maybe(node, "cwd"),
        timeout=milliseconds(node, "timeout"),
        only_tools=names if listed else None,
        without_tools=fields.words(node, "excludeTools"),
        rules=(_trust(given),) if trust and trusted else (),
    )


def _renamed(node: Node) -> Node:
    members = {**node.members, "url": node.members["httpUrl"]}
    return replace(node, members=members)


def _trust(given: Given) -> Rule:
    detail = {"mcpName": given.name, "priority": _TRUST, "modes": list(_NOT_PLAN)}
    where = fields.origin(given.node.members["trust"], given.origin.file)
    return Rule("allow", f"trust of server {given.name!r}", where, given.scope, detail)
