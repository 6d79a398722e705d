"""Models over HTTP, with the client that servers are reached with: one POST a request, events as they come.

It knows the endpoint of an API and no word of what is said. Faults that pass are waited for and tried again
as long as nothing of the answer was heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import quote, urlsplit

import msgspec

from dragoman.errors import ClosedError, ConnectError, LocalError, PeerFault
from dragoman.host.models.base import Api, Failed, Reader, TextDelta
from dragoman.host.provider.fault import Cover, ModelError, broken_off, refused
from dragoman.host.provider.talk import Heard, ModelRequest, Waiting
from dragoman.jsonrpc.framing import TooLong
from dragoman.protocol.sse import Event, Parser
from dragoman.transports.backoff import backoff
from dragoman.transports.http_base import Address, HttpOptions, HttpRequest, Reply, parse_address
from dragoman.transports.http_fault import EVENTS, EXCERPT, JSON, media_type, secrets_of
from dragoman.transports.http_head import check_headers
from dragoman.transports.http_pool import Pool
from dragoman.version import VERSION

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 8.0
_PATIENCE: Final = 60.0  # a server that wants to be left alone for longer is not waited for
_GRACE: Final = 2.0  # seconds for the end of a stream whose answer is whole
_STREAMS: Final = 4  # bodies of the largest size that a stream may come to: each event repeats much
_DONE: Final = b"[DONE]"
_PARTS: Final = ("content", "choices", "output", "candidates", "promptFeedback")

Hear = Callable[[Heard], None]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Service:
    """Where a model is served, and how it is asked. `key` is sent and never shown."""

    api: Api
    model: str
    base: str
    key: str | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stream: bool = True
    timeout: float = 120.0
    retries: int = 4
    http: HttpOptions = field(default_factory=HttpOptions)
    key_env: str | None = None

    def __repr__(self) -> str:
        return f"<Service {self.api.name} {self.model} {parse_address(self.base).shown}>"


class HttpSpeaker:
    """A `talk.Speaker` over HTTP."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._address = address_of(service)
        self._server = self._address.authority
        self._headers = headers_of(service, self._address)
        keys = [] if service.key is None else [service.key]
        self._cover = Cover([*keys, *secrets_of(self._headers), *self._address.secrets])
        self._pool: Pool | None = None

    def __repr__(self) -> str:
        return f"<HttpSpeaker {self._service!r}>"

    async def __aenter__(self) -> Self:
        self._pool = Pool(self._service.http)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def answer(self, request: ModelRequest, hear: Hear) -> Mapping[str, Any]:
        """See `talk.Speaker.answer`.

        Raises:
            ModelError: there is no answer, whatever the reason.
        """
        service = self._service
        body = service.api.request(
            model=service.model,
            history=request.history,
            tools=request.tools,
            system=request.system,
            limit=request.limit,
            stream=service.stream,
            more=service.more,
        )
        frame = msgspec.json.encode(body)
        attempt = 0
        while True:
            one = _Attempt(service.api, hear, server=self._server, cover=self._cover)
            try:
                return await self._once(frame, one)
            except ModelError as exc:
                pause = backoff(attempt, first=_FIRST_WAIT, most=_LONGEST_WAIT)
                seconds = pause if exc.retry_after is None else exc.retry_after
                attempt += 1
                again = exc.passing and not one.heard and attempt <= service.retries
                if not again or seconds > _PATIENCE:
                    raise
                hear(Waiting(attempt, seconds, exc.message))
                await asyncio.sleep(seconds)

    async def _once(self, frame: bytes, one: _Attempt) -> Mapping[str, Any]:
        assert self._pool is not None
        request = HttpRequest("POST", self._address, self._headers, frame, repeatable=True)
        reply: Reply | None = None
        try:
            async with asyncio.timeout(self._service.timeout):
                reply = await self._pool.send(request)
            return await self._read(reply, one)
        except TimeoutError:
            raise self._silent() from None
        except LocalError as exc:
            raise exc if isinstance(exc, ModelError) else self._lost(exc) from None
        finally:
            if reply is not None:
                reply.abort()  # nothing happens where the answer has ended

    async def _read(self, reply: Reply, one: _Attempt) -> Mapping[str, Any]:
        if not 200 <= reply.status < 300:
            raise await self._refused(reply)
        if media_type(reply.headers) != EVENTS:
            return one.whole(await self._body(reply))
        most = _STREAMS * self._service.http.max_body
        try:
            while not one.ended and not one.done and (data := await self._chunk(reply)):
                one.feed(data)
                if (most := most - len(data)) < 0:
                    raise PeerFault(
                        f"the answer has no end: more than {_STREAMS} times the largest body came"
                    )
            async with asyncio.timeout(_GRACE):  # for all of it: there are servers that never end
                while not one.ended and (data := await self._chunk(reply)):
                    one.feed(data)
        except (TimeoutError, ClosedError):
            if not one.done:
                raise
        return one.message()

    async def _chunk(self, reply: Reply) -> bytes:
        async with asyncio.timeout(self._service.timeout):
            return await reply.chunk()

    async def _body(self, reply: Reply) -> bytes:
        parts: list[bytes] = []
        size = 0
        while data := await self._chunk(reply):
            parts.append(data)
            size += len(data)
            if size > self._service.http.max_body:
                raise PeerFault(f"the answer is longer than {self._service.http.max_body} bytes")
        return b"".join(parts)

    async def _refused(self, reply: Reply) -> ModelError:
        body = b""
        try:
            while len(body) < EXCERPT and (data := await self._chunk(reply)):
                body += data
        except ClosedError:
            pass  # what came of it will do
        return refused(
            self._service.api,
            reply.status,
            server=self._server,
            headers=reply.headers,
            body=body,
            cover=self._cover,
        )

    def _silent(self) -> ModelError:
        text = f"no word from the server within {self._service.timeout:g} s"
        error = ModelError(text, server=self._server, hint="a longer timeout, for a model that thinks long")
        error.passing = True
        return error

    def _lost(self, exc: LocalError) -> ModelError:
        error = ModelError(self._cover(exc.message), server=self._server, hint=exc.hint)
        error.passing = isinstance(exc, ClosedError) or (isinstance(exc, ConnectError) and exc.passing)
        return error


