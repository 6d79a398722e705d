"""What the files of most hosts have in common: a table of entries by name, and files that stand over files.

Knows no host: each says what an entry is, and which of its files is stronger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import Node, TextError, parse
from dragoman.host.config.record import (
    Origin,
    Problem,
    Scope,
    ServerConfig,
    ServerFile,
    Source,
    Standing,
    Wire,
)


@dataclass(frozen=True, slots=True)
class Given:
    """One entry as it stands in a file: all that a host needs to make a server of it."""

    name: str
    node: Node
    origin: Origin
    scope: Scope
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


Entry: TypeAlias = Callable[[Given], ServerConfig]
"""Makes a server of an entry. Raises Bad."""


def read_table(
    table: Node | None,
    source: Source,
    *,
    entry: Entry,
    variables: Mapping[str, str] | None = None,
) -> ServerFile:
    """The servers of a table of entries; a bad one is left out alone."""
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    if table is None:
        return ServerFile()
    if not isinstance(table.value, dict):
        text = fields.wrong("an object of servers", table.value)
        return ServerFile(problems=(Problem(text, fields.origin(table, source.file)),))
    problems += fields.twice(table, source.file)
    for name, node in table.members.items():
        where = Origin(node.file or source.file, *table.names[name])
        problems += fields.twice(node, source.file, server=name)
        try:
            fields.need(node)
            servers.append(entry(Given(name, node, where, source.scope, variables or {})))
        except Bad as bad:
            problems.append(fields.problem(bad, source.file, server=name))
    return ServerFile(tuple(servers), tuple(problems))


@dataclass(frozen=True, slots=True)
class Layout:
    """How a host's files of servers look: the names on the way to the table of entries, and the entries.

    `order` ranks scopes, strongest first. With `needed`, a file without the table is told of.
    """

    names: tuple[str, ...]
    entry: Entry
    order: tuple[Scope, ...] = ()
    comments: bool = True
    needed: bool = False


def read_files(
    sources: Iterable[Source], layout: Layout, *, variables: Mapping[str, str] | None = None
) -> ServerFile:
    """The servers of all files, strongest first; a bad entry or a file that is broken is left out alone."""
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    for source in strongest_first(sources, layout.order):
        root, bad = read_root(source, comments=layout.comments)
        table = path(root, *layout.names)
        if layout.needed and root is not None and table is None:
            bad.append(Problem(f"expected a member `{layout.names[0]}`", fields.origin(root, source.file)))
        found = read_table(table, source, entry=layout.entry, variables=variables)
        servers += found.servers
        problems += [*bad, *found.problems]
    return ServerFile(tuple(servers), tuple(problems))


def base(
    given: Given, host: str, *, transport: Wire, env: Callable[[Node, str], dict[str, str]] = fields.table
) -> ServerConfig:
    """A server with what nearly all hosts call alike: a program, or a URL and headers. Raises Bad."""
    node, stdio = given.node, transport == "stdio"
    return ServerConfig(
        name=given.name,
        transport=transport,
        origin=given.origin,
        command=fields.text(node, "command") if stdio else None,
        args=fields.words(node, "args") if stdio else (),
        env=env(node, "env") if stdio else {},
        url=None if stdio else fields.text(node, "url"),
        headers={} if stdio else fields.table(node, "headers"),
        host=host,
        scope=given.scope,
        sign_in=transport in ("http", "sse"),
        syntax=host,
        variables=given.variables,
        raw=node.value,
    )


def one_of_two(node: Node) -> bool:
    """Whether an entry is a program's, by its `command`; else it has to have a `url`. Raises Bad."""
    if "command" in node.members:
        return True
    if "url" not in node.members:
        raise Bad("expected `command` or `url`", node)
    return False


def read_root(source: Source, *, comments: bool = True) -> tuple[Node | None, list[Problem]]:
    """The object that a JSON file is, or None and why not."""
    try:
        root = fields.need(parse(source.text, comments=comments))
    except TextError as exc:
        return None, [fields.unreadable(exc, source.file)]
    except Bad as bad:
        return None, [fields.problem(bad, source.file)]
    return root, []


def path(root: Node | None, *names: str) -> Node | None:
    """The value below a node, by the names on the way; None where one is missing."""
    for name in names:
        root = None if root is None else root.members.get(name)
    return root


def strongest_first(sources: Iterable[Source], order: Sequence[Scope]) -> list[Source]:
    """The sources, strongest scope first; of one scope the later given is stronger."""
    rank = {scope: at for at, scope in enumerate(order)}
    later = list(sources)[::-1]
    return sorted(later, key=lambda source: rank.get(source.scope, len(rank)))


def stand(
    servers: Iterable[ServerConfig], *, held: Callable[[ServerConfig], Standing | None]
) -> list[Standing]:
    """How entries fare, strongest first: the first of a name that nothing holds back is used, whole."""
    standing: list[Standing] = []
    used: dict[str, ServerConfig] = {}
    for config in servers:
        item = held(config)
        if item is None and (winner := used.get(config.name)) is not None:
            item = Standing(config, "shadowed", f"the entry in {winner.origin} is used", winner.origin)
        if item is None:
            used[config.name] = config
            item = Standing(config)
        standing.append(item)
    return standing


def switched(config: ServerConfig) -> Standing | None:
    """What becomes of an entry that says itself that it is off."""
    return (
        None if config.enabled else Standing(config, "disabled", "switched off in its entry", config.origin)
    )


def seconds(node: Node, member: str, *, scale: float = 1.0, unit: str = "seconds") -> float | None:
    """A time in seconds, of a member in units that are `scale` seconds long."""
    value = fields.number(node, member, unit=unit)
    return None if value is None else value * scale


def milliseconds(node: Node, member: str) -> float | None:
    """A time in seconds, of a member in milliseconds."""
    return seconds(node, member, scale=0.001, unit="milliseconds")


def merged(low: Node, high: Node) -> Node:
    """Two tables as one: tables field by field, everything else whole, from `high` where both have it."""
    if not (isinstance(low.value, dict) and isinstance(high.value, dict)):
        return high
    members = dict(low.members)
    for name, node in high.members.items():
        members[name] = merged(members[name], node) if name in members else node
    value: dict[str, Any] = {name: node.value for name, node in members.items()}
    return Node(
        value, high.line, high.column, members=members, names={**low.names, **high.names}, file=high.file
    )
