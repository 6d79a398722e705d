"""One server's entry as Claude Code reads it, and the `mcpServers` of a file: bad ones are left out alone.

Pure: it is handed nodes of a text. Knows neither scopes nor settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.fields import Bad
from dragoman.host.config.located import JsonError, Node, parse
from dragoman.host.config.record import Origin, Problem, Scope, ServerConfig, ServerFile, Wire

HOST: Final = "claude-code"
PLUGIN: Final = "claude-plugin"

RESERVED: Final = frozenset(
    {"workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"}
)
"""Names of servers that Claude Code has itself; a file's entry of that name is skipped."""

_TYPES: Final[dict[str, Wire]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "sse": "sse",
    "ws": "ws",
}
_LEAST_TIMEOUT_MS: Final = 1000
_SHELL_LEFTOVER: Final = re.compile(r"\$\{[^}]*\}")
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}")
_PLUGIN_REFERENCE: Final = re.compile(r"\$\{user_config\.[^}]*\}")


@dataclass(frozen=True, slots=True)
class Brought:
    """Where entries come from: their scope, a plugin's name, and places that they may refer to."""

    scope: Scope = "project"
    plugin: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


def read_servers(text: str, file: str, *, brought: Brought | None = None) -> ServerFile:
    """The servers of `.mcp.json`, given its text and the name by which messages call it."""
    try:
        root = parse(text)
    except JsonError as exc:
        return ServerFile(problems=(fields.unreadable(exc, file),))
    try:
        table = _plugins_table(root) if brought is not None and brought.plugin else servers_of(root)
    except Bad as bad:
        return ServerFile(problems=(fields.problem(bad, file),))
    read = read_table(table, file, brought=brought or Brought())
    twice = fields.twice(root, file, names=("mcpServers",))
    return ServerFile(read.servers, (*twice, *read.problems))


def read_manifest(text: str, file: str, *, brought: Brought) -> ServerFile:
    """The servers that stand in a plugin's `plugin.json` itself, where it names no files for them."""
    try:
        table = fields.need(parse(text)).members.get("mcpServers")
    except JsonError as exc:
        return ServerFile(problems=(fields.unreadable(exc, file),))
    except Bad as bad:
        return ServerFile(problems=(fields.problem(bad, file),))
    if table is None or not isinstance(table.value, dict):
        return ServerFile()
    return read_table(table, file, brought=brought)


def _plugins_table(root: Node) -> Node:
    """The entries of a plugin's `.mcp.json`, which may stand there bare. Raises Bad."""
    return servers_of(root) if "mcpServers" in root.members else fields.need(root)


def servers_of(root: Node) -> Node:
    """The `mcpServers` of a file. Raises Bad."""
    fields.need(root, "an object with `mcpServers`")
    table = root.members.get("mcpServers")
    if table is None:
        if "servers" in root.members:
            raise Bad("`servers` is another program's key: expected `mcpServers`", root.members["servers"])
        raise Bad("expected a member `mcpServers`", root)
    if not isinstance(table.value, dict):
        raise Bad(f"`mcpServers`: {fields.wrong('an object', table.value)}", table)
    return table


def read_table(table: Node, file: str, *, brought: Brought) -> ServerFile:
    """The servers of an object of entries by name."""
    servers: list[ServerConfig] = []
    problems = [
        Problem(f"server {name!r} stands twice; the last one counts", Origin(file, *table.names[name]), name)
        for name in table.twice
    ]
    for name, node in table.members.items():
        problems += fields.twice(node, file, server=name)
        try:
            servers.append(entry(name, node, origin=Origin(file, *table.names[name]), brought=brought))
        except Bad as bad:
            problems.append(fields.problem(bad, file, server=name))
    return ServerFile(tuple(servers), tuple(problems))


def entry(name: str, node: Node, *, origin: Origin, brought: Brought) -> ServerConfig:
    """One server. Raises Bad."""
    _name(name, node)
    fields.need(node)
    transport = _transport(node)
    stdio = transport == "stdio"
    _no_command_of_others(node)
    timeout = fields.number(node, "timeout", unit="milliseconds")
    return ServerConfig(
        name=f"plugin:{brought.plugin}:{name}" if brought.plugin else name,
        transport=transport,
        origin=origin,
        command=fields.text(node, "command") if stdio else None,
        args=fields.words(node, "args") if stdio else (),
        env=fields.table(node, "env") if stdio else {},
        url=None if stdio else fields.text(node, "url"),
        headers={} if stdio else fields.table(node, "headers"),
        timeout=None if timeout is None or timeout < _LEAST_TIMEOUT_MS else timeout / 1000,
        warnings=tuple(_warnings(node, transport, brought=brought)),
        host=HOST,
        scope=brought.scope,
        sign_in=transport in ("http", "sse"),
        syntax=PLUGIN if brought.plugin else HOST,
        variables=brought.variables,
        raw=node.value,
    )


def _name(name: str, node: Node) -> None:
    if not name:
        raise Bad("its name is empty", node)
    if name in RESERVED:
        raise Bad("the name is reserved", node)


def _no_command_of_others(node: Node) -> None:
    """A command whose text somebody else's configuration would go into is none."""
    runs = fields.maybe(node, "headersHelper")
    if runs is not None and _PLUGIN_REFERENCE.search(runs) is not None:
        raise Bad("`headersHelper`: a plugin's configuration may not be part of it", node)


def _transport(node: Node) -> Wire:
    wire = fields.choice(node, "type", among=_TYPES)
    if wire is not None:
        return wire
    if "command" not in node.members and "url" in node.members:
        raise Bad('`url` without `type`: add "type": "http"', node.members["url"])
    return "stdio"


def _warnings(node: Node, transport: Wire, *, brought: Brought) -> Iterator[str]:
    for path, text in fields.texts("", node):
        if text != text.strip():
            yield f"`{path}` has blanks around it, which are kept"
        for found in _SHELL_LEFTOVER.finditer(text):
            known = brought.plugin and path.startswith("headers.") and _PLUGIN_REFERENCE.fullmatch(found[0])
            if not known and not _REFERENCE.fullmatch(found[0]):
                yield f"`{path}`: {found[0]} is kept: only ${{NAME}} and ${{NAME:-default}} are replaced"
    for member in node.twice:
        yield f"`{member}` stands twice; the last one counts"
    timeout = node.value.get("timeout")
    if isinstance(timeout, int | float) and timeout < _LEAST_TIMEOUT_MS:
        yield f"`timeout` is in milliseconds, and below {_LEAST_TIMEOUT_MS} it is ignored"
    if transport == "sse":
        yield '`sse` is deprecated: use "type": "http" where the server offers it'
    if transport == "ws" and "oauth" in node.members:
        yield "`oauth` is for http and sse; over ws nobody signs in"
