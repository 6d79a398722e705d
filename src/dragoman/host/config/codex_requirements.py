"""Codex's `requirements.toml`: which servers an organisation lets there be, by name and by what they are.

Pure. What cannot be read of a requirement matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.host.config import fields
from dragoman.host.config.located import Node
from dragoman.host.config.record import Origin, Problem, ServerConfig, Source, Standing
from dragoman.host.config.tables import path
from dragoman.host.config.toml import TomlError, parse


@dataclass(frozen=True, slots=True)
class Requirements:
    """All requirements together. Called with a server, they give what becomes of it, None for nothing."""

    tables: tuple[tuple[Node | None, Node | None, str], ...]
    problems: tuple[Problem, ...] = ()
    closed: Origin | None = None  # a file that could not be read: nothing is let through

    def __call__(self, config: ServerConfig) -> Standing | None:
        if self.closed is not None:
            return Standing(config, "blocked", "the requirements cannot be read", self.closed)
        for exact, matchers, file in self.tables:
            why = _refused(config, exact, matchers=matchers)
            if why is not None:
                node = exact or matchers
                where = Origin(file) if node is None else fields.origin(node, file)
                return Standing(config, "blocked", f"{why} ({file})", where)
        return None


def requirement(sources: Sequence[Source]) -> Requirements:
    """The requirements of all files; each of them has to agree."""
    tables: list[tuple[Node | None, Node | None, str]] = []
    for source in sources:
        try:
            root = parse(source.text, source.file)
        except TomlError as exc:
            return Requirements((), (fields.unreadable(exc, source.file),), Origin(source.file))
        exact, matchers = path(root, "mcp_servers"), path(root, "mcp_server_matchers")
        if exact is not None or matchers is not None:
            tables.append((exact, matchers, source.file))
    return Requirements(tuple(tables))


def _refused(config: ServerConfig, exact: Node | None, *, matchers: Node | None) -> str | None:
    """Why a server is not let through: it is on no list, or is another than the one listed."""
    listed, matcher = path(exact, config.name), path(matchers, config.name)
    if listed is None and matcher is None:
        return "it is not among the servers that are allowed"
    if listed is not None and not _is(config, path(listed, "identity")):
        return "it is another server than the one that is allowed by this name"
    if matcher is not None and not _is(config, matcher):
        return "it does not match what is allowed by this name"
    return None


def _is(config: ServerConfig, identity: Node | None) -> bool:
    """Whether the server is the one of a table with `command` (and `args`), or with `url`."""
    command, url, args = path(identity, "command"), path(identity, "url"), path(identity, "args")
    if (command is None) == (url is None):
        return False
    if url is not None:
        return config.url is not None and _fits(url, config.url)
    if config.command is None or command is None or not _fits(command, config.command):
        return False
    if args is None:
        return True
    return len(args.items) == len(config.args) and all(
        _fits(node, word) for node, word in zip(args.items, config.args, strict=True)
    )


def _fits(node: Node, text: str) -> bool:
    """A string is exact; a table has `match` and `value`, or a regular `expression` of the whole text."""
    if isinstance(node.value, str):
        return node.value == text
    how, value, expression = (node.members.get(name) for name in ("match", "value", "expression"))
    wanted = None if value is None else value.value
    match None if how is None else how.value:
        case "exact":
            return wanted == text
        case "prefix":
            return isinstance(wanted, str) and text.startswith(wanted)
        case "regex" if expression is not None:
            try:
                return re.fullmatch(str(expression.value), text) is not None
            except re.error:
                return False
        case _:
            return False
