"""Plays a transcript in which several HTTP exchanges are open at once: streams, sessions and their end.

The lines of `player`, and these:

    {"post": {...}, "on": "A"}        send a frame; `headers` are added to those that the revision has, and
                                      null takes one away; `status` (200) and `type` are the response's
    {"get": "G"}, {"delete": "D"}     the same for the stream of a session, and for its end
    {"to_client": {...}, "on": "A"}   the next frame of that exchange
    {"ended": "A"}                    that exchange has no more to say
    {"close": "A"}                    the client goes away in the middle of it

What is no frame, such as comments and the event that a stream begins with, is passed over.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

from tests.transcripts.player import TIME_LIMIT, Frame, Log, derived, transcript

STREAM = "text/event-stream"


class Exchange:
    """One request and its response, as far as it has come."""

    def __init__(self, address: tuple[str, int, str], line: Frame, method: str, headers: Any) -> None:
        host, port, path = address
        body = json.dumps(line["post"], ensure_ascii=False).encode() if method == "POST" else None
        self.connection = http.client.HTTPConnection(host, port, timeout=TIME_LIMIT)
        self.connection.request(method, path, body, headers)
        self.response = self.connection.getresponse()
        self.kind = self.response.headers.get("content-type", "")
        assert self.response.status == line.get("status", 200), self.response.read()
        if "type" in line:
            assert self.kind == line["type"]
        self.frames = self._events() if self.kind == STREAM else self._whole()

    def _whole(self) -> Iterator[Frame]:
        received = self.response.read()
        if received and self.kind == "application/json":
            yield json.loads(received)

    def _events(self) -> Iterator[Frame]:
        while line := self.response.readline():
            text = line.decode("utf-8").removesuffix("\n").removeprefix("data: ")
            if line.startswith(b"data: ") and text:
                yield json.loads(text)

    def close(self) -> None:
        # The response holds the socket where the server said that it closes it.
        self.response.close()
        self.connection.close()


class Scene:
    """All exchanges of one transcript; a session's id goes with each that comes after its `initialize`."""

    def __init__(self, revision: str, address: tuple[str, int, str]) -> None:
        self.revision = revision
        self.address = address
        self.log = Log(revision)
        self.open: dict[str, Exchange] = {}
        self.session: dict[str, str] = {}

    def send(self, line: Frame) -> None:
        method = next(word for word in ("post", "get", "delete") if word in line)
        name = line["on"] if method == "post" else line[method]
        if method == "post":
            headers = derived(line["post"], self.revision)
            self.log.sent(line["post"])
        else:
            headers = {"accept": STREAM, "mcp-protocol-version": self.revision}
        headers = {**headers, **self.session, **line.get("headers", {})}
        kept = {key: value for key, value in headers.items() if value is not None}
        exchange = self.open[name] = Exchange(self.address, line, method.upper(), kept)
        key = exchange.response.headers.get("mcp-session-id")
        if key is not None:
            assert line["post"]["method"] == "initialize"
            self.session["mcp-session-id"] = key

    def play(self, lines: list[Frame]) -> None:
        for line in lines:
            if "to_client" in line:
                self.log.received(next(self.open[line["on"]].frames), line["to_client"])
            elif "ended" in line:
                assert next(self.open[line["ended"]].frames, None) is None
            elif "close" in line:
                self.open[line["close"]].close()
            else:
                self.send(line)


def play_scene(name: str, revision: str, address: tuple[str, int, str]) -> None:
    """Each line when the one before it is done."""
    scene = Scene(revision, address)
    try:
        scene.play(transcript(name))
    finally:
        for exchange in scene.open.values():
            exchange.close()
