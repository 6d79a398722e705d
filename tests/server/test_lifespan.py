"""What a server sets up before its first answer, and tears down at the end."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import Client, Context, Server, UsageError
from tests.http.wire import post, routed, stateless
from tests.server.pair import Pair, text

REVISIONS = ["2025-11-25", "2026-07-28"]


class Life:
    """A lifespan that tells what it did; `fail` times its start goes wrong first."""

    def __init__(self, fail: int = 0) -> None:
        self.told: list[str] = []
        self.fail = fail
        self.gate: asyncio.Event | None = None

    @asynccontextmanager
    async def __call__(self, server: Server) -> AsyncIterator[dict[str, str]]:
        self.told.append(f"start {server.name}")
        if self.gate is not None:
            await self.gate.wait()
        if self.fail:
            self.fail -= 1
            raise ConnectionError("secret://user:password@db")
        yield {"db": "connected"}
        self.told.append("end")


def serving(life: Any) -> Server:
    server = Server("s", lifespan=life)

    @server.tool
    async def state(ctx: Context) -> Any:
        return ctx.lifespan

    @server.tool
    def in_thread(ctx: Context) -> str:
        return ctx.lifespan["db"]

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_its_value_is_there_for_every_handler_and_it_runs_once(revision: str) -> None:
    life = Life()
    server = serving(life)
    async with Pair(server, revision) as pair:
        answers = await asyncio.gather(*(pair.call("in_thread") for _ in range(5)))
        assert [text(answer) for answer in answers] == ["connected"] * 5
        assert life.told == ["start s"]
    assert life.told == ["start s", "end"]


async def test_it_is_shared_by_all_connections_and_ends_with_the_last() -> None:
    life = Life()
    server = serving(life)
    first, second = Pair(server), Pair(server)
    await first.__aenter__()
    await second.__aenter__()
    await first.call("state")
    await first.__aexit__()
    assert text(await second.call("in_thread")) == "connected"
    assert life.told == ["start s"]
    await second.__aexit__()
    assert life.told == ["start s", "end"]


async def test_it_starts_anew_for_who_comes_later() -> None:
    life = Life()
    server = serving(life)
    for _ in range(2):
        async with Client(server) as client:
            assert (await client.call_tool("in_thread")).text == "connected"
    assert life.told == ["start s", "end"] * 2


async def test_without_one_there_is_no_value() -> None:
    server = Server("s")

    @server.tool
    def state(ctx: Context) -> bool:
        return ctx.lifespan is None

    async with Pair(server) as pair:
        assert text(await pair.call("state")) == "true"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_start_that_fails_is_told_to_everybody_and_tried_again(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life()
    server = serving(life)
    async with Pair(server, revision) as pair:
        await pair.call("state")
        await server.close()
        life.fail = 1
        life.gate = asyncio.Event()
        asked = [pair.send("tools/call", {"name": "state"}) for _ in range(3)]
        await asyncio.sleep(0)
        life.gate.set()
        errors = [(await pair.answer(id_))["error"] for id_ in asked]
        assert {error["code"] for error in errors} == {-32603}
        assert all("lifespan could not start (ConnectionError)" in error["message"] for error in errors)
        assert "password" not in str(errors)
        assert text(await pair.call("in_thread")) == "connected"
    assert life.told == ["start s", "end", "start s", "start s", "end"]
    assert [r.levelname for r in caplog.records if "lifespan failed at its start" in r.message] == ["ERROR"]


async def test_one_caller_that_gives_up_does_not_stop_the_start_for_others() -> None:
    life = Life()
    life.gate = asyncio.Event()
    async with Pair(serving(life)) as pair:
        first = pair.send("tools/call", {"name": "state"})
        second = pair.send("tools/call", {"name": "in_thread"})
        await asyncio.sleep(0)
        pair.tell("notifications/cancelled", {"requestId": first})
        await asyncio.sleep(0)
        life.gate.set()
        assert text((await pair.answer(second))["result"]) == "connected"
    assert life.told == ["start s", "end"]


async def test_a_connection_that_ends_before_the_start_is_complete_stops_it() -> None:
    life = Life()
    life.gate = asyncio.Event()
    async with Pair(serving(life)):
        await asyncio.sleep(0)
    assert life.told == ["start s"]


async def test_an_end_that_fails_is_logged_and_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[int]:
        yield 1
        raise OSError("disk full")

    async with Pair(serving(life)) as pair:
        assert text(await pair.call("state")) == "1"
    assert "lifespan failed at its end" in caplog.text


async def test_what_returns_no_context_manager_is_told_how_to(caplog: pytest.LogCaptureFixture) -> None:
    async def life(server: Server) -> AsyncIterator[int]:
        yield 1

    async with Pair(serving(life)) as pair:
        answer = await pair.ask("tools/call", {"name": "state"})
        assert answer["error"]["code"] == -32603
    assert "asynccontextmanager" in caplog.text


def test_what_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="lifespan: expected a function"):
        Server("s", lifespan={"db": 1})


async def test_it_enters_and_leaves_in_one_task_with_the_context_of_the_program() -> None:
    tasks: list[Any] = []
    seen: list[str] = []
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("program")

    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[None]:
        tasks.append(asyncio.current_task())
        seen.append(variable.get())
        async with asyncio.TaskGroup():  # leaving it in another task would be an error
            yield
        tasks.append(asyncio.current_task())

    server = serving(life)
    variable.set("request")
    async with Pair(server) as pair:
        await pair.call("state")
    assert tasks[0] is tasks[1]
    assert seen == ["program"]


# Over HTTP ---------------------------------------------------------------------------------------


async def over_http(app: Any, tool: str) -> str:
    message = stateless("tools/call", {"name": tool, "arguments": {}})
    return text((await post(app, message, routed(message))).json["result"])


async def test_mounted_without_asgi_lifespan_it_starts_with_the_first_request() -> None:
    life = Life()
    server = serving(life)
    app = server.asgi()
    assert life.told == []
    for _ in range(2):
        assert await over_http(app, "in_thread") == "connected"
    assert life.told == ["start s"]
    # A connection in process that comes and goes takes nothing away from HTTP.
    async with Pair(server) as pair:
        await pair.call("state")
    assert life.told == ["start s"]
    await server.close()
    assert life.told == ["start s", "end"]


def test_mounted_without_asgi_lifespan_it_ends_with_the_event_loop() -> None:
    life = Life()
    server = serving(life)

    async def program() -> None:
        await over_http(server.asgi(), "state")

    asyncio.run(program())
    assert life.told == ["start s", "end"]
    asyncio.run(program())
    assert life.told == ["start s", "end"] * 2


async def test_the_lifespan_of_asgi_starts_and_ends_it() -> None:
    life = Life()
    app = serving(life).asgi()
    incoming: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    running = asyncio.create_task(app({"type": "lifespan"}, incoming.get, sent.put))
    incoming.put_nowait({"type": "lifespan.startup"})
    assert await sent.get() == {"type": "lifespan.startup.complete"}
    await over_http(app, "state")
    assert life.told == ["start s"]
    incoming.put_nowait({"type": "lifespan.shutdown"})
    assert await sent.get() == {"type": "lifespan.shutdown.complete"}
    await running
    assert life.told == ["start s", "end"]


# A process ---------------------------------------------------------------------------------------

PROGRAM = """
import sys
from contextlib import asynccontextmanager
from dragoman import Server

