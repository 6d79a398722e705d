"""Cursor's `mcp.json`, and the files that say which of its tools are not asked about.

Pure. Which of the two `mcp.json` is stronger is not documented: here it is the project's, whole entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.located import Node
from dragoman.host.config.places import known
from dragoman.host.config.record import (
    Effect,
    Problem,
    Rule,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Standing,
    Wire,
    named,
)
from dragoman.host.config.tables import Given, Layout, base, one_of_two, path, read_files, read_root, stand

HOST: Final = "cursor"

_TYPES: Final[dict[str, Wire]] = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
_ALLOWLIST: Final = "mcpAllowlist"


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `servers` (`mcp.json`), `permissions` (`permissions.json`; scope managed for a team's),
    `ide` (an object with the editor's own `mcpAllowlist`) and `cli` (`cli-config.json`, `cli.json`).
    """
    found = read_files(named(sources, "servers"), _LAYOUT, variables=known(situation))
    rules, bad = _rules(sources)
    standing = stand(found.servers, held=lambda config: _held(config, situation))
    return Setup(HOST, tuple(standing), tuple(rules), (*found.problems, *bad))


def _held(config: ServerConfig, situation: Situation) -> Standing | None:
    """A project's servers are switched on by a person in the editor."""
    if config.scope == "project" and situation.trusted is False:
        return Standing(config, "pending", "a person has to switch on servers of a project's file")
    return None


def _entry(given: Given) -> ServerConfig:
    node = given.node
    kind = fields.choice(node, "type", among=_TYPES)
    stdio = kind == "stdio" or (kind is None and one_of_two(node))
    config = base(given, HOST, transport="stdio" if stdio else kind or "http")
    file = fields.maybe(node, "envFile")
    if stdio:
        return replace(config, env_file=file)
    warnings = () if file is None else ("`envFile` is for programs alone",)
    return replace(config, then_sse=kind is None, warnings=warnings)


_LAYOUT: Final = Layout(("mcpServers",), _entry, order=("managed", "project", "user"), needed=True)


# Permissions ---------------------------------------------------------------------------------------------


def _rules(sources: Sequence[Source]) -> tuple[list[Rule], list[Problem]]:
    """A team's list stands over the files', and a file's over the editor's, an empty one too."""
    rules: list[Rule] = []
    problems: list[Problem] = []
    files = list(named(sources, "permissions"))
    team = [source for source in files if source.scope == "managed"]
    own = [source for source in files if source.scope != "managed"]
    for group in (team, own, list(named(sources, "ide"))):
        is_set = False
        for source in group:
            root, bad = read_root(source)
            node = path(root, _ALLOWLIST)
            is_set = is_set or node is not None
            found, more = _allowlist(node, source)
            rules += found
            problems += [*bad, *more]
        if is_set:
            break
    for source in named(sources, "cli"):
        root, bad = read_root(source)
        found, more = _command_line(root, source)
        rules += found
        problems += [*bad, *more]
    return rules, problems


def _allowlist(node: Node | None, source: Source) -> tuple[list[Rule], list[Problem]]:
    good, problems = fields.strings(node, source.file, what=_ALLOWLIST)
    rules: list[Rule] = []
    for item in good:
        where = fields.origin(item, source.file)
        rules.append(Rule("allow", item.value, where, source.scope))
        if ":" not in item.value:
            problems.append(Problem(f"{item.value!r} never matches: expected server:tool", where))
    return rules, problems


def _command_line(root: Node | None, source: Source) -> tuple[list[Rule], list[Problem]]:
    rules: list[Rule] = []
    problems: list[Problem] = []
    effects: tuple[Effect, ...] = ("deny", "allow")
    for effect in effects:
        node = path(root, "permissions", effect)
        good, bad = fields.strings(node, source.file, what=f"permissions.{effect}")
        problems += bad
        for item in good:
            where = fields.origin(item, source.file)
            rules.append(Rule(effect, item.value, where, source.scope, {"surface": "cli"}))
    return rules, problems
