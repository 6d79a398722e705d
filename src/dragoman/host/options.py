"""What a host can be told, and the questions that it asks: a person, and a lock.

Records and protocols alone; nothing is asked here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, Protocol, Self, TypeAlias, TypedDict

from dragoman.client.options import ClientKeywords, ClientOptions
from dragoman.host.config.record import ServerConfig
from dragoman.host.permissions import Decision
from dragoman.host.session import ServerTap
from dragoman.host.supervisor import Supervisor
from dragoman.host.trace import Trace
from dragoman.model import Tool
from dragoman.protocol.naming import Name
from dragoman.schema.options import check_options

SESSION: Final = "session"
"""The answer that is a yes for all further calls of the same tool, as long as the host lives."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked before a call: the tool, its arguments, and why there is a question.

    `config` is the entry of the tool's server. A yes is to all of it: what changes before the answer comes
    is not called, and `"session"` ends with the tool, or the entry, that it was said of.
    Where `decision.once` is true, `"session"` is a yes for this call alone: the rule asks each time.
    """

    name: Name
    tool: Tool
    arguments: Mapping[str, Any]
    decision: Decision
    config: ServerConfig | None = None


Answer: TypeAlias = bool | Literal["session"] | None
Ask: TypeAlias = Callable[[Question], Awaitable[Answer] | Answer]
Approve: TypeAlias = Callable[[ServerConfig], Awaitable[bool] | bool]
"""Asked about a server of a project's file before it is started for the first time; only True is a yes."""


class LockLike(Protocol):
    """What was agreed on once, as `Lock` has it: the tools of servers when somebody looked at them."""

    def check(self, server: str, tool: Tool) -> str | None:
        """Why a tool must not be called as it is now: what changed, in words; None where nothing did."""
        ...


class HostKeywords(TypedDict, total=False):
    """The keywords of `Host(...)`: see `HostOptions`."""

    ask: Ask | None
    approve: Approve | bool
    trusted: bool | None
    mode: str
    trace: Trace | None
    env: Mapping[str, str] | None
    protocol: str
    tap: ServerTap | None
    lock: LockLike | None
    watch: bool
    supervisor: Supervisor | None
    spill: Path | None
    client: ClientKeywords | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """What a host can be told.

    `ask` answers for the person: True for yes, `"session"` for yes to this tool from now on; without it
    nobody can be asked, and what would ask is denied. `approve` is asked about servers of a project's own
    files that wait for a person, or is the one answer to all of them. `trusted` is the person's word on
    the folder, None for what the host's own files say of it: without trust a project's files start nothing
    and allow nothing. `mode` is a permission mode of the host, "" for what its files set.

    `trace` gets three lines a call. `env` is where `${NAME}` is looked up, the process's own environment
    by default. `protocol` is `"auto"` or the one revision to speak. `tap` sees every frame of every server.
    `lock` is asked about a tool after the schema and before the rules. With `watch`, files are read again
    when they change. `supervisor` runs the servers, for several hosts if it is given to several. `spill` is
    the folder for results that are too long for the model; by default one that is gone with the host.
    `client` are further options of every server's client, for what servers ask: `elicitation_handler`,
    `sampling_handler`, `roots`.
    """

    ask: Ask | None = None
    approve: Approve | bool = False
    trusted: bool | None = None
    mode: str = ""
    trace: Trace | None = None
    env: Mapping[str, str] | None = None
    protocol: str = "auto"
    tap: ServerTap | None = None
    lock: LockLike | None = None
    watch: bool = False
    supervisor: Supervisor | None = None
    spill: Path | None = None
    client: ClientKeywords | None = None

    @classmethod
    def of(cls, keywords: HostKeywords) -> Self:
        """The options for these keywords.

        Raises:
            UsageError: a keyword that does not exist, of a host or of its clients.
        """
        check_options(keywords, (field.name for field in fields(cls)), of="Host")
        ClientOptions.of(keywords.get("client") or {})
        return cls(**keywords)
