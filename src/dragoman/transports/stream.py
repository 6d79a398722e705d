"""JSON-RPC over byte streams: one task a request, both directions at once, answers as they come.

It moves bytes between an asyncio-like reader and writer and the state machine of
`dragoman.jsonrpc.peer`, and refuses to know any method or protocol above JSON-RPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ClosedError, PeerFault, RemoteError
from dragoman.jsonrpc.envelope import broken
from dragoman.jsonrpc.framing import BadHeader, ContentLength, Frame, Lines, TooLong, Truncated
from dragoman.jsonrpc.message import ErrorObject, Id, too_large
from dragoman.jsonrpc.peer import (
    Event,
    NotificationReceived,
    Peer,
    Reply,
    RequestReceived,
    ResponseBroken,
    ResponseReceived,
    Unmatched,
)
from dragoman.jsonrpc.service import Service
from dragoman.transports.runner import Options, Runner

logger: Final = logging.getLogger("dragoman.jsonrpc")

CHUNK: Final = 256 * 1024
HIGH_WATER: Final = 4 * 1024 * 1024
MAX_UNREAD: Final = 256 * 1024 * 1024

Framing: TypeAlias = type[Lines] | type[ContentLength]


class Reader(Protocol):
    """What is read from: `asyncio.StreamReader`, or anything with its `read`."""

    async def read(self, n: int, /) -> bytes: ...


class Writer(Protocol):
    """What is written to: `asyncio.StreamWriter`, or anything with these four."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...
    def close(self) -> None: ...
    async def wait_closed(self) -> None: ...


async def serve_stream(
    service: Service,
    reader: Reader,
    writer: Writer,
    *,
    framing: Framing = Lines,
    options: Options | None = None,
) -> None:
    """Serve until the input ends, finish the answers that are owed, close the writer."""
    peer = StreamPeer(reader, writer, service=service, framing=framing, options=options)
    await peer.run()


async def connect_stream(
    reader: Reader,
    writer: Writer,
    *,
    service: Service | None = None,
    framing: Framing = Lines,
    options: Options | None = None,
) -> StreamPeer:
    """The asking side of a stream, reading in a task of its own; `service` answers what it is asked."""
    peer = StreamPeer(reader, writer, service=service, framing=framing, options=options)
    peer.start()
    return peer


