"""Claude Code's files: the servers of `.mcp.json`, the permission rules of `.claude/settings.json`.

Pure: it is handed texts. One bad entry hurts itself alone; nothing is guessed from a bad one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dragoman.host.config.located import JsonError, Node, parse
from dragoman.host.config.record import (
    Effect,
    Origin,
    Problem,
    Rule,
    RuleFile,
    Scope,
    ServerConfig,
    ServerFile,
    Wire,
)

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
_EFFECTS: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")
_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
_LEAST_TIMEOUT_MS: Final = 1000
_SHELL_LEFTOVER: Final = re.compile(r"\$\{[^}]*\}")
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}")


class _Bad(Exception):
    """An entry that is left out: the message says what was expected, the node is where."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.text = text
        self.node = node


def read_servers(text: str, file: str) -> ServerFile:
    """The servers of `.mcp.json`, given its text and the name by which messages call it."""
    try:
        root = parse(text)
    except JsonError as exc:
        return ServerFile(problems=(_unreadable(exc, file),))
    try:
        table = _servers(root)
    except _Bad as bad:
        return ServerFile(problems=(Problem(bad.text, _origin(bad.node, file)),))
    servers: list[ServerConfig] = []
    problems = [*_member_twice(root, file, names=("mcpServers",)), *_twice(table, file)]
    for name, node in table.members.items():
        origin = Origin(file, *table.names[name])
        problems += _member_twice(node, file, names=node.names, server=name)
        try:
            servers.append(_entry(name, node, origin=origin))
        except _Bad as bad:
            place = Origin(file, bad.node.line, bad.node.column)
            problems.append(Problem(f"server {name!r} is left out: {bad.text}", place, name))
    return ServerFile(tuple(servers), tuple(problems))


def read_rules(text: str, file: str, *, scope: Scope = "project") -> RuleFile:
    """The permission rules of a `settings.json`, given its text and the name by which messages call it."""
    try:
        root = parse(text)
    except JsonError as exc:
        return RuleFile(problems=(_unreadable(exc, file),))
    if not isinstance(root.value, dict):
        return RuleFile(problems=(Problem(_wrong("an object", root.value), _origin(root, file)),))
    block = root.members.get("permissions")
    if block is None:
        return RuleFile()
    # A rule that says no may have stood in the first of the two.
    problems = list(_member_twice(root, file, names=("permissions",)))
    if not isinstance(block.value, dict):
        text = f"`permissions`: {_wrong('an object', block.value)}"
        return RuleFile(problems=(*problems, Problem(text, _origin(block, file))))
    problems += _member_twice(block, file, names=_EFFECTS)
    rules: list[Rule] = []
    for effect in _EFFECTS:
        node = block.members.get(effect)
        if node is None:
            continue
        if not isinstance(node.value, list):
            problems.append(
                Problem(f"`permissions.{effect}`: {_wrong('a list', node.value)}", _origin(node, file))
            )
        for item in node.items:
            where = _origin(item, file)
            if isinstance(item.value, str):
                rules.append(Rule(effect, item.value, where, scope))
            else:
                problems.append(Problem(f"`permissions.{effect}`: {_wrong('a string', item.value)}", where))
    return RuleFile(tuple(rules), tuple(problems))


def _servers(root: Node) -> Node:
    if not isinstance(root.value, dict):
        raise _Bad(_wrong("an object with `mcpServers`", root.value), root)
    table = root.members.get("mcpServers")
    if table is None:
        if "servers" in root.members:
            raise _Bad("`servers` is another program's key: expected `mcpServers`", root.members["servers"])
        raise _Bad("expected a member `mcpServers`", root)
    if not isinstance(table.value, dict):
        raise _Bad(f"`mcpServers`: {_wrong('an object', table.value)}", table)
    return table


def _entry(name: str, node: Node, *, origin: Origin) -> ServerConfig:
    if not name:
        raise _Bad("its name is empty", node)
    if name in RESERVED:
        raise _Bad("the name is reserved", node)
    if not isinstance(node.value, dict):
        raise _Bad(_wrong("an object", node.value), node)
    transport = _transport(node)
    timeout = _timeout(node)
    warnings = list(_warnings(node))
    if transport == "stdio":
        return ServerConfig(
            name=name,
            transport=transport,
            origin=origin,
            command=_text(node, "command"),
            args=_words(node, "args"),
            env=_table(node, "env"),
            timeout=timeout,
            warnings=tuple(warnings),
        )
    if transport == "sse":
        warnings.append('`sse` is deprecated: use "type": "http" where the server offers it')
    return ServerConfig(
        name=name,
        transport=transport,
        origin=origin,
        url=_text(node, "url"),
        headers=_table(node, "headers"),
        timeout=timeout,
        warnings=tuple(warnings),
    )


