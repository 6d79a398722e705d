"""Tasks as the extension `io.modelcontextprotocol/tasks` has them on the wire (SEP-2663), for both sides.

Revision 2025-11-25 has tasks of another shape: see `model.tasks`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Raw, UnsetType, field

from dragoman.model.base import Model, Params, Result
from dragoman.model.tasks import TaskStatus

NAME: Final = "io.modelcontextprotocol/tasks"
RESULT_TYPE: Final = "task"
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})


class TaskParams(Params, kw_only=True):
    """`tasks/get` and `tasks/cancel`."""

    task_id: str


class UpdateTaskParams(TaskParams, kw_only=True):
    """`tasks/update`: answers by the key of the question."""

    input_responses: dict[str, Any]


class Task(Result, kw_only=True):
    """The state of a task. Times are ISO 8601; `ttl_ms` counts from creation, None for ever."""

    task_id: str
    status: TaskStatus
    status_message: str | UnsetType = UNSET
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int | UnsetType = UNSET


class CreateTaskResult(Task, kw_only=True):
    """The call has become a task: the task, flat."""


class DetailedTask(Task, kw_only=True):
    """What `tasks/get` answers and `notifications/tasks` tells: the task and what its status brings along."""

    input_requests: dict[str, Raw] | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class TaskError(Model, kw_only=True):
    """The JSON-RPC error by which a task failed."""

    code: int
    message: str
    data: Any = field(default=UNSET)
