"""Functions in worker threads: what they give and raise comes back, and nothing waits for the forgotten."""

from __future__ import annotations

import asyncio
import threading

import pytest

from dragoman.transports.threads import Threads


async def test_values_and_exceptions_come_back() -> None:
    threads = Threads()

    def fails() -> None:
        raise ValueError("no")

    assert await threads.run(lambda: 7) == 7
    with pytest.raises(ValueError, match="no"):
        await threads.run(fails)


async def test_a_function_that_raises_stop_iteration_does_not_hang() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await Threads().run(lambda: next(iter([])))


async def test_many_at_once_come_back_to_their_own_callers() -> None:
    threads = Threads(8)

    def number(n: int) -> int:
        return n

    tasks = [threads.run(lambda n=n: number(n)) for n in range(1_000)]
    assert await asyncio.gather(*tasks) == list(range(1_000))


async def test_functions_run_side_by_side_up_to_the_limit() -> None:
    threads = Threads(3)
    together = threading.Barrier(3)
    await asyncio.wait_for(asyncio.gather(*(threads.run(together.wait) for _ in range(3))), 10)
    assert len({await threads.run(threading.get_ident) for _ in range(20)}) <= 3


async def test_whoever_gives_up_does_not_disturb_the_others() -> None:
    threads = Threads(1)
    begun, go = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        go.wait(10)
        return "slow"

    first = threads.run(slow)
    ran = []
    never = threads.run(lambda: ran.append(True))
    after = threads.run(lambda: "after")
    await asyncio.to_thread(begun.wait, 10)
    assert threads.working
    first.cancel()
    never.cancel()
    go.set()
    assert await after == "after"
    assert ran == []  # it was called off before a thread was free


def test_threads_serve_one_loop_after_another() -> None:
    threads = Threads()

    async def main() -> int:
        return await threads.run(lambda: 1)

    assert [asyncio.run(main()) for _ in range(3)] == [1, 1, 1]


def test_what_ends_after_its_loop_is_let_go() -> None:
    threads = Threads()
    go, over = threading.Event(), threading.Event()

    def slow() -> None:
        go.wait(10)

    async def main() -> None:
        future = threads.run(slow)
        future.cancel()
        threads.run(over.set)

    asyncio.run(main())
    go.set()
    assert over.wait(10)

    async def again() -> int:
        return await threads.run(lambda: 2)

    assert asyncio.run(again()) == 2
