"""Time limits, cancellation and the end of a connection."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Any

import pytest

from dragoman.client import Client
from dragoman.errors import ClosedError, DeadlineError, UsageError
from tests.client.scripted import Heard, Scripted, handshake, stateless, text

SHORT = 0.05


async def never(transport: Scripted, heard: Heard) -> Any:
    await asyncio.Event().wait()


async def until(condition: Any) -> None:
    """Wait for something that comes about in other tasks, for a bounded number of turns of the loop."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not come about")


# Limits


async def test_the_connect_limit_names_itself_the_step_and_the_last_words() -> None:
    transport = Scripted(never)
    client = Client(transport, connect_timeout=SHORT)
    with pytest.raises(DeadlineError, match=r"no connection within 0\.05 s.*server/discover") as caught:
        await client.connect()
    assert caught.value.stage == "connect"
    assert caught.value.stderr_tail == ("last words",)
    assert transport.closed


async def test_the_connect_limit_says_when_it_was_the_handshake() -> None:
    transport = Scripted(never)
    client = Client(transport, connect_timeout=SHORT, probe_timeout=0.001)
    with pytest.raises(DeadlineError, match="`initialize` was not answered"):
        await client.connect()


async def test_the_idle_limit_ends_a_silent_call_and_cancels_it() -> None:
    transport = Scripted(stateless(never))
    async with Client(transport, idle_timeout=SHORT) as client:
        with pytest.raises(DeadlineError, match=r"neither answer nor progress for 0\.05 s") as caught:
            await client.call_tool("t")
    assert caught.value.stage == "idle"
    assert transport.cancelled == [transport.of("tools/call")[0].id]


async def test_the_overall_limit_ends_a_call_whatever_it_reports() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        progress = 0
        while True:
            progress += 1
            transport.progress(heard, progress)
            await asyncio.sleep(0.01)

    transport = Scripted(stateless(calls))
    async with Client(transport, idle_timeout=0.5, timeout=0.6) as client:
        with pytest.raises(DeadlineError, match=r"not answered within 0\.6 s") as caught:
            await client.call_tool("t")
    assert caught.value.stage == "overall"
    assert "overall" not in str(caught.value)  # the message says it in words
    assert transport.cancelled == [transport.of("tools/call")[0].id]


async def test_progress_renews_the_idle_limit_without_anybody_listening() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        for step in range(8):
            await asyncio.sleep(0.06)
            transport.progress(heard, step)
        return text()

    async with Client(Scripted(stateless(calls)), idle_timeout=0.4) as client:
        assert (await client.call_tool("t")).text == "done"


async def test_a_call_has_limits_of_its_own() -> None:
    async with Client(Scripted(stateless(never)), timeout=None) as client:
        with pytest.raises(DeadlineError, match="idle"):
            await client.call_tool("t", idle_timeout=SHORT)
        with pytest.raises(DeadlineError, match="within"):
            await client.call_tool("t", idle_timeout=inf, timeout=SHORT)
        with pytest.raises(UsageError, match="idle_timeout"):
            await client.call_tool("t", idle_timeout=0)
        with pytest.raises(UsageError, match="timeout"):
            await client.call_tool("t", timeout=-1)


async def test_other_calls_go_on_when_one_runs_out_of_time() -> None:
    go = asyncio.Event()

    async def calls(transport: Scripted, heard: Heard) -> Any:
        await (go.wait() if heard.params["name"] == "good" else asyncio.Event().wait())
        return text()

    async with Client(Scripted(stateless(calls))) as client:
        good = asyncio.create_task(client.call_tool("good"))
        with pytest.raises(DeadlineError):
            await client.call_tool("bad", idle_timeout=SHORT)
        go.set()
        assert (await good).text == "done"


async def test_time_in_which_the_client_itself_is_asked_does_not_count() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        answer = await transport.ask("elicitation/create", {"message": "?", "requestedSchema": {}})
        return text(answer["result"]["action"])

    async def slow(params: Any) -> dict[str, Any]:
        await asyncio.sleep(0.6)
        return {}

    transport = Scripted(handshake(calls))
    async with Client(transport, idle_timeout=0.3, timeout=0.4, elicitation_handler=slow) as client:
        assert (await client.call_tool("t")).text == "accept"


async def test_the_limits_count_again_once_the_client_has_answered() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        await transport.ask("roots/list")
        await asyncio.Event().wait()

    async with Client(Scripted(handshake(calls)), roots=[], idle_timeout=SHORT) as client:
        with pytest.raises(DeadlineError):
            await client.call_tool("t")


