"""A server in this very process, reached through real frames: for tests, and for hosts that embed one.

Every message is encoded and decoded as on any other transport, so that what works here works there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from dragoman.errors import ClosedError
from dragoman.jsonrpc.message import (
    DEFAULT,
    Id,
    Notification,
    Request,
    Response,
    decode,
    encode_notification,
)
from dragoman.model import CancelledParams
from dragoman.protocol.call import Kernel
from dragoman.revisions.base import Revision
from dragoman.transports.base import OnNotification, OnRequest, Outgoing, Tap
from dragoman.transports.connection import ServerConnection


class MemoryTransport:
    """The client's way to a kernel in the same process (`transports.base.Transport`)."""

    shared = True

    def __init__(self, kernel: Kernel, name: str = "in-process server") -> None:
        self.name = name
        self._kernel = kernel
        self.tap: Tap | None = None
        self.on_gap: Callable[[], None] | None = None  # nothing is missed here
        self._connection: ServerConnection | None = None
        self._pending: dict[Id, asyncio.Future[Response]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._on_notification: OnNotification | None = None
        self._on_request: OnRequest | None = None
        self._closed = False

    async def open(self, on_notification: OnNotification, on_request: OnRequest) -> None:
        """Connect to the kernel; never fails."""
        self._on_notification = on_notification
        self._on_request = on_request
        self._connection = ServerConnection(self._kernel, self._arrive)

    def _arrive(self, frame: bytes) -> None:
        if self.tap is not None:
            self.tap("in", frame)
        # On the next turn of the loop, as on any wire: a handler never runs inside the sender's call.
        asyncio.get_running_loop().call_soon(self._take, decode(frame, DEFAULT))

    def _send(self, connection: ServerConnection, frame: bytes) -> None:
        if self.tap is not None:
            self.tap("out", frame)
        connection.receive(frame)

    def _take(self, message: object) -> None:
        if isinstance(message, Response):
            future = self._pending.get(message.id)
            if future is not None and not future.done():
                future.set_result(message)
        elif isinstance(message, Notification):
            if self._on_notification is not None:
                self._on_notification(message)
        elif isinstance(message, Request):
            task = asyncio.get_running_loop().create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, request: Request) -> None:
        if self._on_request is not None:
            frame = await self._on_request(request)
            if self._connection is not None:
                self._send(self._connection, frame)

    async def exchange(self, outgoing: Outgoing, on_notification: OnNotification | None = None) -> Response:
        """Send a request and await its response; cancelling sends `notifications/cancelled`."""
        connection = self._connection
        if connection is None or self._closed:
            raise ClosedError("the connection is closed", server=self.name, stage="call")
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._pending[outgoing.id] = future
        try:
            self._send(connection, outgoing.frame)
            return await future
        except asyncio.CancelledError:
            if not self._closed:
                cancelled = CancelledParams(request_id=outgoing.id)  # type: ignore[arg-type]  # a client's ids are integers
                self._send(connection, encode_notification("notifications/cancelled", cancelled))
            raise
        finally:
            del self._pending[outgoing.id]

    async def notify(self, frame: bytes, revision: Revision | None) -> None:
        """Send a notification."""
        if self._connection is None or self._closed:
            raise ClosedError("the connection is closed", server=self.name, stage="call")
        self._send(self._connection, frame)

    def agreed(self, revision: Revision) -> None:
        """Nothing depends on the revision here."""

    async def close(self) -> None:
        """End the connection; whatever is open ends with ClosedError."""
        if self._closed:
            return
        self._closed = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ClosedError("the connection was closed", server=self.name, stage="call"))
        for task in list(self._answering):
            task.cancel()
        if self._connection is not None:
            await self._connection.cancel()

    def facts(self) -> Mapping[str, Any]:
        """What is known of the other end."""
        return {"transport": "memory"}
