"""Who runs tasks: several processes on one store, what a dead one leaves behind, and an orderly end."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Context, LocalError, Server
from dragoman.extensions.tasks import Tasks
from dragoman.extensions.tasks.shelf import Shelf, shelf_mark
from dragoman.stores import MemoryStore, Store
from dragoman.stores.sqlite import SQLiteStore
from tests.drivers.wire import until
from tests.extensions.talk import served
from tests.server.pair import text
from tests.stores.clock import FakeClock

CUT = "cut off"


class Stalled:
    """A store whose writes with a fence wait until they may go: a worker that has fallen silent."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.go = asyncio.Event()
        self.silent = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def kv(self, space: str) -> Any:
        return _StalledKV(self.store.kv(space), self)

    def queue(self, space: str) -> Any:
        return _StalledQueue(self.store.queue(space), self)


class _StalledKV:
    def __init__(self, kv: Any, stalled: Stalled) -> None:
        self._kv = kv
        self._stalled = stalled

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._kv, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            if self._stalled.silent and options.get("fence") is not None:
                await self._stalled.go.wait()
            return await real(*arguments, **options)

        return call


class _StalledQueue:
    def __init__(self, queue: Any, stalled: Stalled) -> None:
        self._queue = queue
        self._stalled = stalled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def heartbeat(self, job: Any) -> bool:
        return True if self._stalled.silent else bool(await self._queue.heartbeat(job))


def working(store: Any, handler: Callable[..., Any], **options: Any) -> Server:
    """A server with one tool, `work`, which is a task."""
    server = Server("test", extensions=[Tasks(store, **options)])
    server.add_tool(handler, name="work", task=True)
    return server


async def test_a_task_of_a_silent_worker_is_taken_up_and_what_it_writes_later_is_refused() -> None:
    clock, inside, go = FakeClock(), list[str](), asyncio.Event()
    store = MemoryStore(clock=clock)
    stalled = Stalled(store)

    def handler(name: str) -> Callable[..., Any]:
        async def work(ctx: Context) -> str:
            inside.append(name)
            await go.wait()
            await ctx.step("effect", inside.append, f"effect of {name}")
            return name

        return work

    one = working(stalled, handler("one"), lease=5.0)
    async with served(one) as talk:
        task_id = await talk.begin("work")
        await until(lambda: inside == ["one"])
        stalled.silent = True
        clock.pass_(6.0)
        async with served(working(store, handler("two"), lease=5.0)) as other:
            await other.look(task_id)
            await until(lambda: inside == ["one", "two"])
            go.set()
            task = await other.until(task_id)
            assert text(task["result"]) == "two"
            stalled.go.set()
            stalled.silent = False
            # The first one's step never began: it could not be written down.
            assert inside == ["one", "two", "effect of two"]
        assert text((await talk.look(task_id))["result"]) == "two"


async def test_two_workers_on_one_file_share_the_work(tmp_path: Path) -> None:
    path, ran = tmp_path / "tasks.db", list[str]()
    both = asyncio.Event()

    def handler(name: str) -> Callable[..., Any]:
        async def work(n: int) -> str:
            ran.append(name)
            if len(set(ran)) == 2:
                both.set()
            await both.wait()
            return f"{n}"

        return work

    one, two = (working(path, handler(name), concurrency=2) for name in ("one", "two"))
    async with served(one) as talk, served(two) as other:
        ids = [await talk.begin("work", n=n) for n in range(8)]
        # Whoever is asked knows all of them.
        assert [text((await other.until(id_))["result"]) for id_ in ids] == [f"{n}" for n in range(8)]
    assert len(ran) == 8


async def test_a_worker_stops_what_another_process_cancelled(tmp_path: Path) -> None:
    path, began, ended = tmp_path / "tasks.db", asyncio.Event(), asyncio.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with served(working(path, work)) as talk:
        task_id = await talk.begin("work")
        await began.wait()
        async with served(Server("test", extensions=[Tasks(path)])) as other:
            await other.result("tasks/cancel", taskId=task_id)
            async with asyncio.timeout(5):
                await ended.wait()


