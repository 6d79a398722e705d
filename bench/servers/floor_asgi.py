"""The floor over HTTP: a bare ASGI app under uvicorn, with no check of any header.

`--raw` serves the same answers without ASGI, by httptools on a bare asyncio protocol: what the
clients are measured against.
"""

from __future__ import annotations

import asyncio
import sys

from answers import answer, option

PORT = option("--http", 0)
JSON = (b"content-type", b"application/json")
STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


async def app(scope: dict, receive, send) -> None:
    if scope["type"] != "http":
        return
    message = await receive()
    body = message["body"]
    if message.get("more_body"):
        parts = [body]
        while message.get("more_body"):
            message = await receive()
            parts.append(message["body"])
        body = b"".join(parts)
    if b'"subscriptions/listen"' in body:
        await listen(receive, send)
        return
    frame = answer(body) or b""
    headers = [JSON, (b"content-length", b"%d" % len(frame))]
    status = 200 if frame else 202
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": frame})


async def listen(receive, send) -> None:
    told = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}'
    await send({"type": "http.response.start", "status": 200, "headers": STREAM})
    await send({"type": "http.response.body", "body": b"data: " + told + b"\n\n", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass


def serve_raw() -> None:
    import httptools

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            self.transport = transport
            self.parser = httptools.HttpRequestParser(self)
            self.body: list[bytes] = []

        def data_received(self, data: bytes) -> None:
            self.parser.feed_data(data)

        def on_body(self, data: bytes) -> None:
            self.body.append(data)

        def on_message_complete(self) -> None:
            method = self.parser.get_method()
            frame = answer(b"".join(self.body)) if method == b"POST" else None
            self.body.clear()
            if method != b"POST":
                head = b"HTTP/1.1 405 Method Not Allowed\r\nallow: POST\r\ncontent-length: 0\r\n\r\n"
            elif frame is None:
                head = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
            else:
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                head %= len(frame)
            self.transport.write(head + (frame or b""))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Connection, "127.0.0.1", PORT, backlog=2048)
        await server.serve_forever()

    asyncio.run(main())


if __name__ == "__main__":
    if "--raw" in sys.argv:
        serve_raw()
    else:
        import uvicorn

        uvicorn.run(
            app, host="127.0.0.1", port=PORT, log_level="warning", access_log=False, lifespan="off", ws="none"
        )
