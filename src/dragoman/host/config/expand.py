"""Environment references, `${NAME}` and `${NAME:-default}`, in the texts of a server's entry.

Pure: the environment is an argument. A reference that has no value is never passed on as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from dragoman.host.config.record import ServerConfig

_REFERENCE: Final = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")

# Toward another machine these read as empty, set or not and whatever default is written: a project's
# file must not carry the host's own credentials away. The vendor's list is longer and not published whole.
CREDENTIALS: Final = frozenset(
    """
    ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN
    AWS_BEARER_TOKEN_BEDROCK CLAUDE_CODE_OAUTH_TOKEN HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy
    all_proxy NPM_TOKEN NODE_AUTH_TOKEN
    """.split()
)


@dataclass(slots=True)
class _Expansion:
    """Texts with their references replaced; `missing` has the names that had no value, in order."""

    env: Mapping[str, str]
    remote: bool
    missing: list[str] = field(default_factory=list[str])

    def text(self, text: str) -> str:
        return _REFERENCE.sub(self._value, text)

    def table(self, table: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(value) for name, value in table.items()}

    def _value(self, match: re.Match[str]) -> str:
        name: str = match["name"]
        default: str | None = match["default"]
        if self.remote and name in CREDENTIALS:
            return ""
        value: str | None = self.env.get(name, default)  # set but empty counts as set
        if value is not None:
            return value
        if name not in self.missing:
            self.missing.append(name)
        return match[0]


def expand(config: ServerConfig, env: Mapping[str, str]) -> tuple[ServerConfig, tuple[str, ...]]:
    """The entry with every reference replaced, and the names of variables that have no value.

    While there are such names the entry must not be used: the references to them stand in it as text.
    """
    here, there = _Expansion(env, remote=False), _Expansion(env, remote=True)
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
        for match in _REFERENCE.finditer(text or ""):
            yield match["name"]