async def test_an_orderly_end_leaves_tasks_for_the_next_process_at_once(tmp_path: Path) -> None:
    path, began = tmp_path / "tasks.db", list[int]()

    async def forever(ctx: Context) -> str:
        await ctx.step("once", began.append, 1)
        await asyncio.Event().wait()
        raise AssertionError

    async def at_once(ctx: Context) -> str:
        await ctx.step("once", began.append, 2)
        return "done"

    async with served(working(path, forever, lease=3600.0)) as talk:
        ids = [await talk.begin("work") for _ in range(5)]
        await until(lambda: len(began) == 5)
    # No lease has to run out for it.
    async with served(working(path, at_once, lease=3600.0)) as talk:
        assert [text((await talk.until(id_))["result"]) for id_ in ids] == ["done"] * 5
    assert began == [1] * 5


async def test_an_orderly_end_lets_a_step_come_to_its_end(tmp_path: Path) -> None:
    path, inside, effects = tmp_path / "tasks.db", asyncio.Event(), list[str]()

    async def slow() -> str:
        inside.set()
        for _ in range(20):
            await asyncio.sleep(0.005)
        effects.append("slow")
        return "value"

    async def work(ctx: Context) -> str:
        value = await ctx.step("slow", slow)
        if len(effects) == 1:
            effects.append("entered")
            await asyncio.Event().wait()
        return f"{value} of {effects}"

    async with served(working(path, work)) as talk:
        task_id = await talk.begin("work")
        await inside.wait()
    async with served(working(path, lambda: None)) as talk:
        assert (await talk.look(task_id))["status"] in ("working", "completed")
    assert effects[0] == "slow"
    assert effects.count("slow") == 1


async def test_a_step_that_was_cut_off_is_not_run_again_unless_it_may_be() -> None:
    store, effects, stop = MemoryStore(), list[str](), asyncio.Event()

    async def hang(name: str) -> str:
        effects.append(name)
        if not stop.is_set():
            await asyncio.Event().wait()
        return "value"

    async def work(key: str, again: bool, ctx: Context) -> str:
        return await ctx.step(key, hang, key, again=again)

    server = working(store, work, lease=0.2)
    async with served(server) as talk:
        careful = await talk.begin("work", key="careful", again=False)
        careless = await talk.begin("work", key="careless", again=True)
        await until(lambda: len(effects) == 2)
        # Somebody else takes the jobs away, as if the process had died.
        shelf = Shelf(store, "test")
        for task_id in (careful, careless):
            await shelf.queue.remove(shelf_mark(task_id))
        stop.set()
        await asyncio.sleep(0)
        await until(lambda: not any("dragoman-task-" in task.get_name() for task in asyncio.all_tasks()))
        for task_id in (careful, careless):
            await shelf.resume(shelf_mark(task_id))
        task = await talk.until(careful)
        assert task["result"]["isError"] is True
        assert CUT in text(task["result"])
        assert text((await talk.until(careless))["result"]) == "value"
    assert sorted(effects) == ["careful", "careless", "careless"]


async def test_a_task_without_a_job_gets_one_when_a_server_starts(tmp_path: Path) -> None:
    path, go = tmp_path / "tasks.db", asyncio.Event()

    async def work() -> str:
        await go.wait()
        return "done"

    async with served(working(path, work)) as talk:
        task_id = await talk.begin("work")
    async with SQLiteStore(path, keys=_keys(path)) as store:
        # As a process leaves it that is killed between its two writes.
        assert await store.queue("test/tasks").remove(shelf_mark(task_id))
    go.set()
    async with served(working(path, work)) as talk:
        assert text((await talk.until(task_id))["result"]) == "done"