@asynccontextmanager
async def life(server):
    print("started", file=sys.stderr, flush=True)
    yield 1
    print("ended", file=sys.stderr, flush=True)

server = Server("s", lifespan=life)
server.run({arguments})
"""


def test_over_stdio_it_starts_with_serving_and_ends_with_the_input() -> None:
    program = PROGRAM.format(arguments="")
    done = subprocess.run(
        [sys.executable, "-c", program], input=b"", capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert done.stderr.decode().split() == ["started", "ended"]


def test_over_http_it_starts_with_serving_and_ends_with_the_signal() -> None:
    program = PROGRAM.format(arguments="'http', port=0")
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line.decode())
            if "started" in lines[-1]:
                os.kill(process.pid, signal.SIGTERM)
    assert process.returncode == 0
    assert [line.strip() for line in lines if "serving" not in line] == ["started", "ended"]


def test_a_mounted_server_lives_along_with_the_outer_one() -> None:
    inner_life, outer_life = Life(), Life()
    inner = serving(inner_life)
    outer = Server("outer", lifespan=outer_life)
    outer.mount(inner, prefix="in_")

    async def program() -> str:
        async with Client(outer) as client:
            return (await client.call_tool("in_in_thread")).text

    assert asyncio.run(program()) == "connected"
    assert inner_life.told == ["start s", "end"]
    assert outer_life.told == ["start outer", "end"]


def test_nothing_of_it_is_loaded_by_servers_without_one() -> None:
    code = "import sys, dragoman\ndragoman.Server('s')\nprint('dragoman.server.lifespan' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