@pytest.mark.parametrize("name", ["connect_timeout", "idle_timeout", "timeout", "probe_timeout"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        Client(Scripted(never), **{name: 0})


# Cancellation


async def test_cancelling_a_call_cancels_it_at_the_server_and_nothing_else() -> None:
    go = asyncio.Event()

    async def calls(transport: Scripted, heard: Heard) -> Any:
        await (go.wait() if heard.params["name"] == "good" else asyncio.Event().wait())
        return text()

    transport = Scripted(stateless(calls))
    async with Client(transport) as client:
        good, bad = (asyncio.create_task(client.call_tool(name)) for name in ("good", "bad"))
        await until(lambda: len(transport.of("tools/call")) == 2)
        bad.cancel()
        with pytest.raises(asyncio.CancelledError):
            await bad
        assert transport.cancelled == [h.id for h in transport.of("tools/call") if h.params["name"] == "bad"]
        go.set()
        assert (await good).text == "done"
        assert (await client.call_tool("good")).text == "done"


async def test_the_callers_own_time_out_is_a_plain_one() -> None:
    transport = Scripted(stateless(never))
    async with Client(transport) as client:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(SHORT):
                await client.call_tool("t")
        assert not isinstance(caught.value, DeadlineError)
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
    assert len(transport.cancelled) == 1


async def test_cancelling_connect_ends_the_transport() -> None:
    transport = Scripted(never)
    client = Client(transport)
    connecting = asyncio.create_task(client.connect())
    await until(lambda: transport.heard)
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert transport.closed
    assert not client.connected


# The end


async def test_entered_in_one_task_and_left_in_another() -> None:
    client = Client(Scripted(stateless(never)))
    await asyncio.create_task(client.__aenter__())
    await asyncio.create_task(client.__aexit__(None, None, None))
    assert not client.connected


async def test_contexts_are_left_in_any_order() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        return text()

    clients = [Client(Scripted(stateless(calls)), name=str(n)) for n in range(3)]
    for client in clients:
        await client.__aenter__()
    for client in (clients[0], clients[2]):
        await client.__aexit__(None, None, None)
        assert (await clients[1].call_tool("t")).text == "done"
    await clients[1].__aexit__(None, None, None)


async def test_close_from_several_tasks_at_once_and_again() -> None:
    client = Client(Scripted(stateless(never)))
    await client.connect()
    await asyncio.gather(*(asyncio.create_task(client.close()) for _ in range(5)))
    await client.close()


async def test_what_is_open_ends_with_closed_and_no_group_of_exceptions() -> None:
    transport = Scripted(stateless(never))
    client = Client(transport)
    await client.connect()
    calls = [asyncio.create_task(client.call_tool("t")) for _ in range(3)]
    await until(lambda: len(transport.of("tools/call")) == 3)
    await client.close()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ClosedError] * 3


async def test_after_close_every_verb_says_closed() -> None:
    client = Client(Scripted(stateless(never)))
    async with client:
        pass
    for verb in (client.ping, client.list_tools, client.discover, client.connect):
        with pytest.raises(ClosedError):
            await verb()
    with pytest.raises(ClosedError):
        await client.call_tool("t")


async def test_close_before_connect_and_during_it() -> None:
    client = Client(Scripted(never))
    await client.close()
    with pytest.raises(ClosedError):
        await client.connect()

    transport = Scripted(never)
    client = Client(transport)
    connecting = asyncio.create_task(client.connect())
    await until(lambda: transport.heard)
    await client.close()
    with pytest.raises(ClosedError):
        await connecting
    assert transport.closed


async def test_a_closer_that_is_cancelled_does_not_stop_the_closing() -> None:
    go = asyncio.Event()

    class Slow(Scripted):
        async def close(self) -> None:
            await go.wait()
            await super().close()

    transport = Slow(stateless(never))
    client = Client(transport)
    await client.connect()
    first = asyncio.create_task(client.close())
    second = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    go.set()
    await second
    assert transport.closed == 1


async def test_an_exception_inside_the_context_comes_out_as_it_is() -> None:
    with pytest.raises(ValueError, match="mine"):
        async with Client(Scripted(stateless(never))):
            raise ValueError("mine")


async def test_nothing_is_left_running() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        transport.progress(heard, 1)
        return text()

    async def endless(*args: Any) -> None:
        await asyncio.Event().wait()

    async with Client(Scripted(stateless(calls)), progress_handler=endless) as client:
        await client.call_tool("t")
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_connect_twice_is_once() -> None:
    transport = Scripted(stateless(never))
    client = Client(transport)
    await asyncio.gather(client.connect(), client.connect())
    assert transport.opened == 1
    await client.close()
