"""Copilot CLI's `mcp-config.json`, a project's files, and the options of its command line. Pure.

Which of several files is stronger is not documented: here it is this run's, then the project's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from dragoman.host.config import fields
from dragoman.host.config.record import (
    Effect,
    Origin,
    Rule,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Standing,
    Wire,
    named,
)
from dragoman.host.config.tables import Given, Layout, base, one_of_two, read_files, stand, switched

HOST: Final = "copilot-cli"

_TYPES: Final[dict[str, Wire]] = {"local": "stdio", "stdio": "stdio", "http": "http", "sse": "sse"}
_OPTIONS: Final[dict[str, Effect]] = {
    "--allow-tool": "allow",
    "--deny-tool": "deny",
    "--available-tools": "allow",
    "--excluded-tools": "deny",
    "--allow-all": "allow",
    "--allow-all-tools": "allow",
    "--yolo": "allow",
}
_ALONE: Final = frozenset({"--allow-all", "--allow-all-tools", "--yolo"})


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the files come to.

    Kinds of sources: `servers` (scope cli for `--additional-mcp-config`) and `options`, whose text is the
    command line, one argument a line.
    """
    found = read_files(named(sources, "servers"), _LAYOUT)
    rules: list[Rule] = []
    for source in named(sources, "options"):
        rules += options(source.text.splitlines(), source.file)
    standing = stand(found.servers, held=lambda config: switched(config) or _waiting(config, situation))
    return Setup(HOST, tuple(standing), tuple(rules), found.problems)


def _waiting(config: ServerConfig, situation: Situation) -> Standing | None:
    if config.scope == "project" and situation.trusted is False:
        return Standing(config, "untrusted", "the folder is not trusted", config.origin)
    return None


def _entry(given: Given) -> ServerConfig:
    node = given.node
    kind = fields.choice(node, "type", among=_TYPES)
    stdio = kind == "stdio" or (kind is None and one_of_two(node))
    tools = fields.words(node, "tools")
    every = "tools" not in node.members or "*" in tools
    return replace(
        base(given, HOST, transport="stdio" if stdio else kind or "http"),
        cwd=fields.maybe(node, "cwd") if stdio else None,
        only_tools=None if every else tools,
    )


_LAYOUT: Final = Layout(("mcpServers",), _entry, order=("cli", "project", "user"))


def options(arguments: Iterable[str], file: str = "command line") -> list[Rule]:
    """The rules of a command line: `--allow-tool=Server`, `--deny-tool 'Server(tool)'` and their like."""
    rules: list[Rule] = []
    waiting: str | None = None
    for at, argument in enumerate(arguments, start=1):
        name, equals, value = argument.partition("=")
        if waiting is not None and not argument.startswith("--"):
            name, equals, value = waiting, "=", argument
        waiting = None
        effect = _OPTIONS.get(name)
        if effect is None:
            continue
        if name in _ALONE:
            rules.append(Rule(effect, name, Origin(file, at), "cli", {"option": name}))
        elif not equals:
            waiting = name
        else:
            rules += [
                Rule(effect, text.strip(), Origin(file, at), "cli", {"option": name})
                for text in value.split(",")
                if text.strip()
            ]
    return rules
