"""Claude Desktop's `claude_desktop_config.json`: programs alone; nothing in it is expanded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.host.config.record import Problem, ServerConfig, Setup, Situation, Source, Standing, named
from dragoman.host.config.tables import Given, base, one_of_two, path, read_root, read_table, stand

HOST: Final = "claude-desktop"


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the file comes to. The one kind of source is `servers`."""
    del situation  # nothing of it changes what is read
    servers: list[ServerConfig] = []
    problems: list[Problem] = []
    for source in named(sources, "servers"):
        root, bad = read_root(source, comments=False)
        found = read_table(path(root, "mcpServers"), source, entry=_entry)
        servers += found.servers
        problems += [*bad, *found.problems]
    return Setup(HOST, tuple(stand(servers, held=_held)), problems=tuple(problems))


def _entry(given: Given) -> ServerConfig:
    return base(given, HOST, transport="stdio" if one_of_two(given.node) else "http")


def _held(config: ServerConfig) -> Standing | None:
    if config.transport == "stdio":
        return None
    return Standing(config, "blocked", "not connected: remote servers are added as connectors", config.origin)
