"""Calls that become tasks: what a client sees of them, from creation to the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman import Context, InputRequiredResult, Refusal, Server, ToolError, UsageError
from dragoman.extensions.tasks import Tasks, arguments, demand
from dragoman.model import ElicitFormParams, ElicitRequest, Result
from dragoman.protocol.call import Call
from dragoman.server.middleware import Handler, Middleware
from dragoman.stores import MemoryStore
from tests.drivers.stdio import NS
from tests.drivers.wire import until
from tests.extensions.talk import Talk, served
from tests.extensions.wire import KNOWS, NAME
from tests.server.pair import Pair, text
from tests.stores.clock import FakeClock

Make = Callable[..., Server]
REQUIRED = {"requiredCapabilities": {"extensions": {NAME: {}}}}
FORM: dict[str, Any] = {"type": "object", "properties": {}}
STRANGER: dict[str, Any] = {NS + "clientCapabilities": {"elicitation": {}}}


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes a server that keeps its tasks in memory or in a file."""

    def made(middleware: Sequence[Middleware] = (), **options: Any) -> Server:
        store = MemoryStore() if request.param == "memory" else tmp_path / "tasks.db"
        return Server("test", middleware=middleware, extensions=[Tasks(store, **options)])

    return made


# From creation to the end ------------------------------------------------------------------------


async def test_a_call_becomes_a_task_that_brings_its_result(make: Make) -> None:
    server, go = make(poll=0.5, ttl=60.0), asyncio.Event()

    @server.tool(task=True)
    async def work(n: int) -> str:
        await go.wait()
        return f"done {n}"

    async with served(server) as talk:
        created = await talk.result("tools/call", name="work", arguments={"n": 7})
        assert created["resultType"] == "task"
        assert created["status"] == "working"
        assert (created["ttlMs"], created["pollIntervalMs"]) == (60_000, 500)
        # CreateTaskResult is the task and nothing else (tasks: Task Creation).
        assert not {"result", "error", "inputRequests", "requestState", "task", "content"} & set(created)
        task = await talk.look(created["taskId"])
        assert task["status"] == "working"
        assert task["resultType"] == "complete"
        go.set()
        task = await talk.until(created["taskId"])
    assert task["status"] == "completed"
    assert text(task["result"]) == "done 7"
    assert task["result"]["resultType"] == "complete"
    assert task["createdAt"] == created["createdAt"]
    assert task["createdAt"] <= task["lastUpdatedAt"]
    assert task["ttlMs"] >= 300_000  # a result is there for five minutes in any case


