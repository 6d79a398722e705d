"""Runs the tasks of one process: takes jobs from the store, keeps their leases alive, stops what is to stop.

Several processes on one store share the work; what one of them leaves behind, another takes up when
its lease is over. It knows no task from another.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from dragoman.errors import ClosedError
from dragoman.extensions.tasks.run import Run
from dragoman.extensions.tasks.shelf import Shelf
from dragoman.server.extension import Services
from dragoman.stores import Job, LeaseLost, StoreError

log = logging.getLogger("dragoman.tasks")

CLAIMERS: Final = 4  # claims under way at once: a store does several for the price of one
WAIT: Final = 30.0  # seconds that a claim waits for a job
SWEEP: Final = 60.0  # seconds between two looks for tasks that have no job
TROUBLE: Final = 1.0  # seconds to wait when the store does not work
GRACE: Final = 5.0  # seconds that steps get to come to their end when the server stops


class Running(msgspec.Struct, eq=False):
    """A run under way."""

    job: Job
    run: Run
    task: asyncio.Task[None]


class Worker:
    """Runs tasks of `shelf`, at most `concurrency` at once, each under a lease of `lease` seconds."""

    def __init__(self, shelf: Shelf, services: Services, *, lease: float, concurrency: int) -> None:
        self._shelf = shelf
        self._services = services
        self._lease = lease
        self._name = f"{os.getpid()}-{os.urandom(3).hex()}"
        self._slots = asyncio.Semaphore(concurrency)
        self._running: dict[str, Running] = {}
        self._loops: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin. Raises StoreError if the store does not work."""
        await self._shelf.queue.size()  # its faults are better told now than in the log
        loop = asyncio.get_running_loop()
        works: list[Callable[[], Awaitable[None]]] = [self._claim] * CLAIMERS
        works += [self._beat, self._listen, self._sweep]
        self._loops = [loop.create_task(self._again(work), name="dragoman-tasks") for work in works]

    async def stop(self) -> None:
        """End: steps under way come to their end, everything else is left for whoever comes next."""
        for task in self._loops:
            task.cancel()
        await self._steps_end()
        tasks = [*self._loops, *(running.task for running in self._running.values())]
        for task in tasks:
            task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=GRACE)
            if late:
                log.warning("%d tasks do not stop; they are left alone, and run again elsewhere", len(late))

    async def _steps_end(self) -> None:
        steps = [running.run.steps for running in self._running.values() if running.run.steps is not None]
        for each in steps:
            each.close()
        if steps:
            idle = [asyncio.ensure_future(each.idle.wait()) for each in steps]
            _, late = await asyncio.wait(idle, timeout=GRACE)
            for wait in late:
                wait.cancel()

    async def _again(self, work: Callable[[], Awaitable[None]]) -> None:
        """`work`, again whenever something failed it, until the store or this is closed."""
        while True:
            try:
                await work()
            except ClosedError:
                return
            except StoreError as exc:
                log.error("the tasks of this server do not get on: %s", exc)
            except Exception as exc:  # whatever it is, it must not be the end of all tasks
                log.error("the tasks of this server do not get on", exc_info=exc)
            await asyncio.sleep(TROUBLE)

    # Runs ----------------------------------------------------------------------------------------

    async def _claim(self) -> None:
        while True:
            await self._slots.acquire()
            job = None
            try:
                job = await self._shelf.queue.claim(self._name, lease=self._lease, wait=WAIT)
            finally:
                if job is None:
                    self._slots.release()
            if job is not None:
                self._start(job)

    def _start(self, job: Job) -> None:
        run = Run(self._shelf, self._services, job=job)
        task = asyncio.get_running_loop().create_task(self._run(run, job), name=f"dragoman-task-{job.id[:8]}")
        self._running[job.id] = running = Running(job, run, task)
        task.add_done_callback(lambda _: self._ended(running))

    def _ended(self, running: Running) -> None:
        self._slots.release()
        if self._running.get(running.job.id) is running:
            del self._running[running.job.id]

    async def _run(self, run: Run, job: Job) -> None:
        try:
            await run.go()
        except asyncio.CancelledError:
            # Stopped, lost, or this process ends: only in the last case is there anything to give back.
            await self._give_back(job, seconds=0.0)
            raise
        except LeaseLost:
            log.info("a task is run elsewhere, or is over: its run here ends")
        except ClosedError:
            return  # another process takes it up
        except StoreError as exc:
            log.error("a task has to be run again: %s", exc)
            await self._give_back(job, seconds=TROUBLE)
        except Exception as exc:  # one task must not take the worker along
            log.error("a task has to be run again", exc_info=exc)
            await self._give_back(job, seconds=TROUBLE * min(60, job.attempts))

    async def _give_back(self, job: Job, *, seconds: float) -> None:
        try:
            await self._shelf.queue.release(job, not_before=self._shelf.clock() + seconds)
        except (StoreError, ClosedError):
            return  # its lease ends all the same

    # Keeping up ----------------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            await asyncio.gather(*(self._keep(running) for running in list(self._running.values())))

    async def _keep(self, running: Running) -> None:
        if not await self._shelf.queue.heartbeat(running.job):
            running.task.cancel()

    async def _listen(self) -> None:
        async with self._shelf.stops.subscribe() as messages:
            async for message in messages:
                running = self._running.get(message.topic)
                if running is not None:
                    running.task.cancel()
        raise ClosedError("the store is closed")

    async def _sweep(self) -> None:
        """Tasks that work have a job. One may be missing where a process ended between two writes."""
        while True:
            async for mark, state in self._shelf.unfinished():
                if state is None or state.over:
                    await self._shelf.discard(mark)
                elif state.status == "working" and mark not in self._running:
                    await self._shelf.resume(mark)
            await asyncio.sleep(SWEEP)
