"""What a host can be told, and the questions that it asks: a person, and a lock.

Records and protocols alone; nothing is asked here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from dragoman.host.permissions import Decision
from dragoman.host.session import ServerTap
from dragoman.host.trace import Trace
from dragoman.model import Tool
from dragoman.protocol.naming import Name

SESSION: Literal["session"] = "session"
"""The answer that is a yes for all further calls of the same tool, as long as the host lives."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before a call: the tool, its arguments, and why there is a question."""

    name: Name
    tool: Tool
    arguments: Mapping[str, Any]
    decision: Decision


Answer: TypeAlias = bool | Literal["session"] | None
Ask: TypeAlias = Callable[[Question], Awaitable[Answer] | Answer]


class Lock(Protocol):
    """What was agreed on once: the tools of servers as they were when somebody looked at them."""

    def check(self, server: str, tool: Tool) -> str | None:
        """Why a tool must not be called as it is now: what changed, in words; None where nothing did."""
        ...


class HostKeywords(TypedDict, total=False):
    """The keywords of `Host(...)`: see `HostOptions`."""

    ask: Ask | None
    trace: Trace | None
    env: Mapping[str, str] | None
    protocol: str
    trusted: bool
    tap: ServerTap | None
    lock: Lock | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What a host can be told.

    `ask` answers for the person: True for yes, `"session"` for yes to this tool from now on; without it
    nobody can be asked, and what would ask is denied. `trace` gets three lines a call. `env` is where
    `${NAME}` is looked up, the process's own environment by default. `protocol` is `"auto"` or the one
    revision to speak. Without `trusted`, allow rules of the project's own file do not count. `tap` sees
    every frame of every server. `lock` is asked about a tool after the schema and before the rules.
    """

    ask: Ask | None = None
    trace: Trace | None = None
    env: Mapping[str, str] | None = None
    protocol: str = "auto"
    trusted: bool = True
    tap: ServerTap | None = None
    lock: Lock | None = None
