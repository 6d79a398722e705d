"""`Tasks`: the extension as a server takes it, and the answers to its requests."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Task, get_running_loop
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from inspect import isawaitable
from os import PathLike, urandom
from typing import Final, cast
from weakref import WeakSet

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Refusal, UsageError
from dragoman.extensions.tasks.place import open_store
from dragoman.extensions.tasks.shelf import Shelf, shelf_mark
from dragoman.extensions.tasks.state import Origin, State
from dragoman.extensions.tasks.watch import Watch
from dragoman.extensions.tasks.wire import METHODS, declared, demand, unknown
from dragoman.extensions.tasks.worker import Worker
from dragoman.model import EmptyResult, Result
from dragoman.model.tasks_extension import NAME, UpdateTaskParams
from dragoman.protocol.call import Call
from dragoman.server.asking import record
from dragoman.server.extension import Extension, Services
from dragoman.server.lifespan import Lifespan
from dragoman.server.middleware import Handler
from dragoman.server.tool import Tool, failed
from dragoman.stores import Store

DAY: Final = 86_400.0


class _Serving(msgspec.Struct, frozen=True, eq=False):
    """The extension while it is served in one event loop."""

    shelf: Shelf
    worker: Worker


class Tasks:
    """The extension `io.modelcontextprotocol/tasks`: `Server("orders", extensions=[Tasks("tasks.db")])`.

    `store` is a file that is made if need be, or a store of yours, which you close; without it a file in
    the user's state folder, named after the server. A file is encrypted with the server's `secret`, or,
    where it has none, with one that lies beside the file. Several processes of one server may share it.

    A task is forgotten `ttl` seconds after its creation (None: never), finished or not; a result is
    there for five minutes in any case. `poll` is how often clients are asked to look, in seconds. A
    process that falls silent loses its tasks to others after `lease` seconds. At most `concurrency` run
    at once in one process.
    """

    def __init__(
        self,
        store: Store | str | PathLike[str] | None = None,
        *,
        ttl: float | None = DAY,
        poll: float = 1.0,
        lease: float = 15.0,
        concurrency: int = 1000,
    ) -> None:
        for name, value in (("ttl", ttl), ("poll", poll), ("lease", lease)):
            if value is not None and value < 0.001:
                raise UsageError(f"{name}: expected at least 0.001 seconds, received {value!r}")
        if concurrency < 1:
            raise UsageError(f"concurrency: expected a whole number above 0, received {concurrency!r}")
        self._store = store
        self._ttl_ms = None if ttl is None else int(ttl * 1000)
        self._poll_ms = int(poll * 1000)
        self._lease = lease
        self._concurrency = concurrency

    def extension(self, services: Services) -> Extension:
        """The record for one server."""
        life = Lifespan(lambda _: self._serve(services), None)
        answers = _Answers(life, ttl_ms=self._ttl_ms, poll_ms=self._poll_ms)
        return Extension(
            name=NAME,
            methods=METHODS,
            routes={
                "tasks/get": answers.gated(answers.get),
                "tasks/update": answers.gated(answers.update),
                "tasks/cancel": answers.gated(answers.cancel),
            },
            layer=answers.layer,
            run_tool=answers.run_tool,
            listens=frozenset({"task_ids"}),
            life=life,
        )

    @asynccontextmanager
    async def _serve(self, services: Services) -> AsyncGenerator[_Serving]:
        store, ours = open_store(self._store, name=services.name, secrets=services.secrets)
        shelf = Shelf(store, services.name)
        worker = Worker(shelf, services, lease=self._lease, concurrency=self._concurrency)
        try:
            await worker.start()
            yield _Serving(shelf, worker)
        finally:
            await worker.stop()
            if ours:
                await store.close()


class _Answers:
    """What is answered to requests that have to do with tasks."""

    def __init__(self, life: Lifespan, *, ttl_ms: int | None, poll_ms: int) -> None:
        self._life = life
        self._ttl_ms = ttl_ms
        self._poll_ms = poll_ms
        self._woken = WeakSet[AbstractEventLoop]()
        self._waking = set[Task[None]]()

    async def _shelf(self) -> Shelf:
        serving: _Serving = await self._life.value()
        return serving.shelf

    async def _wake(self) -> None:
        with suppress(Refusal):  # which the log has already
            await self._life.value()

    def gated(self, handler: Handler) -> Handler:
        """`handler`, for clients that know tasks."""

        async def handle(call: Call) -> Result:
            demand(call)
            return await handler(call)

        return handle

    # tools/call ----------------------------------------------------------------------------------

    async def run_tool(self, tool: Tool, call: Call) -> Result:
        """Make a task of a call, if the tool says so and the client knows tasks; else just run it."""
        choice = tool.task
        if callable(choice):
            chosen = choice(call)
            choice = await chosen if isawaitable(chosen) else chosen
        if not choice:
            return await tool.run(call)
        if declared(call):
            return await self._create(call)
        if choice != "required":
            return await tool.run(call)
        if call.revision.handshake:
            return failed(
                f"{tool.name} runs as a task only, which revision {call.revision.version} cannot carry"
            )
        demand(call)
        raise AssertionError("a client that did not declare the extension was let through")

    async def _create(self, call: Call) -> Result:
        shelf = await self._shelf()
        now, known = shelf.clock(), record(call)
        state = State(
            task_id=urandom(20).hex(),
            created=now,
            updated=now,
            ttl_ms=self._ttl_ms,
            poll_ms=self._poll_ms,
            principal=call.principal,
        )
        params = replace(call.params, input_responses=UNSET, request_state=UNSET, task=UNSET)
        origin = Origin(
            task_id=state.task_id,
            request_id=cast("int | str", call.id),
            params=msgspec.Raw(msgspec.json.encode(params)),
            revision=call.revision.version,
            principal=call.principal,
            answers=known.answers,
            steps=known.steps,
            raw=known.raw,
        )
        await shelf.create(origin, state)
        return state.created_result()

    # tasks/* -------------------------------------------------------------------------------------

    async def get(self, call: Call) -> Result:
        """`tasks/get`. Raises Refusal -32602 for a task that is not this caller's."""
        state = await (await self._shelf()).state(shelf_mark(call.params.task_id))
        return _own(state, call).detailed()

    async def update(self, call: Call) -> Result:
        """`tasks/update`. Raises as `get`."""
        params: UpdateTaskParams = call.params
        shelf, mark = await self._shelf(), shelf_mark(params.task_id)
        _own(await shelf.state(mark), call)
        answers = params.input_responses
        state = await shelf.change(mark, lambda state, now: state.answered(answers, now))
        if _own(state, call).status == "working":
            await shelf.resume(mark)
        return EmptyResult()

    async def cancel(self, call: Call) -> Result:
        """`tasks/cancel`. Raises as `get`."""
        shelf, mark = await self._shelf(), shelf_mark(call.params.task_id)
        if _own(await shelf.state(mark), call).over:
            return EmptyResult()
        await shelf.change(mark, lambda state, now: state.cancelled(now))
        # Without its job no run of it can write any more; the message only makes it end sooner.
        await shelf.queue.remove(mark)
        await shelf.stops.publish(mark, b"")
        await shelf.discard(mark)
        return EmptyResult()

    # subscriptions/listen ------------------------------------------------------------------------

    async def layer(self, call: Call, proceed: Handler) -> Result:
        """Serve the part of a `subscriptions/listen` request that is about tasks."""
        loop = get_running_loop()
        if loop not in self._woken:
            # Where nobody says that serving begins, the first request does: tasks may be left from before.
            self._woken.add(loop)
            waking = loop.create_task(self._wake(), name="dragoman-tasks-wake")
            self._waking.add(waking)
            waking.add_done_callback(self._waking.discard)
        if call.method.name != "subscriptions/listen" or call.params.notifications.task_ids is UNSET:
            return await proceed(call)
        demand(call)
        watch = await Watch.over(await self._shelf(), call)
        return await watch.around(proceed)


def _own(state: State | None, call: Call) -> State:
    # A task of somebody else is as if it were not there.
    if state is None or state.principal != call.principal:
        raise unknown()
    return state
