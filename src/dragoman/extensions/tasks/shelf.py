"""Where tasks are kept: the records of `state` in a store, and the jobs that stand for unfinished ones.

A task is named in the store by a digest of its id, because whoever has the id may have the task, and
a store encrypts values but no keys. What this module refuses to know is how a task is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.extensions.tasks.state import Origin, State
from dragoman.stores import Job, Store

PAGE: Final = 200
_DONE: Final = 0.001  # seconds that a record lives whose time is over

_encode: Final = msgspec.json.Encoder().encode
_state: Final = msgspec.json.Decoder(State).decode
_origin: Final = msgspec.json.Decoder(Origin).decode


class Step(Struct, omit_defaults=True):
    """A step that was begun, and its value once it is done."""

    key: str
    done: bool = False
    value: Any = None


_step: Final = msgspec.json.Decoder(Step).decode

Change = Callable[[State, float], State | None]


def shelf_mark(task_id: str) -> str:
    """What a task is called in the store."""
    return sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class Shelf:
    """The tasks of one server, `name`, in `store`."""

    def __init__(self, store: Store, name: str) -> None:
        self.clock = store.clock
        self.queue = store.queue(f"{name}/tasks")
        self.news = store.bus(f"{name}/tasks")  # a task changed: its mark is the topic
        self.stops = store.bus(f"{name}/tasks.cancel")  # a task is to be stopped
        self._origins = store.kv(f"{name}/tasks.call")
        self._states = store.kv(f"{name}/tasks.state")
        self._steps = store.kv(f"{name}/tasks.step")
        self._open = store.kv(f"{name}/tasks.open")  # what is unfinished

    async def create(self, origin: Origin, state: State) -> None:
        """Keep a new task, and have it run. When this returns it survives the end of this process."""
        mark, ttl = shelf_mark(state.task_id), self._left(state)
        await asyncio.gather(
            self._origins.put(mark, _encode(origin), ttl=ttl),
            self._states.put(mark, _encode(state), ttl=ttl),
            self._open.put(mark, b"", ttl=ttl),
        )
        await self.queue.put(mark, b"")

    async def state(self, mark: str) -> State | None:
        """Where a task stands; None if there is none, or its time is over."""
        entry = await self._states.get(mark)
        return None if entry is None else _state(entry.value)

    async def origin(self, mark: str) -> Origin | None:
        """The call that it was; None if it is over."""
        entry = await self._origins.get(mark)
        return None if entry is None else _origin(entry.value)

    async def change(self, mark: str, change: Change, *, fence: Job | None = None) -> State | None:
        """Apply a change to the state as it is then, and tell who listens.

        Gives the state after it, also where nothing was to change; None if there is no such task.
        Raises LeaseLost as `KV` does.
        """
        while True:
            entry = await self._states.get(mark)
            if entry is None:
                return None
            state = _state(entry.value)
            changed = change(state, self.clock())
            if changed is None:
                return state
            written = await self._states.compare_and_set(
                mark, _encode(changed), version=entry.version, ttl=self._left(changed), fence=fence
            )
            if written is not None:
                await self.news.publish(mark, b"")
                return changed

    async def resume(self, mark: str) -> None:
        """Have it run, if it is not about to anyway."""
        await self.queue.put(mark, b"")

    async def discard(self, mark: str) -> None:
        """Forget what only an unfinished task needs."""
        await asyncio.gather(self._open.delete(mark), self._origins.delete(mark))
        while steps := await self._steps.scan(mark + "/", limit=PAGE):
            await asyncio.gather(*(self._steps.delete(entry.key) for entry in steps))

    async def unfinished(self) -> AsyncIterator[tuple[str, State | None]]:
        """All tasks that are not over, as far as is known."""
        after = ""
        while entries := await self._open.scan(after=after, limit=PAGE):
            states = await asyncio.gather(*(self.state(entry.key) for entry in entries))
            for entry, state in zip(entries, states, strict=True):
                yield entry.key, state
            after = entries[-1].key

    # Steps ---------------------------------------------------------------------------------------

    async def steps(self, mark: str) -> list[tuple[int, Step]]:
        """The steps of a task with their numbers, in the order in which they were begun."""
        found: list[tuple[int, Step]] = []
        after = ""
        while entries := await self._steps.scan(mark + "/", after=after, limit=PAGE):
            found += [(int(entry.key.rpartition("/")[2]), _step(entry.value)) for entry in entries]
            after = entries[-1].key
        return found

    async def put_step(self, mark: str, number: int, *, step: Step, state: State, fence: Job) -> None:
        """Keep a step. Raises LeaseLost if another run of the task has begun, or the task is over."""
        key = f"{mark}/{number:08}"
        await self._steps.put(key, _encode(step), ttl=self._left(state), fence=fence)

    async def drop_step(self, mark: str, number: int, *, fence: Job) -> None:
        """Forget that a step was begun. Raises LeaseLost likewise."""
        await self._steps.delete(f"{mark}/{number:08}", fence=fence)

    def _left(self, state: State) -> float | None:
        if state.expires is None:
            return None
        return max(state.expires - self.clock(), _DONE)
