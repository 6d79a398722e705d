"""Tasks as revision 2025-11-25 has them on the wire, and no other: later they are an extension."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Raw, UnsetType, field

from dragoman.model.base import Model, PaginatedResult, Params, Result

TaskStatus = Literal["working", "input_required", "completed", "failed", "cancelled"]


class TaskMetadata(Model, kw_only=True):
    """The wish to run a request as a task; `ttl` is in milliseconds."""

    ttl: int | UnsetType = UNSET


class RelatedTaskMetadata(Model, kw_only=True):
    """The member of `_meta` that ties a message to a task."""

    task_id: str


class Task(Model, kw_only=True):
    """The state of a task; times are ISO 8601, `ttl` (null: unlimited) and `poll_interval` milliseconds."""

    task_id: str
    status: TaskStatus
    status_message: str | UnsetType = UNSET
    created_at: str
    last_updated_at: str
    ttl: int | None
    poll_interval: int | UnsetType = UNSET


class TaskParams(Params, kw_only=True):
    """`tasks/get`, `tasks/result` and `tasks/cancel`."""

    task_id: str


class CreateTaskResult(Result, kw_only=True):
    """The request has become a task."""

    task: Task


class TaskResult(Task, kw_only=True):
    """What `tasks/get` and `tasks/cancel` answer: a task that is a result as well."""

    meta: dict[str, Any] | UnsetType = field(name="_meta", default=UNSET)
    result_type: str | UnsetType = UNSET


class TaskStatusParams(Task, kw_only=True):
    """`notifications/tasks/status`."""

    meta: Raw | UnsetType = field(name="_meta", default=UNSET)


class ListTasksResult(PaginatedResult, kw_only=True):
    """One page of tasks."""

    tasks: list[Task]
