"""Continue's `config.yaml`, the files of `.continue/mcpServers`, and permissions of its command line. Pure.

JSON files are read in the forms of other programs; a `${NAME}` in one of them becomes a secret's template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node
from dragoman.host.config.record import (
    Effect,
    Origin,
    Problem,
    Rule,
    Scope,
    ServerConfig,
    ServerFile,
    Setup,
    Situation,
    Source,
    Wire,
    named,
)
from dragoman.host.config.tables import (
    Given,
    base,
    milliseconds,
    one_of_two,
    path,
    read_root,
    read_table,
    stand,
    strongest_first,
)
from dragoman.protocol.yaml import YamlFault, read_yaml

HOST: Final = "continue"

_ORDER: Final[tuple[Scope, ...]] = ("project", "user")
_TYPES: Final[dict[str, Wire]] = {"stdio": "stdio", "sse": "sse", "streamable-http": "http", "http": "http"}
_EFFECTS: Final[Mapping[str, Effect]] = {"allow": "allow", "ask": "ask", "exclude": "deny"}
_SHELL: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_ITEM: Final = re.compile(r"(\s*)-(?:\s|$)")


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `config` (YAML), `servers` (JSON of `.continue/mcpServers`), `permissions` (JSON
    with a list `policies` of `tool` and `permission`).
    """
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    rules: list[Rule] = []
    for source in strongest_first(named(sources, "config"), _ORDER):
        found = _yaml_servers(source)
        servers += found.servers
        problems += found.problems
    for source in named(sources, "servers"):
        found = _json_servers(source, situation)
        servers += found.servers
        problems += found.problems
    for source in named(sources, "permissions"):
        more, bad = _policies(source)
        rules += more
        problems += bad
    return Setup(HOST, tuple(stand(servers, held=lambda _: None)), tuple(rules), tuple(problems))


# YAML ----------------------------------------------------------------------------------------------------


def _yaml_servers(source: Source) -> ServerFile:
    try:
        root, lines = read_yaml(source.text)
    except YamlFault as exc:
        return ServerFile(
            problems=(Problem(f"not YAML that is read here: {exc}", Origin(source.file, exc.line)),)
        )
    listed = root.get("mcpServers")
    if listed is None:
        return ServerFile()
    where = Origin(source.file, lines.get("mcpServers", 0), 1)
    if not isinstance(listed, list):
        return ServerFile(problems=(Problem(f"`mcpServers`: {fields.wrong('a list', listed)}", where),))
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    places = _items(source.text, where.line)
    for at, value in enumerate(cast("list[object]", listed)):
        line, column = places[at] if at < len(places) else (where.line, 1)
        node = _node(value, line, column=column)
        try:
            fields.need(node)
            origin = Origin(source.file, line, column)
            servers.append(_entry(Given(fields.text(node, "name"), node, origin, source.scope)))
        except Bad as bad:
            problems.append(fields.problem(bad, source.file, server=f"number {at + 1}"))
    return ServerFile(tuple(servers), tuple(problems))


def _items(text: str, start: int) -> list[tuple[int, int]]:
    """Where the elements of the list below line `start` begin."""
    places: list[tuple[int, int]] = []
    for number, line in enumerate(text.splitlines()[start:], start=start + 1):
        found = _ITEM.match(line)
        if found is not None and (not places or len(found[1]) + 1 == places[0][1]):
            places.append((number, len(found[1]) + 1))
        elif found is None and line.strip() and not line[0].isspace() and not line.startswith("#"):
            break
    return places


def _node(value: Any, line: int, *, column: int) -> Node:
    """A value of YAML as a node; everything in it has the place of the whole."""
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        members = {name: _node(item, line, column=column) for name, item in table.items()}
        return Node(value, line, column, members=members, names=dict.fromkeys(members, (line, column)))
    if isinstance(value, list):
        items = tuple(_node(item, line, column=column) for item in cast("list[object]", value))
        return Node(value, line, column, items=items)
    return Node(value, line, column)


# JSON ----------------------------------------------------------------------------------------------------


def _json_servers(source: Source, situation: Situation) -> ServerFile:
    """A file in the form of Claude Desktop, of Claude Code with its `projects`, or of one server alone."""
    root, problems = read_root(source)
    if root is None:
        return ServerFile(problems=tuple(problems))
    projects = path(root, "projects")
    if projects is None and "mcpServers" not in root.members:
        name = source.file.rpartition("/")[2].removesuffix(".json")
        given = Given(name, root, Origin(source.file, root.line, root.column), source.scope)
        try:
            return ServerFile((_json_entry(given),), tuple(problems))
        except Bad as bad:
            return ServerFile(problems=(*problems, fields.problem(bad, source.file, server=name)))
    servers: list[ServerConfig] = []
    own = path(projects, situation.folder)
    for table in (path(own, "mcpServers"), path(root, "mcpServers")):
        found = read_table(table, source, entry=_json_entry)
        servers += found.servers
        problems += found.problems
    return ServerFile(tuple(servers), tuple(problems))


def _json_entry(given: Given) -> ServerConfig:
    config = _entry(given)
    return replace(
        config,
        command=None if config.command is None else _template(config.command),
        args=tuple(_template(word) for word in config.args),
        env={name: _template(value) for name, value in config.env.items()},
        url=None if config.url is None else _template(config.url),
        headers={name: _template(value) for name, value in config.headers.items()},
    )


def _template(text: str) -> str:
    return _SHELL.sub(r"${{ secrets.\1 }}", text)


def _entry(given: Given) -> ServerConfig:
    node = given.node
    kind = fields.choice(node, "type", among=_TYPES)
    stdio = kind == "stdio" or (kind is None and one_of_two(node))
    config = base(given, HOST, transport="stdio" if stdio else kind or "http")
    return replace(
        config,
        then_sse=not stdio and kind is None,
        cwd=fields.maybe(node, "cwd") if stdio else None,
        startup_timeout=milliseconds(node, "connectionTimeout"),
        warnings=("`envFile` is not supported by this host",) if "envFile" in node.members else (),
    )


# Permissions ---------------------------------------------------------------------------------------------


def _policies(source: Source) -> tuple[list[Rule], list[Problem]]:
    """Rules in the order of the list: the first that matches decides."""
    root, bad = read_root(source)
    rules: list[Rule] = []
    node = path(root, "policies")
    for item in () if node is None else node.items:
        tool, permission = path(item, "tool"), path(item, "permission")
        effect = None if permission is None else _EFFECTS.get(str(permission.value))
        where = fields.origin(item, source.file)
        if tool is None or effect is None:
            bad.append(Problem("a policy: expected `tool`, and `permission` allow, ask or exclude", where))
            continue
        detail = {"tool": str(tool.value), "host": HOST}
        rules.append(
            Rule(effect, f"{tool.value}: {permission.value if permission else ''}", where, "user", detail)
        )
    return rules, bad
