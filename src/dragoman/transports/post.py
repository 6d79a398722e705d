"""JSON-RPC over HTTP POST as a plain ASGI application: one body in, one body out.

It refuses to know methods, and it cannot ask or tell the caller anything but the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, NoReturn, TypeAlias

from dragoman.errors import UsageError
from dragoman.jsonrpc.message import encode_invalid, too_large
from dragoman.jsonrpc.peer import NotificationReceived, Peer, Reply, RequestReceived
from dragoman.jsonrpc.service import Service
from dragoman.transports.runner import Options, Runner

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
_JSON_TYPES: Final = (JSON, b"application/json-rpc", b"application/jsonrequest")


class HttpService:
    """`service` behind HTTP POST, on whatever path it is mounted.

    Answers 200 with the JSON-RPC answer, errors included, and 204 where nothing is owed; 405 for
    other methods, 413 above the size limit, 415 unless the body is `application/json`: a web page
    can make a browser send any other type across origins without asking first. A caller that
    disconnects cancels what it asked for.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._post(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._service.limits.max_bytes
        headers = {name.lower(): value for name, value in scope["headers"]}
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if scope["method"] != "POST":
            text = f"JSON-RPC is served by POST: expected POST, received {scope['method']}\n"
            await _send(send, 405, body=text.encode(), media_type=TEXT)
            return
        if media_type not in _JSON_TYPES:
            await _send(send, 415, body=b"Content-Type: expected application/json\n", media_type=TEXT)
            return
        body = await _body(receive, limit)
        if body is None:
            return
        if len(body) > limit:
            invalid = too_large(len(body), limit, head=body)
            await _send(send, 413, body=encode_invalid(invalid, self._service.details))
            return
        post = _Post(self._service, body)
        if post.runner.busy and not await _finish(post.runner, receive):
            return
        await _send(send, 200 if post.answer else 204, body=post.answer)


class _Post:
    """One body, and the one answer to it."""

    def __init__(self, service: Service, body: bytes) -> None:
        self.answer = b""
        options = Options(max_in_flight=service.limits.max_batch, drain_seconds=None)
        peer = Peer(service.limits, details=service.details)
        self.runner = Runner(
            service, peer, options=options, send=self._send, ask=_ask, tell=_tell, freed=lambda: None
        )
        for event in peer.receive(body):
            if isinstance(event, RequestReceived):
                self.runner.request(event)
            elif isinstance(event, NotificationReceived):
                self.runner.notification(event)
            elif isinstance(event, Reply):
                self._send(event.frame)

    def _send(self, frame: bytes) -> None:
        self.answer = frame or self.answer


def _tell(method: str, params: Any) -> bool:
    return False


def _ask(method: str, params: Any) -> NoReturn:
    raise UsageError(f"the caller cannot be asked for {method!r}: an HTTP answer carries nothing else")


async def _finish(runner: Runner, receive: Receive) -> bool:
    """Wait for the answer; False when the caller went away first, and the work is cancelled."""
    work = asyncio.ensure_future(runner.finish())
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        if not work.done():
            runner.stop()
        gone.cancel()
        await asyncio.wait((work, gone))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The body, or the first bytes of one beyond the limit; None when the caller went away."""
    parts: list[bytes] = []
    size = 0
    while size <= limit:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if not event.get("more_body", False):
            break
    return b"".join(parts)


async def _send(send: Send, status: int, *, body: bytes, media_type: bytes = JSON) -> None:
    headers = [(b"content-type", media_type), (b"content-length", str(len(body)).encode())] if body else []
    if status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Nothing to start and nothing to stop: say so, since some servers insist."""
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
