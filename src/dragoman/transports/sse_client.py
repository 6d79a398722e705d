"""HTTP with SSE as a client speaks it (2024-11-05, Transports): the way to servers that know no newer one.

One GET opens a stream, whose first event says where to POST; every answer comes on the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin

from msgspec.structs import replace

from dragoman.errors import ClosedError, LocalError, PeerFault
from dragoman.jsonrpc.framing import TooLong
from dragoman.jsonrpc.message import Limits
from dragoman.protocol.sse import Event, Parser
from dragoman.transports.channel import Channel
from dragoman.transports.http_answer import excerpt
from dragoman.transports.http_base import Address, HttpOptions, Reply, parse_address, shown_url
from dragoman.transports.http_fault import EVENTS, Place, http_error, media_type
from dragoman.transports.http_head import Requests
from dragoman.transports.http_pool import Pool

_ENDPOINT: Final = 10.0  # seconds for the first event of the stream


class SseTransport(Channel):
    """The way to a server of the older transport; `url` is that of its stream.

    `headers` go with every request. A server may send its client to no other origin than its own.

    Raises:
        UsageError: the URL or a header cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        options: HttpOptions | None = None,
    ) -> None:
        options = options or HttpOptions()
        self._address = parse_address(url)
        self._headers = headers or {}
        self._stream = Requests(self._address, self._headers)
        self._posts: Requests | None = None
        self._client = Pool(options)
        self._url = url
        self._listening: asyncio.Task[None] | None = None
        super().__init__(name or self._address.authority, limits=Limits(max_bytes=options.max_body))

    def __repr__(self) -> str:
        return f"<SseTransport {self.name!r} {self._address.shown}>"

    def facts(self) -> Mapping[str, Any]:
        """The URL as it may be shown, the connections, and what the server did that it should not."""
        return {"transport": "sse", "url": self._address.shown, **self._client.facts(), **super().facts()}

    # Life --------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        reply = await self._client.send(self._stream.listen(None, None))
        if reply.status != 200 or media_type(reply.headers) != EVENTS:
            raise http_error(reply, await excerpt(reply, self._limits), place=self._place())
        endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._listening = asyncio.get_running_loop().create_task(self._listen(reply, endpoint))
        try:
            async with asyncio.timeout(_ENDPOINT):
                both: set[asyncio.Future[Any]] = {endpoint, self._listening}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            pass
        if not endpoint.done():
            await self._disconnect()
            raise PeerFault("the event stream does not begin with the event `endpoint`")
        try:
            address = self._endpoint(endpoint.result())
        except BaseException:
            await self._disconnect()
            raise
        self._posts = Requests(address, self._headers)

    def _endpoint(self, where: str) -> Address:
        address = parse_address(urljoin(self._url, where))
        if address.origin != self._address.origin:
            raise PeerFault(f"the server sends its client to another origin: {shown_url(where)}")
        return replace(address, credentials=self._address.credentials)

    async def _disconnect(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        await self._client.close()

    # Messages ----------------------------------------------------------------------------------------

    async def _listen(self, reply: Reply, endpoint: asyncio.Future[str]) -> None:
        parser = Parser(self._limits.max_bytes)
        why = "the server ended the event stream"
        try:
            while data := await reply.chunk():
                for event in parser.feed(data):
                    self._heard(event, endpoint)
        except ClosedError as exc:
            why = exc.message
        finally:
            reply.abort()
            self._over(why)

    def _heard(self, event: Event | TooLong, endpoint: asyncio.Future[str]) -> None:
        if isinstance(event, TooLong):
            self._too_long(event)
        elif event.event == "endpoint":
            if not endpoint.done():
                endpoint.set_result(event.data.decode("utf-8", "replace").strip())
        elif event.data and event.event in (None, "message"):
            self._receive(event.data)

    async def _transmit(self, frame: bytes) -> None:
        assert self._posts is not None  # there is no `exchange` before `_connect`
        reply = await self._client.send(self._posts.tell(frame, None))
        if 200 <= reply.status < 300:
            reply.finish()
            return
        raise self._refused(http_error(reply, await excerpt(reply, self._limits), place=self._place()))

    def _refused(self, fault: LocalError) -> LocalError:
        fault.undelivered = True  # messages are accepted, or they are not
        return fault

    def _place(self) -> Place:
        secrets = self._stream.secrets if self._posts is None else self._posts.secrets
        return Place(self._address.shown, secrets)
