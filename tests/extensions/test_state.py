"""How the state of a task changes: a table of events and outcomes, without a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.extensions.tasks.state import State
from dragoman.model import ElicitFormParams, ElicitRequest
from dragoman.model.tasks_extension import TaskError

FORM: dict[str, Any] = {"type": "object", "properties": {}}
ASK = ElicitRequest(params=ElicitFormParams(message="?", requested_schema=FORM))

Event = Callable[[State], State | None]

EVENTS: dict[str, Event] = {
    "note": lambda state: state.noted("half", 1.0),
    "ask": lambda state: state.parked({"a": ASK, "b": ASK}, None, now=1.0),
    "answer a": lambda state: state.answered({"a": 1}, 1.0),
    "answer all": lambda state: state.answered({"a": 1, "b": 2, "c": 3}, 1.0),
    "answer nothing": lambda state: state.answered({"c": 3}, 1.0),
    "complete": lambda state: state.completed(Raw(b"{}"), 1.0),
    "fail": lambda state: state.failed(TaskError(code=-32603, message="no"), 1.0),
    "cancel": lambda state: state.cancelled(1.0),
}


def fresh(**options: Any) -> State:
    return State(
        **{"task_id": "t", "created": 0.0, "updated": 0.0, "ttl_ms": 1000, "poll_ms": 100, **options}
    )


def after(*events: str) -> State:
    state = fresh()
    for event in events:
        state = EVENTS[event](state) or state
    return state


@pytest.mark.parametrize(
    ("events", "status"),
    [
        (["note"], "working"),
        (["ask"], "input_required"),
        (["ask", "note"], "input_required"),
        (["ask", "ask"], "input_required"),
        (["ask", "answer nothing"], "input_required"),
        (["ask", "answer a"], "input_required"),
        (["ask", "answer a", "answer a"], "input_required"),
        (["ask", "answer all"], "working"),
        (["answer all"], "working"),
        (["complete"], "completed"),
        (["fail"], "failed"),
        (["cancel"], "cancelled"),
        (["ask", "cancel"], "cancelled"),
        # What is over stays as it is (tasks: Task Status).
        *(([end, event], status) for end, status in
          [("complete", "completed"), ("fail", "failed"), ("cancel", "cancelled")] for event in EVENTS),
    ],
)  # fmt: skip
def test_status(events: list[str], status: str) -> None:
    assert after(*events).status == status


@pytest.mark.parametrize("event", ["ask", "note", "answer all", "complete", "fail", "cancel"])
def test_what_is_over_is_not_written_again(event: str) -> None:
    assert EVENTS[event](after("complete")) is None


def test_answers_go_to_the_question_as_the_handler_asked_it() -> None:
    state = after("ask", "answer all", "ask")
    assert set(state.waiting) == {"a~2", "b~2"}
    assert state.answers == {}  # it asks again, so these were of no use
    again = state.answered({"a": 9, "a~2": 1, "b~2": 2}, 2.0)
    assert again is not None
    assert again.answers == {"a": 1, "b": 2}


def test_keys_never_come_back() -> None:
    state = fresh().parked({"a": ASK, "a~2": ASK}, None, now=1.0)
    assert state is not None
    state = state.answered({"a": 1, "a~2": 2}, 1.0)
    assert state is not None
    state = state.parked({"a": ASK}, None, now=1.0)
    assert state is not None
    assert list(state.waiting) == ["a~3"]


def test_a_result_is_there_for_five_minutes_and_the_clock_never_runs_back() -> None:
    done = fresh(created=100.0, updated=150.0).completed(Raw(b"{}"), 140.0)
    assert done is not None
    assert done.ttl_ms == 340_000
    assert done.updated == 150.0
    ever = fresh(ttl_ms=None).completed(Raw(b"{}"), 1.0)
    assert ever is not None
    assert ever.ttl_ms is None


@pytest.mark.parametrize(
    "events", [["note"], ["ask"], ["ask", "answer a"], ["complete"], ["fail"], ["cancel"]]
)
def test_what_is_kept_comes_back_as_it_was(events: list[str]) -> None:
    state = after(*events)
    assert msgspec.json.decode(msgspec.json.encode(state), type=State) == state
