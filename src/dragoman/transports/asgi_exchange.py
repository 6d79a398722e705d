"""One HTTP exchange on ASGI: the response to a request, and the way back for the calls in it.

It turns what calls send into server-sent events once something is sent, and a broken connection
into cancellation where the revision says so. Which requests are let in is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from asyncio import current_task, get_running_loop
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from threading import get_ident
from typing import Any, Final, Protocol, TypeVar

from dragoman.errors import ClosedError
from dragoman.jsonrpc.message import Id, encode_notification, encode_request
from dragoman.model import CancelledParams
from dragoman.protocol.head import JSON, Head, Headers, Say
from dragoman.protocol.link import Link
from dragoman.protocol.origin import HostRules
from dragoman.protocol.sse import encode_event
from dragoman.transports.asgi_lookout import Lookout

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")

STREAM_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
KEEP_ALIVE: Final = b": keep-alive\n\n"
CONGESTED: Final = 64 * 1024

# Why a call was stopped.
GONE: Final = "the client closed the connection"
CANCELLED: Final = "the client cancelled the request"
SLOW: Final = "the client does not read its stream"
CLOSING: Final = "the server is closing"


class Home(Protocol):
    """What the exchanges of one app share."""

    lookout: Lookout
    rules: HostRules
    max_queue: int


class Exchange:
    """The response to one request (`protocol.call.Channel` for the calls in it).

    `extra` are headers that every response to it carries. `link` is whose requests of ours go out
    here; `cancels` says that a broken connection stops the work, `asks` that the revision has
    requests from the server. An instance holds only what differs from the values below: there is
    one for every request.
    """

    extra: Headers = ()
    link: Link | None = None
    principal: str | None = None
    cancels = False
    asks = False
    reason: str | None = None
    open = False  # calls may send
    started = False  # the response is a stream, and its head is out or about to be
    broken = False  # the stream was given up: no answer can follow
    fresh = True  # something was sent since the last look at quiet streams
    _size = 0
    _long = False
    _listens = False
    _frames: list[bytes] | None = None
    _drain: asyncio.Task[None] | None = None
    _watch: asyncio.Task[None] | None = None
    _asked: set[Id] | None = None
    _task: asyncio.Task[Any] | None = None

    def __init__(self, head: Head, *, scope: Scope, receive: Receive, send: Send, home: Home) -> None:
        self.head = head
        self._scope = scope
        self._receive = receive
        self._send = send
        self._home = home
        self._thread = get_ident()

    # Facts for handlers --------------------------------------------------------------------------

    @property
    def headers(self) -> Mapping[str, str]:
        """The request's headers by lower-case name."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self.head.fields.items()}

    @property
    def client(self) -> Any:
        """The address that the request came from, `(host, port)`, as trusted proxies tell it."""
        return self._home.rules.client(self.head.fields, self._scope.get("client"))

    @property
    def congested(self) -> bool:
        """Whether the client does not read what was sent so far."""
        return self._size > CONGESTED

    # The channel ---------------------------------------------------------------------------------

    def notify(self, method: str, params: object) -> None:
        """Send a notification on this response, which becomes a stream by it. Safe from any thread."""
        if not self.open:
            return
        frame = encode_notification(method, params)
        task = self._task
        if get_ident() == self._thread:
            self.emit(frame)
        elif task is not None:
            task.get_loop().call_soon_threadsafe(self.emit, frame)

    async def ask(self, method: str, params: object) -> Any:
        """Send a request of ours on this response; the client's answer comes in by another POST.

        Raises:
            RemoteError: the client's error.
            ClosedError: the response stream broke or the session ended first, or the revision has
                no such requests.
        """
        link = self.link
        if link is None or not self.open or not self.asks:
            raise ClosedError(f"{method}: there is no way to the client")
        future: asyncio.Future[Any] = get_running_loop().create_future()

        def settle(result: Any, exception: Exception | None) -> None:
            if future.done():
                return
            if exception is None:
                future.set_result(result)
            else:
                future.set_exception(exception)

        asked = link.ask(settle)
        outstanding = self._asked
        if outstanding is None:
            outstanding = self._asked = set()
        outstanding.add(asked)
        self.emit(encode_request(asked, method, params))
        self._start_watch()
        try:
            return await future
        except asyncio.CancelledError:
            if link.forget(asked):
                self.notify("notifications/cancelled", CancelledParams(request_id=asked))  # type: ignore[arg-type]  # ours are integers
            raise
        finally:
            outstanding.discard(asked)

    # Work ----------------------------------------------------------------------------------------

    async def work(self, coroutine_: Coroutine[Any, Any, T]) -> T:
        """Await the work of this exchange in the current task, so that `stop` can end it.

        Raises:
            Stopped: `stop` was called; whatever the work made of that does not count.
        """
        loop = get_running_loop()
        self._task = task = current_task(loop)
        self.open = True
        lookout = self._home.lookout
        lookout.fresh.add(self)
        if lookout.loop is not loop:
            lookout.go_round(loop)
        try:
            result = await coroutine_
        except asyncio.CancelledError:
            if self.reason is None and task is not None and not task.cancelling():
                raise RuntimeError("the work cancelled itself") from None
            self._settle_stop()
            raise
        finally:
            # The calls are over: nothing more is sent for them, and nobody watches the connection.
            self._task = None
            self.open = False
            lookout.fresh.discard(self)
            if self._long or self._watch is not None:
                self._leave()
        if self.reason is not None:
            self._settle_stop()
        return result

    async def listen(self) -> None:
        """Be a stream that carries what is emitted, until the client closes the connection.

        Raises:
            Stopped: `stop` was called, or the client does not read.
        """
        await self.start()
        self.cancels = self._listens = True
        await self.work(self.disconnected())

    def _leave(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._home.lookout.long.discard(self)

    def stop(self, reason: str) -> None:
        """Stop the work, once."""
        if self.reason is None and self._task is not None:
            self.reason = reason
            self._task.cancel()

    def _settle_stop(self) -> None:
        if self.reason is not None:
            task = current_task()
            if task is not None:
                task.uncancel()
            raise Stopped(self.reason)

    def watch(self) -> None:
        """Notice from now on when the client closes the connection, where that means anything."""
        self._long = True
        if self.cancels and not self._listens:  # who listens sees it without help
            self._start_watch()

    def _start_watch(self) -> None:
        if self._watch is None and self._task is not None:
            self._watch = get_running_loop().create_task(self._watching())

    async def _watching(self) -> None:
        await self.disconnected()
        self.gone()

    async def disconnected(self) -> None:
        """Return when the client has closed the connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def gone(self) -> None:
        """The connection broke: nothing can be sent any more, and what the revision ties to it ends."""
        self._give_up()
        for asked in list(self._asked or ()):
            settle = None if self.link is None else self.link.pending.pop(asked, None)
            if settle is not None:
                settle(None, ClosedError(GONE))
        if self.cancels:
            self.stop(GONE)

    # The stream ----------------------------------------------------------------------------------

    def emit(self, frame: bytes) -> None:
        """Send one message as an event; nothing once the calls are over."""
        if self.open:
            self.write(encode_event(frame))

    def write(self, data: bytes) -> None:
        """Queue bytes of the stream. A queue over its limit ends the stream: the client does not read it."""
        if self._frames is None:
            self._frames = []
        self._frames.append(data)
        self._size += len(data)
        self.fresh = True
        if self._size > self._home.max_queue:
            self._overflow()
        elif self._drain is None:
            self._drain = get_running_loop().create_task(self._draining())

    def keep_alive(self) -> None:
        """Send a comment if nothing was sent since the last time; called at regular intervals."""
        if not self.fresh and self.started and not self._frames and self._drain is None:
            self.write(KEEP_ALIVE)
        self.fresh = False

    def _overflow(self) -> None:
        self._give_up()
        if self.cancels:
            self.stop(SLOW)

    def _give_up(self) -> None:
        self.broken = True
        self.open = False
        if self._drain is not None:
            self._drain.cancel()
        self._frames = None
        self._size = 0

    async def _draining(self) -> None:
        try:
            await self.start()
            while self._frames:
                await self._flush()
        except OSError:
            self._drain = None
            self.gone()
        finally:
            self._drain = None

    async def start(self) -> None:
        """Send the head of a stream, once."""
        if not self.started:
            self.started = True
            headers = [*STREAM_HEADERS, *self.extra]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": b"", "more_body": True})

    async def _flush(self, *, more: bool = True) -> None:
        data = b"".join(self._frames or ())
        self._frames = None  # a list would keep its size for as long as the stream is open
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._size = max(0, self._size - len(data))

    async def end_stream(self, *frames: bytes) -> None:
        """Send the last messages and end the stream."""
        await self.finish(*map(encode_event, frames))

    async def finish(self, *events: bytes) -> None:
        """Send encoded events and end the stream."""
        drain = self._drain
        if drain is not None and self.started:
            await asyncio.wait([drain])
        elif drain is not None:
            drain.cancel()  # it has not begun: everything goes out in one piece
            self._drain = None
        await self.start()
        self._frames = [*(self._frames or ()), *events]
        await self._flush(more=False)

    # A single answer -----------------------------------------------------------------------------

    @property
    def streaming(self) -> bool:
        """Whether the response is a stream by now."""
        return self.started or self._drain is not None

    async def answer(self, frame: bytes, *, status: int = 200) -> None:
        """Send the one answer that this response is for; an empty one is silence (202, or the end)."""
        if self.broken:
            return  # the server closes a connection whose response does not end
        if self.started or self._drain is not None:
            await self.end_stream(*([frame] if frame else []))
        elif frame:
            headers = [JSON, (b"content-length", b"%d" % len(frame)), *self.extra]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
            await self._send({"type": "http.response.body", "body": frame})
        else:
            await self.say(Say(202))

    async def say(self, say: Say) -> None:
        """Send a response as it was decided on."""
        if say.status == 204:
            await self._respond(204, b"", headers=[*say.headers, *self.extra])
            return
        length = (b"content-length", b"%d" % len(say.body))
        await self._respond(say.status, say.body, headers=[*say.headers, length, *self.extra])

    async def _respond(self, status: int, body: bytes, *, headers: list[tuple[bytes, bytes]]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


class Stopped(Exception):  # a state of affairs, not a fault
    """The work was stopped by `Exchange.stop`; the argument says why."""


__all__ = ["CANCELLED", "CLOSING", "GONE", "SLOW", "Exchange", "Receive", "Scope", "Send", "Stopped"]
