"""Our client and tasks: a call has its result in the end, whatever became of it at the server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Client, Context, DeadlineError, Refusal, RemoteError, Server, ToolError, UsageError
from dragoman.extensions.tasks import Tasks
from dragoman.stores import MemoryStore
from tests.client.test_http import served
from tests.drivers.wire import until


@pytest.fixture
def server() -> Server:
    server = Server("test", extensions=[Tasks(MemoryStore(), poll=0.01)])
    server.stopped = stopped = []  # type: ignore[attr-defined]  # for the tests to look at

    @server.tool(task="required")
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n * n

    @server.tool(task="required")
    async def ask(ctx: Context) -> str:
        name, town = await ctx.gather(ctx.elicit("Name?", str), ctx.elicit("Town?", str))
        age = await ctx.elicit("Age?", int)
        return f"{name.data} of {town.data}, {age.data}"

    @server.tool(task="required")
    async def fail(how: str) -> None:
        raise ToolError("no luck") if how == "tool" else Refusal(-32001, "no way", {"why": "never"})

    @server.tool(task="required")
    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append("forever")

    async def first(call: Any) -> bool:
        await Context(call).elicit("Sure?", bool, key="sure")
        return True

    @server.tool(task=first)
    async def careful(ctx: Context) -> bool | None:
        return (await ctx.elicit("Sure?", bool, key="sure")).data

    return server


ANSWERS = {"Name?": "Ada", "Town?": "London", "Age?": 36, "Sure?": True}


def answer(params: Any) -> dict[str, Any]:
    return {"value": ANSWERS[params.message]}


async def test_a_call_that_becomes_a_task_has_its_result(server: Server) -> None:
    async with Client(server, tasks=True) as client:
        results = await asyncio.gather(*(client.call_tool("work", {"n": n}) for n in range(10)))
    assert [result.structured["result"] for result in results] == [n * n for n in range(10)]


async def test_questions_of_a_task_are_answered_once_each(server: Server) -> None:
    asked: list[str] = []

    def handler(params: Any) -> dict[str, Any]:
        asked.append(params.message)
        return answer(params)

    async with Client(server, tasks=True, elicitation_handler=handler) as client:
        result = await client.call_tool("ask")
        assert result.text == "Ada of London, 36"
        assert asked == ["Name?", "Town?", "Age?"]
        assert (await client.call_tool("careful")).structured == {"result": True}


async def test_errors_come_as_those_of_a_plain_call(server: Server) -> None:
    async with Client(server, tasks=True) as client:
        result = await client.call_tool("fail", {"how": "tool"})
        assert result.is_error
        assert result.text == "no luck"
        with pytest.raises(RemoteError, match="no way") as caught:
            await client.call_tool("fail", {"how": "protocol"})
        assert (caught.value.code, caught.value.data) == (-32001, {"why": "never"})


async def test_who_does_not_wait_cancels_the_task(server: Server) -> None:
    async with Client(server, tasks=True) as client:
        with pytest.raises(DeadlineError, match="task"):
            await client.call_tool("forever", timeout=0.05)
        await until(lambda: server.stopped == ["forever"])  # type: ignore[attr-defined]  # set above
        call = asyncio.create_task(client.call_tool("forever"))
        await asyncio.sleep(0)
        await until(lambda: any("dragoman-task-" in task.get_name() for task in asyncio.all_tasks()))
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        await until(lambda: server.stopped == ["forever"] * 2)  # type: ignore[attr-defined]  # set above


async def test_a_question_that_nobody_can_answer_ends_the_call_and_the_task(server: Server) -> None:
    def refuse(params: Any) -> dict[str, Any]:
        raise ValueError(params.message)

    async with Client(server, tasks=True, elicitation_handler=refuse) as client:
        with pytest.raises(ValueError, match="Name"):
            await client.call_tool("ask")
    async with Client(server, tasks=True) as client:
        with pytest.raises((RemoteError, UsageError)):
            await client.call_tool("ask")


async def test_without_the_option_nothing_becomes_a_task(server: Server) -> None:
    async with Client(server) as client:
        with pytest.raises(RemoteError) as caught:
            await client.call_tool("work", {"n": 3})
    assert caught.value.code == -32021


async def test_a_task_can_be_looked_after_by_raw_requests_over_http(server: Server) -> None:
    async with served(server) as url, Client(url, tasks=True) as client:
        task = await client.request("tools/call", {"name": "forever", "arguments": {}})
        named = {"taskId": task["taskId"]}
        assert (await client.request("tasks/get", named))["status"] == "working"
        await client.request("tasks/cancel", named)
        assert (await client.request("tasks/get", named))["status"] == "cancelled"
