"""What is kept of a task, and how it changes: plain records and functions. No store and no clock.

A change is a function from a state to the next one, or to None where nothing is to change; whoever
keeps the states applies it until nobody else was faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from dragoman.model import InputRequest
from dragoman.model.tasks import TaskStatus
from dragoman.model.tasks_extension import RESULT_TYPE, TERMINAL, CreateTaskResult, DetailedTask, TaskError

ROUNDS: Final = 64  # times a task may wait for answers
KEEP_MS: Final = 300_000  # a result is there for at least this long


class Origin(Struct, omit_defaults=True):
    """The call that became a task, as far as it takes to make it again. Never changes."""

    task_id: str
    request_id: int | str
    params: Raw
    revision: str
    principal: str | None = None
    # What the rounds before the task left.
    answers: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    raw: str | None = None


class State(Struct, omit_defaults=True):
    """Where a task stands. Times are seconds; `asked` are all questions ever, by their key on the wire."""

    task_id: str
    created: float
    updated: float
    ttl_ms: int | None
    poll_ms: int
    status: TaskStatus = "working"
    principal: str | None = None
    message: str | None = None
    asked: dict[str, str] = {}
    waiting: dict[str, Raw] = {}
    answers: dict[str, Any] = {}
    raw: str | None = None
    rounds: int = 0
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def over(self) -> bool:
        """Whether nothing can change any more."""
        return self.status in TERMINAL

    @property
    def expires(self) -> float | None:
        """When it is forgotten; None for never."""
        return None if self.ttl_ms is None else self.created + self.ttl_ms / 1000

    # Changes -------------------------------------------------------------------------------------

    def noted(self, message: str, now: float) -> State | None:
        """Something to say while it works."""
        if self.status != "working" or self.message == message:
            return None
        return self._next(now, message=message)

    def parked(self, requests: Mapping[str, InputRequest], raw: str | None, *, now: float) -> State | None:
        """It needs answers, or only to be entered again, where there are no questions.

        `requests` are by the key under which the handler asks them.

        A key on the wire stands for one question over the life of a task (tasks: Task Update
        Requests), so a question that is asked again gets a new one.
        """
        if self.status != "working":
            return None
        asked, waiting = dict(self.asked), dict[str, Raw]()
        for key, request in requests.items():
            fresh = _fresh(key, asked)
            asked[fresh] = key
            waiting[fresh] = Raw(msgspec.json.encode(request))
        answers = {key: answer for key, answer in self.answers.items() if key not in requests}
        return self._next(
            now,
            status="input_required" if waiting else "working",
            message=None,
            asked=asked,
            waiting=waiting,
            answers=answers,
            raw=raw,
            rounds=self.rounds + 1,
        )

    def answered(self, responses: Mapping[str, Any], now: float) -> State | None:
        """Answers came. Those to other questions than the open ones are passed over."""
        taken = {key: answer for key, answer in responses.items() if key in self.waiting}
        if self.status != "input_required" or not taken:
            return None
        waiting = {key: request for key, request in self.waiting.items() if key not in taken}
        return self._next(
            now,
            status="input_required" if waiting else "working",
            waiting=waiting,
            answers=self.answers | {self.asked[key]: answer for key, answer in taken.items()},
        )

    def completed(self, result: Raw, now: float) -> State | None:
        """It has its result, be it a tool's error."""
        return self._over("completed", now, result=result)

    def failed(self, error: TaskError, now: float) -> State | None:
        """The call ended with a JSON-RPC error."""
        text = Raw(msgspec.json.encode(error))
        return self._over("failed", now, error=text, message=error.message)

    def cancelled(self, now: float) -> State | None:
        """The client does not want it any more."""
        return self._over("cancelled", now, message="Cancelled by the client")

    def _over(self, status: TaskStatus, now: float, **changes: Any) -> State | None:
        if self.over:
            return None
        ttl = self.ttl_ms
        if ttl is not None:
            ttl = max(ttl, int((now - self.created) * 1000) + KEEP_MS)
        changes = {"message": None, **changes}
        return self._next(
            now, status=status, ttl_ms=ttl, asked={}, waiting={}, answers={}, raw=None, **changes
        )

    def _next(self, now: float, **changes: Any) -> State:
        return replace(self, updated=max(now, self.updated), **changes)

    # Views ---------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, Any]:
        return {
            "task_id": self.task_id,
            "status": self.status,
            "status_message": UNSET if self.message is None else self.message,
            "created_at": _iso(self.created),
            "last_updated_at": _iso(self.updated),
            "ttl_ms": self.ttl_ms,
            "poll_interval_ms": self.poll_ms,
        }

    def created_result(self) -> CreateTaskResult:
        """What the call that became this task answers."""
        return CreateTaskResult(result_type=RESULT_TYPE, **self._facts())

    def detailed(self) -> DetailedTask:
        """All that a client may know of it."""
        task = DetailedTask(**self._facts())
        if self.status == "input_required":
            task.input_requests = self.waiting
        task.result, task.error = self.result, self.error
        return task


def _fresh(key: str, asked: Mapping[str, str]) -> str:
    fresh, count = key, 1
    while fresh in asked:
        count += 1
        fresh = f"{key}~{count}"
    return fresh


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
