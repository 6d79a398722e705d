"""The client with real parts at the other end: servers in this process, and child processes."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from dragoman import Client, Context, Server, SyncClient
from dragoman.client import opening
from dragoman.errors import ClosedError, ConnectError, DeadlineError, NegotiationError, RemoteError

NEW, OLD = "2026-07-28", "2025-11-25"
BOTH = pytest.mark.parametrize("protocol", [NEW, OLD])


@pytest.fixture(autouse=True)
def no_verdicts() -> Any:
    opening.forget(None)
    yield
    opening.forget(None)


# In this process


class Orders:
    """A server with a tool for each thing to see, and what it saw."""

    def __init__(self) -> None:
        self.server = Server("orders", version="1.2.3", instructions="be kind", page_size=2)
        self.cancelled: list[str] = []
        self.running = asyncio.Event()
        server = self.server

        @server.tool
        async def add(a: int, b: int) -> int:
            return a + b

        @server.tool
        async def work(ctx: Context, steps: int) -> str:
            for step in range(steps):
                await ctx.report_progress(step + 1, steps, "단계")
                await asyncio.sleep(0.06)
            return "done"

        @server.tool
        async def hang(name: str) -> str:
            self.running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            return "never"

        @server.tool
        def fail() -> str:
            raise ValueError("out of stock")


@BOTH
async def test_a_server_in_this_process(protocol: str) -> None:
    async with Client(Orders().server, protocol=protocol) as client:
        assert client.revision.version == protocol
        assert client.name == "orders"
        assert client.server_info is not None
        assert client.server_info.version == "1.2.3"
        assert client.instructions == "be kind"
        assert [found.name for found in await client.list_tools()] == ["add", "work", "hang", "fail"]
        result = await client.call_tool("add", {"a": 1, "b": 2})
        assert (result.text, result.structured, result.invalid) == ("3", {"result": 3}, ())
        failed = await client.call_tool("fail")
        assert failed.is_error
        assert "out of stock" in failed.text
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("nothing")
        assert caught.value.code == -32602
        await client.ping()


async def test_the_newest_revision_is_the_first_choice() -> None:
    async with Client(Orders().server) as client:
        assert client.revision.version == NEW


@BOTH
async def test_progress_arrives_and_renews_the_idle_limit(protocol: str) -> None:
    seen: list[Any] = []
    async with Client(Orders().server, protocol=protocol, idle_timeout=0.4) as client:
        result = await client.call_tool("work", {"steps": 8}, progress=lambda *args: seen.append(args))
    assert result.text == "done"
    assert seen == [(step + 1, 8, "단계") for step in range(8)]


@BOTH
@pytest.mark.parametrize("how", ["cancel", "idle_timeout", "timeout"])
async def test_giving_up_reaches_the_server(protocol: str, how: str) -> None:
    orders = Orders()
    async with Client(orders.server, protocol=protocol) as client:
        if how == "cancel":
            call = asyncio.create_task(client.call_tool("hang", {"name": how}))
            await orders.running.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            with pytest.raises(DeadlineError):
                await client.call_tool("hang", {"name": how}, **{how: 0.05})
        assert (await client.call_tool("add", {"a": 1, "b": 1})).text == "2"
        assert orders.cancelled == [how]


@BOTH
async def test_a_change_of_tools_is_seen(protocol: str) -> None:
    orders = Orders()
    async with Client(orders.server, protocol=protocol) as client:
        await client.list_tools()
        orders.server.remove_tool("hang")
        assert "hang" not in [found.name for found in await client.list_tools()]


# Child processes


def script(folder: Path, body: str) -> list[str]:
    """A server as a command line. `body` has `read()` for the next message and `write(object)`."""
    prelude = """
        import json, sys, time, os

        def read():
            line = sys.stdin.readline()
            if not line:
                sys.exit(0)
            return json.loads(line)

        def write(message):
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
            sys.stdout.flush()

        def greeted(message):
            write({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": {"name": "s", "version": "1"}}})

        def answered(message, text):
            write({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})
    """
    file = folder / "server.py"
    file.write_text(textwrap.dedent(prelude) + textwrap.dedent(body))
    return [sys.executable, str(file)]


OWN = """
    from dragoman import Server
    server = Server("own")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    server.run()
"""


@pytest.mark.parametrize("protocol", ["auto", NEW, OLD])
async def test_our_own_server_as_a_child_process(protocol: str, tmp_path: Path) -> None:
    async with Client(script(tmp_path, OWN), protocol=protocol) as client:
        assert client.revision.version == (NEW if protocol == "auto" else protocol)
        results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(50)))
    assert [result.structured for result in results] == [{"result": n + 1} for n in range(50)]


def test_our_own_server_without_await(tmp_path: Path) -> None:
    with SyncClient(script(tmp_path, OWN)) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).structured == {"result": 3}


@pytest.mark.parametrize("code", [-32601, -32602, -32000, 1])
async def test_an_old_server_may_refuse_the_probe_as_it_likes(code: int, tmp_path: Path) -> None:
    server = script(
        tmp_path,
        f"""
        while True:
            message = read()
            if message["method"] == "initialize":
                greeted(message)
            elif message["method"] == "tools/call":
                answered(message, json.dumps(message["params"]))
            elif "id" in message:
                write({{"id": message["id"], "error": {{"code": {code}, "message": "no"}}}})
        """,
    )
    async with Client(server) as client:
        assert client.revision.version == OLD
        assert '"name": "t"' in (await client.call_tool("t")).text


async def test_an_old_server_may_be_silent_and_log_to_stdout(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = script(
        tmp_path,
        """
        print("*** Welcome to my server ***", flush=True)
        while True:
            message = read()
            if message["method"] == "initialize":
                greeted(message)
            elif message["method"] == "tools/call":
                sys.stdout.buffer.write(b"debug: \\xff\\xfe\\n")
                answered(message, "still here")
        """,
    )
    with caplog.at_level(logging.WARNING):
        async with Client(server, probe_timeout=0.1) as client:
            assert (await client.call_tool("t")).text == "still here"
            assert client.facts()["noise"] == 2
    assert "Welcome to my server" in caplog.text


async def test_an_old_server_may_end_at_the_probe(tmp_path: Path) -> None:
    server = script(
        tmp_path,
        """
        message = read()
        if message["method"] != "initialize":
            sys.exit("expected initialize")
        greeted(message)
        while True:
            message = read()
            if message["method"] == "tools/call":
                answered(message, "second life")
        """,
    )
    async with Client(server) as client:
        assert client.revision.version == OLD
        assert (await client.call_tool("t")).text == "second life"


async def test_a_server_that_claims_the_newest_revision_and_speaks_an_old_one(tmp_path: Path) -> None:
    server = script(
        tmp_path,
        """
        while True:
            message = read()
            if message["method"] == "server/discover":
                write({"id": message["id"], "result": {"protocolVersion": "2026-07-28", "capabilities": {}}})
            elif message["method"] == "initialize":
                greeted(message)
        """,
    )
    async with Client(server) as client:
        assert client.revision.version == OLD


async def test_ids_that_come_back_as_text_are_matched(tmp_path: Path) -> None:
    server = script(
        tmp_path,
        """
        while True:
            message = read()
            message["id"] = str(message.get("id"))
            if message["method"] == "initialize":
                greeted(message)
            elif message["method"] == "tools/call":
                answered(message, "matched")
            elif message["id"] != "None":
                write({"id": message["id"], "error": {"code": -32601, "message": "no"}})
        """,
    )
    async with Client(server) as client:
        assert (await client.call_tool("t")).text == "matched"
        assert client.facts()["lenient"] == 3


async def test_a_server_that_dies_fails_what_is_open_at_once_with_status_and_last_words(
    tmp_path: Path,
) -> None:
    server = script(
        tmp_path,
        """
        while True:
            message = read()
            if message["method"] == "initialize":
                greeted(message)
            elif message["method"] == "tools/call":
                print("disk full", file=sys.stderr, flush=True)
                os._exit(7)
        """,
    )
    async with Client(server, protocol=OLD) as client:
        calls = [asyncio.create_task(client.call_tool("t")) for _ in range(3)]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        assert isinstance(outcome, ClosedError)
        assert outcome.exit_status == 7
        assert "disk full" in outcome.stderr_tail


async def test_a_program_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="no-such-program"):
        await Client(["no-such-program-here"]).connect()
    broken = script(tmp_path, "raise RuntimeError('missing dependency')")
    with pytest.raises(ClosedError) as caught:
        await Client(broken).connect()
    assert caught.value.exit_status == 1
    assert any("missing dependency" in line for line in caught.value.stderr_tail)


async def test_a_program_that_never_speaks_runs_into_the_connect_limit(tmp_path: Path) -> None:
    silent = script(tmp_path, "print('loading', file=sys.stderr, flush=True)\nwhile True: read()")
    with pytest.raises(DeadlineError, match="`initialize` was not answered") as caught:
        await Client(silent, connect_timeout=1.5, probe_timeout=0.5).connect()
    assert "loading" in caught.value.stderr_tail


async def test_pinned_to_the_newest_an_old_server_is_refused_by_name(tmp_path: Path) -> None:
    old = script(
        tmp_path,
        """
        while True:
            message = read()
            write({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        """,
    )
    with pytest.raises(NegotiationError, match=r"server 'mine'.*does not speak 2026-07-28"):
        await Client(old, protocol=NEW, name="mine").connect()


async def test_closing_from_other_tasks_in_any_order_leaves_nothing(tmp_path: Path) -> None:
    clients = [Client(script(tmp_path, OWN), name=f"server {n}") for n in range(3)]
    for client in clients:
        await asyncio.create_task(client.__aenter__())
    pids = [client.facts()["pid"] for client in clients]
    for client in (clients[0], clients[2], clients[1], clients[0]):
        await asyncio.create_task(client.__aexit__(None, None, None))
    await asyncio.gather(*(client.close() for client in clients))
    assert asyncio.all_tasks() == {asyncio.current_task()}
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    gc.collect()  # whatever was left open would be reported as a warning here


async def test_cancelled_calls_do_not_disturb_their_neighbours(tmp_path: Path) -> None:
    # 20 to 45 % of calls failed under load where a scope around one call ended others.
    async with Client(script(tmp_path, OWN)) as client:
        calls = [asyncio.create_task(client.call_tool("add", {"a": n, "b": 0})) for n in range(200)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for n, outcome in enumerate(outcomes):
        if n % 2:
            assert not isinstance(outcome, BaseException), outcome
            assert outcome.structured == {"result": n}
