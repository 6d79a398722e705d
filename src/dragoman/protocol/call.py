"""One admitted request and the ways back to whoever sent it.

From here on nothing asks which transport or which revision a request came by: the `Call` says
what a handler may know, the `Channel` carries what it may send while it runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dragoman.jsonrpc.message import Id
from dragoman.model import RequestMeta, Result
from dragoman.protocol.record import Record
from dragoman.revisions.base import Caller, Method, Revision

if TYPE_CHECKING:
    from dragoman.protocol.journal import Journal
    from dragoman.protocol.link import Link


class Channel(Protocol):
    """The way back to the sender of one request, for as long as that request is open."""

    def notify(self, method: str, params: object) -> None:
        """Send a notification that belongs to this request. Never blocks; silent once the request is over."""
        ...

    def ask(self, method: str, params: object) -> Awaitable[Any]:
        """Send a request of ours to the client and await its raw result (a `msgspec.Raw`).

        Raises:
            RemoteError: the client answered with an error.
            ClosedError: the connection ended first, or has no way to the client.
        """
        ...

    @property
    def congested(self) -> bool:
        """Whether the other side does not read what was sent so far."""
        ...


class Keeper(Protocol):
    """What keeps the steps of a call safe before its handler goes on."""

    async def begin(self, key: str, *, again: bool) -> None:
        """A step is about to run. Raises ToolError if it was cut off before, and may not run `again`."""
        ...

    async def done(self, key: str, value: Any) -> None:
        """It ran, and this is its value."""
        ...

    async def failed(self, key: str) -> None:
        """It raised: it may run again."""
        ...

    def cut(self, key: str) -> None:
        """It was stopped in its middle."""
        ...


class Call(msgspec.Struct, eq=False):
    """A request let in: what it asks for, who asks, by which revision, and the way back.

    `meta` and `caller` may stand for many calls that say the same, and are not to be changed.
    """

    id: Id
    method: Method
    params: Any
    meta: RequestMeta
    caller: Caller
    revision: Revision
    link: Link
    channel: Channel
    principal: str | None = None  # who the transport's authorisation says is calling
    journal: Journal | None = None  # what earlier rounds of this call left, where rounds there are
    scratch: Record | None = None  # the same for a call that has had no round yet
    keeper: Keeper | None = None  # keeps steps safe, where the call outlives the process
    reader: Callable[..., Awaitable[Any]] | None = None  # reads a resource for a handler's context
    home: Any = None  # what the server that answers keeps for its handlers
    lifespan: Any = None  # the value of that server's lifespan
    scope: Any = None  # what was supplied to handlers so far, and has to be cleaned up
    progress: Any = None  # what was told of it so far


class Kernel(Protocol):
    """What answers admitted calls: the server, seen from a transport."""

    @property
    def extra_methods(self) -> Mapping[str, Method]:
        """Requests that extensions add, by name."""
        ...

    async def handle(self, call: Call) -> Result:
        """The result, already in the shape of the call's revision.

        Raises:
            Refusal: answer with this JSON-RPC error.
        """
        ...

    def notified(self, link: Link, method: str, *, params: bytes) -> None:
        """A notification other than a cancellation came in. Never raises."""
        ...

    def header_parameters(self, tool: str) -> tuple[Any, ...]:
        """The parameters of `tool` that HTTP mirrors into `Mcp-Param-*`; empty for an unknown tool."""
        ...

    def attach(self) -> None:
        """A transport begins to serve this kernel in the running event loop. Never blocks, never raises."""
        ...

    async def detach(self) -> None:
        """That transport is done, and has no call open. What only it needed is shut down."""
        ...

    def linked(self, link: Link) -> None:
        """A connection or session opened that can carry unsolicited notifications."""
        ...

    def unlinked(self, link: Link) -> None:
        """That connection or session is over."""
        ...
