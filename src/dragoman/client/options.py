"""What a client can be told, with the defaults; knows neither targets nor connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, TypeAlias, TypedDict

from dragoman.client.cache import STALE_IF_ERROR, Cache, CacheLike
from dragoman.errors import UsageError
from dragoman.model import (
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    Implementation,
    LoggingLevel,
    LoggingMessageParams,
    Root,
)
from dragoman.protocol.negotiation import PROBE_TIMEOUT
from dragoman.revisions import BY_VERSION, REVISIONS, Revision
from dragoman.schema.options import check_options
from dragoman.transports.base import Tap
from dragoman.transports.http_base import HttpOptions
from dragoman.version import VERSION

AUTO = "auto"
THIS_CLIENT = Implementation(name="dragoman", version=VERSION)

# Called with (progress, total, message); total and message are None where the server did not say.
ProgressHandler: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None] | None]
LogHandler: TypeAlias = Callable[[LoggingMessageParams], Awaitable[None] | None]
# Called with the method and the decoded params (None where there are none).
NotificationHandler: TypeAlias = Callable[[str, Any], Awaitable[None] | None]
# A mapping is the accepted form's values, None declines.
Elicited: TypeAlias = ElicitResult | Mapping[str, Any] | None
ElicitationHandler: TypeAlias = Callable[[ElicitParams], Awaitable[Elicited] | Elicited]
# A text is what the model answered, None rejects the request.
Sampled: TypeAlias = CreateMessageResult | str | None
SamplingHandler: TypeAlias = Callable[[CreateMessageParams], Awaitable[Sampled] | Sampled]
RootLike: TypeAlias = Root | Path | str
RootsHandler: TypeAlias = Callable[[], Awaitable[Sequence[RootLike]] | Sequence[RootLike]]


class ClientKeywords(TypedDict, total=False):
    """The keywords of `Client(target, ...)`: see `ClientOptions`."""

    name: str | None
    protocol: str
    connect_timeout: float | None
    idle_timeout: float | None
    timeout: float | None
    probe_timeout: float
    retry_for: float
    max_restarts: int
    cache_dir: str | Path | None
    client_info: Implementation
    env: Mapping[str, str] | None
    inherit_env: bool
    cwd: str | Path | None
    headers: Mapping[str, str] | None
    http: HttpOptions | None
    progress_handler: ProgressHandler | None
    log_handler: LogHandler | None
    log_level: LoggingLevel
    notification_handler: NotificationHandler | None
    elicitation_handler: ElicitationHandler | None
    elicitation_modes: Sequence[str]
    sampling_handler: SamplingHandler | None
    sampling_tools: bool
    roots: Sequence[RootLike] | RootsHandler | None
    cache: CacheLike
    max_rounds: int
    tasks: bool
    tap: Tap | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """What a client can be told. Times are seconds; None means no limit.

    `name`: what errors and logs call the server; made from the target when not given.
    `protocol`: `"auto"`, or a revision that is then the only one spoken.
    `connect_timeout`: until the revision is agreed on, the start of a program included.
    `idle_timeout`: how long a call may stay without an answer and without progress.
    `timeout`: how long a call may take at most, whatever progress it reports.
    `probe_timeout`: silence after which a program is taken to await a handshake.
    `retry_for`: how long a server that refuses connections, or is not ready (HTTP status 503), is tried
    again, within `connect_timeout`; 0 for not at all.
    `max_restarts`: how many times within a minute a program that ended by itself is started again.
    `cache_dir`: a directory in which is kept what each server spoke, so that the next process knows it.
    `client_info`: who this client says it is.
    `env`, `cwd`: for a target that is a program, whose environment is this process's with `env` over it, or
    `env` alone without `inherit_env`; `headers`: for one that is a URL, and `http`: certificates,
    proxy and limits of its connections.
    `progress_handler`, `log_handler`, `notification_handler`: called for what arrives; with a
    `log_handler` servers are asked for entries from `log_level` up.
    `elicitation_handler`, `sampling_handler`, `roots`: answer what servers ask, in either way they ask;
    what is not given is not offered to them. `elicitation_modes` are those the handler can deal with;
    `sampling_tools` says that the other one can deal with tools for the model.
    `cache`: whether lists and resources are used for as long as the server says they are fresh; with
    `"stale-if-error"` longer, where reading them anew fails; a `Cache` is shared by all that are given it.
    `max_rounds`: how many times one request may ask for input before it is given up.
    `tasks`: a call may become a task at the server (the extension `io.modelcontextprotocol/tasks`); the
    client looks after it, and the call has its result in the end all the same.
    `tap`: called with `"out"` or `"in"` and the bytes of every frame, as it crosses the wire.
    """

    name: str | None = None
    protocol: str = AUTO
    connect_timeout: float | None = 30.0
    idle_timeout: float | None = 60.0
    timeout: float | None = 600.0
    probe_timeout: float = PROBE_TIMEOUT
    retry_for: float = 10.0
    max_restarts: int = 5
    cache_dir: str | Path | None = None
    client_info: Implementation = THIS_CLIENT
    env: Mapping[str, str] | None = field(default=None, repr=False)  # a secret, like as not
    inherit_env: bool = True
    cwd: str | Path | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)  # so are these
    http: HttpOptions | None = None
    progress_handler: ProgressHandler | None = None
    log_handler: LogHandler | None = None
    log_level: LoggingLevel = "info"
    notification_handler: NotificationHandler | None = None
    elicitation_handler: ElicitationHandler | None = None
    elicitation_modes: Sequence[str] = ("form",)
    sampling_handler: SamplingHandler | None = None
    sampling_tools: bool = False
    roots: Sequence[RootLike] | RootsHandler | None = None
    cache: CacheLike = True
    max_rounds: int = 32
    tasks: bool = False
    tap: Tap | None = None

    def __post_init__(self) -> None:
        if self.protocol != AUTO and self.protocol not in BY_VERSION:
            spoken = ", ".join(BY_VERSION)
            raise UsageError(f"protocol: expected {AUTO!r} or one of {spoken}; received {self.protocol!r}")
        for name in ("connect_timeout", "idle_timeout", "timeout", "probe_timeout"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(
                    f"{name}: expected seconds above 0, or None for no limit; received {value!r}"
                )
        if not self.retry_for >= 0:
            raise UsageError(f"retry_for: expected seconds from 0 up; received {self.retry_for!r}")
        if self.max_restarts < 0:
            raise UsageError(f"max_restarts: expected a number from 0 up; received {self.max_restarts!r}")
        if self.max_rounds < 1:
            raise UsageError(f"max_rounds: expected a number from 1 up; received {self.max_rounds!r}")
        if not isinstance(self.cache, bool | Cache) and self.cache != STALE_IF_ERROR:
            raise UsageError(
                f"cache: expected True, False, {STALE_IF_ERROR!r} or a Cache; received {self.cache!r}"
            )

    @classmethod
    def of(cls, keywords: ClientKeywords) -> Self:
        """The options for these keywords.

        Raises:
            UsageError: a keyword that does not exist, or a value that cannot be.
        """
        check_options(keywords, (field.name for field in fields(cls)), of="Client")
        return cls(**keywords)

    def revisions(self) -> Sequence[Revision]:
        """The revisions this client will speak, oldest first."""
        return REVISIONS if self.protocol == AUTO else (BY_VERSION[self.protocol],)
