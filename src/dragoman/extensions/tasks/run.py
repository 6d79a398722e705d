"""One run of a task: from what the store has of it to its handler, and from what comes of that to the store.

A task that needs answers ends its run; the answers begin another, which enters the handler anew. It
refuses to know who else runs what.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from dragoman.errors import ClosedError, Refusal
from dragoman.extensions.tasks.shelf import Change, Shelf
from dragoman.extensions.tasks.state import ROUNDS, Origin, State
from dragoman.extensions.tasks.steps import Steps
from dragoman.model import (
    CallToolParams,
    InputRequest,
    InputRequiredResult,
    ProgressParams,
    RequestMeta,
    Result,
)
from dragoman.model.tasks_extension import TaskError
from dragoman.protocol.call import Call
from dragoman.protocol.link import Link
from dragoman.protocol.record import Record
from dragoman.revisions import BY_VERSION
from dragoman.revisions.base import Addition
from dragoman.server.asking import Suspend, posed
from dragoman.server.extension import Services
from dragoman.stores import Job, StoreError

log = logging.getLogger("dragoman.tasks")

PATIENCE: Final = 20  # times a job waits for a process that has its tool
PATIENCE_SECONDS: Final = 2.0
NOTE_SECONDS: Final = 0.25  # between two notes of progress

_params: Final = msgspec.json.Decoder(CallToolParams).decode
_meta: Final = msgspec.json.Decoder(RequestMeta).decode


class TaskChannel:
    """The way back to a client that has its answer already: progress becomes the task's status message."""

    congested = False

    def __init__(self, run: Run) -> None:
        self._run = run
        self._loop = asyncio.get_running_loop()

    def notify(self, method: str, params: object) -> None:
        """Note progress; tasks have no other notification (tasks: Task Status Notifications)."""
        if method == "notifications/progress" and isinstance(params, ProgressParams):
            self._loop.call_soon_threadsafe(self._run.note, _said(params))

    def ask(self, method: str, params: object) -> Awaitable[Any]:
        """There is nobody to ask: questions stand in the task's state."""
        del params
        raise ClosedError(f"the request that became this task was answered: {method} cannot be sent")


def _noting(text: str) -> Change:
    return lambda state, now: state.noted(text, now)


def _said(progress: ProgressParams) -> str:
    if progress.message is not UNSET:
        return progress.message
    return f"{progress.progress:g}" + ("" if progress.total is UNSET else f" of {progress.total:g}")


