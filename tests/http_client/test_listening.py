"""Calls wait for the listening stream, since many servers drop what they say by it before it is open."""

from __future__ import annotations

import asyncio

from dragoman.transports import http_client

from .server import SESSIONS, Asked, call, connected, initialize, serving

INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


class Peer:
    """A server of sessions that takes its time to open a listening stream; what happened, in order."""

    def __init__(self, *, never: bool = False) -> None:
        self.never = never
        self.happened: list[str] = []

    async def __call__(self, asked: Asked) -> None:
        if asked.method == "GET":
            if self.never:
                await asked.gone()
                return
            await asked.trickle(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
            self.happened.append("open")
            await asked.raw(b"\r\n")
            await asked.gone()
        elif asked.method == "DELETE":
            await asked.reply(200, kind=None)
        elif "id" not in asked.message:
            await asked.accept()
        else:
            self.happened.append(asked.message["method"])
            await asked.result({})


async def exchange(peer: Peer) -> None:
    async with serving(peer) as server, connected(server.url) as transport:
        await transport.exchange(initialize())
        transport.agreed(SESSIONS)
        await transport.notify(INITIALIZED, SESSIONS)
        calls = [transport.exchange(call(id_, revision=SESSIONS)) for id_ in (1, 2)]
        await asyncio.gather(*calls)


async def test_the_first_calls_wait_until_the_stream_is_open():
    peer = Peer()
    await exchange(peer)
    assert peer.happened == ["initialize", "open", "tools/call", "tools/call"]


async def test_a_stream_that_never_opens_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(http_client, "_LISTENING", 0.01)
    peer = Peer(never=True)
    await exchange(peer)
    assert peer.happened == ["initialize", "tools/call", "tools/call"]
