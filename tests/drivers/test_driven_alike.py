"""Programs by chance do the same, step by step, begun at once or each in a task of its own."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeAlias

import pytest

from dragoman.transports.driven import Starter

TURNS = 15  # of the loop, after which all that does not wait for us has come to rest
count: ContextVar[int] = ContextVar("count", default=0)

Program: TypeAlias = list[tuple[str, Any]]
Begin: TypeAlias = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None] | None]

PLAIN = (
    "wait",
    "wait",
    "wait",
    "turn",
    "cancel",
    "uncancel",
    "count",
    "raise",
    "look",
    "shield",
    "gather",
    "stream",
)
AROUND = ("timeout", "group", "catch", "finally", "wait_for", "handle")


def program(chance: random.Random, depth: int = 0) -> Program:
    steps: Program = []
    for _ in range(chance.randint(0, 4)):
        step = chance.choice(PLAIN + (AROUND if depth < 3 else ()))
        steps.append((step, program(chance, depth + 1) if step in AROUND else chance.random() < 0.4))
    return steps


class Run:
    """One program, what it saw, and the futures that it waits for."""

    def __init__(self, steps: Program) -> None:
        self.steps = steps
        self.seen: list[Any] = []
        self.futures: list[asyncio.Future[Any]] = []
        self.task: asyncio.Task[None] | None = None
        self.over = False

    def future(self) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self.futures.append(future)
        return future

    async def whole(self) -> None:
        try:
            await self.block(self.steps)
            self.seen.append("returned")
        except BaseException as exc:
            task = asyncio.current_task()
            assert task is not None
            self.seen.append(("raised", story(exc), task.cancelling()))
        self.over = True

    async def block(self, steps: Program) -> None:
        for name, more in steps:
            self.seen.append((name, story(sys.exc_info()[1])))
            found = await getattr(self, f"do_{name}")(more)
            self.seen.append((f"{name} done", repr(found), story(sys.exc_info()[1])))

    async def do_wait(self, _: bool) -> Any:
        return await self.future()

    async def do_turn(self, _: bool) -> None:
        await asyncio.sleep(0)

    async def do_cancel(self, _: bool) -> int:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return task.cancelling()

    async def do_uncancel(self, _: bool) -> int:
        task = asyncio.current_task()
        assert task is not None
        return task.uncancel()

    async def do_count(self, _: bool) -> int:
        count.set(count.get() + 1)
        return count.get()

    async def do_raise(self, _: bool) -> None:
        raise ValueError("of the program's own")

    async def do_look(self, _: bool) -> Any:
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling(), task.done(), task in asyncio.all_tasks()

    async def do_shield(self, _: bool) -> Any:
        return await asyncio.shield(self.future())

    async def do_gather(self, quiet: bool) -> Any:
        return await asyncio.gather(self.future(), asyncio.sleep(0, 1), return_exceptions=quiet)

    async def do_stream(self, whole: bool) -> list[int]:
        async def stream() -> AsyncGenerator[int, None]:
            try:
                yield 1
                await self.future()
                yield 2
            finally:
                self.seen.append("stream over")

        numbers, found = stream(), []
        try:
            async for number in numbers:
                found.append(number)
                if not whole:
                    break
        finally:
            await numbers.aclose()
        return found

    async def do_timeout(self, steps: Program) -> None:
        async with asyncio.timeout(None):
            await self.block(steps)

    async def do_wait_for(self, steps: Program) -> None:
        await asyncio.wait_for(self.block(steps), None)

    async def do_group(self, steps: Program) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.block(steps))
                await self.future()
        except* ValueError as exc:
            self.seen.append(("group", story(exc)))

    async def do_catch(self, steps: Program) -> None:
        try:
            await self.block(steps)
        except BaseException as exc:
            self.seen.append(("caught", story(exc)))

    async def do_handle(self, steps: Program) -> None:
        try:
            await self.future()
        except BaseException:
            await self.block(steps)

    async def do_finally(self, steps: Program) -> None:
        try:
            await self.block(steps)
        finally:
            self.seen.append("finally")
            await asyncio.sleep(0)


def story(exc: BaseException | None) -> str:
    """An exception, and those in whose handling it was raised."""
    names: list[str] = []
    while exc is not None:
        names.append(type(exc).__name__)
        exc = exc.__context__
    return " < ".join(names)


async def rest() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def played(seed: int, begin: Begin) -> list[list[Any]]:
    """What the programs of `seed` see, with futures settled and tasks cancelled as `seed` has it."""
    chance = random.Random(seed)
    runs = [Run(program(chance)) for _ in range(chance.randint(1, 3))]

    def start(run: Run) -> None:
        run.task = begin(run.whole())

    for run in runs:
        asyncio.get_running_loop().call_soon(start, run)
        await rest()
    while not all(run.over for run in runs):
        for run in runs:
            act, waiting = chance.random(), [future for future in run.futures if not future.done()]
            if run.over:
                continue
            if run.task is not None and (act < 0.25 or not waiting):
                run.seen.append("is cancelled")
                run.task.cancel()
            elif waiting:
                settle(chance.choice(waiting), act)
            await rest()
    for future in [future for run in runs for future in run.futures]:
        if future.done() and not future.cancelled():
            future.exception()  # whoever waited may be gone
    return [run.seen for run in runs]


def settle(future: asyncio.Future[Any], act: float) -> None:
    if act < 0.7:
        future.set_result("a value")
    elif act < 0.85:
        future.set_exception(KeyError("from outside"))
    else:
        future.cancel()


@pytest.mark.parametrize("seed", range(0, 400, 50))
async def test_programs_see_the_same(seed: int) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)  # what nobody waits for any more is not what is looked at
    starter = Starter(loop)
    try:
        for one in range(seed, seed + 50):
            in_tasks = await played(one, loop.create_task)
            at_once = await played(one, starter.begin)
            assert at_once == in_tasks, one
    finally:
        starter.close()
        await rest()