class Run:
    """One run of the task that `job` stands for."""

    def __init__(self, shelf: Shelf, services: Services, *, job: Job) -> None:
        self._shelf = shelf
        self._services = services
        self._job = job
        self._note: str | None = None
        self._ended = False
        self._noting: asyncio.Task[None] | None = None
        self.steps: Steps | None = None

    async def go(self) -> None:
        """Run it until it is over or needs answers.

        Raises:
            LeaseLost: somebody else runs it now, or it is over.
            StoreError: the store does not work; the task is run again.
        """
        mark = self._job.id
        state, origin = await asyncio.gather(self._shelf.state(mark), self._shelf.origin(mark))
        if state is None or origin is None or state.over:
            await self._finish()
        elif state.status == "input_required":
            await self._park()
        elif self._services.tool(_params(origin.params).name) is None and self._job.attempts < PATIENCE:
            # A newer process may have it.
            due = self._shelf.clock() + PATIENCE_SECONDS
            await self._shelf.queue.release(self._job, not_before=due)
        else:
            await self._within(state, origin)

    async def _within(self, state: State, origin: Origin) -> None:
        left = None if state.expires is None else max(0.0, state.expires - self._shelf.clock())
        limit = asyncio.timeout(left)
        try:
            async with limit:
                await self._run(state, origin)
        except TimeoutError:
            if not limit.expired():
                raise
            log.warning("a task of the tool %s was stopped: its time is over", _params(origin.params).name)
            await self._finish()

    async def _run(self, state: State, origin: Origin) -> None:
        kept = await self._shelf.steps(self._job.id)
        self.steps = Steps(self._shelf, self._job, state=state, kept=kept)
        values = origin.steps | {step.key: step.value for _, step in kept if step.done}
        record = Record(
            0.0, answers=origin.answers | state.answers, steps=values, raw=state.raw or origin.raw
        )
        try:
            call = self._call(origin, record)
            result = await self._result(call)
            if type(result) is InputRequiredResult:
                asked: Mapping[str, InputRequest] = result.input_requests or {}
                for request in asked.values():
                    posed(call, request)
                raw = None if result.request_state is UNSET else result.request_state
                await self._ask(state, asked, raw=raw)
            else:
                await self._complete(call, result)
        except Suspend as suspend:
            await self._ask(state, suspend.requests, raw=None)
        except Refusal as refusal:
            await self._fail(TaskError(code=refusal.code, message=refusal.message, data=refusal.data))
        finally:
            self._ended = True
            if self._noting is not None:
                self._noting.cancel()

    def _call(self, origin: Origin, record: Record) -> Call:
        """The call as it was, with what it has found out since."""
        revision = BY_VERSION[origin.revision]
        method = revision.methods["tools/call"]
        params = _params(origin.params)
        meta = RequestMeta() if params.meta is UNSET else _meta(params.meta)
        return Call(
            id=origin.request_id,
            method=method,
            params=params,
            # Whoever asks for the task sees its progress, whether or not the call had a token for it.
            meta=replace(meta, progress_token=origin.task_id),
            caller=revision.identify(None, method, meta=meta),
            revision=revision,
            link=Link(principal=origin.principal),
            channel=TaskChannel(self),
            principal=origin.principal,
            scratch=record,
            keeper=self.steps,
        )

    async def _result(self, call: Call) -> Result:
        await self._services.prepare(call)
        name = call.params.name
        tool = self._services.tool(name)
        if tool is None:
            raise Refusal(-32602, f"Unknown tool: {name}", {"name": name})
        return await tool.run(call)

    async def _complete(self, call: Call, result: Result) -> None:
        sealed = call.revision.seal(result, call.method, extra=Addition({}))
        try:
            text = Raw(msgspec.json.encode(sealed if sealed.meta else replace(sealed, meta=UNSET)))
        except (TypeError, ValueError) as exc:
            log.error("the result of a task of the tool %s cannot be written: %s", call.params.name, exc)
            await self._fail(
                TaskError(code=-32603, message="Internal error: the result cannot be written as JSON")
            )
            return
        await self._shelf.change(self._job.id, lambda state, now: state.completed(text, now), fence=self._job)
        await self._finish()

    async def _fail(self, error: TaskError) -> None:
        await self._shelf.change(self._job.id, lambda state, now: state.failed(error, now), fence=self._job)
        await self._finish()

    async def _finish(self) -> None:
        await self._shelf.discard(self._job.id)
        await self._shelf.queue.ack(self._job)

    async def _ask(self, state: State, requests: Mapping[str, InputRequest], *, raw: str | None) -> None:
        if state.rounds >= ROUNDS:
            await self._fail(
                TaskError(code=-32603, message=f"No final result after {ROUNDS} rounds of input")
            )
            return
        await self._shelf.change(
            self._job.id, lambda now_is, now: now_is.parked(requests, raw, now=now), fence=self._job
        )
        await self._park()

    async def _park(self) -> None:
        await self._shelf.queue.ack(self._job)
        # Answers that came between the two found a job there, and put none.
        state = await self._shelf.state(self._job.id)
        if state is not None and state.status == "working":
            await self._shelf.resume(self._job.id)

    # Progress ------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Say how far it is, soon."""
        if self._ended:
            return
        self._note = text
        if self._noting is None or self._noting.done():
            self._noting = asyncio.get_running_loop().create_task(self._keep_notes())

    async def _keep_notes(self) -> None:
        mark = self._job.id
        while (text := self._note) is not None:
            self._note = None
            try:
                await self._shelf.change(mark, _noting(text), fence=self._job)
            except (ClosedError, StoreError):
                return  # whatever it is, the run finds out by itself
            await asyncio.sleep(NOTE_SECONDS)
