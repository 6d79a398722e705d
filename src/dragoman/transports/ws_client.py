"""WebSocket as a client speaks it (RFC 6455): one JSON-RPC message in each text message.

No revision of MCP describes it; configurations have it, with the subprotocol `mcp`. Frames are read and
written in `ws_frames`.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from dragoman.errors import ConnectError, PeerFault, UsageError
from dragoman.jsonrpc.framing import TooLong
from dragoman.jsonrpc.message import Limits
from dragoman.transports.channel import Channel
from dragoman.transports.http_base import Address, HttpOptions, parse_address
from dragoman.transports.http_fault import Place, http_error, secrets_of
from dragoman.transports.http_head import check_headers
from dragoman.transports.http_pool import tls_context, unreachable
from dragoman.transports.http_proxy import choose_proxy, connect_request, place, refused
from dragoman.transports.ws_frames import BINARY, CLOSE, PING, PONG, TEXT, Frame, Frames, encode
from dragoman.version import VERSION

SCHEMES: Final = {"ws": "http", "wss": "https"}
_SUBPROTOCOL: Final = "mcp"
_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_CHUNK: Final = 64 * 1024
_GOODBYE: Final = 1.0  # seconds for the closing handshake
_NORMAL: Final = (1000).to_bytes(2, "big")
_BROKEN: Final = (1002).to_bytes(2, "big")
_SWITCHING: Final = 101


class _Head(msgspec.Struct):
    """The answer to the request for an upgrade."""

    status: int
    reason: str
    headers: dict[str, str]


class WebSocketTransport(Channel):
    """The way to a server at a `ws` or `wss` URL. `headers` go with the request that opens it.

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
        self._options = options or HttpOptions()
        self._address = parse_ws(url)
        self._given = check_headers(headers or {})
        if self._address.credentials and "authorization" not in {key.lower() for key, _ in self._given}:
            self._given.append(("Authorization", self._address.credentials))
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._left = False
        super().__init__(name or self._address.authority, limits=Limits(max_bytes=self._options.max_body))

    def __repr__(self) -> str:
        return f"<WebSocketTransport {self.name!r} {self._address.shown}>"

    def facts(self) -> Mapping[str, Any]:
        """The URL as it may be shown, and what the server did that it should not."""
        return {"transport": "ws", "url": self._address.shown, **super().facts()}

    # Life --------------------------------------------------------------------------------------------

    async def _connect(self) -> None:
        address, limit = self._address, self._options.connect_timeout
        via = choose_proxy(address, self._options, environ=os.environ)
        try:
            async with asyncio.timeout(limit):
                self._reader, self._writer = await self._dial(address, via)
                await self._upgrade(self._reader, self._writer)
        except OSError as exc:
            self._drop()
            raise unreachable(place(address, via), exc, limit=limit) from exc
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            self._drop()
            raise PeerFault("what came back is no answer to a WebSocket handshake") from None
        except BaseException:
            self._drop()
            raise
        self._listening = asyncio.get_running_loop().create_task(self._listen(self._reader))

    async def _dial(
        self, address: Address, via: Address | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = tls_context(self._options) if address.scheme == "https" else None
        if via is None:
            return await asyncio.open_connection(address.host, address.port, ssl=context)
        outer = tls_context(self._options) if via.scheme == "https" else None
        reader, writer = await asyncio.open_connection(via.host, via.port, ssl=outer)
        try:
            writer.write(connect_request(address, via))
            status = await _tunnelled(reader, via)
            if status != 200:
                raise refused(address, via, status=status)
            if context is not None:
                await writer.start_tls(context, server_hostname=address.host)
        except BaseException:
            writer.transport.abort()
            raise
        return reader, writer

    async def _upgrade(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key = base64.b64encode(os.urandom(16))
        fields = [
            ("Host", self._address.authority),
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Key", key.decode("ascii")),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Protocol", _SUBPROTOCOL),
            *self._given,
        ]
        if "user-agent" not in {name.lower() for name, _ in self._given}:
            fields.append(("User-Agent", f"dragoman/{VERSION}"))
        writer.write(_request(f"GET {self._address.target}", fields))
        head = await _read_head(reader)
        if head.status != _SWITCHING:
            place = Place(self._address.shown, [*secrets_of(self._given), *self._address.secrets])
            raise http_error(head, b"", place=place)
        expected = base64.b64encode(hashlib.sha1(key + _MAGIC, usedforsecurity=False).digest()).decode(
            "ascii"
        )
        if head.headers.get("sec-websocket-accept") != expected:
            raise PeerFault("the server's answer to the WebSocket handshake is not for this request")
        chosen = head.headers.get("sec-websocket-protocol", _SUBPROTOCOL)
        if chosen != _SUBPROTOCOL or "sec-websocket-extensions" in head.headers:
            raise PeerFault("the server chose a WebSocket subprotocol or extension that was not offered")

    async def _disconnect(self) -> None:
        writer, listening = self._writer, self._listening
        if writer is not None and not writer.is_closing():
            self._send(CLOSE, _NORMAL)
            if listening is not None and not listening.done():
                await asyncio.wait({listening}, timeout=_GOODBYE)
        if listening is not None:
            listening.cancel()
            await asyncio.wait({listening})
        self._drop()
        await asyncio.sleep(0)  # the loop lets go of the socket in its next turn

    def _drop(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()

    # Messages ----------------------------------------------------------------------------------------

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        frames = Frames(self._limits.max_bytes)
        why = "the server closed the connection"
        try:
            while data := await reader.read(_CHUNK):
                for frame in frames.feed(data):
                    if isinstance(frame, TooLong):
                        self._too_long(frame)
                    elif frame.kind == CLOSE:
                        self._send(CLOSE, frame.payload[:2])
                        why = _reason(frame)
                        return
                    else:
                        self._heard(frame)
        except PeerFault as exc:
            why = exc.message
            self._send(CLOSE, _BROKEN)
        except OSError as exc:
            why = f"the connection broke ({exc.strerror or type(exc).__name__})"
        finally:
            self._over(why)
            if self._writer is not None:
                self._writer.close()

    def _heard(self, frame: Frame) -> None:
        if frame.kind == PING:
            self._send(PONG, frame.payload)
        elif frame.kind in (TEXT, BINARY):
            self._receive(frame.payload)

    async def _transmit(self, frame: bytes) -> None:
        self._send(TEXT, frame)
        if self._writer is not None:
            with suppress(OSError):  # whoever waits for an answer hears of it by the end of what comes in
                await self._writer.drain()

    def _send(self, kind: int, payload: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing() and not self._left:
            self._left = kind == CLOSE  # after it nothing is sent (RFC 6455, 5.5.1)
            self._writer.write(encode(kind, payload, mask=os.urandom(4)))


def parse_ws(url: str) -> Address:
    """Take a `ws` or `wss` URL apart; its scheme becomes that of HTTP, by which it is opened.

    Raises:
        UsageError: it is none.
    """
    scheme, _, rest = url.partition("://")
    known = SCHEMES.get(scheme.lower())
    if known is None:
        raise UsageError(f"URL: expected ws or wss, received the scheme {scheme[:20]!r}")
    address = parse_address(f"{known}://{rest}")
    return replace(address, shown=scheme.lower() + address.shown.removeprefix(known))


def _request(line: str, fields: list[tuple[str, str]]) -> bytes:
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _tunnelled(reader: asyncio.StreamReader, via: Address) -> int:
    """The status with which a proxy answers."""
    try:
        return (await _read_head(reader)).status
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise ConnectError(f"the proxy {via.shown} gave no answer that is HTTP", stage="connect") from None


async def _read_head(reader: asyncio.StreamReader) -> _Head:
    """Status and headers of an answer; raises ValueError for what is none."""
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = text.split("\r\n")
    protocol, status, *reason = first.split(" ", 2)
    if not protocol.startswith("HTTP/1.") or not status.isdigit():
        raise ValueError(first)
    pairs = [line.partition(":") for line in lines if line]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return _Head(int(status), "".join(reason), headers)


def _reason(frame: Frame) -> str:
    code = int.from_bytes(frame.payload[:2], "big") if len(frame.payload) > 1 else None
    said = frame.payload[2:].decode("utf-8", "replace")
    text = "the server closed the connection"
    if code is not None:
        text += f" (code {code}{f': {said!a}' if said else ''})"
    return text