def _transport(node: Node) -> Wire:
    kind = node.members.get("type")
    if kind is not None:
        wire = _TYPES.get(kind.value) if isinstance(kind.value, str) else None
        if wire is None:
            raise _Bad(f"`type`: expected one of {', '.join(_TYPES)}; received {kind.value!r}", kind)
        return wire
    if "command" not in node.members and "url" in node.members:
        raise _Bad('`url` without `type`: add "type": "http"', node.members["url"])
    return "stdio"


def _text(node: Node, member: str) -> str:
    found = node.members.get(member)
    if found is None:
        raise _Bad(f"expected a member `{member}`", node)
    if not isinstance(found.value, str):
        raise _Bad(f"`{member}`: {_wrong('a string', found.value)}", found)
    if not found.value.strip():
        raise _Bad(f"`{member}` is empty", found)
    return found.value


def _words(node: Node, member: str) -> tuple[str, ...]:
    found = node.members.get(member)
    if found is None:
        return ()
    if not isinstance(found.value, list):
        raise _Bad(f"`{member}`: {_wrong('a list of strings', found.value)}", found)
    for item in found.items:
        if not isinstance(item.value, str):
            raise _Bad(f"`{member}`: {_wrong('a string', item.value)}", item)
    return tuple(item.value for item in found.items)


def _table(node: Node, member: str) -> dict[str, str]:
    found = node.members.get(member)
    if found is None:
        return {}
    if not isinstance(found.value, dict):
        raise _Bad(f"`{member}`: {_wrong('an object of strings', found.value)}", found)
    for name, value in found.members.items():
        if not isinstance(value.value, str):
            # Not the value: it may be a secret that lost its quotes.
            raise _Bad(f"`{member}.{name}`: expected a string; received {_kind(value.value)}", value)
    return {name: value.value for name, value in found.members.items()}


def _timeout(node: Node) -> float | None:
    found = node.members.get("timeout")
    if found is None:
        return None
    value = found.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _Bad(f"`timeout`: {_wrong('milliseconds as a number', value)}", found)
    return value / 1000 if value >= _LEAST_TIMEOUT_MS else None


def _warnings(node: Node) -> Iterator[str]:
    for path, text in _texts("", node):
        if text != text.strip():
            yield f"`{path}` has blanks around it, which are kept"
        for found in _SHELL_LEFTOVER.finditer(text):
            if not _REFERENCE.fullmatch(found[0]):
                yield f"`{path}`: {found[0]} is kept: only ${{NAME}} and ${{NAME:-default}} are replaced"
    for member in node.twice:
        yield f"`{member}` stands twice; the last one counts"
    timeout = node.value.get("timeout")
    if isinstance(timeout, int | float) and timeout < _LEAST_TIMEOUT_MS:
        yield f"`timeout` is in milliseconds, and below {_LEAST_TIMEOUT_MS} it is ignored"


def _texts(path: str, node: Node) -> Iterator[tuple[str, str]]:
    if isinstance(node.value, str):
        yield path, node.value
    for name, member in node.members.items():
        yield from _texts(f"{path}.{name}" if path else name, member)
    for index, item in enumerate(node.items):
        yield from _texts(f"{path}[{index}]", item)


def _twice(table: Node, file: str) -> Iterator[Problem]:
    for name in table.twice:
        yield Problem(
            f"server {name!r} stands twice; the last one counts", Origin(file, *table.names[name]), name
        )


def _member_twice(
    node: Node, file: str, *, names: Iterable[str], server: str | None = None
) -> Iterator[Problem]:
    start = "" if server is None else f"server {server!r}: "
    for name in names:
        if name in node.twice:
            text = f"{start}`{name}` stands twice; the last one counts"
            yield Problem(text, Origin(file, *node.names[name]), server)


def _origin(node: Node, file: str) -> Origin:
    return Origin(file, node.line, node.column)


def _unreadable(exc: JsonError, file: str) -> Problem:
    return Problem(f"not JSON: {exc.message}", Origin(file, exc.line, exc.column))


def _wrong(expected: str, value: Any) -> str:
    return f"expected {expected}; received {_kind(value)}"


def _kind(value: object) -> str:
    kind: type[object] = type(value)
    return _KINDS.get(kind, kind.__name__)
