"""Streamable HTTP as a client speaks it: each message its own POST, its answer in JSON or in events.

It knows sessions, streams and cancellation of every revision, by the facts of the revision's record.
It knows no tool and no era probe, and it follows no redirect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from msgspec.structs import replace

from dragoman.errors import ClosedError, HttpError, LocalError, UsageError
from dragoman.jsonrpc.message import (
    INTERNAL_ERROR,
    Limits,
    Message,
    Notification,
    Request,
    Response,
    encode_error,
    encode_notification,
)
from dragoman.revisions.base import Revision
from dragoman.transports.base import OnNotification, OnRequest, Outgoing, Tap
from dragoman.transports.http_answer import Reading, excerpt, read_answer
from dragoman.transports.http_base import HttpClient, HttpOptions, Reply, parse_address
from dragoman.transports.http_fault import Place, http_error
from dragoman.transports.http_head import Requests, session_id
from dragoman.transports.http_pool import Pool
from dragoman.transports.http_stream import Listener

__all__ = ["HttpError", "HttpOptions", "HttpTransport"]

log = logging.getLogger("dragoman.http")

_LISTENING: Final = 0.5  # seconds that requests wait for the listening stream to be open
_GOODBYE: Final = 2.0  # seconds for the end of a session to be told, and for a cancellation


class HttpTransport:
    """The way to one MCP endpoint over HTTP; see `base.Transport` for what its methods promise.

    `headers` go with every request; those that the protocol itself sets cannot be given. User
    information in the URL is sent as Basic credentials. What `facts()`, errors and `repr` show of the
    URL is without it and without the values of the query.

    Raises:
        UsageError: the URL or a header cannot be used.
    """

    shared = False

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        connect_timeout: float | None = None,
        options: HttpOptions | None = None,
        client: HttpClient | None = None,
    ) -> None:
        options = options or HttpOptions()
        if connect_timeout is not None:
            options = replace(options, connect_timeout=connect_timeout)
        address = parse_address(url)
        self.name = name or address.authority
        self.tap: Tap | None = None
        self.on_gap: Callable[[], None] | None = None
        self._shown = address.shown
        self._requests = Requests(address, headers or {})
        self._limits = Limits(max_bytes=options.max_body)
        self._client: HttpClient = client or Pool(options)
        self._revision: Revision | None = None
        self._told = False  # a notification went out since the handshake: `notifications/initialized`
        self._listener: asyncio.Task[None] | None = None
        self._listening: asyncio.Event | None = None  # what requests wait for, bounded, to be set
        self._answering: set[asyncio.Task[None]] = set()  # requests of the server, with whoever answers
        self._telling: set[asyncio.Task[None]] = set()  # what the server should still hear at the end
        self._on_notification: OnNotification | None = None
        self._on_request: OnRequest | None = None
        self._ended: asyncio.Event | None = None
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<HttpTransport {self.name!r} {self._shown}>"

    # Life --------------------------------------------------------------------------------------------

    async def open(self, on_notification: OnNotification, on_request: OnRequest) -> None:
        """Get ready; the first connection is made by the first request."""
        if self._ended is not None:
            raise UsageError("this transport has been opened before", server=self.name)
        self._on_notification = on_notification
        self._on_request = on_request
        self._ended = asyncio.Event()

    def agreed(self, revision: Revision) -> None:
        """From here on requests name `revision`; where it has sessions, a GET opens a stream too."""
        self._revision = revision
        if self._told:
            self._listen(revision)

    async def close(self) -> None:
        """End the session and every connection. Safe from any task, in any order, twice."""
        if self._ended is None:
            self._ended = asyncio.Event()
        if self._closing is None:
            self._ended.set()
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        stopped = set(self._answering)
        if self._listener is not None:
            stopped.add(self._listener)
        for task in stopped:
            task.cancel()
        if self._requests.session is not None:
            self._start(self._leave(), self._telling)
        if self._telling:
            _, late = await asyncio.wait(self._telling, timeout=_GOODBYE)
            for task in late:
                task.cancel()
            stopped |= late
        await self._client.close()
        if stopped:
            await asyncio.wait(stopped)

    async def _leave(self) -> None:
        reply = await self._client.send(self._requests.leave(self._revision))
        reply.finish()

    def facts(self) -> Mapping[str, Any]:
        """The URL as it may be shown, whether a session is open, the revision, the connections."""
        return {
            "url": self._shown,
            "session": self._requests.session is not None,
            "revision": None if self._revision is None else self._revision.version,
            **self._client.facts(),
        }

    # Requests ----------------------------------------------------------------------------------------

    async def exchange(self, outgoing: Outgoing, on_notification: OnNotification | None = None) -> Response:
        """Send a request and await its response; see `base.Transport.exchange`.

        Raises:
            HttpError: an HTTP status without a JSON-RPC answer in the body.
            PeerFault: an answer that is none to this request.
            ClosedError, ConnectError: as `base.Transport`.
        """
        self._check_open()
        revision = None
        if outgoing.handshake:
            self._requests.session, self._told = None, False
        else:
            revision = outgoing.revision or self._revision
        if self._listening is not None:
            await self._listened(self._listening)
        request = self._requests.call(outgoing, revision)
        place = self._place()  # of the session in which it is sent: another one may be opened meanwhile
        try:
            if self.tap is not None:
                self.tap("out", outgoing.frame)
            reply = await self._client.send(request)
            try:
                return await self._answer(outgoing, reply, place=place, on_notification=on_notification)
            except BaseException:
                reply.abort()
                raise
        except asyncio.CancelledError:
            if request.sent and revision is not None:
                self._abandon(outgoing, revision)
            raise
        except LocalError as fault:
            self._name(fault)
            raise

    async def _answer(
        self, outgoing: Outgoing, reply: Reply, *, place: Place, on_notification: OnNotification | None
    ) -> Response:
        requests = self._requests
        revision = outgoing.revision or self._revision
        if outgoing.handshake and 200 <= reply.status < 300:
            requests.session = session_id(reply.headers)
            place = self._place()
        resumes = outgoing.handshake or (revision is not None and revision.http.sessions)
        reading = Reading(
            outgoing=outgoing,
            limits=self._limits,
            place=place,
            other=lambda message: self._hear(message, revision, on_notification=on_notification),
            again=self._get if resumes else None,
            pause=self._pause,
            tap=self.tap,
        )
        response = await read_answer(reply, reading)
        if outgoing.handshake and response.error is not None:
            requests.session = None
        return response

    async def notify(self, frame: bytes, revision: Revision | None) -> None:
        """POST a notification, which the server accepts with 202 (200 and 204 will do).

        Raises:
            HttpError: it did not accept it.
            ClosedError, ConnectError: as `base.Transport`.
        """
        self._check_open()
        try:
            await self._post(frame, revision or self._revision)
        except LocalError as fault:
            self._name(fault)
            raise
        self._told = True
        if self._revision is not None:
            self._listen(self._revision)

    async def _post(self, frame: bytes, revision: Revision | None) -> None:
        if self.tap is not None:
            self.tap("out", frame)
        place = self._place()
        reply = await self._client.send(self._requests.tell(frame, revision))
        if 200 <= reply.status < 300:
            reply.finish()
            return
        raise http_error(reply, await excerpt(reply, self._limits), place=place)

    # What the server says by itself --------------------------------------------------------------------

    def _listen(self, revision: Revision) -> None:
        if not revision.http.sessions or self._listener is not None:
            return
        listener = Listener(
            self._get,
            limits=self._limits,
            other=lambda message: self._hear(message, revision, on_notification=None),
            pause=self._pause,
            tap=self.tap,
            gap=self._gap,
        )
        self._listener = asyncio.get_running_loop().create_task(self._quietly(listener.run()))
        self._listening = listener.tried

    def _gap(self) -> None:
        if self.on_gap is not None and not (self._ended is not None and self._ended.is_set()):
            self.on_gap()

    async def _listened(self, tried: asyncio.Event) -> None:
        """Let the listening stream open: what servers say by it before, such as a question that belongs to
        a call, many of them drop. Some never send its head until they have something to say.
        """
        try:
            async with asyncio.timeout(_LISTENING):
                await tried.wait()
        except TimeoutError:
            log.debug("%s: the listening stream is slow to open", self.name)
        self._listening = None

    async def _get(self, last_id: str | None) -> Reply:
        return await self._client.send(self._requests.listen(last_id, self._revision))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of this transport."""
        try:
            async with asyncio.timeout(seconds):
                if self._ended is not None:
                    await self._ended.wait()
        except TimeoutError:
            return
        raise ClosedError("the connection was closed from this side", stage="call")

    def _hear(
        self, message: Message, revision: Revision | None, *, on_notification: OnNotification | None
    ) -> None:
        """A message that is not the answer somebody waits for."""
        if isinstance(message, Notification):
            deliver = on_notification or self._on_notification
            try:
                if deliver is not None:
                    deliver(message)
            except Exception:
                log.exception("%s: the handler of %s failed", self.name, message.method)
        elif isinstance(message, Request):
            if revision is None or revision.asks_inline:
                self._start(self._reply_to(message, revision), self._answering)
            else:
                log.warning("%s: %s: its revision has no requests from servers", self.name, message.method)
        elif isinstance(message, Response):
            log.warning("%s: an answer to a request that nobody made (id %r)", self.name, message.id)
        else:
            detail = getattr(message, "detail", "")
            log.warning("%s: what is no message was passed over: %s", self.name, detail)

    async def _reply_to(self, request: Request, revision: Revision | None) -> None:
        try:
            if self._on_request is None:
                return
            frame = await self._on_request(request)
        except Exception:
            log.exception("%s: the handler of %s failed", self.name, request.method)
            frame = encode_error(request.id, INTERNAL_ERROR, f"{request.method} could not be answered")
        await self._post(frame, revision)

    # Giving up a request -----------------------------------------------------------------------------

    def _abandon(self, outgoing: Outgoing, revision: Revision) -> None:
        """Tell the server, where the closed connection alone does not."""
        if revision.http.disconnect_cancels or self._closing is not None:
            return
        params = {"requestId": outgoing.id, "reason": "the caller gave it up"}
        frame = encode_notification("notifications/cancelled", params)
        self._start(self._bounded(self._post(frame, revision)), self._telling)

    async def _bounded(self, work: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(_GOODBYE):
            await work

    def _start(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._quietly(work))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _quietly(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (LocalError, TimeoutError) as exc:
            log.info("%s: %s", self.name, str(exc) or "the time for it ran out")

    def _check_open(self) -> None:
        if self._ended is None:
            raise UsageError("this transport has not been opened", server=self.name)
        if self._ended.is_set():
            raise ClosedError("the connection is closed", server=self.name, stage="call")

    def _place(self) -> Place:
        session = self._requests.session
        return Place(self._shown, self._requests.secrets, session is not None)

    def _name(self, fault: LocalError) -> None:
        """Say in an error which server it is about."""
        fault.server = fault.server or self.name
        fault.stage = fault.stage or "call"
