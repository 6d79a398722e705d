"""Steps that outlive a process: kept as begun before they run, with their value before the handler goes on.

What was begun and has no value may have had its effect, and nobody can tell: it is not run again.
"""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.errors import ToolError
from dragoman.extensions.tasks.shelf import Shelf, Step
from dragoman.extensions.tasks.state import State
from dragoman.stores import Job


class Steps:
    """The steps of one run of a task (`protocol.call.Keeper`)."""

    def __init__(self, shelf: Shelf, job: Job, *, state: State, kept: list[tuple[int, Step]]) -> None:
        self._shelf = shelf
        self._job = job
        self._state = state
        self._numbers = {step.key: number for number, step in kept}
        self._cut = {step.key for _, step in kept if not step.done}
        self._next = max(self._numbers.values(), default=-1) + 1
        self._running = 0
        self._closed = False
        self.idle = asyncio.Event()  # no step is running
        self.idle.set()

    async def begin(self, key: str, *, again: bool) -> None:
        """A step is about to run. `again`: it may even if it was cut off before.

        Raises:
            ToolError: it was cut off before.
            LeaseLost: somebody else runs the task now, or it is over.
        """
        if key in self._cut and not again:
            raise ToolError(
                f"the step {key!r} was cut off by the end of the server's process and may have taken effect: "
                "it is not run again"
            )
        if self._closed:
            await asyncio.Event().wait()  # until the run is cancelled: what has not begun can wait
        if key not in self._numbers:
            self._numbers[key] = self._next
            self._next += 1
        self._running += 1
        self.idle.clear()
        try:
            await self._put(Step(key))
        except BaseException:
            self._ended()
            raise
        self._cut.discard(key)

    async def done(self, key: str, value: Any) -> None:
        """It ran: keep its value. Raises LeaseLost."""
        try:
            await self._put(Step(key, done=True, value=value))
        finally:
            self._ended()

    async def failed(self, key: str) -> None:
        """It raised: the handler may run it again. Raises LeaseLost."""
        try:
            await self._shelf.drop_step(self._job.id, self._numbers[key], fence=self._job)
        finally:
            self._ended()

    def cut(self, key: str) -> None:
        """It was stopped in its middle."""
        self._cut.add(key)
        self._ended()

    def close(self) -> None:
        """No step begins any more; those under way go on."""
        self._closed = True

    def _ended(self) -> None:
        self._running -= 1
        if not self._running:
            self.idle.set()

    async def _put(self, step: Step) -> None:
        number = self._numbers[step.key]
        await self._shelf.put_step(self._job.id, number, step=step, state=self._state, fence=self._job)
