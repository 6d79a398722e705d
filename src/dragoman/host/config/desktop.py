"""Claude Desktop's `claude_desktop_config.json`: programs alone; nothing in it is expanded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.host.config.record import ServerConfig, Setup, Situation, Source, Standing, named
from dragoman.host.config.tables import Given, Layout, base, one_of_two, read_files, stand

HOST: Final = "claude-desktop"


def read(sources: Sequence[Source], situation: Situation) -> Setup:
    """What the file comes to. The one kind of source is `servers`."""
    del situation  # nothing of it changes what is read
    found = read_files(named(sources, "servers"), _LAYOUT)
    return Setup(HOST, tuple(stand(found.servers, held=_held)), problems=found.problems)


def _entry(given: Given) -> ServerConfig:
    return base(given, HOST, transport="stdio" if one_of_two(given.node) else "http")


def _held(config: ServerConfig) -> Standing | None:
    if config.transport == "stdio":
        return None
    return Standing(config, "blocked", "not connected: remote servers are added as connectors", config.origin)


_LAYOUT: Final = Layout(("mcpServers",), _entry, comments=False)