async def test_a_task_of_a_tool_that_is_not_there_waits_for_it_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.extensions.tasks.run.PATIENCE_SECONDS", 0.01)
    path, go = tmp_path / "tasks.db", asyncio.Event()

    async def work() -> str:
        await go.wait()
        return "done"

    server = working(path, work)
    async with served(server) as talk:
        task_id = await talk.begin("work")
    server.remove_tool("work")
    go.set()
    async with served(server) as talk:
        assert (await talk.look(task_id))["status"] == "working"
        server.add_tool(work, name="work", task=True)
        assert (await talk.until(task_id))["status"] == "completed"


async def test_a_task_of_a_tool_that_is_gone_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.extensions.tasks.run.PATIENCE_SECONDS", 0.01)
    path = tmp_path / "tasks.db"

    async def work() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async with served(working(path, work)) as talk:
        task_id = await talk.begin("work")
    async with served(Server("test", extensions=[Tasks(path)])) as talk:
        task = await talk.until(task_id)
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32602


# At rest -----------------------------------------------------------------------------------------


def _keys(path: Path) -> Any:
    from dragoman.protocol.sealing import Keys

    return Keys(path.with_name(path.name + ".key").read_bytes().strip())


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("secret", [None, "a secret of the server's own"])
async def test_what_a_task_is_about_is_encrypted_in_the_file(tmp_path: Path, secret: str | None) -> None:
    options: dict[str, Any] = {} if secret is None else {"secret": secret}
    server = Server("test", extensions=[Tasks(tmp_path / "tasks.db")], **options)

    @server.tool(task=True)
    async def work(argument: str, ctx: Context) -> str:
        step = await ctx.step("step", lambda: "value-of-step")
        answer = await ctx.elicit("question-asked", str, key="answer")
        return f"result-of-task {argument} {step} {answer.data}"

    async with served(server) as talk:
        task_id = await talk.begin("work", argument="argument-given")
        await talk.until(task_id, "input_required")
        waiting = everything_in(tmp_path)
        await talk.answer_task(task_id, answer="answer-given")
        await talk.until(task_id)
        done = everything_in(tmp_path)
    for data in (waiting, done):
        for word in (
            b"argument-given",
            b"value-of-step",
            b"question-asked",
            b"answer-given",
            b"result-of-task",
        ):
            assert word not in data
        # Nor is the id there, by which anybody could ask for the task.
        assert task_id.encode() not in data
    assert (tmp_path / "tasks.db.key").exists() is (secret is None)


async def test_the_secret_beside_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    async with served(working(tmp_path / "tasks.db", lambda: "done")) as talk:
        await talk.begin("work")
    for name in ("tasks.db", "tasks.db.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


async def test_a_server_that_gets_a_secret_still_reads_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with served(working(path, lambda: "done")) as talk:
        task_id = await talk.begin("work")
        await talk.until(task_id)
    server = Server("test", secret="a secret of the server's own", extensions=[Tasks(path)])
    async with served(server) as talk:
        assert text((await talk.look(task_id))["result"]) == "done"


async def test_without_a_path_the_file_lies_in_the_users_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = Server("orders/../x", extensions=[Tasks()])
    server.add_tool(lambda: "done", name="work", task=True)
    async with served(server) as talk:
        await talk.until(await talk.begin("work"))
    found = tmp_path / "dragoman" / "tasks" / "orders_.._x.sqlite3"
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700


async def test_a_file_that_cannot_be_is_said_to_the_log_and_to_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = working(tmp_path / "nowhere" / "tasks.db", lambda: "done")
    async with served(server) as talk:
        error = await talk.error("tools/call", name="work", arguments={})
    assert error["code"] == -32603
    assert "nowhere" not in error["message"]  # the client has no business with our folders
    assert str(tmp_path / "nowhere") in caplog.text


async def test_a_damaged_secret_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "tasks.db.key").write_bytes(b"short")
    async with served(working(tmp_path / "tasks.db", lambda: "done")) as talk:
        assert (await talk.error("tools/call", name="work", arguments={}))["code"] == -32603
    assert "tasks.db.key" in caplog.text
    assert LocalError.__name__ in caplog.text
    assert os.fspath(tmp_path) in caplog.text