async def test_a_plain_function_works_in_a_thread(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    def work() -> bool:
        return threading.current_thread() is threading.main_thread()

    async with served(server) as talk:
        task = await talk.until(await talk.begin("work"))
    assert task["result"]["structuredContent"] == {"result": False}


async def test_a_tools_error_completes_a_task_and_a_protocol_error_fails_it(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    async def tool_error() -> str:
        raise ToolError("no such luck")

    @server.tool(task=True)
    async def protocol_error() -> str:
        raise Refusal(-32001, "not today", {"until": "tomorrow"})

    async with served(server) as talk:
        done = await talk.until(await talk.begin("tool_error"))
        broken = await talk.until(await talk.begin("protocol_error"))
    assert done["status"] == "completed"
    assert done["result"]["isError"] is True
    assert text(done["result"]) == "no such luck"
    assert broken["status"] == "failed"
    assert broken["error"] == {"code": -32001, "message": "not today", "data": {"until": "tomorrow"}}
    assert broken["statusMessage"] == "not today"
    assert "result" not in broken


async def test_progress_is_the_status_message(make: Make) -> None:
    server, go = make(), asyncio.Event()

    @server.tool(task=True)
    async def work(ctx: Context) -> None:
        await ctx.report_progress(3, 10, "peeling")
        await ctx.info("this is for nobody")
        await go.wait()

    async with served(server) as talk:
        task_id = await talk.begin("work")
        task = await talk.when(task_id, lambda task: "statusMessage" in task)
        assert (task["status"], task["statusMessage"]) == ("working", "peeling")
        go.set()
        assert "statusMessage" not in await talk.until(task_id)
        # Tasks send neither progress nor logs (tasks: Task Status Notifications).
        assert not [frame for frame in talk.frames if "method" in frame]


# Who may -----------------------------------------------------------------------------------------


async def test_without_the_extension_the_tool_just_answers(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    async def work(ctx: Context) -> str:
        return f"Hello, {(await ctx.elicit('Name?', str)).data}"

    async with served(server), Talk(server, STRANGER) as talk:
        asked = await talk.result("tools/call", name="work", arguments={})
        assert asked["resultType"] == "input_required"
        answers = {"q1": {"action": "accept", "content": {"value": "Ada"}}}
        state = asked["requestState"]
        result = await talk.result(
            "tools/call", name="work", arguments={}, inputResponses=answers, requestState=state
        )
        assert (result["resultType"], text(result)) == ("complete", "Hello, Ada")


async def test_what_needs_a_task_is_refused_to_who_does_not_know_them(make: Make) -> None:
    server = make()

    @server.tool(task="required")
    async def work() -> str:
        raise AssertionError

    async with served(server), Talk(server, STRANGER) as talk:
        error = await talk.error("tools/call", name="work", arguments={})
        assert (error["code"], error["data"]) == (-32021, REQUIRED)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            error = await talk.error(method, taskId="x", inputResponses={})
            assert (error["code"], error["data"]) == (-32021, REQUIRED)
        error = await talk.error("subscriptions/listen", notifications={"taskIds": ["x"]})
        assert (error["code"], error["data"]) == (-32021, REQUIRED)


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18"])
async def test_sessions_have_no_tasks(make: Make, revision: str) -> None:
    server = make()

    @server.tool(task=True)
    async def work() -> str:
        return "at once"

    @server.tool(task="required")
    async def long_work() -> str:
        raise AssertionError

    async with served(server), Pair(server, revision) as pair:
        assert text(await pair.call("work")) == "at once"
        refused = await pair.call("long_work")
        assert refused["isError"] is True
        assert "task" in text(refused)
        assert (await pair.ask("tasks/get", {"taskId": "x"}))["error"]["code"] == -32601


async def test_a_task_is_there_for_its_own_principal_alone(make: Make) -> None:
    async def authorise(call: Call, proceed: Handler) -> Result:
        call.principal = call.meta.baggage or None  # the transport's business, really
        return await proceed(call)

    server = make(middleware=[authorise])

    @server.tool(task=True)
    async def work(ctx: Context) -> str | None:
        return ctx.principal

    async with served(server), Talk(server, KNOWS | {"baggage": "ada"}) as talk:
        task_id = await talk.begin("work")
        async with Talk(server, KNOWS | {"baggage": "mallory"}) as other:
            other.send("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
            await other.said(1)
            assert other.frames[0]["params"]["notifications"] == {"taskIds": []}
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                error = await other.error(method, taskId=task_id, inputResponses={})
                unknown = await other.error(method, taskId="no such task", inputResponses={})
                assert error == unknown
                assert error["code"] == -32602
        assert text((await talk.until(task_id))["result"]) == "ada"


async def test_each_task_has_an_id_that_nobody_can_guess(make: Make) -> None:
    server = make()
    server.add_tool(lambda: None, name="work", task=True)
    async with served(server) as talk:
        ids = {await talk.begin("work") for _ in range(20)}
    assert len(ids) == 20
    assert all(len(bytes.fromhex(task_id)) >= 16 for task_id in ids)


async def test_the_server_decides_call_by_call(make: Make) -> None:
    server = make()

    def long_ones(call: Call) -> bool:
        return bool(arguments(call).get("seconds", 0) > 1)

    @server.tool(task=long_ones)
    async def work(seconds: int) -> int:
        return seconds

    async with served(server) as talk:
        assert text(await talk.call("work", seconds=1)) == "1"
        assert (await talk.until(await talk.begin("work", seconds=2)))["result"]["structuredContent"][
            "result"
        ] == 2


async def test_a_decision_may_ask_first_and_the_task_knows_the_answers(make: Make) -> None:
    server, effects = make(), list[str]()

    async def ask_first(call: Call) -> Literal["required"]:
        demand(call)
        ctx = Context(call)
        await ctx.step("seen", effects.append, "seen")
        await ctx.elicit("Name?", str, key="name")
        return "required"

    @server.tool(task=ask_first)
    async def work(ctx: Context) -> str:
        await ctx.step("seen", effects.append, "seen")
        name = await ctx.elicit("Name?", str, key="name")
        town = await ctx.elicit("Town?", str, key="town")
        return f"{name.data} of {town.data}"

    async with served(server) as talk:
        asked = await talk.result("tools/call", name="work", arguments={})
        assert asked["resultType"] == "input_required"
        assert "taskId" not in asked
        answers = {"name": {"action": "accept", "content": {"value": "Ada"}}}
        state = asked["requestState"]
        created = await talk.result(
            "tools/call", name="work", arguments={}, inputResponses=answers, requestState=state
        )
        assert created["resultType"] == "task"
        assert not {"requestState", "inputRequests"} & set(created)
        waiting = await talk.until(created["taskId"], "input_required")
        assert list(waiting["inputRequests"]) == ["town"]
        await talk.answer_task(created["taskId"], town="London")
        task = await talk.until(created["taskId"])
    assert text(task["result"]) == "Ada of London"
    assert effects == ["seen"]


# Questions ---------------------------------------------------------------------------------------


async def test_a_task_waits_for_all_its_questions(make: Make) -> None:
    server, entered = make(), list[int]()

    @server.tool(task=True)
    async def work(ctx: Context) -> str:
        entered.append(1)
        name, town = await ctx.gather(
            ctx.elicit("Name?", str, key="name"), ctx.elicit("Town?", str, key="town")
        )
        return f"{name.data} of {town.data}"

    async with served(server) as talk:
        task_id = await talk.begin("work")
        task = await talk.until(task_id, "input_required")
        assert {key: ask["method"] for key, ask in task["inputRequests"].items()} == {
            "name": "elicitation/create",
            "town": "elicitation/create",
        }
        await talk.answer_task(task_id, nonsense="nobody asked")
        assert await talk.look(task_id) == task
        await talk.answer_task(task_id, name="Ada")
        task = await talk.look(task_id)
        assert (task["status"], list(task["inputRequests"])) == ("input_required", ["town"])
        await talk.answer_task(task_id, name="Eve")  # answered before: the first answer stands
        await talk.answer_task(task_id, town="London")
        task = await talk.until(task_id)
    assert text(task["result"]) == "Ada of London"
    assert len(entered) == 2


async def test_what_is_asked_again_is_another_question(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    async def work(ctx: Context) -> int | None:
        return (await ctx.elicit("Age?", int, key="age")).data

    async with served(server) as talk:
        task_id = await talk.begin("work")
        asked = list((await talk.until(task_id, "input_required"))["inputRequests"])
        for wrong in ("old", "very old"):
            await talk.answer_task(task_id, **{asked[-1]: wrong})
            (key,) = (await talk.until(task_id, "input_required"))["inputRequests"]
            asked.append(key)
        await talk.answer_task(task_id, **{asked[-1]: 36})
        task = await talk.until(task_id)
    # A key stands for one question over the life of a task (tasks: Task Update Requests).
    assert len(set(asked)) == 3
    assert task["result"]["structuredContent"] == {"result": 36}


async def test_steps_before_a_question_run_once(make: Make) -> None:
    server, effects = make(), list[str]()

    @server.tool(task=True)
    async def work(ctx: Context) -> str:
        for step in ("a", "b", "c"):
            await ctx.step(step, effects.append, step)
            await ctx.elicit("Go on?", bool)
        return "done"

    async with served(server) as talk:
        task_id = await talk.begin("work")
        for key in ("q1", "q2", "q3"):
            await talk.until(task_id, "input_required")
            await talk.answer_task(task_id, **{key: True})
            await talk.when(task_id, lambda task, key=key: key not in task.get("inputRequests", {}))
        assert (await talk.until(task_id))["status"] == "completed"
    assert effects == ["a", "b", "c"]


async def test_a_step_that_raised_may_run_again(make: Make) -> None:
    server, tries = make(), list[int]()

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("try again")
        return "through"

    @server.tool(task=True)
    async def work(ctx: Context) -> str:
        for _ in range(2):
            try:
                await ctx.step("call", flaky)
            except ConnectionError:
                await ctx.step("noted", lambda: None)
        return await ctx.step("call", flaky)

    async with served(server) as talk:
        task = await talk.until(await talk.begin("work"))
    assert text(task["result"]) == "through"


async def test_a_question_that_the_client_cannot_answer_fails_the_task(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    async def work(ctx: Context) -> None:
        await ctx.sample("Say something")

    knows = {NS + "clientCapabilities": {"extensions": {NAME: {}}}}
    async with served(server), Talk(server, knows) as talk:
        task = await talk.until(await talk.begin("work"))
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32021
    assert task["error"]["data"] == {"requiredCapabilities": {"sampling": {}}}


async def test_the_raw_form_works_in_a_task(make: Make) -> None:
    server = make()

    def question() -> ElicitRequest:
        return ElicitRequest(params=ElicitFormParams(message="Name?", requested_schema=FORM))

    @server.tool(task=True)
    async def work(ctx: Context) -> InputRequiredResult | str:
        if ctx.request_state is None:
            return InputRequiredResult(request_state="again")  # no question: just come back
        if "name" not in ctx.input_responses:
            return InputRequiredResult(input_requests={"name": question()}, request_state="asked")
        return f"{ctx.request_state}: {ctx.input_responses['name']['action']}"

    async with served(server) as talk:
        task_id = await talk.begin("work")
        assert list((await talk.until(task_id, "input_required"))["inputRequests"]) == ["name"]
        await talk.answer_task(task_id, name="Ada")
        assert text((await talk.until(task_id))["result"]) == "asked: accept"


# The end -----------------------------------------------------------------------------------------


async def test_cancelling_stops_the_handler(make: Make) -> None:
    server, began, ended = make(), asyncio.Event(), asyncio.Event()

    @server.tool(task=True)
    async def work() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with served(server) as talk:
        task_id = await talk.begin("work")
        await began.wait()
        for _ in range(2):  # the second time there is nothing to cancel
            done = await talk.result("tasks/cancel", taskId=task_id)
            assert (done["resultType"], set(done)) == ("complete", {"resultType", "_meta"})
        assert (await talk.look(task_id))["status"] == "cancelled"
        async with asyncio.timeout(5):
            await ended.wait()
        # What comes after the end changes nothing.
        await talk.answer_task(task_id, q1="late")
        assert (await talk.look(task_id))["status"] == "cancelled"


async def test_a_task_that_waits_for_answers_can_be_cancelled(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    async def work(ctx: Context) -> None:
        await ctx.elicit("Name?", str, key="name")

    async with served(server) as talk:
        task_id = await talk.begin("work")
        await talk.until(task_id, "input_required")
        await talk.result("tasks/cancel", taskId=task_id)
        task = await talk.look(task_id)
    assert task["status"] == "cancelled"
    assert "inputRequests" not in task


async def test_a_task_is_forgotten_when_its_time_is_over() -> None:
    clock = FakeClock()
    server, go = Server("test", extensions=[Tasks(MemoryStore(clock=clock), ttl=100.0)]), asyncio.Event()

    @server.tool(task=True)
    async def work() -> str:
        await go.wait()
        return "done"

    async with served(server) as talk:
        early, late = await talk.begin("work"), await talk.begin("work")
        clock.pass_(99.0)
        assert (await talk.look(early))["status"] == "working"
        go.set()
        task = await talk.until(early)
        assert task["ttlMs"] == 399_000
        clock.pass_(299.0)
        assert (await talk.look(late))["status"] == "completed"
        clock.pass_(2.0)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert (await talk.error(method, taskId=early, inputResponses={}))["code"] == -32602


async def test_a_task_may_live_for_ever(make: Make) -> None:
    server = make(ttl=None)
    server.add_tool(lambda: None, name="work", task=True)
    async with served(server) as talk:
        assert (await talk.until(await talk.begin("work")))["ttlMs"] is None


async def test_a_task_does_not_run_beyond_its_time() -> None:
    server, ended = Server("test", extensions=[Tasks(MemoryStore(), ttl=0.05)]), asyncio.Event()

    @server.tool(task=True)
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(server) as talk:
        task_id = await talk.begin("work")
        async with asyncio.timeout(20):
            await ended.wait()
            while "result" in (answer := await talk.ask("tasks/get", {"taskId": task_id})):
                pass  # the work ends with its time, and the record a moment later
        assert answer["error"]["code"] == -32602


# Notices -----------------------------------------------------------------------------------------


async def test_a_listener_is_told_of_each_status_of_its_tasks(make: Make) -> None:
    server = make()

    @server.tool(task=True)
    async def work(ctx: Context) -> str | None:
        return (await ctx.elicit("Name?", str, key="name")).data

    async with served(server) as talk:
        task_id, other = await talk.begin("work"), await talk.begin("work")
        await talk.until(task_id, "input_required")
        await talk.until(other, "input_required")
        listening = talk.send("subscriptions/listen", {"notifications": {"taskIds": [task_id, "unknown"]}})

        async def told(count: int) -> list[dict[str, Any]]:
            await until(lambda: sum("method" in frame for frame in talk.frames) >= count)
            return [frame for frame in talk.frames if "method" in frame]

        acknowledged, now = await told(2)
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {"taskIds": [task_id]}
        assert now["params"]["status"] == "input_required"
        await talk.answer_task(other, name="Eve")
        await talk.until(other)
        await talk.answer_task(task_id, name="Ada")
        task = await talk.until(task_id)
        said = [now]
        while said[-1]["params"]["status"] != "completed":
            said = (await told(len(said) + 2))[1:]
        for frame in said:
            assert frame["method"] == "notifications/tasks"
            assert frame["params"].pop("_meta") == {NS + "subscriptionId": listening}
            assert frame["params"]["taskId"] == task_id
        # What it is told at the end is what it would have seen (tasks: Task Status Notifications).
        del task["_meta"], task["resultType"]
        assert said[-1]["params"] == task


async def test_a_server_without_tasks_grants_no_notices_of_them() -> None:
    async with Talk(Server("test")) as talk:
        talk.send("subscriptions/listen", {"notifications": {"toolsListChanged": True, "taskIds": ["x"]}})
        await talk.said(1)
        assert talk.frames[0]["params"]["notifications"] == {"toolsListChanged": True}


# Misuse ------------------------------------------------------------------------------------------


def test_a_tool_cannot_be_a_task_on_a_server_without_them() -> None:
    with pytest.raises(UsageError, match=r"extensions=\[Tasks\(\)\]"):
        Server("test").add_tool(lambda: None, name="work", task=True)


@pytest.mark.parametrize("options", [{"ttl": 0}, {"poll": -1}, {"lease": 0}, {"concurrency": 0}])
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        Tasks(MemoryStore(), **options)


def test_a_choice_that_there_is_not_is_refused() -> None:
    server = Server("test", extensions=[Tasks(MemoryStore())])
    with pytest.raises(UsageError, match="task: expected"):
        server.add_tool(lambda: None, name="work", task="sometimes")  # type: ignore[arg-type]  # on purpose


def test_what_the_server_says_of_itself() -> None:
    server = Server("test", extensions=[Tasks(MemoryStore())])
    assert server.kernel.capabilities().extensions == {NAME: {}}
    assert KNOWS
