"""What a client needs of a transport, whichever it is.

A transport carries frames; it knows which bytes belong to which request and how a request is
abandoned on it. It knows no tool, no schema and no era probe.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from dragoman.jsonrpc.message import Id, Notification, Request, Response
from dragoman.revisions.base import Revision


@dataclass(slots=True)
class Outgoing:
    """One request on its way out: the encoded frame, and what a transport may mirror from it.

    `revision` is None only before one is agreed on. `subject` is the value for `Mcp-Name`;
    `mirrored` holds further headers (`Mcp-Param-*`), already encoded.
    """

    id: Id
    method: str
    frame: bytes
    revision: Revision | None = None
    subject: str | None = None
    mirrored: Mapping[str, str] = field(default_factory=dict[str, str])
    handshake: bool = False  # this is `initialize`


# Called for every notification that arrives while a request is open (HTTP: on its own stream).
OnNotification = Callable[[Notification], None]
# Called for a request that the server sends; returns the encoded answer frame.
OnRequest = Callable[[Request], Awaitable[bytes]]
# Called with every frame as it crosses the wire, for recordings and traces. Read-only: it changes nothing,
# must not raise and must not wait. For a frame that goes out it runs in the task that sends it.
Tap: TypeAlias = Callable[[Literal["in", "out"], bytes], None]


class Transport(Protocol):
    """The client's way to one server.

    Life: `open()` once, any number of `exchange()` at the same time, `close()` once or more, from
    any task. After `close()` every open exchange has ended with ClosedError.
    """

    name: str  # the server's name in errors
    tap: Tap | None  # set before `open`, or not at all
    # Set before `open`, or not at all. Called when what the server says by itself may have been missed:
    # its process ended, or the stream broke on which it comes and was not taken up where it broke off.
    on_gap: Callable[[], None] | None

    async def open(self, on_notification: OnNotification, on_request: OnRequest) -> None:
        """Start the process or prepare the connection pool.

        Raises:
            ConnectError: the program cannot be started (with what the system said).
        """
        ...

    async def exchange(self, outgoing: Outgoing, on_notification: OnNotification | None = None) -> Response:
        """Send a request and await its response.

        Cancelling the awaiting task abandons the request in the transport's own way
        (`notifications/cancelled`, or closing the response stream) and nothing else.

        Raises:
            ClosedError: the server or the connection went away (exit status, stderr tail).
            ConnectError: nothing could be sent.
            HttpError: an HTTP status without a JSON-RPC answer (HTTP only; a LocalError).
        """
        ...

    async def notify(self, frame: bytes, revision: Revision | None) -> None:
        """Send a notification. Errors as `exchange`."""
        ...

    def agreed(self, revision: Revision) -> None:
        """A revision was agreed on: 2025 HTTP sends its header and opens the GET stream from here on."""
        ...

    async def close(self) -> None:
        """End the connection, the process tree and everything that is open."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all messages share one channel (stdio, memory): answers to `server/discover` may
        then never come, and silence is a verdict. False for HTTP, where each request has its own.
        """
        ...

    def facts(self) -> Mapping[str, Any]:
        """What is known of the other end, for errors and `doctor`: pid, exit status, noise count, URL."""
        ...
