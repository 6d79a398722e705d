"""Work begun at once behaves as in a task of its own: its task, its context, its cancellation."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from dragoman.transports.driven import Starter

mark: ContextVar[str] = ContextVar("mark", default="none")


@asynccontextmanager
async def beginning() -> AsyncIterator[Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]]:
    """Begins work from a callback of the loop, as a protocol does, once a task is held ready."""
    loop = asyncio.get_running_loop()
    starter = Starter(loop)
    turn: asyncio.Future[Any]

    def act(work: Callable[[], Awaitable[Any]]) -> None:
        turn.set_result(starter.begin(work()))

    async def begin(work: Callable[[], Awaitable[Any]]) -> Any:
        nonlocal turn
        turn = loop.create_future()
        loop.call_soon(act, work)
        return await turn

    async def nothing() -> None:
        return

    first = await begin(nothing)
    await first  # the very first work has a task of its own
    yield begin
    starter.close()
    await asyncio.sleep(0)


async def test_work_that_does_not_wait_is_over_at_once_and_has_no_task() -> None:
    ran = []

    async def work() -> None:
        ran.append(asyncio.current_task() is not None)

    async with beginning() as begin:
        assert await begin(work) is None
        assert await begin(work) is None
    assert ran == [True, True]  # it saw a task all the same


async def test_work_that_waits_goes_on_in_the_task_that_it_began_in() -> None:
    seen = []

    async def work() -> None:
        seen.append(asyncio.current_task())
        await asyncio.sleep(0)
        seen.append(asyncio.current_task())
        await asyncio.sleep(0.001)
        seen.append(asyncio.current_task())

    async with beginning() as begin:
        task = await begin(work)
        await task
    assert seen == [task, task, task]


async def test_each_work_has_a_context_of_its_own_for_all_its_steps() -> None:
    seen = []

    async def first() -> None:
        mark.set("first")

    async def second() -> None:
        seen.append(mark.get())
        mark.set("second")
        await asyncio.sleep(0)
        seen.append(mark.get())

    async with beginning() as begin:
        assert await begin(first) is None
        await (await begin(second))
    assert seen == ["none", "second"]


async def test_a_timeout_begun_in_the_first_step_ends_the_right_work() -> None:
    ended = []

    async def work() -> None:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            ended.append("timeout")

    async with beginning() as begin:
        await (await begin(work))
    assert ended == ["timeout"]


async def test_a_task_group_begun_in_the_first_step_works() -> None:
    async def one() -> int:
        await asyncio.sleep(0)
        return 1

    got = []

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(3)]
        got.extend(task.result() for task in tasks)

    async with beginning() as begin:
        await (await begin(work))
    assert got == [1, 1, 1]


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_cancellation_reaches_work_that_waits_at_any_time(turns: int) -> None:
    seen = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async with beginning() as begin:
        task = await begin(work)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert seen == ["cancelled"]


async def test_a_cancellation_taken_back_in_the_first_step_is_what_it_is_in_a_task() -> None:
    told: list[str] = []

    async def works() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        task.uncancel()
        try:
            await asyncio.sleep(0.001)
            told.append("went on")
        except asyncio.CancelledError:
            told.append("cancelled")

    await asyncio.create_task(works())
    async with beginning() as begin:
        await (await begin(works))
    assert told[0] == told[1]


@pytest.mark.parametrize("turns", [0, 1, 5])
@pytest.mark.parametrize("kind", ["future", "turn"])
async def test_a_cancellation_that_was_caught_is_over(kind: str, turns: int) -> None:
    found: list[Any] = []

    async def works() -> None:
        loop = asyncio.get_running_loop()
        with suppress(asyncio.CancelledError):
            await (asyncio.sleep(0) if kind == "turn" and not turns else loop.create_future())
        found.append(sys.exc_info()[1])
        try:
            raise ValueError("of its own")
        except ValueError as exc:
            found.append(exc.__context__)
        await asyncio.sleep(0)
        found.append(sys.exc_info()[1])

    async with beginning() as begin:
        task = await begin(works)
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await task
    assert found == [None, None, None]


async def test_cancellation_at_once_reaches_work_that_waits_for_nothing_that_can_be_cancelled() -> None:
    seen = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            seen.append("cancelled")  # and it ends as if nothing had been

    async with beginning() as begin:
        task = await begin(work)
        task.cancel()
        await task
    assert seen == ["cancelled"]


async def test_cancelling_work_cancels_the_task_that_it_awaits() -> None:
    inner: asyncio.Task[None] | None = None

    async def work() -> None:
        nonlocal inner
        inner = asyncio.ensure_future(asyncio.sleep(60))
        await inner

    async with beginning() as begin:
        task = await begin(work)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert inner is not None
    assert inner.cancelled()


async def test_two_works_may_wait_for_the_same_future() -> None:
    loop = asyncio.get_running_loop()
    shared = loop.create_future()
    got = []

    async def work() -> None:
        got.append(await shared)

    async with beginning() as begin:
        tasks = [await begin(work) for _ in range(3)]
        await asyncio.sleep(0)
        shared.set_result("it")
        await asyncio.gather(*tasks)
    assert got == ["it", "it", "it"]


async def test_work_may_cancel_the_task_that_it_runs_in() -> None:
    seen = []

    async def stops_itself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def stops_itself_and_ends() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()

    async def plain() -> None:
        seen.append("plain")

    async with beginning() as begin:
        task = await begin(stops_itself)
        with pytest.raises(asyncio.CancelledError):
            await task
        ended = await begin(stops_itself_and_ends)
        if ended is not None:
            with pytest.raises(asyncio.CancelledError):
                await ended
        after = await begin(plain)
        if after is not None:
            await after
    assert seen == ["cancelled", "plain"]


async def test_inside_a_task_work_begins_with_the_next_turn() -> None:
    ran = []

    async def work() -> None:
        ran.append(True)

    starter = Starter(asyncio.get_running_loop())
    first, second = starter.begin(work()), starter.begin(work())
    assert not ran
    assert first is not None
    assert second is not None
    await asyncio.gather(first, second)
    assert ran == [True, True]
    starter.close()
    await asyncio.sleep(0)


class Odd:
    """Something awaitable that gives the task what no task takes."""

    def __init__(self, given: object) -> None:
        self.given = given

    def __await__(self) -> Generator[Any, Any, None]:
        yield self.given


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("kind", ["a number", "a text", "a future without await"])
async def test_work_that_waits_for_no_future_is_told_so_as_in_a_task(kind: str, cancelled: bool) -> None:
    future = asyncio.get_running_loop().create_future()
    given = {"a number": 42, "a text": "x", "a future without await": future}
    seen: list[str] = []

    async def work() -> None:
        try:
            await Odd(given[kind])
        except (RuntimeError, asyncio.CancelledError) as exc:
            seen.append(type(exc).__name__)

    async with beginning() as begin:
        task = await begin(work)
        if cancelled:
            task.cancel()
        await task
    plain = asyncio.get_running_loop().create_task(work())
    await asyncio.sleep(0)
    if cancelled:
        plain.cancel()
    await plain
    assert seen[0] == seen[1]


async def test_a_task_held_ready_that_somebody_cancels_is_replaced() -> None:
    ran = []

    async def cancels_all_others() -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task(), me}:
            task.cancel()

    async def waits() -> None:
        await asyncio.sleep(0)
        ran.append(True)

    me = asyncio.current_task()
    async with beginning() as begin:
        for task in asyncio.all_tasks() - {me}:
            task.cancel()
        await (await begin(waits))
        await asyncio.sleep(0)
        await (await begin(cancels_all_others) or asyncio.sleep(0))
        await (await begin(waits))
    assert ran == [True, True]


async def test_what_work_leaves_for_its_own_task_reaches_no_other_work() -> None:
    kept: list[asyncio.Task[Any]] = []
    ended: list[str] = []

    async def keeps() -> None:
        task = asyncio.current_task()
        assert task is not None
        kept.append(task)

    async def waits() -> None:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        ended.append("waits")

    async with beginning() as begin:
        assert await begin(keeps) is None
        task = await begin(waits)
        kept[0].cancel()
        await task
    assert ended == ["waits"]


def _marks(task: asyncio.Task[Any]) -> bool:
    found = hasattr(task, "request")
    task.request = "mine"  # type: ignore[attr-defined]  # libraries keep things there
    return found


def _names(task: asyncio.Task[Any]) -> bool:
    found = task.get_name() == "mine"
    task.set_name("mine")
    return found


_by_task: WeakKeyDictionary[asyncio.Task[Any], str] = WeakKeyDictionary()


def _files(task: asyncio.Task[Any]) -> bool:
    found = task in _by_task
    _by_task[task] = "mine"
    return found


@pytest.mark.parametrize("leave", [_marks, _names, _files])
async def test_what_work_leaves_with_its_task_is_not_found_by_the_next(
    leave: Callable[[asyncio.Task[Any]], bool],
) -> None:
    found: list[bool] = []

    async def works() -> None:
        task = asyncio.current_task()
        assert task is not None
        found.append(leave(task))

    async with beginning() as begin:
        for _ in range(5):
            assert (await begin(works)) is None or found
            await asyncio.sleep(0)  # a task is held ready again
    assert found == [False] * 5


async def test_who_waits_for_the_end_of_work_is_told_when_it_ends() -> None:
    told: list[str] = []

    async def watched() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: told.append("over"))

    async with beginning() as begin:
        assert await begin(watched) is None
        del watched
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert told == ["over"]
