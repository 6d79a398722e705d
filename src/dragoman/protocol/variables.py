"""Environment references, `${NAME}` and `${NAME:-default}`, in the texts of configuration files.

Pure: the environment is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

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
class Expansion:
    """Texts with their references replaced; `missing` has the names that had no value, in order.

    `remote` texts go to another machine: credentials of this one read as empty there.
    """

    env: Mapping[str, str]
    remote: bool
    missing: list[str] = field(default_factory=list[str])

    def text(self, text: str) -> str:
        """The text with every reference replaced."""
        return _REFERENCE.sub(self._value, text)

    def table(self, table: Mapping[str, str]) -> dict[str, str]:
        """The table with every reference in its values replaced."""
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


def named(text: str) -> Iterator[str]:
    """The names that the text refers to, in order, each as often as it stands there."""
    for match in _REFERENCE.finditer(text):
        yield match["name"]
