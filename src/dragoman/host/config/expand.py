"""Environment references in the texts of a server's entry: which texts, and which of them leave this machine.

Pure: the environment is an argument. A reference that has no value is never passed on as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dragoman.host.config.record import ServerConfig
from dragoman.protocol.variables import Expansion, named


def expand(config: ServerConfig, env: Mapping[str, str]) -> tuple[ServerConfig, tuple[str, ...]]:
    """The entry with every reference replaced, and the names of variables that have no value.

    While there are such names the entry must not be used: the references to them stand in it as text.
    """
    here, there = Expansion(env, remote=False), Expansion(env, remote=True)
    full = replace(
        config,
        command=None if config.command is None else here.text(config.command),
        args=tuple(here.text(word) for word in config.args),
        env=here.table(config.env),
        url=None if config.url is None else there.text(config.url),
        headers=there.table(config.headers),
    )
    return full, (*here.missing, *(name for name in there.missing if name not in here.missing))


def references(config: ServerConfig) -> Iterator[str]:
    """The names of the variables that the entry refers to, in order, each as often as it stands there."""
    texts = (config.command, *config.args, *config.env.values(), config.url, *config.headers.values())
    for text in texts:
        yield from named(text or "")
