"""JSON-RPC over real byte streams: socket pairs, both directions at once, and every way to end."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.errors import ClosedError, PeerFault, RemoteError
from dragoman.jsonrpc import ContentLength, Exchange, Limits, Lines, RpcError, Service
from dragoman.jsonrpc.service import Cancellation
from dragoman.transports.runner import Options
from dragoman.transports.stream import Framing, StreamPeer, connect_stream, serve_stream

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())


async def pair() -> tuple[Streams, Streams]:
    left, right = socket.socketpair()
    return await asyncio.open_connection(sock=left), await asyncio.open_connection(sock=right)


@asynccontextmanager
async def served(
    service: Service,
    *,
    framing: Framing = Lines,
    options: Options | None = None,
    client_service: Service | None = None,
) -> AsyncIterator[StreamPeer]:
    """A peer that is connected to `service`; both have ended cleanly when the block ends."""
    near, far = await pair()
    serving = asyncio.create_task(serve_stream(service, *far, framing=framing, options=options))
    peer = await connect_stream(*near, framing=framing, service=client_service, options=options)
    try:
        yield peer
    finally:
        await peer.close()
        await serving


@asynccontextmanager
async def raw(service: Service, options: Options | None = None) -> AsyncIterator[Streams]:
    """The bare streams of a client whose server is `service`."""
    near, far = await pair()
    serving = asyncio.create_task(serve_stream(service, *far, options=options))
    try:
        yield near
    finally:
        near[1].close()
        await near[1].wait_closed()
        await serving


async def settle() -> None:
    """Give everything that can go on a hundred turns to do so."""
    for _ in range(100):
        await asyncio.sleep(0)


async def answer(reader: asyncio.StreamReader) -> Any:
    return json.loads(await reader.readline())


@pytest.mark.parametrize("framing", [Lines, ContentLength])
def test_request_notify_and_errors(framing: Framing) -> None:
    service, told = Service(), []
    service.method("tell")(told.append)

    @service.method
    async def add(a: int, b: int) -> int:
        return a + b

    @service.method
    def refuse() -> None:
        raise RpcError(-32001, "아니요", {"why": "\n"})

    async def test() -> None:
        async with served(service, framing=framing) as peer:
            await peer.notify("tell", ["서울\u2028"])
            assert await peer.request("add", {"a": 1, "b": 2}) == 3
            assert await peer.request("add", [1, 2], type=float) == 3.0
            with pytest.raises(RemoteError) as caught:
                await peer.request("refuse")
            error = caught.value
            assert (error.code, error.message, error.data) == (-32001, "아니요", {"why": "\n"})
            with pytest.raises(RemoteError, match=r"Method not found \(-32601\)"):
                await peer.request("nobody")
            with pytest.raises(
                PeerFault, match="the result of 'add' does not fit: Expected `str`, got `int`"
            ):
                await peer.request("add", [1, 2], type=str)
        assert told == ["서울\u2028"]

    run(test)


def test_a_thousand_at_once_each_gets_its_own_answer_in_any_order() -> None:
    service = Service()
    gates = [asyncio.Event() for _ in range(1000)]
    order: list[int] = []

    @service.method
    async def nth(n: int) -> int:
        if n + 1 < len(gates):
            await gates[n + 1].wait()  # answered backwards: each waits for the one after it
        order.append(n)
        gates[n].set()
        return n * n

    async def test() -> None:
        async with served(service) as peer:
            results = await asyncio.gather(*(peer.request("nth", [n]) for n in range(len(gates))))
        assert results == [n * n for n in range(len(gates))]
        assert order == list(reversed(range(len(gates))))

    run(test)


def test_both_sides_ask_while_they_answer() -> None:
    """A countdown that goes back and forth on one connection, each step inside the one before it."""
    server, client = Service(), Service()

    async def down(n: int, exchange: Exchange) -> list[int]:
        return [n, *await exchange.request("down", [n - 1])] if n else [0]

    server.method("down")(down)
    client.method("down")(down)

    async def test() -> None:
        async with served(server, client_service=client) as peer:
            assert await peer.request("down", [20]) == list(range(20, -1, -1))

    run(test)


def test_progress_arrives_before_the_answer() -> None:
    server, client, seen = Service(), Service(), []

    @server.method
    async def work(exchange: Exchange) -> str:
        for step in range(3):
            assert exchange.notify("progress", {"id": exchange.id, "step": step})
        return "done"

    client.method("progress")(lambda **params: seen.append(params))

    async def test() -> None:
        async with served(server, client_service=client) as peer:
            assert await peer.request("work") == "done"
            assert seen == [{"id": 1, "step": step} for step in range(3)]

    run(test)


def test_a_blocking_method_in_a_thread_does_not_hold_up_the_others() -> None:
    service, gate = Service(), threading.Event()

    @service.method(thread=True)
    def block() -> int:
        assert gate.wait(30)
        return threading.get_ident()

    @service.method
    def release() -> int:
        gate.set()
        return threading.get_ident()

    async def test() -> None:
        async with served(service) as peer:
            blocked = asyncio.ensure_future(peer.request("block"))
            released = await peer.request("release")
            assert await blocked != released == threading.get_ident()

    run(test)


def test_malformed_lines_are_answered_and_the_stream_goes_on() -> None:
    service = Service(limits=Limits(max_bytes=200))
    service.method("ping")(lambda: "pong")
    lines = [
        (b"not json", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":["\xff"]}', None, -32700),
        (b'{"jsonrpc":"1.0","id":"x","method":"ping"}', "x", -32600),
        (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":["' + b"x" * 300 + b'"]}', 8, -32700),
        (b"[]", None, -32600),
        (b'{"jsonrpc":"2.0","id":9,"method":"gone"}', 9, -32601),
    ]

    async def test() -> None:
        async with raw(service) as (reader, writer):
            for line, id_, code in lines:
                writer.write(line + b"\r\n" + b'{"jsonrpc":"2.0","id":0,"method":"ping"}\n')
                refusal = await answer(reader)
                assert (refusal["id"], refusal["error"]["code"]) == (id_, code)
                assert await answer(reader) == {"jsonrpc": "2.0", "id": 0, "result": "pong"}

    run(test)


def test_a_bad_header_is_answered_and_the_stream_goes_on() -> None:
    service = Service()
    service.method("ping")(lambda: "pong")
    ping = b'{"jsonrpc":"2.0","id":0,"method":"ping"}'

    async def test() -> None:
        near, far = await pair()
        serving = asyncio.create_task(serve_stream(service, *far, framing=ContentLength))
        reader, writer = near
        writer.write(
            b"Content-Length: many\r\n\r\n{}" + ContentLength.encode(ping) + b"Content-Length: 9\r\n\r\n{}"
        )
        writer.write_eof()
        framer = ContentLength()
        frames = framer.feed(await reader.read())
        answers = [json.loads(frame) for frame in frames if isinstance(frame, bytes)]
        assert [item.get("error", item.get("result")) for item in answers] == [
            {
                "code": -32700,
                "message": "Parse error",
                "data": 'Content-Length: expected a number of bytes, received "many"',
            },
            "pong",
            {"code": -32700, "message": "Parse error", "data": "the stream ended after 2 of 9 bytes"},
        ]
        writer.close()
        await serving

    run(test)


def test_a_batch_is_answered_together() -> None:
    service, gate = Service(), asyncio.Event()

    @service.method
    async def wait() -> str:
        await gate.wait()
        return "waited"

    service.method("open")(gate.set)

    async def test() -> None:
        async with raw(service) as (reader, writer):
            writer.write(
                b'[{"jsonrpc":"2.0","id":1,"method":"wait"},{"jsonrpc":"2.0","id":2,"method":"nobody"},'
                b'{"jsonrpc":"2.0","method":"open"}]\n'
            )
            answers = await answer(reader)
            assert [item["id"] for item in answers] == [1, 2]
            assert answers[0]["result"] == "waited"

    run(test)


# Ends ---------------------------------------------------------------------------------------------


def test_answers_that_are_owed_at_the_end_of_input_are_sent() -> None:
    service, gate = Service(), asyncio.Event()

    @service.method
    async def slow() -> str:
        await gate.wait()
        return "late but there"

    async def test() -> None:
        async with raw(service) as (reader, writer):
            writer.write(b'{"jsonrpc":"2.0","id":1,"method":"slow"}')  # and no line end
            writer.write_eof()
            asyncio.get_running_loop().call_soon(gate.set)
            assert (await answer(reader))["result"] == "late but there"
            assert await reader.read() == b""

    run(test)


def test_work_that_does_not_end_is_cut_off_after_the_drain_time() -> None:
    service, ended = Service(), []

    @service.method
    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def test() -> None:
        async with raw(service, Options(drain_seconds=0.05)) as (reader, writer):
            writer.write(b'{"jsonrpc":"2.0","id":1,"method":"forever"}\n')
            writer.write_eof()
            assert await reader.read() == b""
        assert ended == [True]

    run(test)


def test_what_is_awaited_when_the_other_side_goes_away_fails_at_once() -> None:
    async def test() -> None:
        near, far = await pair()
        peer = await connect_stream(*near)
        asking = [asyncio.ensure_future(peer.request("a")) for _ in range(3)]
        await far[0].readline()
        far[1].close()
        for request in asking:
            with pytest.raises(ClosedError, match="the other side closed the connection"):
                await request
        await peer.closed()
        with pytest.raises(ClosedError):
            await peer.request("a")
        with pytest.raises(ClosedError):
            await peer.notify("a")
        await peer.close()

    run(test)


def test_close_from_any_task_any_number_of_times() -> None:
    service = Service()

    @service.method
    async def forever() -> None:
        await asyncio.Event().wait()

    async def test() -> None:
        async with served(service, options=Options(drain_seconds=0.05)) as peer:
            asking = asyncio.ensure_future(peer.request("forever"))
            await asyncio.sleep(0)
            await asyncio.gather(peer.close(), asyncio.create_task(peer.close()))
            with pytest.raises(ClosedError, match="closed by this side"):
                await asking
            await peer.close()

    run(test)


def test_a_method_may_close_its_own_connection() -> None:
    service = Service()

    async def test() -> None:
        near, far = await pair()
        server = StreamPeer(*far, service=service)

        @service.method("exit")
        async def leave() -> None:
            await server.close()

        server.start()
        async with await connect_stream(*near) as peer:
            await peer.notify("exit")
            await peer.closed()
        await server.closed()

    run(test)


# Cancellation -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [None, -32800])
def test_cancelling_the_caller_stops_the_method(code: int | None) -> None:
    """`$/cancelRequest` as editors know it: answered with its own error, or by silence."""
    service = Service()
    options = Options(cancellation=Cancellation(method="$/cancelRequest", code=code))
    started, stopped = asyncio.Event(), asyncio.Event()

    @service.method
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    service.method("ping")(lambda: "pong")

    async def test() -> None:
        async with served(service, options=options) as peer:
            asking = asyncio.ensure_future(peer.request("work"))
            await started.wait()
            asking.cancel()
            await stopped.wait()
            assert await peer.request("ping") == "pong"
            assert peer._peer.late == (0 if code is None else 1)

    run(test)


def test_a_cancelled_request_is_answered_with_the_error_of_the_protocol() -> None:
    service = Service()

    @service.method
    async def forever() -> None:
        await asyncio.Event().wait()

    options = Options(cancellation=Cancellation(method="$/cancelRequest", code=-32800))

    async def test() -> None:
        async with raw(service, options) as (reader, writer):
            writer.write(
                b'{"jsonrpc":"2.0","id":"7","method":"forever"}\n'
                b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}\n'  # another request
                b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":[]}}\n'
                b'{"jsonrpc":"2.0","method":"$/cancelRequest"}\n'
                b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"7"}}\n'
            )
            assert await answer(reader) == {
                "jsonrpc": "2.0",
                "id": "7",
                "error": {"code": -32800, "message": "Request cancelled"},
            }

    run(test)


# Pressure ---------------------------------------------------------------------------------------------


def test_reading_stops_while_enough_is_in_flight() -> None:
    service, gate, full = Service(), asyncio.Event(), asyncio.Event()
    running, most = 0, 0

    @service.method
    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 5:
            full.set()
        await gate.wait()
        running -= 1

    async def test() -> None:
        async with served(service, options=Options(max_in_flight=5)) as peer:
            asking = [asyncio.ensure_future(peer.request("work")) for _ in range(50)]
            await full.wait()
            await settle()
            gate.set()
            await asyncio.gather(*asking)
        assert most == 5

    run(test)


def test_a_full_house_that_waits_for_the_caller_refuses_more_instead_of_waiting_for_ever() -> None:
    server, client = Service(), Service()
    gate, asked = asyncio.Event(), asyncio.Event()

    @server.method
    async def ask_back(exchange: Exchange) -> Any:
        return await exchange.request("name")

    @client.method
    async def name(exchange: Exchange) -> str:
        if exchange.id == 2:
            asked.set()
        await gate.wait()
        return "Ada"

    options = Options(max_in_flight=2)

    async def test() -> None:
        near, far = await pair()
        serving = asyncio.create_task(serve_stream(server, *far, options=options))
        async with await connect_stream(*near, service=client) as peer:
            first = [asyncio.ensure_future(peer.request("ask_back")) for _ in range(2)]
            await asked.wait()
            with pytest.raises(RemoteError, match=r"Too many requests in flight \(-32000\)"):
                await peer.request("ask_back")
            gate.set()
            assert await asyncio.gather(*first) == ["Ada", "Ada"]
        await serving

    run(test)


def test_reading_stops_while_the_other_side_does_not_read() -> None:
    service, served_so_far = Service(), 0
    megabyte = "x" * 1_000_000

    @service.method
    def big() -> str:
        nonlocal served_so_far
        served_so_far += 1
        return megabyte

    async def test() -> None:
        async with raw(service) as (reader, writer):
            reader._limit = 2_000_000  # type: ignore[attr-defined]  # readline takes whole answers
            padding = b" " * 100_000  # so that not all of them fit into one read
            for n in range(100):
                writer.write(b'{"jsonrpc":"2.0","id":%d,"method":"big"}%b\n' % (n, padding))
            await settle()
            assert 0 < served_so_far < 50
            assert [(await answer(reader))["id"] for _ in range(100)] == list(range(100))

    run(test)


def test_large_messages_both_ways_at_once_do_not_lock_up() -> None:
    server, client = Service(), Service()
    text = "x" * 3_000_000

    @server.method
    async def echo(value: str, exchange: Exchange) -> str:
        assert await exchange.request("echo", [value]) == value
        return value

    client.method("echo")(lambda value: value)

    async def test() -> None:
        async with served(server, client_service=client) as peer:
            assert await asyncio.gather(*(peer.request("echo", [text]) for _ in range(8))) == [text] * 8

    run(test)


# What is said to the log --------------------------------------------------------------------------------


def test_a_failing_method_is_logged_here_and_told_nothing_there(caplog: pytest.LogCaptureFixture) -> None:
    service = Service()

    @service.method
    async def fail(password: str) -> None:
        raise ValueError("the cause")

    @service.method
    def give_up() -> None:
        raise asyncio.CancelledError

    @service.method
    async def give_up_later() -> None:
        raise asyncio.CancelledError

    @service.method
    async def odd() -> object:
        return object()

    async def test() -> None:
        async with served(service) as peer:
            for method in ("fail", "odd", "give_up", "give_up_later"):
                with pytest.raises(RemoteError, match=r"^Internal error \(-32603\)$") as caught:
                    await peer.request(method, ["hunter2"] if method == "fail" else [])
                assert caught.value.data is None
            await peer.notify("fail", ["hunter2"])
            with pytest.raises(RemoteError, match="Invalid params"):
                await peer.request("fail", [1])

    with caplog.at_level(logging.DEBUG, "dragoman"):
        run(test)
    messages = [record.message for record in caplog.records]
    failed = ["fail", "odd", "give_up", "give_up_later", "fail"]
    assert messages == [f"method {method!r} failed" for method in failed]
    assert not any("hunter2" in record.getMessage() for record in caplog.records)
    assert "the cause" in caplog.text


def test_answers_to_nobody_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with raw(Service()) as (reader, writer):
            writer.write(
                b'{"jsonrpc":"2.0","id":9,"result":1}\n'
                b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n'
            )
            writer.write_eof()
            assert await reader.read() == b""

    with caplog.at_level(logging.WARNING, "dragoman.jsonrpc"):
        run(test)
    assert [record.message.strip() for record in caplog.records] == [
        "an answer to request 9, which nobody sent",
        "error -32700 for request None, which nobody sent: Parse error",
    ]
