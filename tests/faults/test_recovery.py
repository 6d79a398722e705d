"""What a client brings back by itself: sessions, programs, broken calls, servers that are not there yet."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Client
from dragoman.client import recovery
from dragoman.errors import ClosedError, ConnectError, HttpError
from tests.drivers.wire import until
from tests.faults.test_http import BOTH, BOUND, NEW, OLD, answer, connected, greets
from tests.faults.test_stdio import broken
from tests.http_client.server import Asked, Server, serving


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_FIRST", 0.01)


def calls(server: Server) -> list[Asked]:
    return [asked for asked in server.asked if b'"tools/call"' in asked.body]


# Sessions


class Forgetful:
    """A server with sessions, which it loses when it is told to."""

    def __init__(self) -> None:
        self.sessions = 0
        self.hello = asyncio.Event()
        self.hello.set()
        self.refusal = asyncio.Event()  # of calls of the tool `late`, in a session that is lost
        self.refusal.set()

    async def __call__(self, asked: Asked) -> None:
        method = asked.message.get("method") if asked.body else None
        if asked.method != "POST":
            await asked.reply(405, kind=None)
        elif method == "initialize":
            await self.hello.wait()
            self.sessions += 1
            await greets(self._refuse)(Renamed(asked, f"s-{self.sessions}"))
        elif asked.headers["mcp-session-id"] != f"s-{self.sessions}":
            if b'"late"' in asked.body:
                await self.refusal.wait()
            await asked.reply(404, b"no such session", kind="text/plain")
        else:
            await greets(self._call)(asked)

    async def _call(self, asked: Asked) -> None:
        await asked.reply(200, answer(asked, asked.headers["mcp-session-id"]))

    async def _refuse(self, asked: Asked) -> None:
        raise AssertionError(asked.body)


class Renamed:
    """A request whose answer opens a session of that name."""

    def __init__(self, asked: Asked, session: str) -> None:
        self._asked = asked
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asked, name)

    async def result(self, result: Any, *, extra: str = "") -> None:
        del extra
        await self._asked.result(result, extra=f"Mcp-Session-Id: {self._session}\r\n")


async def test_one_new_session_for_all_that_were_in_the_old_one() -> None:
    forgetful = Forgetful()
    async with asyncio.timeout(BOUND), serving(forgetful) as server:
        async with Client(server.url, protocol=OLD) as client:
            assert (await client.call_tool("t")).text == "s-1"
            forgetful.sessions = 10  # a restart: nobody knows the old session
            results = await asyncio.gather(*(client.call_tool("t") for _ in range(20)))
    assert {result.text for result in results} == {"s-11"}
    assert len([asked for asked in server.asked if b'"initialize"' in asked.body]) == 2


async def test_a_call_that_hears_of_the_lost_session_while_the_new_one_is_opened_is_sent_again() -> None:
    forgetful = Forgetful()
    async with asyncio.timeout(BOUND), serving(forgetful) as server:
        async with Client(server.url, protocol=OLD) as client:
            forgetful.sessions = 10
            forgetful.hello.clear()
            forgetful.refusal.clear()
            late = asyncio.create_task(client.call_tool("late"))
            await server.find(lambda asked: b'"late"' in asked.body)
            first = asyncio.create_task(client.call_tool("t"))
            await server.find(lambda asked: server.asked.index(asked) > 2 and b'"initialize"' in asked.body)
            forgetful.refusal.set()
            await asyncio.wait({late}, timeout=0.1)
            forgetful.hello.set()
            assert [(await task).text for task in (late, first)] == ["s-11", "s-11"]
    assert len([asked for asked in server.asked if b'"initialize"' in asked.body]) == 2


async def test_whoever_gives_up_leaves_the_new_session_to_the_others() -> None:
    forgetful = Forgetful()
    async with asyncio.timeout(BOUND), serving(forgetful) as server:
        async with Client(server.url, protocol=OLD) as client:
            forgetful.sessions = 10
            forgetful.hello.clear()
            first = asyncio.create_task(client.call_tool("t"))
            await server.find(lambda asked: server.asked.index(asked) > 2 and b'"initialize"' in asked.body)
            second = asyncio.create_task(client.call_tool("t"))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.wait({first})
            forgetful.hello.set()
            assert (await second).text == "s-11"
            assert first.cancelled()


# Calls that broke off


@BOTH
async def test_a_broken_call_is_sent_again_once_where_that_is_safe(protocol: str) -> None:
    left = 1

    async def call(asked: Asked) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            await asked.stream()
            asked.drop()
        else:
            await asked.reply(200, answer(asked))

    async with connected(call, protocol=protocol) as (client, server):
        with pytest.raises(ClosedError):
            await client.call_tool("safe")  # nobody has said so yet
        assert len(calls(server)) == 1
        await client.list_tools()
        left = 1
        assert (await client.call_tool("safe")).text == "well"  # its readOnlyHint
        left = 1
        assert (await client.call_tool("t", idempotent=True)).text == "well"  # the caller's word
        assert len({asked.id for asked in calls(server)}) == len(calls(server)) == 5
        left = 2
        with pytest.raises(ClosedError):
            await client.call_tool("safe")
        assert len(calls(server)) == 7
        left = 1
        with pytest.raises(ClosedError):
            await client.call_tool("safe", idempotent=False)
        assert len(calls(server)) == 8


async def test_a_broken_list_is_read_again() -> None:
    left = 1

    async def serve(asked: Asked) -> None:
        nonlocal left
        if b'"tools/list"' in asked.body and left:
            left -= 1
            asked.drop()
        else:
            await greets(serve)(asked)

    async with asyncio.timeout(BOUND), serving(serve) as server:
        async with Client(server.url, protocol=NEW) as client:
            assert [tool.name for tool in await client.list_tools()] == ["safe"]


# Servers that are not there


@BOTH
async def test_a_server_that_is_late_is_waited_for(
    protocol: str, unused_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def call(asked: Asked) -> None:
        await asked.reply(200, answer(asked))

    server = Server(greets(call))
    async with asyncio.timeout(BOUND):
        client = Client(f"http://127.0.0.1:{unused_port}/mcp", protocol=protocol)
        connecting = asyncio.create_task(client.connect())
        await until(lambda: "trying again" in caplog.text)
        assert not connecting.done()
        listening = await asyncio.start_server(server.serve, "127.0.0.1", unused_port, limit=1 << 20)
        await connecting
        assert (await client.call_tool("t")).text == "well"
        # It goes away and comes back.
        listening.close()
        await server.stop()
        caplog.clear()
        calling = asyncio.create_task(client.call_tool("t"))
        await until(lambda: "trying again" in caplog.text)
        assert not calling.done()
        listening = await asyncio.start_server(server.serve, "127.0.0.1", unused_port, limit=1 << 20)
        assert (await calling).text == "well"
        await client.close()
        listening.close()
        await server.stop()


@pytest.mark.parametrize("limits", [{"retry_for": 0.2}, {"connect_timeout": 0.2}])
async def test_nobody_there_is_told_when_the_limit_is_over(limits: Any, unused_port: int) -> None:
    async with asyncio.timeout(BOUND):
        with pytest.raises(ConnectError, match="refused"):
            await Client(f"http://127.0.0.1:{unused_port}/mcp", **limits).connect()


@pytest.mark.parametrize("extra", ["", "Retry-After: 0\r\n"])
async def test_not_ready_yet(extra: str) -> None:
    left = 3

    async def serve(asked: Asked) -> None:
        nonlocal left
        if left:
            left -= 1
            await asked.reply(503, b"starting", kind="text/plain", extra=extra)
        else:
            await greets(call)(asked)

    async def call(asked: Asked) -> None:
        await asked.reply(200, answer(asked))

    async with asyncio.timeout(BOUND), serving(serve) as server:
        async with Client(server.url, protocol=NEW) as client:
            left = 2
            assert await client.list_tools()
            left = 1
            if extra:  # the server asks for it
                assert (await client.call_tool("t")).text == "well"
            else:  # it may be a gateway, behind which the call broke off in the middle
                with pytest.raises(HttpError, match="503"):
                    await client.call_tool("t")


async def test_a_name_or_a_certificate_does_not_pass() -> None:
    async with asyncio.timeout(BOUND):
        with pytest.raises(ConnectError, match="name was not found"):
            await Client("http://no-such-host.invalid/mcp").connect()


# Programs


async def test_a_program_that_ended_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with asyncio.timeout(BOUND), broken(str(starts)) as client:
        with pytest.raises(ClosedError) as caught:
            await client.call_tool("once")  # it may have been done before the end
        assert caught.value.exit_status == 9
        results = await asyncio.gather(*(client.call_tool("once") for _ in range(8)))
        assert {result.text for result in results} == {"start 2"}
        assert client.facts()["running"]


async def test_what_may_come_twice_is_sent_to_the_next_start(tmp_path: Path) -> None:
    async with asyncio.timeout(BOUND), broken(str(tmp_path / "starts")) as client:
        await client.list_tools()
        assert (await client.call_tool("safe")).text == "start 2"


async def test_a_program_that_always_ends_is_left_alone_in_the_end(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with asyncio.timeout(BOUND), broken(str(starts), max_restarts=3) as client:
        for _ in range(6):
            with pytest.raises(ClosedError) as caught:
                await client.call_tool("poison")
    assert starts.stat().st_size == 1 + 3
    assert "max_restarts" in str(caught.value)


async def test_no_restart_where_none_is_wanted(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with asyncio.timeout(BOUND), broken(str(starts), max_restarts=0) as client:
        for _ in range(2):
            with pytest.raises(ClosedError):
                await client.call_tool("poison", idempotent=True)
    assert starts.stat().st_size == 1


async def test_closing_while_it_is_brought_back(caplog: pytest.LogCaptureFixture) -> None:
    async with asyncio.timeout(BOUND):
        client = broken(max_restarts=5)
        await client.connect()
        calls = [asyncio.create_task(client.call_tool("poison", idempotent=True)) for _ in range(5)]
        await until(lambda: "starting it again" in caplog.text)
        await client.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(outcome, ClosedError) for outcome in outcomes)
