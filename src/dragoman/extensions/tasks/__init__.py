"""The extension `io.modelcontextprotocol/tasks`: calls that go on when their request is answered."""

from __future__ import annotations

from dragoman.extensions.tasks.tasks import Tasks
from dragoman.extensions.tasks.wire import arguments, declared, demand
from dragoman.model.tasks_extension import NAME

__all__ = ["NAME", "Tasks", "arguments", "declared", "demand"]
