"""A call that became a task at the server: looked after until its result is there.

Looks as often as the server suggests, answers what the task asks, and cancels the task when its
caller does not wait any longer. It knows no tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from dragoman.client.connection import Connection, Extras
from dragoman.errors import DeadlineError, DragomanError, PeerFault, RemoteError
from dragoman.model import CallToolResult, InputRequest, TextContent
from dragoman.model.tasks_extension import (
    RESULT_TYPE,
    TERMINAL,
    DetailedTask,
    TaskError,
    TaskParams,
    UpdateTaskParams,
)

POLL: Final = 1.0  # seconds, where the server suggests nothing
POLL_LEAST: Final = 0.01
POLL_MOST: Final = 60.0
# What a request names in `Mcp-Name`, so that it finds the server that has the task (SEP-2663, HTTP).
SUBJECTS: Final[Mapping[str, str]] = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
GOODBYE: Final = 2.0  # seconds that a cancellation may take

Fulfil = Callable[[dict[str, InputRequest]], Awaitable[dict[str, Any]]]


class _Kind(msgspec.Struct, rename="camel"):
    result_type: Any = UNSET


_kind: Final = msgspec.json.Decoder(_Kind).decode
_task: Final = msgspec.json.Decoder(DetailedTask).decode
_request: Final = msgspec.json.Decoder(InputRequest).decode
_error: Final = msgspec.json.Decoder(TaskError).decode


def is_task(raw: Raw) -> bool:
    """Whether a result says that the call became a task."""
    try:
        return bool(_kind(raw).result_type == RESULT_TYPE)
    except msgspec.ValidationError:
        return False


class Following:
    """One task, from `created`, the result that made it one; `fulfil` answers what it asks."""

    def __init__(self, connection: Connection, created: Raw, *, fulfil: Fulfil) -> None:
        self._connection = connection
        self._fulfil = fulfil
        self._task = self._read(created)
        self._id = self._task.task_id
        self._extras = Extras(self._id)
        self._answered: set[str] = set()

    async def result(self, seconds: float | None) -> Raw:
        """The result that the call would have had, within that many seconds.

        Raises:
            RemoteError: the call ended with an error, or the task is not there any more.
            DeadlineError: the time is over; the task is cancelled, as it is by whatever else ends this.
            PeerFault: what the server says of the task is none of the extension's shapes.
        """
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                while self._task.status not in TERMINAL:
                    await self._next()
        except TimeoutError:
            await self._cancel()
            if not limit.expired():
                raise
            text = f"the task that the call became was not over within {seconds:g} s"
            name = self._connection.target.name
            raise DeadlineError(text, server=name, stage="overall", hint="a larger timeout=") from None
        except RemoteError:
            raise  # it is not there any more
        except BaseException:
            await self._cancel()
            raise
        return self._outcome()

    async def _next(self) -> None:
        asked = {} if self._task.input_requests is UNSET else self._task.input_requests
        fresh = {key: _asked(request) for key, request in asked.items() if key not in self._answered}
        if fresh:
            # What was answered once is not asked of anybody again, however long the server shows it.
            self._answered |= set(fresh)
            answers = await self._fulfil(fresh)
            update = UpdateTaskParams(task_id=self._id, input_responses=answers)
            await self._connection.request("tasks/update", update, extras=self._extras)
        else:
            await asyncio.sleep(_pause(self._task))
        self._task = self._read(await self._ask("tasks/get"))

    async def _ask(self, method: str) -> Raw:
        return await self._connection.request(method, TaskParams(task_id=self._id), extras=self._extras)

    async def _cancel(self) -> None:
        goodbye = asyncio.get_running_loop().create_task(self._say_cancel())
        await asyncio.wait([goodbye], timeout=GOODBYE)

    async def _say_cancel(self) -> None:
        try:
            await self._ask("tasks/cancel")
        except DragomanError:
            return  # it cannot be told: the task ends with its lifetime

    def _read(self, raw: Raw) -> DetailedTask:
        try:
            return _task(raw)
        except msgspec.ValidationError as exc:
            raise self._fault(f"malformed task: {exc}") from None

    def _outcome(self) -> Raw:
        task = self._task
        if task.status == "cancelled":
            said = "" if task.status_message is UNSET else f": {task.status_message}"
            text = TextContent(text=f"The task was cancelled{said}")
            return Raw(msgspec.json.encode(CallToolResult(content=[text], is_error=True)))
        if task.status == "completed" and task.result is not UNSET:
            return task.result
        if task.status == "failed" and task.error is not UNSET:
            try:
                error = _error(task.error)
            except msgspec.ValidationError as exc:
                raise self._fault(f"malformed error of a task: {exc}") from None
            raise RemoteError(error.code, error.message, None if error.data is UNSET else error.data)
        raise self._fault(f"a task that is {task.status} came without what that status brings")

    def _fault(self, text: str) -> PeerFault:
        return PeerFault(text, server=self._connection.target.name, stage="call")


def _asked(raw: Raw) -> InputRequest:
    try:
        request: InputRequest = _request(raw)
    except msgspec.ValidationError as exc:
        raise PeerFault(f"malformed request for input: {exc}", stage="call") from None
    return request


def _pause(task: DetailedTask) -> float:
    wait = POLL if task.poll_interval_ms is UNSET else task.poll_interval_ms / 1000
    return min(max(wait, POLL_LEAST), POLL_MOST)
