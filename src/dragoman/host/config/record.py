"""What every host's files come to: one neutral record a server, one a permission rule, and what was wrong.

It knows no dialect and resolves no variable: secrets stay references until a server is started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Wire: TypeAlias = Literal["stdio", "http", "sse", "ws"]
Effect: TypeAlias = Literal["allow", "ask", "deny"]
Scope: TypeAlias = Literal[
    "managed", "cli", "local", "project", "profile", "user", "cloud", "plugin", "connector", "ide", "system"
]
"""Who speaks: an organisation, this run's command line, one person in one project, a project's own files,
a person's profile, a person, an organisation's cloud, a plugin, an account, an editor, the machine."""

State: TypeAlias = Literal["active", "pending", "rejected", "disabled", "blocked", "shadowed", "untrusted"]
"""How an entry fares: `pending` waits for a person's approval, `rejected` did not get it, `blocked` is
against an organisation's lists, `shadowed` loses to another entry, `untrusted` waits for the folder's
trust."""


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
class Rule:
    """One permission rule as it was written, and what it does where it matches.

    `detail` has the parts of a rule that is more than a text, by the names of its host's file.
    """

    effect: Effect
    text: str
    origin: Origin
    scope: Scope = "project"
    detail: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __str__(self) -> str:
        return f"{self.effect} {self.text} ({self.origin})"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server of a configuration file, with references to variables as they were written.

    `transport` is `"stdio"` (then `command`, `args`, `env`, `cwd`) or `"http"`, `"sse"`, `"ws"` (then `url`,
    `headers`); with `then_sse`, Streamable HTTP is tried first and the old transport next. `timeout` is
    seconds for one call, `startup_timeout` for the time until the tools are listed; None is the host's own
    default. `warnings` are for the person who wrote the entry. `host` names the dialect, whose rules hold
    for references: see `expand`.

    `env_names` are variables of this machine that the program gets; `header_env` are headers whose
    values are those of variables, `bearer_env` the variable with a token. `only_tools` (None: all) and
    `without_tools` are the tools that there are, `rules` what the entry itself says of calls. `sign_in`
    says that the host signs in when the server asks for it. `syntax` is how references look in the entry,
    `variables` those that are no environment variables but known places. `raw` is the entry as written.
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
    host: str = "claude-code"
    scope: Scope = "project"
    then_sse: bool = False
    startup_timeout: float | None = None
    enabled: bool = True
    required: bool = False
    sign_in: bool = False
    env_names: tuple[str, ...] = ()
    env_file: str | None = None
    header_env: Mapping[str, str] = field(default_factory=dict[str, str])
    bearer_env: str | None = None
    only_tools: tuple[str, ...] | None = None
    without_tools: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    syntax: str = "claude-code"
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    raw: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def __repr__(self) -> str:
        # Neither args, env and headers nor a query: any of them may be a secret all the same.
        what = self.command or (self.url or "").partition("?")[0]
        return f"<ServerConfig {self.name!r} {self.transport} {what!r} at {self.origin.exact}>"

    def lists(self, tool: str) -> bool:
        """Whether the entry lets the host have this tool of the server."""
        return (self.only_tools is None or tool in self.only_tools) and tool not in self.without_tools


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The servers of one file, in its order, and what was wrong with it."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, in its order, and what was wrong with it."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one file, and what it is to its host.

    `file` is the name by which messages call it. `kind` is one of its dialect's kinds of file. `name` is
    the plugin's, where one brought the file, and `variables` are places that its entries may
    refer to.
    """

    text: str
    file: str
    scope: Scope = "project"
    kind: str = "servers"
    name: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Situation:
    """What files are read for and calls are decided in.

    `folder` is the project's, an absolute path. `trusted` is the person's word on that folder, None for
    what the host's own files say of it. `interactive`: whether there is a person to ask. `mode` is the
    host's permission mode, "" for what its files set. `env` is the environment that the host runs in.
    `strict`: servers of the command line alone. `now` is seconds since the epoch, for rules that end.
    """

    folder: str = ""
    trusted: bool | None = None
    interactive: bool = True
    mode: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    home: str = ""
    strict: bool = False
    now: float = 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    """One entry of one file, and how it fares among all: `why`, and `by` which place in which file."""

    config: ServerConfig
    state: State = "active"
    why: str = ""
    by: Origin | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a host's files come to.

    `failure` is the fault for which the host starts with no configuration at all, or not; then there
    are no servers. `settings` has what else decides about calls, by the names of the host's files.
    """

    host: str
    servers: tuple[Standing, ...] = ()
    rules: tuple[Rule, ...] = ()
    problems: tuple[Problem, ...] = ()
    failure: Problem | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def active(self) -> dict[str, ServerConfig]:
        """The servers that the host uses, by name."""
        return {item.config.name: item.config for item in self.servers if item.state == "active"}

    def find(self, name: str) -> Standing | None:
        """The entry that stands for a name: the one in use, else the first that is not."""
        found = [item for item in self.servers if item.config.name == name]
        return next((item for item in found if item.state == "active"), found[0] if found else None)

    def __iter__(self) -> Iterator[Standing]:
        """Every entry, those that are not used too."""
        return iter(self.servers)


def named(sources: Sequence[Source], kind: str, *scopes: Scope) -> Iterator[Source]:
    """The sources of a kind, and of one of the scopes if any are given, in the order given."""
    for source in sources:
        if source.kind == kind and (not scopes or source.scope in scopes):
            yield source
