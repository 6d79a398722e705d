"""The client over HTTP: a real server of ours behind a real socket, and the end of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from msgspec import Meta

from dragoman import Client, Context, Server
from dragoman.client import opening
from dragoman.errors import ConnectError, DeadlineError, HttpError, NegotiationError, RemoteError
from dragoman.transports.serve import serve
from tests.client.scripted import Fail, Heard, Scripted, handshake, initialize_result, text

NEW, OLD = "2026-07-28", "2025-11-25"
BOTH = pytest.mark.parametrize("protocol", [NEW, OLD])


@pytest.fixture(autouse=True)
def no_verdicts() -> Any:
    opening.forget(None)
    yield
    opening.forget(None)


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[str]:
    """`server` at a free port of this machine; its URL."""
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(server.asgi(), port=0, bound=port.set_result))
    try:
        yield f"http://127.0.0.1:{await port}/mcp"
    finally:
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving


class Weather:
    """A server with a tool for each thing to see, and what it saw."""

    def __init__(self) -> None:
        self.server = Server("weather", ttl_ms=3_600_000)
        self.cancelled = asyncio.Event()
        self.running = asyncio.Event()
        server = self.server

        @server.tool
        async def get_weather(
            location: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Location"})],
        ) -> dict[str, str]:
            return {"location": location, "sky": "맑음"}

        @server.tool
        async def work(ctx: Context, steps: int) -> str:
            for step in range(steps):
                await ctx.report_progress(step + 1, steps)
                await asyncio.sleep(0.06)
            return "done"

        @server.tool
        async def hang() -> str:
            self.running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "never"


@pytest.mark.parametrize("protocol", ["auto", NEW, OLD])
async def test_a_server_over_http(protocol: str) -> None:
    async with served(Weather().server) as url, Client(url, protocol=protocol) as client:
        assert client.revision.version == (NEW if protocol == "auto" else protocol)
        assert [found.name for found in await client.list_tools()] == ["get_weather", "work", "hang"]
        result = await client.call_tool("get_weather", {"location": "서울"})
        assert result.structured == {"location": "서울", "sky": "맑음"}
        assert result.invalid == ()
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("nothing")
        assert caught.value.code == -32602
        await client.ping()


async def test_a_mirrored_parameter_that_was_never_listed_costs_one_list() -> None:
    weather = Weather()
    let_in: list[str] = []  # the first call is not among them: its headers are refused

    @weather.server.middleware
    async def see(call: Any, proceed: Any) -> Any:
        let_in.append(call.method.name)
        return await proceed(call)

    async with served(weather.server) as url, Client(url, protocol=NEW) as client:
        for _ in range(2):
            assert (await client.call_tool("get_weather", {"location": "a b"})).structured is not None
    assert let_in == ["server/discover", "tools/list", "tools/call", "tools/call"]


@BOTH
async def test_progress_over_http_renews_the_idle_limit(protocol: str) -> None:
    seen: list[Any] = []
    async with served(Weather().server) as url, Client(url, protocol=protocol, idle_timeout=0.5) as client:
        result = await client.call_tool("work", {"steps": 12}, progress=lambda *args: seen.append(args))
    assert result.text == "done"
    assert seen == [(step + 1, 12, None) for step in range(12)]


@BOTH
@pytest.mark.parametrize("how", ["cancel", "idle_timeout"])
async def test_giving_up_reaches_the_server_over_http(protocol: str, how: str) -> None:
    weather = Weather()
    async with served(weather.server) as url, Client(url, protocol=protocol) as client:
        if how == "cancel":
            call = asyncio.create_task(client.call_tool("hang"))
            await weather.running.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            with pytest.raises(DeadlineError):
                await client.call_tool("hang", idle_timeout=0.1)
        await asyncio.wait_for(weather.cancelled.wait(), 10)


@BOTH
async def test_many_calls_at_once(protocol: str) -> None:
    async with served(Weather().server) as url, Client(url, protocol=protocol) as client:
        places = [f"place {n}" for n in range(100)]
        results = await asyncio.gather(*(client.call_tool("get_weather", {"location": p}) for p in places))
    assert [result.structured["location"] for result in results] == places


async def test_nobody_there_is_no_old_server() -> None:
    async with served(Weather().server) as url:
        pass
    with pytest.raises(ConnectError):
        await Client(url, retry_for=0).connect()


async def test_a_path_without_an_endpoint_says_so() -> None:
    async with served(Weather().server) as url:
        with pytest.raises(NegotiationError) as caught:
            await Client(url.replace("/mcp", "/elsewhere")).connect()
    # One reason, told once, and the URL to take instead.
    assert caught.value.message == (
        "the server refused the handshake: No MCP endpoint at /elsewhere; it is at /mcp (-32600)"
    )
    assert caught.value.hint == url


# A session that the server has ended


def ended() -> HttpError:
    error = HttpError("HTTP 404", status=404)
    error.session_ended = True
    return error


def forgetful(times: int) -> tuple[Any, list[int]]:
    """A script of a server that forgets the session `times` times, and how often it was greeted."""
    greeted: list[int] = []
    left = [times]

    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "initialize":
            greeted.append(heard.id)
            return initialize_result()
        if heard.method == "server/discover":
            raise HttpError("HTTP 400", status=400)
        if left[0] > 0 and heard.id < greeted[-1] + 10 and len(greeted) <= times:
            await asyncio.sleep(0)
            raise ended()
        return text(heard.params["name"])

    return script, greeted


async def test_an_ended_session_is_opened_anew_and_the_call_sent_again() -> None:
    script, greeted = forgetful(1)
    transport = Scripted(script, shared=False)
    async with Client(transport) as client:
        assert (await client.call_tool("t")).text == "t"
    assert len(greeted) == 2
    assert transport.notices == ["notifications/initialized"] * 2


async def test_one_new_session_serves_all_that_were_in_the_old_one() -> None:
    script, greeted = forgetful(1)
    async with Client(Scripted(script, shared=False)) as client:
        results = await asyncio.gather(*(client.call_tool(str(n)) for n in range(8)))
    assert [result.text for result in results] == [str(n) for n in range(8)]
    assert len(greeted) == 2


async def test_a_session_that_ends_at_once_again_is_raised() -> None:
    script, greeted = forgetful(99)
    async with Client(Scripted(script, shared=False)) as client:
        with pytest.raises(HttpError):
            await client.call_tool("t")
    assert len(greeted) == 2


async def test_a_404_outside_a_session_is_raised() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        raise HttpError("HTTP 404", status=404)

    transport = Scripted(handshake(calls), shared=False)
    async with Client(transport) as client:
        with pytest.raises(HttpError):
            await client.call_tool("t")
    assert len(transport.of("initialize")) == 1


async def test_a_new_session_that_is_refused_says_so() -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "initialize" and not transport.of("tools/call"):
            return initialize_result()
        if heard.method == "tools/call":
            raise ended()
        raise Fail(-32603, "no more sessions")

    async with Client(Scripted(script, shared=False)) as client:
        with pytest.raises(Exception, match="no more sessions"):
            await client.call_tool("t")
