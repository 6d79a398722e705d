"""A server that is killed while its tasks run: none is lost, and nothing is done twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.stdio import PATIENCE, ServerProcess
from tests.extensions.wire import OVER, Client, check

SURVIVOR = Path(__file__).with_name("survivor.py")
CUT = "cut off"


class Place:
    """The files that outlive the servers."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "tasks.db"
        self.ledger = folder / "ledger"
        self.gate = folder / "gate"

    @contextmanager
    def served(self) -> Iterator[Client]:
        """A server process; it dies by SIGKILL at the end of the block."""
        with ServerProcess(str(self.store), str(self.ledger), str(self.gate), script=SURVIVOR) as process:
            yield Client(process)
            process.process.kill()
            process.process.wait()

    def done(self) -> Counter[str]:
        """What was done, and how often."""
        return Counter(self.ledger.read_text().splitlines() if self.ledger.exists() else [])

    def until_done(self, count: int) -> None:
        """Wait until that many things were done."""
        deadline = time.monotonic() + PATIENCE
        while self.done().total() < count:
            assert time.monotonic() < deadline, self.done().total()
            time.sleep(0.001)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def until(client: Client, ids: list[str], ready: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """The tasks, once all of them are ready."""
    deadline = time.monotonic() + PATIENCE
    while True:
        tasks = client.look(ids)
        if all(map(ready, tasks)):
            return tasks
        assert time.monotonic() < deadline, Counter(task["status"] for task in tasks)
        time.sleep(0.05)


def over(task: dict[str, Any]) -> bool:
    return task["status"] in OVER


def text(task: dict[str, Any]) -> str:
    assert task["status"] == "completed", task
    return str(task["result"]["content"][0]["text"])


def test_hundred_tasks_outlive_the_process_that_runs_them(place: Place) -> None:
    with place.served() as client:
        ids = client.begin("work", 100)
        until(client, ids, lambda task: task.get("statusMessage") == "half")
    assert place.done() == Counter(f"{n} first" for n in range(100))

    place.gate.touch()
    with place.served() as client:
        tasks = until(client, ids, over)
    for number, task in enumerate(tasks):
        check("GetTaskResult", task)
        assert text(task) == f"{number} first, {number} second"
    assert place.done() == Counter(f"{n} {step}" for n in range(100) for step in ("first", "second"))


def test_questions_and_answers_outlive_it_too(place: Place) -> None:
    with place.served() as client:
        ids = client.begin("ask", 20)
        until(client, ids, lambda task: task["status"] == "input_required")
        yes = {"on": {"action": "accept", "content": {"value": True}}}
        client.ask_all([("tasks/update", {"taskId": id_, "inputResponses": yes}) for id_ in ids[:10]])
    with place.served() as client:
        waiting = client.look(ids[10:])
        assert [list(task["inputRequests"]) for task in waiting] == [["on"]] * 10
        client.ask_all([("tasks/update", {"taskId": id_, "inputResponses": yes}) for id_ in ids[10:]])
        tasks = until(client, ids, over)
    outcomes = [text(task) for task in tasks]
    for number, outcome in enumerate(outcomes):
        assert outcome == f"{number} first, True, {number} second" or CUT in outcome
    # Those that nobody had answered had nothing to lose.
    assert not any(CUT in outcome for outcome in outcomes[10:])
    assert max(place.done().values()) == 1


def test_the_other_process_takes_up_what_a_killed_one_leaves(place: Place) -> None:
    with place.served() as survivor:
        with place.served() as victim:
            # Each of them begins some, and both of them run some.
            ids = victim.begin("work", 50) + survivor.begin("work", 50)
            until(victim, ids, lambda task: task.get("statusMessage") == "half")
        place.gate.touch()
        tasks = until(survivor, ids, over)
    assert [text(task) for task in tasks] == [f"{n % 50} first, {n % 50} second" for n in range(100)]
    assert place.done() == Counter({f"{n} {step}": 2 for n in range(50) for step in ("first", "second")})


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again_at_any_moment(place: Place, seed: int) -> None:
    chance = random.Random(seed)
    place.gate.touch()
    with place.served() as client:
        ids = client.begin("work", 100)
        place.until_done(chance.randint(0, 60))
    for _ in range(3):
        with place.served() as client:
            client.ask("tasks/get", taskId=ids[0])
            place.until_done(min(180, place.done().total() + chance.randint(0, 60)))
    with place.served() as client:
        tasks = until(client, ids, over)
    done = place.done()
    assert max(done.values()) == 1
    for number, task in enumerate(tasks):
        outcome = text(task)
        if CUT in outcome:
            # Whether the step that was cut off had its effect nobody knows, and it was not run again.
            assert task["result"]["isError"] is True
        else:
            assert outcome == f"{number} first, {number} second"
            assert done[f"{number} first"] == done[f"{number} second"] == 1


def test_a_server_whose_client_leaves_ends_and_its_tasks_go_on_at_once(place: Place) -> None:
    with place.served() as client:
        ids = client.begin("work", 10)
        until(client, ids, lambda task: task.get("statusMessage") == "half")
        client.process.close_input()
        assert client.process.wait() == 0
        client.process.rest()
        assert client.process.stderr == b""
    place.gate.touch()
    with place.served() as client:
        assert all(CUT not in text(task) for task in until(client, ids, over))
    assert max(place.done().values()) == 1
