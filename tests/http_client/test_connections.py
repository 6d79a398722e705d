"""Connections: kept, shared, limited, and never trusted to be alive."""

from __future__ import annotations

import asyncio
import json

import pytest

from dragoman.errors import ClosedError
from dragoman.jsonrpc.message import encode_result

from .server import STATELESS, call, connected, initialize, progress, serving, until


async def plain(asked):
    await asked.result(asked.connection)


async def ask(transport, id_=1, method="tools/call"):
    return json.loads(bytes((await transport.exchange(call(id_, method))).result))


async def test_one_connection_serves_many_requests():
    async with serving(plain) as server, connected(server.url) as transport:
        assert [await ask(transport, id_) for id_ in range(20)] == [1] * 20
        assert transport.facts()["connections"] == 1
        assert transport.facts()["busy"] == 0


async def test_a_connection_is_kept_after_a_stream_that_ends():
    async def answer(asked):
        await asked.stream()
        await asked.event(encode_result(asked.id, asked.connection))
        await asked.end()

    async with serving(answer) as server, connected(server.url) as transport:
        for id_ in range(3):
            await ask(transport, id_)
            await until(lambda: not transport.facts()["busy"])  # the end may come in a packet of its own
    assert server.connections == 1


async def test_a_stream_that_goes_on_after_the_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_wire._LINGER", 0.01)
    closed = asyncio.Event()

    async def answer(asked):
        await asked.stream()
        await asked.event(encode_result(asked.id, 1))
        await asked.event(progress(1))
        await asked.gone()
        closed.set()

    async with serving(answer) as server, connected(server.url) as transport:
        await ask(transport)
        await closed.wait()


async def test_many_at_once_are_told_apart():
    everyone = asyncio.Event()

    async def answer(asked):
        if len(server.asked) == 64:
            everyone.set()
        await everyone.wait()
        await asked.result(asked.id)

    async with serving(answer) as server, connected(server.url) as transport:
        assert await asyncio.gather(*(ask(transport, i) for i in range(64))) == list(range(64))
        assert server.connections == 64
        await asyncio.gather(*(ask(transport, i) for i in range(64)))
    assert server.connections == 64


async def test_no_more_connections_than_allowed():
    busy = most = 0

    async def answer(asked):
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        await asked.result(asked.id)

    async with serving(answer) as server, connected(server.url, max_connections=3) as transport:
        assert await asyncio.gather(*(ask(transport, i) for i in range(40))) == list(range(40))
    assert server.connections == most == 3


async def test_a_server_that_closes_after_each_answer():
    async def answer(asked):
        await asked.result(asked.connection, extra="Connection: close\r\n")
        asked.hang_up()

    async with serving(answer) as server, connected(server.url) as transport:
        assert [await ask(transport, id_) for id_ in range(3)] == [1, 2, 3]


async def test_a_kept_connection_that_the_server_has_closed_is_not_used():
    async def answer(asked):
        await asked.result(asked.connection)
        asked.hang_up()  # without a word of it in the headers

    async with serving(answer) as server, connected(server.url) as transport:
        for expected in (1, 2, 3):
            assert await ask(transport) == expected
            await until(lambda: not transport.facts()["connections"])


async def test_only_what_reads_is_sent_again_when_a_kept_connection_dies_under_it():
    async def answer(asked):
        if asked.connection == 1 and len(server.asked) > 1:
            asked.drop()  # took the request in, and is gone
        else:
            await asked.result(asked.connection)

    async with serving(answer) as server, connected(server.url) as transport:
        assert await ask(transport, 1) == 1
        assert await ask(transport, 2, "tools/list") == 2
    assert len(server.asked) == 3

    async with serving(answer) as server, connected(server.url) as transport:
        assert await ask(transport, 1) == 1
        with pytest.raises(ClosedError, match="before anything came"):
            await ask(transport, 2, "tools/call")  # it may have run
    assert len(server.asked) == 2


async def test_a_first_connection_that_dies_is_not_tried_again():
    async def answer(asked):
        asked.drop()

    async with serving(answer) as server, connected(server.url) as transport:
        with pytest.raises(ClosedError):
            await transport.exchange(initialize())
    assert len(server.asked) == 1


async def test_a_connection_that_has_not_been_used_for_long_is_replaced():
    async with serving(plain) as server, connected(server.url, keep_alive=0.0) as transport:
        assert [await ask(transport) for _ in range(3)] == [1, 2, 3]


async def test_a_server_that_says_how_long_it_keeps_a_connection_is_believed():
    async def short(asked):
        await asked.result(asked.connection, extra="Keep-Alive: timeout=1, max=100\r\n")

    async def long(asked):
        await asked.result(asked.connection, extra="Keep-Alive: timeout=30\r\n")

    async with serving(short) as server, connected(server.url) as transport:
        assert [await ask(transport) for _ in range(3)] == [1, 2, 3]  # a second less than one is none
    async with serving(long) as server, connected(server.url, keep_alive=0.0) as transport:
        assert [await ask(transport) for _ in range(3)] == [1, 1, 1]


async def test_what_a_server_says_unasked_is_never_taken_for_an_answer():
    async def answer(asked):
        body = encode_result(asked.id, "first")
        forged = encode_result(asked.id + 1, "forged")
        reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        if asked.connection == 1:
            await asked.raw(reply % (len(body), body) + reply % (len(forged), forged))
            await asked.gone()
        else:
            await asked.result("asked for")

    async with serving(answer) as server, connected(server.url) as transport:
        assert await ask(transport, 1) == "first"
        assert await ask(transport, 2) == "asked for"
    assert server.connections == 2


async def test_a_slow_reader_holds_the_server_back_and_loses_nothing():
    pieces = 400
    body = b" " * 65536

    async def answer(asked):
        await asked.stream()
        for i in range(pieces):
            await asked.send(b":" + body + b"\n\n")
            if i % 50 == 0:
                await asked.event(progress(i))
        await asked.event(encode_result(asked.id, 1))
        await asked.end()

    heard = []
    async with serving(answer) as server, connected(server.url) as transport:
        response = await transport.exchange(call(), heard.append)
    assert bytes(response.result) == b"1"
    assert len(heard) == 8


async def test_notifications_are_not_held_back_by_the_limit():
    release = asyncio.Event()

    async def answer(asked):
        if "id" in asked.message:
            await release.wait()
            await asked.result(1)
        else:
            await asked.accept()
            release.set()

    async with serving(answer) as server, connected(server.url, max_connections=1) as transport:
        task = asyncio.create_task(ask(transport))
        await server.arrived(1)
        await transport.notify(b'{"jsonrpc":"2.0","method":"notifications/x"}', STATELESS)
        assert await task == 1
