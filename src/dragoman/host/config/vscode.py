"""VS Code's `mcp.json`, the `.mcp.json` at a workspace's root that it reads too, and lists of servers.

Pure. Servers of two files are two servers, of one name too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.claude.policy import Lists, Matching, entries, refusal
from dragoman.host.config.located import Node
from dragoman.host.config.places import known
from dragoman.host.config.record import (
    Problem,
    Rule,
    Scope,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Standing,
    named,
)
from dragoman.host.config.tables import (
    Given,
    Layout,
    base,
    one_of_two,
    path,
    read_files,
    read_root,
    read_table,
    strongest_first,
)

HOST: Final = "vscode"
ROOT: Final = "vscode-root"

_ORDER: Final[tuple[Scope, ...]] = ("managed", "project", "user")
_SURE: Final = ("stdio", "http")
MATCHING: Final = Matching(name_for_any=True, fold_path=True, user=True)


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `servers` (`.vscode/mcp.json`; scope user for the profile's), `root` (`.mcp.json`),
    `devcontainer`, and `settings` (`settings.json`; scope managed for an organisation's policy).
    """
    places = known(situation)
    own = read_files(named(sources, "servers"), _LAYOUT, variables=places)
    container = read_files(named(sources, "devcontainer"), _CONTAINER, variables=places)
    servers = [*own.servers, *container.servers]
    problems = [*own.problems, *container.problems]
    for source in named(sources, "root"):
        root, bad = read_root(source)
        found = read_table(path(root, "mcpServers") or root, source, entry=_root_entry)
        servers += found.servers
        problems += [*bad, *found.problems]
    lists, rules, bad = _settings(list(named(sources, "settings")))
    standing = [_standing(config, lists, situation=situation) for config in servers]
    return Setup(HOST, tuple(standing), tuple(rules), (*problems, *bad))


def _standing(config: ServerConfig, lists: Lists, *, situation: Situation) -> Standing:
    refused = refusal(config, lists, env=situation.env, matching=MATCHING)
    if refused is not None:
        return Standing(config, "blocked", *refused)
    if config.scope == "project" and situation.trusted is False:
        return Standing(config, "pending", "a person has to trust the server before its first start")
    return Standing(config)


def _entry(given: Given) -> ServerConfig:
    """By `type` if that is one that is known, else by whether there is a `command`."""
    node = given.node
    kind = node.value.get("type")
    stdio = kind == "stdio" if kind in _SURE else one_of_two(node)
    config = base(given, HOST, transport="stdio" if stdio else "http", env=fields.scalars)
    if kind not in (*_SURE, None, "sse"):
        config = replace(config, warnings=(f"`type` {kind!r} is not known, and not looked at",))
    if not stdio:
        return replace(config, then_sse=True)
    return replace(config, env_file=fields.maybe(node, "envFile"), cwd=fields.maybe(node, "cwd"))


def _root_entry(given: Given) -> ServerConfig:
    """Another program's form, in which only environment variables are replaced."""
    stdio = one_of_two(given.node)
    config = base(given, HOST, transport="stdio" if stdio else "http")
    return replace(config, then_sse=not stdio, syntax=ROOT)


_LAYOUT: Final = Layout(("servers",), _entry, order=_ORDER, needed=True)
_CONTAINER: Final = Layout(("customizations", "vscode", "mcp", "servers"), _entry)


# Settings ------------------------------------------------------------------------------------------------


def _settings(sources: Sequence[Source]) -> tuple[Lists, list[Rule], list[Problem]]:
    rules: list[Rule] = []
    problems: list[Problem] = []
    lists = Lists()
    for source in strongest_first(sources, _ORDER):
        root, bad = read_root(source)
        problems += bad
        lists, more = _listed(root, source, lists=lists)
        problems += more
        rules += _approvals(root, source)
    return lists, rules, problems


def _listed(root: Node | None, source: Source, *, lists: Lists) -> tuple[Lists, list[Problem]]:
    """The lists of a file with those of others; of allowlists the strongest alone, of denials all."""
    allow, deny = path(root, "chat.mcp.allowedServers"), path(root, "chat.mcp.deniedServers")
    denied, problems = entries(deny, source.file, deny=True)
    allowed = lists.allowed
    if allow is not None and allowed is None:
        found, more = entries(allow, source.file, deny=False)
        problems += more
        allowed = tuple(found)
    return Lists(allowed, (*lists.denied, *denied)), problems


def _approvals(root: Node | None, source: Source) -> list[Rule]:
    rules: list[Rule] = []
    every = path(root, "chat.tools.global.autoApprove")
    if every is not None and every.value is True and source.scope != "project":
        where = fields.origin(every, source.file)
        rules.append(Rule("allow", "chat.tools.global.autoApprove", where, source.scope, {"tool": "*"}))
    eligible = path(root, "chat.tools.eligibleForAutoApproval")
    for tool, node in () if eligible is None else eligible.members.items():
        if node.value is False:
            text = f"chat.tools.eligibleForAutoApproval {tool}"
            where = fields.origin(node, source.file)
            rules.append(Rule("ask", text, where, source.scope, {"tool": tool}))
    return rules
