"""Which requests the extension adds, and to whom they are open. No store, no clock, no running."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal
from dragoman.model import MISSING_REQUIRED_CLIENT_CAPABILITY
from dragoman.model.tasks_extension import NAME, TaskParams, UpdateTaskParams
from dragoman.protocol.call import Call
from dragoman.revisions.base import Method, table

REQUIRED: Final[dict[str, Any]] = {"requiredCapabilities": {"extensions": {NAME: {}}}}


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
