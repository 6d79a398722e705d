"""Lines of a host to the requests of an HTTP server, and what that says back to lines.

It adds nothing to the messages and takes nothing away; what HTTP wants beside them it reads out of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import LocalError
from dragoman.jsonrpc.message import (
    DEFAULT,
    INTERNAL_ERROR,
    Id,
    Invalid,
    Notification,
    Request,
    Response,
    decode,
    encode_error,
    encode_invalid,
    encode_notification,
    encode_request,
    encode_result,
)
from dragoman.protocol.headers import encode_value
from dragoman.protocol.negotiation import INITIALIZE
from dragoman.revisions import BY_VERSION, Revision
from dragoman.schema.errors import SchemaError
from dragoman.schema.parameters import HeaderParameter, header_parameters
from dragoman.schema.shapes import is_array, is_object
from dragoman.testing.cassette import VERSION_KEY
from dragoman.transports.base import Outgoing, Transport

PARAM_HEADER: Final = "Mcp-Param-"


class Bridge:
    """One host on this side, one transport on the other; `send` takes lines for the host."""

    def __init__(self, transport: Transport, send: Callable[[bytes], None]) -> None:
        self._transport = transport
        self._send = send
        self._revision: Revision | None = None  # of a session
        self._tasks: dict[Id, asyncio.Task[None]] = {}  # requests of the host, by id
        self._others: set[asyncio.Task[None]] = set()
        self._asked: dict[Id, asyncio.Future[bytes]] = {}  # requests of the server, by id
        self._mirrored: dict[str, tuple[HeaderParameter, ...]] = {}  # by tool

    async def open(self) -> None:
        """Open the transport. Raises as that."""
        await self._transport.open(self._notified, self._ask)

    async def drain(self) -> None:
        """Wait for what the host asked."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Close the transport; what is open is dropped."""
        tasks = [*self._tasks.values(), *self._others]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._transport.close()

    # From the host -----------------------------------------------------------------------------------

    def receive(self, frame: bytes) -> None:
        """One line of the host."""
        message = decode(frame, DEFAULT)
        if isinstance(message, Request):
            task = asyncio.get_running_loop().create_task(self._request(message, frame))
            self._tasks[message.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(message.id, None))
        elif isinstance(message, Notification):
            self._notice(message, frame)
        elif isinstance(message, Response):
            future = self._asked.pop(message.id, None)
            if future is not None and not future.done():
                future.set_result(frame)
        elif isinstance(message, Invalid):
            self._send(encode_invalid(message))

    def _notice(self, notification: Notification, frame: bytes) -> None:
        if notification.method == "notifications/cancelled":
            task = self._tasks.get(_object(notification.params).get("requestId"))
            if task is not None:
                task.cancel()  # the transport tells the server, in the way of the revision
            return
        task = asyncio.get_running_loop().create_task(self._tell(frame))
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    async def _tell(self, frame: bytes) -> None:
        try:
            await self._transport.notify(frame, self._revision)
        except LocalError:
            return  # nobody is owed an answer

    async def _request(self, request: Request, frame: bytes) -> None:
        try:
            response = await self._transport.exchange(self._outgoing(request, frame), self._notified)
        except LocalError as exc:
            self._send(encode_error(request.id, INTERNAL_ERROR, str(exc)))
            return
        if response.error is not None:
            error = response.error
            self._send(encode_error(request.id, error.code, error.message, error.data))
            return
        result = _object(response.result)
        if request.method == INITIALIZE:
            self._revision = BY_VERSION.get(str(result.get("protocolVersion")))
            if self._revision is not None:
                self._transport.agreed(self._revision)
        elif request.method == "tools/list":
            self._listed(result)
        self._send(encode_result(request.id, response.result))

    def _outgoing(self, request: Request, frame: bytes) -> Outgoing:
        if request.method == INITIALIZE:
            return Outgoing(request.id, INITIALIZE, frame, handshake=True)
        params = _object(request.params)
        meta = params.get("_meta")
        named = meta.get(VERSION_KEY) if is_object(meta) else None
        revision = self._revision if named is None else BY_VERSION.get(str(named))
        method = None if revision is None else revision.methods.get(request.method)
        subject = None if method is None or method.subject is None else params.get(method.subject)
        return Outgoing(
            request.id,
            request.method,
            frame,
            revision,
            subject if isinstance(subject, str) else None,
            self._headers(request.method, params),
        )

    # What HTTP mirrors from the arguments ------------------------------------------------------------

    def _listed(self, result: Mapping[str, Any]) -> None:
        tools = result.get("tools")
        for tool in tools if is_array(tools) else ():
            schema = tool.get("inputSchema") if is_object(tool) else None
            if is_object(schema):
                try:
                    self._mirrored[str(tool.get("name"))] = header_parameters(schema)
                except SchemaError:
                    continue  # the host is handed the list as it is; calls of this tool carry no headers

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        if method != "tools/call":
            return {}
        headers: dict[str, str] = {}
        for parameter in self._mirrored.get(str(params.get("name")), ()):
            value: Any = params.get("arguments")
            for member in parameter.path:
                value = value.get(member) if is_object(value) else None
            if isinstance(value, bool):
                value = "true" if value else "false"
            if isinstance(value, str | int | float):
                headers[PARAM_HEADER + parameter.header] = encode_value(str(value))
        return headers

    # From the server ---------------------------------------------------------------------------------

    def _notified(self, notification: Notification) -> None:
        self._send(encode_notification(notification.method, notification.params or UNSET))

    async def _ask(self, request: Request) -> bytes:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[request.id] = future
        self._send(encode_request(request.id, request.method, request.params or UNSET))
        try:
            return await future
        finally:
            self._asked.pop(request.id, None)


def _object(params: bytes | Raw) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(params or b"{}")
    except msgspec.DecodeError:
        return {}
    return value if is_object(value) else {}
