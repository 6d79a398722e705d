"""`SyncClient`: the same verbs without `await`, from several threads, interrupted, and closed twice."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dragoman.client import Client, SyncClient
from dragoman.errors import ClosedError, DeadlineError, RemoteError, ToolFailure, UsageError
from tests.client.scripted import Fail, Heard, Scripted, stateless, text


async def echo(transport: Scripted, heard: Heard) -> Any:
    if heard.method == "tools/list":
        return {"tools": [{"name": "t", "inputSchema": {}}]}
    return text(heard.params["name"])


async def never(transport: Scripted, heard: Heard) -> Any:
    await asyncio.Event().wait()


def test_the_verbs() -> None:
    with SyncClient(Scripted(stateless(echo))) as client:
        assert client.call_tool("t").text == "t"
        assert [found.name for found in client.list_tools()] == ["t"]
        client.ping()
        assert client.discover().supported_versions == ["2026-07-28"]
        assert client.request("tools/call", {"name": "x"})["content"][0]["text"] == "x"
        assert client.revision.version == "2026-07-28"
        assert client.server_info is not None
        assert client.capabilities.tools == {}
        assert client.instructions == "be kind"
        assert client.connected
    assert not client.connected


def test_it_has_what_the_client_has() -> None:
    ours = {name for name in dir(Client) if not name.startswith("_")}
    assert ours <= set(dir(SyncClient))
    for name in ours:
        mine, other = getattr(Client, name), getattr(SyncClient, name)
        if inspect.isfunction(mine):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(other).parameters)


def test_before_it_is_connected_it_says_how_to_begin() -> None:
    client = SyncClient(Scripted(stateless(echo)))
    for act in (lambda: client.revision, client.ping):
        with pytest.raises(UsageError, match="not connected yet") as caught:
            act()
        assert caught.value.hint == "`with SyncClient(...) as client:`, or `client.connect()` first"


async def test_each_face_says_how_the_other_one_is_entered() -> None:
    client: Any = Client(Scripted(stateless(echo)))
    with pytest.raises(UsageError, match=r"`async with`, not `with`.*\n.*SyncClient"):
        with client:
            raise AssertionError("it cannot have come this far")
    sync: Any = SyncClient(Scripted(stateless(echo)))
    with pytest.raises(UsageError, match=r"`with`, not `async with`"):
        async with sync:
            raise AssertionError("it cannot have come this far")


def test_a_failed_call_is_raised_where_that_is_asked_for() -> None:
    async def fails(transport: Scripted, heard: Heard) -> Any:
        return {**text("sold out"), "isError": True}

    with SyncClient(Scripted(stateless(fails))) as client:
        assert client.call_tool("t").is_error
        with pytest.raises(ToolFailure, match=r"^sold out$"):
            client.call_tool("t", check=True)


def test_errors_are_those_of_the_client() -> None:
    async def fails(transport: Scripted, heard: Heard) -> Any:
        raise Fail(-32602, "Unknown tool")

    with SyncClient(Scripted(stateless(fails))) as client:
        with pytest.raises(RemoteError, match="Unknown tool"):
            client.call_tool("t")
    with SyncClient(Scripted(stateless(never)), idle_timeout=0.02) as client:
        with pytest.raises(DeadlineError):
            client.call_tool("t")


def test_many_threads_at_once() -> None:
    with SyncClient(Scripted(stateless(echo))) as client, ThreadPoolExecutor(16) as threads:
        names = [str(number) for number in range(200)]
        results = threads.map(lambda name: client.call_tool(name).text, names)
        assert list(results) == names


def test_before_connect_a_verb_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="not connected"):
        SyncClient(Scripted(stateless(echo))).ping()


def test_close_twice_from_several_threads_and_before_connect() -> None:
    client = SyncClient(Scripted(stateless(echo)))
    client.close()
    client.close()
    with pytest.raises(ClosedError):
        client.connect()

    before = threading.active_count()
    client = SyncClient(Scripted(stateless(echo))).connect()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: client.close(), range(8)))
    client.close()
    assert threading.active_count() == before
    with pytest.raises(ClosedError):
        client.call_tool("t")


def test_close_ends_what_other_threads_wait_for() -> None:
    waiting = threading.Event()

    async def calls(transport: Scripted, heard: Heard) -> Any:
        waiting.set()
        await asyncio.Event().wait()

    client = SyncClient(Scripted(stateless(calls))).connect()
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(client.call_tool, "t")
        assert waiting.wait(10)
        client.close()
        with pytest.raises(ClosedError):
            call.result(10)


def test_a_failed_start_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(DeadlineError):
        with SyncClient(Scripted(never), connect_timeout=0.02):
            raise AssertionError("it cannot have come this far")
    assert threading.active_count() == before


def test_a_handler_cannot_call_the_client_that_calls_it() -> None:
    caught: list[BaseException] = []

    async def calls(transport: Scripted, heard: Heard) -> Any:
        transport.progress(heard, 1)
        return text()

    def handler(*args: Any) -> None:
        for verb in (client.ping, client.close):
            try:
                verb()
            except UsageError as exc:
                caught.append(exc)

    with SyncClient(Scripted(stateless(calls)), progress_handler=handler) as client:
        assert client.call_tool("t").text == "done"
    assert len(caught) == 2


def test_an_interrupt_ends_the_waiting_call_and_cancels_it_at_the_server() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if heard.params["name"] == "slow":
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return text()

    transport = Scripted(stateless(calls))
    with SyncClient(transport) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("slow")
        assert client.call_tool("quick").text == "done"
    assert transport.cancelled == [transport.of("tools/call")[0].id]


def test_a_script_that_forgets_to_close_ends_all_the_same() -> None:
    code = (
        "from dragoman import SyncClient; from tests.client.scripted import *\n"
        "client = SyncClient(Scripted(stateless())).connect(); client.ping(); print('done')"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