class StreamPeer:
    """One end of a stream: `request`, `notify`, `close`; it answers from `service` as well."""

    def __init__(
        self,
        reader: Reader,
        writer: Writer,
        *,
        service: Service | None = None,
        framing: Framing = Lines,
        options: Options | None = None,
    ) -> None:
        self._service = service or Service()
        self._options = options or Options()
        self._limits = self._service.limits
        self._peer = Peer(self._limits, details=self._service.details)
        self._reader = reader
        self._writer = writer
        self._framer = framing(self._limits.max_bytes)
        self._encode = framing.encode
        self._out: list[bytes] = []
        self._runner = Runner(
            self._service,
            self._peer,
            options=self._options,
            send=self._send,
            ask=self.request,
            tell=self._tell,
            freed=self._wake,
        )
        self._waiting: dict[Id, asyncio.Future[ResponseReceived]] = {}
        self._room: asyncio.Future[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ended: str | None = None  # why no answer can come any more
        self._transport: asyncio.WriteTransport | None = getattr(writer, "transport", None)
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=HIGH_WATER)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # What we say --------------------------------------------------------------------------------

    async def request(self, method: str, params: Any = UNSET, *, type: Any = Any) -> Any:  # noqa: A002 - as in msgspec
        """Ask, and await the result as a `type`.

        Raises RemoteError if the answer is an error, PeerFault if it is no answer or does not fit
        `type`, ClosedError if the connection ends first. Cancelling the task stops waiting and, where
        the options name a cancellation, tells the other side.
        """
        if self._ended is not None:
            raise ClosedError(self._ended, stage="call")
        id_, frame = self._peer.request(method, params)
        waiting: asyncio.Future[ResponseReceived] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = waiting
        self._send(frame)
        self._wake()
        try:
            response = await waiting
        except asyncio.CancelledError:
            self._call_off(id_)
            raise
        finally:
            self._waiting.pop(id_, None)
        if response.error is not None:
            raise _remote(response.error)
        return _result(response.result, type, method=method)

    async def notify(self, method: str, params: Any = UNSET) -> None:
        """Tell. Raises ClosedError when the connection has ended."""
        self._send(self._peer.notify(method, params))
        await self._drain()

    async def close(self) -> None:
        """End it: from any task, any number of times. What is still awaited ends with ClosedError."""
        self._end("the connection was closed by this side")
        self._stop()
        reading = self._reading
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
            await asyncio.wait([reading])
        await self._shut()

    async def closed(self) -> None:
        """Return when the other side has ended the connection, or this one has."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    # The loop -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Read in a task of its own."""
        self._reading = asyncio.get_running_loop().create_task(self.run())

    async def run(self) -> None:
        """Read until the input ends, finish the answers that are owed, close the writer."""
        try:
            self._end(await self._read())
            await self._finish()
        finally:
            self._end("the connection was closed by this side")
            self._stop()
            await self._shut()

    async def _read(self) -> str:
        try:
            while data := await self._reader.read(CHUNK):
                for frame in self._framer.feed(data):
                    while self._runner.full and not self._peer.pending:
                        await self._wait_for_room()
                    self._take(frame)
                await self._wait_for_reader()
        except OSError as error:
            return f"the connection broke: {error}"
        for frame in self._framer.eof():
            self._take(frame)
        return "the other side closed the connection"

    async def _wait_for_room(self) -> None:
        self._room = asyncio.get_running_loop().create_future()
        await self._room

    async def _wait_for_reader(self) -> None:
        """Read no more while the other side does not read, unless we wait for its answer ourselves.

        If both sides stopped reading until the other one does, both would wait for ever.
        """
        self._flush()
        if self._transport is None:
            await self._writer.drain()
            return
        while (unread := self._transport.get_write_buffer_size()) > HIGH_WATER and not self._peer.pending:
            drained = asyncio.ensure_future(self._writer.drain())
            self._room = asyncio.get_running_loop().create_future()
            await asyncio.wait((drained, self._room), return_when=asyncio.FIRST_COMPLETED)
            if drained.done():
                drained.result()
            else:
                drained.cancel()
        if unread > MAX_UNREAD:
            raise ConnectionError(f"{unread} bytes wait to be read by the other side, more than {MAX_UNREAD}")

    def _wake(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    def _take(self, frame: Frame) -> None:
        if isinstance(frame, bytes):
            events = self._peer.receive(frame)
        elif isinstance(frame, TooLong):
            events = self._peer.take(too_large(frame.size, self._limits.max_bytes, head=frame.head))
        else:
            events = self._peer.take(broken(_frame_fault(frame)))
        for event in events:
            self._handle(event)

    def _handle(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._runner.request(event)
        elif isinstance(event, NotificationReceived):
            self._runner.notification(event)
        elif isinstance(event, ResponseReceived):
            self._resolve(event)
        elif isinstance(event, ResponseBroken):
            self._fail(event.id, PeerFault(f"the answer is none: {event.detail}", stage="call"))
        elif isinstance(event, Reply):
            self._send(event.frame)
        else:
            _report(event)

    # Answers to us --------------------------------------------------------------------------------

    def _resolve(self, response: ResponseReceived) -> None:
        if response.loose:
            logger.warning("the answer to request %r came with its id as a string", response.id)
        waiting = self._waiting.get(response.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def _fail(self, id_: Id, error: Exception) -> None:
        waiting = self._waiting.get(id_)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def _call_off(self, id_: Id) -> None:
        self._peer.forget(id_)
        cancellation = self._options.cancellation
        if cancellation is not None and self._ended is None:
            self._send(self._peer.notify(cancellation.method, {cancellation.member: id_}))

    # Bytes out, and the end -------------------------------------------------------------------------

    def _send(self, frame: bytes) -> None:
        if not frame:
            return
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(self._encode(frame))

    def _flush(self) -> None:
        if self._out:
            data = b"".join(self._out)
            self._out.clear()
            self._writer.write(data)

    def _tell(self, method: str, params: Any) -> bool:
        try:
            self._send(self._peer.notify(method, params))
        except ClosedError:
            return False
        return True

    async def _drain(self) -> None:
        self._flush()
        await self._writer.drain()

    def _end(self, reason: str) -> None:
        if self._ended is None:
            self._ended = reason
        for id_ in list(self._waiting):
            self._peer.forget(id_)
            self._fail(id_, ClosedError(self._ended, stage="call"))
        self._wake()

    async def _finish(self) -> None:
        await self._runner.finish()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(self._drain(), self._options.drain_seconds)

    def _stop(self) -> None:
        self._peer.close(self._ended or "closed")
        self._runner.stop()

    async def _shut(self) -> None:
        with contextlib.suppress(OSError):
            self._flush()
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), self._options.drain_seconds)
        except TimeoutError:
            # The other side does not read what is left for it.
            if self._transport is not None:
                self._transport.abort()
        except OSError:
            pass


def _remote(error: ErrorObject) -> RemoteError:
    data = None if error.data is UNSET else msgspec.json.decode(error.data)
    return RemoteError(error.code, error.message, data)


def _result(result: Raw, expected: Any, *, method: str) -> Any:
    try:
        return msgspec.json.decode(result, type=expected)
    except msgspec.DecodeError as error:
        raise PeerFault(f"the result of {method!r} does not fit: {error}", stage="call") from error


def _frame_fault(frame: BadHeader | Truncated) -> str:
    if isinstance(frame, BadHeader):
        return frame.reason
    return f"the stream ended after {frame.received} of {frame.expected or 'unknown'} bytes"


def _report(event: Unmatched) -> None:
    if event.late:
        logger.debug("a late answer to request %r was dropped", event.id)
    elif event.error is not None:
        logger.warning(
            "error %d for request %r, which nobody sent: %s", event.error.code, event.id, event.error.message
        )
    else:
        logger.warning("an answer to request %r, which nobody sent %s", event.id, event.detail)
