"""What a protocol revision is: one frozen record of tables, named facts and small pure functions.

Nothing here or above it compares versions or dates: whoever needs to know how a revision behaves
asks the record for the fact. A new revision is a new module that fills in one more record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.model import (
    ClientCapabilities,
    Implementation,
    InputRequest,
    LoggingLevel,
    Params,
    RequestMeta,
    Result,
)


class Caller(Struct, frozen=True):
    """Who is calling, whichever way the revision learned it."""

    info: Implementation | UnsetType
    capabilities: ClientCapabilities
    log_level: LoggingLevel | UnsetType = UNSET


NOBODY = Caller(UNSET, ClientCapabilities())


class Method(Struct, frozen=True):
    """One request that a client may send.

    `subject` names the member of `params` that HTTP mirrors into `Mcp-Name`; `cacheable` results
    carry `ttlMs` and `cacheScope`; a method that is `open` is answered before the handshake. One that an
    extension adds is for revisions without a handshake, unless it is for those `everywhere`.
    """

    name: str
    params: type[Params]
    subject: str | None = None
    cacheable: bool = False
    open: bool = False
    everywhere: bool = False


class Addition:
    """Members that a server adds to the `_meta` of a result; `encoded` where nothing else is in it."""

    __slots__ = ("encoded", "members")

    def __init__(self, members: dict[str, Any]) -> None:
        self.members = members
        # An encoding stands for what it encodes.
        self.encoded: Any = Raw(msgspec.json.encode(members)) if members else UNSET


class HttpRules(Struct, frozen=True):
    """How Streamable HTTP carries a revision."""

    sessions: bool  # `Mcp-Session-Id`, the GET stream and DELETE exist
    routing_headers: bool  # `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` must mirror the body
    disconnect_cancels: bool  # a closed response stream is a cancellation
    status: Mapping[int, int]  # JSON-RPC error code -> HTTP status; 200 where it is not named
    polling: bool  # a stream may be closed early and resumed with `Last-Event-ID`


if TYPE_CHECKING:  # a start does without them

    class Identify(Protocol):
        """Who calls, by a revision's rules."""

        def __call__(self, session: Caller | None, method: Method, *, meta: RequestMeta) -> Caller:
            """The caller; raises Refusal where the revision wants more to be said."""
            ...

    class Seal(Protocol):
        """A result as a revision writes it."""

        def __call__(self, result: Result, method: Method, *, extra: Addition) -> Result:
            """A copy in the revision's shape; `extra` is what the server adds to a `_meta`."""
            ...

    class Ask(Protocol):
        """A request to the client as a revision writes it."""

        def __call__(self, request: InputRequest) -> InputRequest:
            """The request in the revision's shape; raises ToolError for what the revision does not have."""
            ...


class Revision(Struct, frozen=True, eq=False):
    """One revision of the protocol."""

    version: str
    methods: Mapping[str, Method]  # requests, client to server
    notifications: frozenset[str]  # notifications, client to server
    identify: Identify
    seal: Seal
    ask: Ask
    http: HttpRules
    handshake: bool  # opened by `initialize`; else each request says who calls
    asks_inline: bool  # a server may send requests of its own; else it answers `input_required`
    batches: bool  # several messages in one JSON array
    client_methods: frozenset[str]  # what a server may ask of a client
    elicitation_modes: bool  # a page may be asked for too, and clients declare the modes that they have
    elicitation_ids: bool  # a page to open carries an `elicitationId`
    progress_messages: bool  # a report of progress may carry words
    missing_resource: int  # the code for a resource that does not exist

    def __repr__(self) -> str:
        return f"<Revision {self.version}>"

    def __str__(self) -> str:
        return self.version


def table(*rows: Method) -> dict[str, Method]:
    """Methods by name."""
    return {row.name: row for row in rows}
