"""What every host's files come to: one neutral record a server, one a permission rule, and what was wrong.

It knows no dialect and resolves no variable: secrets stay references until a server is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Wire: TypeAlias = Literal["stdio", "http", "sse", "ws"]
Effect: TypeAlias = Literal["allow", "ask", "deny"]
Scope: TypeAlias = Literal["user", "project", "local"]


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A place in a file, counted from 1; line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def exact(self) -> str:
        """`file:line:column`, the form that editors follow."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a file that was left out or may not do what its author meant."""

    text: str
    origin: Origin
    server: str | None = None  # the entry that it hurts; None for the file

    def __str__(self) -> str:
        return f"{self.origin.exact}: {self.text}"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server of a configuration file, with `${...}` references as they were written.

    `transport` is `"stdio"` (then `command`, `args`, `env`, `cwd`) or `"http"`, `"sse"`, `"ws"` (then `url`,
    `headers`). `timeout` is seconds for one call. `warnings` are for the person who wrote the entry.
    """

    name: str
    transport: Wire
    origin: Origin
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float | None = None
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Neither args, env and headers nor a query: any of them may be a secret all the same.
        what = self.command or (self.url or "").partition("?")[0]
        return f"<ServerConfig {self.name!r} {self.transport} {what!r} at {self.origin.exact}>"


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The servers of one file, in its order, and what was wrong with it."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One permission rule as it was written, and what it does where it matches."""

    effect: Effect
    text: str
    origin: Origin
    scope: Scope = "project"

    def __str__(self) -> str:
        return f"{self.effect} {self.text} ({self.origin})"


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, in its order, and what was wrong with it."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()
