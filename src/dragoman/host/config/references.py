"""How references to variables look in each host's files, and what becomes of one that has no value.

Pure: environments are arguments. `expand` says in which texts of an entry references are replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from dragoman.protocol.variables import CREDENTIALS

Unset: TypeAlias = Literal["stop", "empty"]
"""What becomes of a reference without a value: the entry is not used, or the reference is empty."""

_NAME: Final = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_BRACED: Final = r"\$\{" + _NAME + r"(?::-(?P<default>[^}]*))?\}"
_DOLLAR: Final = re.compile(_BRACED + r"|\$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)")
_EXTENSION: Final = re.compile(_DOLLAR.pattern + r"|\$\{(?P<known>/)\}")
_KNOWN: Final = r"(?P<known>userHome|workspaceFolder|workspaceFolderBasename|pathSeparator|/)"
_ENV: Final = re.compile(r"\$\{(?:env:" + _NAME + "|" + _KNOWN + r")\}")
_INPUT: Final = re.compile(r"\$\{(?:env:" + _NAME + r"|(?P<asked>input:[^}]+)|" + _KNOWN + r")\}")


@dataclass(frozen=True, slots=True)
class Syntax:
    """The references of one host.

    `pattern` has the groups `name` or `bare` (an environment variable), and maybe `default`, `known` (a
    place) and `asked` (a value that a person is asked for). `tables` is for values of `env` and headers,
    `elsewhere` for all other texts. `covered` are names that read as empty in what leaves this machine.
    `longest`: texts that are longer are left alone.
    """

    pattern: re.Pattern[str] | None = None
    tables: Unset = "stop"
    elsewhere: Unset = "stop"
    covered: frozenset[str] = frozenset()
    longest: int | None = None


SYNTAXES: Final[Mapping[str, Syntax]] = {
    "claude-code": Syntax(re.compile(_BRACED), covered=CREDENTIALS),
    # A plugin's entry, with what the person set for the plugin.
    "claude-plugin": Syntax(
        re.compile(_BRACED + r"|\$\{(?P<known>user_config\.[^}]+)\}"), covered=CREDENTIALS
    ),
    "codex": Syntax(),
    "gemini-cli": Syntax(_EXTENSION, tables="empty"),
    "cursor": Syntax(_ENV),
    "vscode": Syntax(_INPUT),
    # The `.mcp.json` at a workspace's root, which is another program's form.
    "vscode-root": Syntax(re.compile(_BRACED)),
    "opencode": Syntax(
        re.compile(r"\{(?:env:(?P<name>[^}]+)|(?P<asked>file:[^}]+))\}"), tables="empty", elsewhere="empty"
    ),
    "zed": Syntax(),
    "cline": Syntax(),
    "claude-desktop": Syntax(),
    "roo-code": Syntax(re.compile(r"\$\{(?:env:" + _NAME + r"|(?P<known>workspaceFolder))\}")),
    "continue": Syntax(re.compile(r"\$\{\{\s*secrets\." + _NAME + r"\s*\}\}")),
    "copilot-cli": Syntax(_DOLLAR, longest=1000),
}


@dataclass(slots=True)
class Replacing:
    """Texts with their references replaced; `missing` has the names that had no value, in order.

    `remote` texts go to another machine.
    """

    syntax: Syntax
    env: Mapping[str, str]
    known: Mapping[str, str]
    remote: bool
    missing: list[str] = field(default_factory=list[str])

    def text(self, text: str) -> str:
        """A text that is no value of `env` or of the headers."""
        return self._replace(text, self.syntax.elsewhere)

    def table(self, table: Mapping[str, str]) -> dict[str, str]:
        """`env` or headers."""
        return {name: self._replace(value, self.syntax.tables) for name, value in table.items()}

    def _replace(self, text: str, unset: Unset) -> str:
        pattern, longest = self.syntax.pattern, self.syntax.longest
        if pattern is None or (longest is not None and len(text) > longest):
            return text
        # Once over the text: what a value holds is never looked at again.
        return pattern.sub(lambda found: self._value(found, unset), text)

    def _value(self, found: re.Match[str], unset: Unset) -> str:
        groups = found.groupdict()
        name = groups.get("name") or groups.get("bare")
        if name is None:
            label = groups.get("known") or groups.get("asked") or ""
            return self.known[label] if label in self.known else self._lost(label, found[0], unset="stop")
        if self.remote and self._is_covered(name):
            return ""
        value: str | None = self.known.get(name)
        if value is None:
            value = self.env.get(name, groups.get("default"))  # set but empty counts as set
        return self._lost(name, found[0], unset=unset) if value is None else value

    def _is_covered(self, name: str) -> bool:
        """Whether it is the host's own secret: by its name, or an address of a provider with one in it."""
        if not self.syntax.covered:
            return False
        return name in self.syntax.covered or (
            name.endswith("_BASE_URL") and "@" in self.env.get(name, "").partition("://")[2].partition("/")[0]
        )

    def _lost(self, name: str, text: str, *, unset: Unset) -> str:
        if unset == "empty":
            return ""
        if name not in self.missing:
            self.missing.append(name)
        return text


def named(syntax: str, text: str) -> list[str]:
    """The names that a text refers to, in order, each as often as it stands there."""
    pattern = SYNTAXES[syntax].pattern
    if pattern is None:
        return []
    found = (match.groupdict() for match in pattern.finditer(text))
    return [name for groups in found if (name := groups.get("name") or groups.get("bare"))]
