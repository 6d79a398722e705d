"""The faulty server over HTTP: sessions where the revision has them, and streams to listen to."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from .faults import NEW
from .kernel import FLOOD, HUNG, LATE, LISTEN, NOTICE, STALL, Kernel, Message, killed

_HEAD: Final = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n"
_STREAM: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def _event(message: bytes) -> bytes:
    return b"data: " + message + b"\n\n"


_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain"


class Broken(Exception):
    """The connection is to be cut here."""


class Exchange:
    """One request over HTTP and the ways to answer it."""

    def __init__(
        self, head: str, body: bytes, *, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first, *lines = head.split("\r\n")
        self.method = first.split(" ")[0]
        self.fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        self.body = body
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """These bytes, at once."""
        self._writer.write(data)
        await self._writer.drain()

    async def reply(
        self,
        status: int,
        body: bytes = b"",
        *,
        kind: bytes = _JSON,
        extra: bytes = b"",
        reason: bytes = b"OK",
    ) -> None:
        """A whole answer."""
        await self.send(_HEAD % (status, reason, kind, len(body), extra) + body)

    async def stream(self, *messages: bytes) -> None:
        """An event stream, up to its end."""
        await self.send(_STREAM + b"".join(map(_event, messages)))
        raise Broken

    async def listened(self, first: bytes | None) -> None:
        """An event stream that stays open until the client leaves, or it is cut."""
        await self.send(_STREAM + (b"" if first is None else _event(first)))
        await self._reader.read(1)

    def tell(self, message: bytes) -> None:
        """One more event of it."""
        self._writer.write(_event(message))

    def abort(self) -> None:
        """Cut the connection."""
        self._writer.transport.abort()

    def reset(self) -> None:
        """End the connection without a word."""
        self.abort()
        raise Broken


class Http:
    """One server over HTTP, with a session where the revision has them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._session = 0
        self._listening: set[Exchange] = set()
        # Sessions are those of this process, so that one of an earlier process is not known.
        self._own = os.getpid()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        with suppress(Broken, ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip()
                length = 0
                for line in head.split("\r\n"):
                    name, _, value = line.partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                body = await reader.readexactly(length)
                await self._serve(Exchange(head, body, reader=reader, writer=writer))
        writer.close()

    @property
    def _name(self) -> str:
        return f"{self._own}-{self._session}"

    async def _serve(self, asked: Exchange) -> None:
        message: Message = json.loads(asked.body) if asked.body else {}
        named = asked.fields.get("mcp-session-id")
        if named is not None and named != self._name:
            await asked.reply(404, b"no such session", kind=_TEXT, reason=b"Not Found")
        elif asked.method == "GET" and self._kernel.revision != NEW:
            await self._listen(asked, id(asked), None)
        elif asked.method != "POST":
            await asked.reply(200 if asked.method == "DELETE" else 405)
        elif "id" not in message or "method" not in message:
            await asked.reply(202)
        elif message["method"] == "tools/call":
            await self._call(asked, message)
        elif message["method"] == LISTEN and self._kernel.revision == NEW:
            await self._listen(asked, message["id"], self._kernel.acknowledge(message))
        else:
            answer = self._kernel.answer(message)
            unknown = self._kernel.revision != NEW and message["method"] == "server/discover"
            extra = (
                b"Mcp-Session-Id: %b\r\n" % self._name.encode() if message["method"] == "initialize" else b""
            )
            await asked.reply(400 if unknown else 200, answer, extra=extra)

    async def _listen(self, asked: Exchange, id_: int | str, first: bytes | None) -> None:
        self._kernel.listeners[id_] = asked.tell
        self._listening.add(asked)
        try:
            await asked.listened(first)
        finally:
            self._listening.discard(asked)
            if self._kernel.listeners.get(id_) == asked.tell:
                del self._kernel.listeners[id_]
        raise Broken

    async def _call(self, asked: Exchange, message: Message) -> None:
        fault = self._kernel.fault(message)
        if fault == "session lost":
            self._session += 1
            self._kernel.met.add(message["params"]["arguments"]["number"])
            await asked.reply(404, b"no such session", kind=_TEXT, reason=b"Not Found")
            return
        if fault.startswith("503"):
            self._kernel.met.add(message["params"]["arguments"]["number"])
            extra = b"Retry-After: 1\r\n" if fault == "503 and when" else b""
            await asked.reply(503, b"not now", kind=_TEXT, reason=b"Unavailable", extra=extra)
            return
        if fault == "list changed":
            self._kernel.changed()
        elif fault == "streams cut":
            for listening in list(self._listening):
                listening.abort()
        self._kernel.work(message)
        await self._answer(asked, message, fault)

    async def _answer(self, asked: Exchange, message: Message, fault: str) -> None:
        answer = self._kernel.answer(message, fault)
        breaks = _BREAKS.get(fault)
        if breaks is not None:
            await breaks(asked, answer)
        if fault == "wrong id":
            await asked.reply(200, self._kernel.answer({**message, "id": message["id"] + 1_000_000}))
        elif message["params"]["arguments"]["number"] % 4 == 0:
            await asked.stream(answer)
        else:
            await asked.reply(200, answer)


async def _dies_during(asked: Exchange, answer: bytes) -> None:
    await asked.send(_HEAD % (200, b"OK", _JSON, len(answer), b"") + answer[:20])
    os._exit(4)


async def _dies_after(asked: Exchange, answer: bytes) -> None:
    await asked.reply(200, answer)
    asyncio.get_running_loop().call_later(0.05, os._exit, 5)
    raise Broken


async def _killed(asked: Exchange, answer: bytes) -> None:
    del asked, answer
    killed()


async def _hangs(asked: Exchange, answer: bytes) -> None:
    del asked, answer
    time.sleep(HUNG)  # noqa: ASYNC251  # the whole server is to stand still, until somebody sees it
    os._exit(6)


async def _stall(asked: Exchange, answer: bytes) -> None:
    del asked, answer
    time.sleep(STALL)  # noqa: ASYNC251  # the whole server is to stand still


async def _slow(asked: Exchange, answer: bytes) -> None:
    del asked
    await asyncio.sleep(0.05 + len(answer) % 20 / 20)


async def _late(asked: Exchange, answer: bytes) -> None:
    del asked, answer
    await asyncio.sleep(LATE)


async def _silent(asked: Exchange, answer: bytes) -> None:
    del asked, answer
    await asyncio.sleep(60)


async def _reset(asked: Exchange, answer: bytes) -> None:
    del answer
    asked.reset()


async def _cut_head(asked: Exchange, answer: bytes) -> None:
    del answer
    await asked.send(b"HTTP/1.1 200 OK\r\nConte")
    raise Broken


async def _cut_body(asked: Exchange, answer: bytes) -> None:
    await asked.send(_HEAD % (200, b"OK", _JSON, len(answer), b"") + answer[:20])
    raise Broken


async def _cut_stream(asked: Exchange, answer: bytes) -> None:
    await asked.send(_STREAM + b"data: " + answer[:20])
    raise Broken


async def _cut_in_bytes(asked: Exchange, answer: bytes) -> None:
    await asked.send(_STREAM)
    for byte in b"\xef\xbb\xbf: hello\r\ndata: " + answer + b"\r\n\r\n":
        await asked.send(bytes([byte]))
        await asyncio.sleep(0)
    raise Broken


async def _twice(asked: Exchange, answer: bytes) -> None:
    await asked.stream(answer, answer)


async def _flood(asked: Exchange, answer: bytes) -> None:
    await asked.stream(*[NOTICE] * FLOOD, answer)


async def _garbage(asked: Exchange, answer: bytes) -> None:
    await asked.reply(200, b"{not json" + answer[:10])
    raise Broken


async def _page(asked: Exchange, answer: bytes) -> None:
    del answer
    await asked.reply(200, b"<!DOCTYPE html><p>Log in", kind=b"text/html")
    raise Broken


async def _redirect(asked: Exchange, answer: bytes) -> None:
    del answer
    await asked.reply(307, extra=b"Location: /elsewhere\r\n", reason=b"Temporary Redirect")
    raise Broken


async def _error_500(asked: Exchange, answer: bytes) -> None:
    del answer
    await asked.reply(500, b"it broke", kind=_TEXT, reason=b"Internal Server Error")
    raise Broken


# Those that return have spoiled nothing but time; the others raise or end the process.
_BREAKS: Final[dict[str, Callable[[Exchange, bytes], Awaitable[None]]]] = {
    "killed": _killed,
    "dies during": _dies_during,
    "dies after": _dies_after,
    "hangs": _hangs,
    "stall": _stall,
    "slow": _slow,
    "late": _late,
    "silent": _silent,
    "reset": _reset,
    "cut head": _cut_head,
    "cut body": _cut_body,
    "cut stream": _cut_stream,
    "cut in bytes": _cut_in_bytes,
    "twice": _twice,
    "flood": _flood,
    "garbage": _garbage,
    "page": _page,
    "redirect": _redirect,
    "500": _error_500,
}
