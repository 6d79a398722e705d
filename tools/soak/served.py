"""A server that breaks in the way that a call asks for: over stdio or HTTP, in one of two revisions.

    python -m tools.soak.served stdio|http REVISION NAME LEDGER [PORT]

It is written apart from the package, as the specification has it. LEDGER gets the number of each call that
it worked on, a line each; a call that it has met before is served well. Over HTTP its port is on its
stdout, and it ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from .faults import NEW, STDIO

LATE: Final = 2.6  # seconds, longer than a call of the soak waits
STALL: Final = 0.8
HUNG: Final = 4.0  # over HTTP, after which it ends; over stdio whoever started it has to see to that
_NOTICE: Final = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
_FLOOD: Final = 300

Message = dict[str, Any]


class Kernel:
    """What the server answers, whatever it is that it breaks."""

    def __init__(self, revision: str, name: str, ledger: Path) -> None:
        self.revision = revision
        self.name = name
        self.met = {int(line) for line in ledger.read_text().split()} if ledger.exists() else set[int]()
        self._ledger = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def fault(self, message: Message) -> str:
        """The fault that this call asks for, "" for none; one that was met before is served well."""
        arguments = message["params"]["arguments"]
        return "" if arguments["number"] in self.met else str(arguments["fault"])

    def work(self, message: Message) -> None:
        """Do what the call is for: once, as far as this server can tell."""
        number = message["params"]["arguments"]["number"]
        self.met.add(number)
        os.write(self._ledger, b"%d\n" % number)

    def answer(self, message: Message, fault: str = "") -> bytes:
        """The answer to a request of any method, on one line."""
        answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
        method = message["method"]
        if method == "tools/call":
            if fault == "error":
                answer["error"] = {"code": -32000, "message": "out of paper", "data": {"tray": 2}}
            else:
                answer["result"] = self._called(message, fault)
        else:
            found = self._greeting(method)
            answer |= {"error": {"code": -32601, "message": "Method not found"}} if found is None else found
        return json.dumps(answer, ensure_ascii=False).encode()

    def _called(self, message: Message, fault: str) -> Message:
        text = f"{self.name} {message['params']['arguments']['number']}"
        if fault == "separators":
            text += " \u2028\u2029\x85 서울"
        result: Message = {"content": [{"type": "text", "text": text}]}
        return self._result({**result, "isError": True} if fault == "tool error" else result)

    def _result(self, result: Message) -> Message:
        return {"resultType": "complete", **result} if self.revision == NEW else result

    def _greeting(self, method: str) -> Message | None:
        fresh = {"ttlMs": 3_600_000, "cacheScope": "private"} if self.revision == NEW else {}
        if method == "tools/list":
            schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
            look = {"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
            return {"result": self._result({"tools": [{"name": "do", "inputSchema": schema}, look], **fresh})}
        if method == "server/discover" and self.revision == NEW:
            found: Message = {"supportedVersions": [NEW], "capabilities": {"tools": {}}, **fresh}
            return {"result": self._result(found)}
        if self.revision == NEW:
            return None
        if method == "initialize":
            info = {"name": self.name, "version": "1"}
            hello: Message = {
                "protocolVersion": self.revision,
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
            return {"result": hello}
        return {"result": {}} if method == "ping" else None


def killed() -> None:
    """End as a process does that the system, or a person, kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang() -> None:
    """Do nothing more, for ever, and take no hint to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


# Over stdio ----------------------------------------------------------------------------------------


class Stdio:
    """One message a line; the faults are methods, by name."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._later: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Until the end of stdin."""
        reader = asyncio.StreamReader(limit=1 << 24)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue
            if message["method"] == "tools/call":
                self._call(message)
            else:
                self._write(self._kernel.answer(message) + b"\n")

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(1, data) :]

    def _call(self, message: Message) -> None:
        fault = self._kernel.fault(message)
        self._kernel.work(message)
        answer = self._kernel.answer(message, fault)
        line = answer + b"\n"
        shaped = {
            "flood": (_NOTICE + b"\n") * _FLOOD + line,
            "garbage": b"Server ready!\n{not json\n\n[]\n" + line,
            "half a line": line[: len(line) // 2] + b"\n",
            "bad byte": line.replace(b'"text": "', b'"text": "\xff'),
            "wrong id": self._kernel.answer({**message, "id": message["id"] + 1_000_000}) + b"\n" + line,
            "twice": line * 2,
            "id as text": self._kernel.answer({**message, "id": str(message["id"])}) + b"\n",
            "CRLF and BOM": b"\xef\xbb\xbf" + answer + b"\r\n",
            "silent": b"",
        }
        if fault in ("slow", "late"):
            pause = LATE if fault == "late" else 0.05 + message["id"] % 20 / 20
            self._later.add(task := asyncio.create_task(self._after(pause, line)))
            task.add_done_callback(self._later.discard)
        elif fault in shaped:
            self._write(shaped[fault])
        else:
            self._break(fault, line)

    async def _after(self, pause: float, line: bytes) -> None:
        await asyncio.sleep(pause)
        self._write(line)

    def _break(self, fault: str, line: bytes) -> None:
        """What the whole server suffers; and what breaks nothing."""
        if fault == "killed":
            killed()
        elif fault == "dies during":
            self._write(line[: len(line) // 2])
            os._exit(4)
        elif fault == "hangs":
            hang()
        elif fault == "closes stdout":
            os.close(1)
            hang()
        elif fault == "stall":
            time.sleep(STALL)
        self._write(line)
        if fault == "dies after":
            os._exit(5)


# Over HTTP -----------------------------------------------------------------------------------------

_HEAD: Final = b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n"
_STREAM: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
_JSON: Final = b"application/json"
_TEXT: Final = b"text/plain"


class Broken(Exception):
    """The connection is to be cut here."""


class Exchange:
    """One request over HTTP and the ways to answer it."""

    def __init__(self, head: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.split("\r\n")
        self.method = first.split(" ")[0]
        self.fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        self.body = body
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
        await self.send(_STREAM + b"".join(b"data: " + message + b"\n\n" for message in messages))
        raise Broken

    def reset(self) -> None:
        """End the connection without a word."""
        self._writer.transport.abort()
        raise Broken


class Http:
    """One server over HTTP, with a session where the revision has them."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._session = 0
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
                await self._serve(Exchange(head, await reader.readexactly(length), writer))
        writer.close()

    @property
    def _name(self) -> str:
        return f"{self._own}-{self._session}"

    async def _serve(self, asked: Exchange) -> None:
        message: Message = json.loads(asked.body) if asked.body else {}
        named = asked.fields.get("mcp-session-id")
        if asked.method != "POST":
            await asked.reply(200 if asked.method == "DELETE" else 405)
        elif named is not None and named != self._name:
            await asked.reply(404, b"no such session", kind=_TEXT, reason=b"Not Found")
        elif "id" not in message or "method" not in message:
            await asked.reply(202)
        elif message["method"] == "tools/call":
            await self._call(asked, message)
        else:
            answer = self._kernel.answer(message)
            unknown = self._kernel.revision != NEW and message["method"] == "server/discover"
            extra = (
                b"Mcp-Session-Id: %b\r\n" % self._name.encode() if message["method"] == "initialize" else b""
            )
            await asked.reply(400 if unknown else 200, answer, extra=extra)

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
    await asked.stream(*[_NOTICE] * _FLOOD, answer)


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


async def serve_http(kernel: Kernel, port: int) -> None:
    """Until the end of stdin."""
    server = await asyncio.start_server(Http(kernel).connected, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    await reader.read()
    os._exit(0)


def main() -> None:
    transport, revision, name, ledger, *port = sys.argv[1:]
    kernel = Kernel(revision, name, Path(ledger))
    if transport == STDIO:
        asyncio.run(Stdio(kernel).serve())
    else:
        asyncio.run(serve_http(kernel, int(port[0]) if port else 0))


if __name__ == "__main__":
    main()