class _Attempt:
    """One answer as it comes. `heard`: something of it was passed on, so that it cannot be had twice."""

    def __init__(self, api: Api, hear: Hear, *, server: str, cover: Cover) -> None:
        self._api = api
        self._hear = hear
        self._server = server
        self._cover = cover
        self._reader: Reader = api.reader()
        self._parser = Parser()
        self.heard = False
        self.ended = False  # the stream said so itself

    @property
    def done(self) -> bool:
        """Whether the answer is whole, even if the stream goes on."""
        return self._reader.done

    def feed(self, data: bytes) -> None:
        """Take a piece of the stream."""
        for event in self._parser.feed(data):
            if isinstance(event, TooLong):
                raise self._fault(f"an event is longer than {event.size} bytes")
            if event.data.strip() == _DONE:
                self.ended = True
            elif event.data:
                self._event(event)

    def _event(self, event: Event) -> None:
        for delta in self._reader.feed(self._object(event.data)):
            if isinstance(delta, Failed):
                raise broken_off(delta, server=self._server, cover=self._cover)
            self.heard = True
            self._hear(delta)

    def message(self) -> Mapping[str, Any]:
        """The whole of a stream that is over."""
        if self.done:
            return self._reader.message()
        error = self._fault("the stream ended before the answer did", hint="to ask again: nothing was called")
        error.passing = True
        raise error

    def whole(self, body: bytes) -> Mapping[str, Any]:
        """An answer that did not come as events."""
        message = self._object(body)
        failed = self._api.error(message)
        if failed is not None:
            raise broken_off(failed, server=self._server, cover=self._cover)
        if not any(part in message for part in _PARTS):
            raise self._fault(
                "what came is no answer of a model", hint="the base URL, and the API that is spoken there"
            )
        text = self._api.text(message)
        if text:
            self.heard = True
            self._hear(TextDelta(text))
        return message

    def _object(self, data: bytes) -> dict[str, Any]:
        try:
            value: object = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            said = self._cover(data[:EXCERPT].decode("utf-8", "replace"))
            raise self._fault(
                f"what came is no JSON: {said}", hint="the base URL, and the API that is spoken there"
            ) from None
        if not isinstance(value, dict):
            raise self._fault(f"what came is no object, but {type(value).__name__}")
        return cast("dict[str, Any]", value)

    def _fault(self, text: str, *, hint: str | None = None) -> ModelError:
        return ModelError(text, server=self._server, hint=hint)


def address_of(service: Service) -> Address:
    """Where requests go: the base URL with the API's path, which may have its beginning in common with it."""
    endpoint = service.api.endpoint
    path = endpoint.streamed if service.stream else endpoint.path
    path = path.replace("{model}", quote(service.model, safe="-._~"))
    base = service.base.rstrip("/")
    if not urlsplit(base).path:  # a server named by host and port alone
        base += urlsplit(endpoint.url).path.rstrip("/")
    version = "/" + path.split("/")[1]  # `/v1`, with which the base URLs of many local servers end
    if base.endswith(version):
        base = base.removesuffix(version)
    return parse_address(base + path)


def headers_of(service: Service, address: Address) -> list[tuple[str, str]]:
    """The headers of every request, the caller's own last and in place of ours."""
    endpoint = service.api.endpoint
    headers = {
        "content-type": JSON,
        "accept": EVENTS if service.stream else JSON,
        "accept-encoding": "identity",
        "user-agent": f"dragoman/{VERSION}",
        **{name.lower(): value for name, value in endpoint.headers.items()},
    }
    if address.credentials:
        headers["authorization"] = address.credentials
    if service.key is not None:
        headers[endpoint.key_header.lower()] = endpoint.key_prefix + service.key
    headers.update((name.lower(), value) for name, value in check_headers(service.headers))
    return list(headers.items())
