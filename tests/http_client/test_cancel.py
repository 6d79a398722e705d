"""Giving a request up: the stream closes at once, and where that says nothing, the server is told."""

from __future__ import annotations

import asyncio
import json

import pytest

from dragoman.transports.http_client import HttpTransport

from .server import SESSIONS, STATELESS, Asked, Ears, call, connected, initialize, progress, serving


class Slow:
    """Answers `initialize` and notifications; leaves other requests open and notes when they close."""

    def __init__(self, *, stream: bool) -> None:
        self.stream = stream
        self.closed = asyncio.Event()

    async def __call__(self, asked: Asked) -> None:
        if asked.method == "GET":
            await asked.reply(405, kind=None)
        elif asked.method == "DELETE":
            await asked.reply(200, kind=None)
        elif "id" not in asked.message:
            await asked.accept()
        elif asked.message["method"] == "initialize" and not self.stream:
            await asked.result({}, extra="Mcp-Session-Id: s1\r\n")
        else:
            if self.stream:
                await asked.stream()
                await asked.event(progress(1))
            await asked.gone()
            self.closed.set()


async def give_up(task: asyncio.Task) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("stream", [False, True], ids=["before the head", "in a stream"])
async def test_stateless_the_connection_closes_and_nothing_is_posted(stream):
    slow = Slow(stream=stream)
    ears = Ears()
    async with serving(slow) as server, connected(server.url, ears) as transport:
        task = asyncio.create_task(transport.exchange(call()))
        await server.arrived(1)
        if stream:
            await ears.news.wait()
        await give_up(task)
        await slow.closed.wait()
    assert len(server.asked) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["before the head", "in a stream"])
async def test_with_sessions_the_server_is_told(stream):
    slow = Slow(stream=stream)
    ears = Ears()
    async with serving(slow) as server, connected(server.url, ears) as transport:
        transport.agreed(SESSIONS)
        task = asyncio.create_task(transport.exchange(call("a7", revision=SESSIONS)))
        await server.arrived(1)
        if stream:
            await ears.news.wait()
        await give_up(task)
        await slow.closed.wait()
        told = await server.arrived(2)
    assert told.message["method"] == "notifications/cancelled"
    assert told.message["params"]["requestId"] == "a7"
    assert told.headers["mcp-protocol-version"] == "2025-11-25"


async def test_a_cancellation_is_told_before_the_transport_is_closed():
    slow = Slow(stream=False)
    async with serving(slow) as server:
        async with connected(server.url) as transport:
            await transport.exchange(initialize())
            transport.agreed(SESSIONS)
            task = asyncio.create_task(transport.exchange(call(5, revision=SESSIONS)))
            await server.arrived(2)
            await give_up(task)
        methods = [asked.method for asked in server.asked]
        cancelled = [json.loads(a.body) for a in server.asked if b"cancelled" in a.body]
    assert [message["params"]["requestId"] for message in cancelled] == [5]
    assert "DELETE" in methods


async def test_initialize_is_never_cancelled():
    slow = Slow(stream=True)
    ears = Ears()
    async with serving(slow) as server, connected(server.url, ears) as transport:
        task = asyncio.create_task(transport.exchange(initialize()))
        await ears.news.wait()
        await give_up(task)
        await slow.closed.wait()
    assert [asked.method for asked in server.asked] == ["POST"]


@pytest.mark.parametrize("revision", [STATELESS, SESSIONS])
async def test_a_request_that_never_left_is_given_up_in_silence(revision):
    slow = Slow(stream=False)
    async with serving(slow) as server, connected(server.url, max_connections=1) as transport:
        first = asyncio.create_task(transport.exchange(call(1)))
        await server.arrived(1)
        second = asyncio.create_task(transport.exchange(call(2, revision=revision)))
        await asyncio.sleep(0)
        await give_up(second)
        await give_up(first)
        await slow.closed.wait()
    assert len(server.asked) == 1


async def test_giving_one_up_leaves_the_others_alone():
    go_on = asyncio.Event()

    async def answer(asked):
        if asked.id == 2:
            await asked.gone()
            go_on.set()
        else:
            await go_on.wait()
            await asked.result(asked.id)

    async with serving(answer) as server, connected(server.url) as transport:
        tasks = [asyncio.create_task(transport.exchange(call(id_))) for id_ in (1, 2, 3)]
        await server.arrived(3)
        await give_up(tasks[1])
        results = [bytes((await tasks[i]).result) for i in (0, 2)]
    assert results == [b"1", b"3"]


async def test_a_turn_that_came_too_late_goes_to_the_next():
    async def answer(asked):
        await release.wait()
        await asked.result(asked.id)

    release = asyncio.Event()
    async with serving(answer) as server, connected(server.url, max_connections=1) as transport:
        tasks = [asyncio.create_task(transport.exchange(call(id_))) for id_ in (1, 2, 3)]
        await server.arrived(1)
        release.set()
        await tasks[0]
        tasks[1].cancel()  # its turn has come, or has just been used: either way the third must get one
        await asyncio.wait_for(tasks[2], 10)
        await asyncio.wait({tasks[1]})


async def test_a_time_limit_of_the_caller_works_the_same():
    slow = Slow(stream=True)
    async with serving(slow) as server, connected(server.url) as transport:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await transport.exchange(call())
        await slow.closed.wait()


async def test_close_in_the_middle_of_a_cancellation_that_nobody_hears(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_client._GOODBYE", 0.02)

    async def answer(asked):
        await asked.gone()  # deaf to everything

    async with serving(answer) as server:
        transport = HttpTransport(server.url)
        ears = Ears()
        await transport.open(ears.hear, ears.answer)
        transport.agreed(SESSIONS)
        task = asyncio.create_task(transport.exchange(call(revision=SESSIONS)))
        await server.arrived(1)
        await give_up(task)
        await server.arrived(2)
        await transport.close()
