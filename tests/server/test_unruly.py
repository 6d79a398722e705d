"""Handlers that do what no handler should: each call is answered once, and the stream goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Client, ClosedError, Refusal, Server
from dragoman.model import CallToolResult, TextContent
from dragoman.transports.connection import ServerConnection
from tests.drivers.stdio import initialize, request
from tests.server.pair import Pair


class Own(BaseException):
    """Of no kind that anybody expects."""


class Mute(Exception):
    """One that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no text")


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "sys.exit": (lambda: SystemExit(2), "SystemExit: 2"),
    "sys.exit with a text": (lambda: SystemExit("usage: tool FILE"), "SystemExit: usage: tool FILE"),
    "an interrupt": (KeyboardInterrupt, "KeyboardInterrupt"),
    "a class of its own": (lambda: Own("why"), "Own: why"),
    "a group": (
        lambda: BaseExceptionGroup("two", [SystemExit(1)]),
        "BaseExceptionGroup: two (1 sub-exception)",
    ),
    "a cancellation that nobody asked for": (asyncio.CancelledError, "work was cancelled from within"),
    "no text": (Mute, "Mute"),
    "half a surrogate pair": (lambda: OSError("no file \udcff.txt"), "no file \\udcff.txt"),
}


def raising(error: Callable[[], BaseException], how: str) -> Server:
    server = Server("unruly")
    if how in ("at once", "later"):

        @server.tool
        async def work() -> int:
            if how == "later":
                await asyncio.sleep(0)
            raise error()

    else:

        @server.tool(name="work", inline=how == "inline")
        def plain() -> int:
            raise error()

    @server.tool
    async def fine() -> int:
        return 1

    return server


async def call(pair: Pair, name: str) -> Any:
    """Called from a callback of the loop, as transports do: what need not wait then begins at once."""
    asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def ask() -> None:
        asked.set_result(pair.send("tools/call", {"name": name, "arguments": {}}))

    asyncio.get_running_loop().call_soon(ask)
    async with asyncio.timeout(5):
        return await pair.answer(await asked)


@pytest.mark.parametrize("how", ["at once", "later", "inline", "thread"])
@pytest.mark.parametrize("kind", RAISED)
async def test_whatever_a_tool_raises_is_its_answer(kind: str, how: str) -> None:
    error, text = RAISED[kind]
    async with Pair(raising(error, how)) as pair:
        for _ in range(2):
            await call(pair, "fine")  # from then on calls begin at once
        answer = await call(pair, "work")
        assert answer["result"]["isError"] is True
        assert answer["result"]["content"] == [{"type": "text", "text": text}]
        assert (await call(pair, "fine"))["result"]["structuredContent"] == {"result": 1}


@pytest.mark.parametrize("how", ["at once", "later", "inline", "thread"])
async def test_a_generator_exit_fails_the_call_and_nothing_else(how: str) -> None:
    async with Pair(raising(GeneratorExit, how)) as pair:
        for _ in range(2):
            await call(pair, "fine")
        assert (await call(pair, "work"))["error"]["code"] == -32603
        assert (await call(pair, "fine"))["result"]["structuredContent"] == {"result": 1}


@pytest.mark.parametrize("refusal", [Refusal(-32000, "a\udcff"), Refusal(-32000, "a", {"it": object()})])
async def test_a_refusal_that_is_no_json_is_an_internal_error(refusal: Refusal) -> None:
    async with Pair(raising(lambda: refusal, "at once")) as pair:
        for _ in range(2):
            await call(pair, "fine")
        assert (await call(pair, "work"))["error"]["code"] == -32603
        assert "result" in await call(pair, "fine")


VALUES = {
    "text": "a\ud800",
    "content": [TextContent(text="a\ud800")],
    "result": CallToolResult(content=[TextContent(text="a\ud800")]),
}


@pytest.mark.parametrize("kind", VALUES)
async def test_text_that_is_no_unicode_fails_the_call_and_says_why(kind: str) -> None:
    server = Server("unruly")

    @server.tool
    async def text() -> str:
        return VALUES["text"]  # type: ignore[return-value]  # it is text

    @server.tool
    async def plain() -> Any:
        return VALUES[kind]

    async with Pair(server) as pair:
        for name in ("text", "plain"):
            result = (await call(pair, name))["result"]
            assert result["isError"] is True
            assert "text with a lone surrogate is no Unicode text" in result["content"][0]["text"]


async def test_a_cancelled_call_is_answered_by_silence_whatever_the_tool_makes_of_it() -> None:
    server = Server("unruly")
    ended: list[str] = []

    @server.tool
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
        return "an answer all the same"

    async with Pair(server) as pair:
        id_ = pair.send("tools/call", {"name": "stubborn", "arguments": {}})
        await asyncio.sleep(0)
        pair.tell("notifications/cancelled", {"requestId": id_})
        await pair.ask("server/discover")
        await pair.ask("server/discover")
        assert ended == ["cancelled"]
        assert [frame for frame in pair.frames if frame.get("id") == id_] == []
        assert pair.connection.in_flight == 0


@pytest.mark.parametrize("begun", [False, True])
async def test_a_batch_is_answered_without_the_calls_of_it_that_are_cancelled(begun: bool) -> None:
    server = Server("unruly")
    working = asyncio.Event()

    @server.tool
    async def waits() -> str:
        working.set()
        await asyncio.Event().wait()
        return "never"

    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}}
    batch = [request("slow", "tools/call", {"name": "waits", "arguments": {}}), request("quick", "ping")]
    frames: asyncio.Queue[bytes] = asyncio.Queue()
    connection = ServerConnection(server.kernel, frames.put_nowait)
    connection.receive(json.dumps(initialize(version="2025-03-26")).encode())
    async with asyncio.timeout(5):
        await frames.get()
        if begun:
            connection.receive(json.dumps(batch).encode())
            await working.wait()
            connection.receive(json.dumps(cancelled).encode())
        else:
            connection.receive(json.dumps([*batch, cancelled]).encode())
        assert json.loads(await frames.get()) == [{"jsonrpc": "2.0", "id": "quick", "result": {}}]
    await connection.cancel()


async def test_a_call_that_heeds_no_cancellation_holds_up_no_end() -> None:
    server = Server("unruly")
    working, enough = asyncio.Event(), asyncio.Event()

    @server.tool
    async def stubborn() -> None:
        working.set()
        while not enough.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await enough.wait()

    client = Client(server)
    await client.connect()
    async with asyncio.timeout(5):
        call = asyncio.create_task(client.call_tool("stubborn"))
        await working.wait()
        await client.close()
        with pytest.raises(ClosedError):
            await call
    enough.set()
