"""What the extension puts on the wire, and who may see it. No store, no clock, no running.

Shapes and rules are those of the extension's own specification (`io.modelcontextprotocol/tasks`,
SEP-2663); revision 2025-11-25 has tasks of another shape, which are none of its business.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from dragoman.errors import Refusal
from dragoman.model import MISSING_REQUIRED_CLIENT_CAPABILITY, Model, Params, Result
from dragoman.model.tasks import TaskStatus
from dragoman.protocol.call import Call
from dragoman.revisions.base import Method, table

NAME: Final = "io.modelcontextprotocol/tasks"
RESULT_TYPE: Final = "task"
REQUIRED: Final[dict[str, Any]] = {"requiredCapabilities": {"extensions": {NAME: {}}}}


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


METHODS: Final = table(
    # `Mcp-Name` is the task's id, so that requests can be routed to whoever holds its state.
    Method("tasks/get", TaskParams, subject="task_id"),
    Method("tasks/update", UpdateTaskParams, subject="task_id"),
    Method("tasks/cancel", TaskParams, subject="task_id"),
)


def declared(call: Call) -> bool:
    """Whether the client said in this very request that it knows tasks."""
    if call.revision.handshake:
        return False  # the extension is for revisions where each request speaks for itself
    extensions = call.caller.capabilities.extensions
    return extensions is not UNSET and NAME in extensions


def demand(call: Call) -> None:
    """Go on only if the client knows tasks.

    Raises:
        Refusal: -32021 with `data.requiredCapabilities`.
    """
    if not declared(call):
        raise Refusal(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"This needs a client with the extension {NAME}, which it did not declare",
            REQUIRED,
        )


def arguments(call: Call) -> dict[str, Any]:
    """What a `tools/call` brings for its tool, as plain JSON that nobody has checked: to decide by."""
    raw = call.params.arguments
    return {} if raw is UNSET else msgspec.json.decode(raw, type=dict[str, Any])


def unknown() -> Refusal:
    """The error for a task that is not there, or not there for this caller: it is not told which."""
    return Refusal(-32602, "Invalid params: there is no task of this taskId, or its time is over")
