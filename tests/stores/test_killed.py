"""Processes that are killed while they write: what they heard is stored is there, and the file is whole."""

from __future__ import annotations

import asyncio
import random
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from dragoman.protocol.sealing import Keys
from dragoman.stores.sqlite import SQLiteStore
from tests.drivers.wire import until
from tests.needs import ROOT

# Counts up; each number is printed once the store has it. Then there is always something being written.
WRITER = """
import asyncio, os, sys
from dragoman.protocol.sealing import Keys
from dragoman.stores.sqlite import SQLiteStore

async def main(path, name, first):
    store = SQLiteStore(path, keys=Keys("the secret of these tests"))
    number = first
    while True:
        batch = range(number, number + 8)
        await asyncio.gather(*(store.kv(name).put(f"{i:09}", b"v" * 9000) for i in batch),
                             *(store.log(name).append("t", b"%d" % i) for i in batch),
                             *(store.queue(name).put(f"{i}", b"") for i in batch))
        number += 8
        os.write(1, b"%d\\n" % number)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def write_until_killed(path: Path, name: str, first: int) -> int:
    """Start a writer, kill it in the middle, and give the number below which all is stored."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(path), name, f"{first}", stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    told = first
    try:
        for _ in range(random.randint(1, 60)):
            told = int(await process.stdout.readline())
    finally:
        process.kill()
    for line in (await process.stdout.read()).splitlines(keepends=True):
        told = int(line) if line.endswith(b"\n") else told
    assert await process.wait() == -signal.SIGKILL
    return told


async def check(path: Path, names: dict[str, int]) -> None:
    async with SQLiteStore(path, keys=Keys("the secret of these tests")) as store:
        for name, told in names.items():
            keys = [int(entry.key) for entry in await store.kv(name).scan(limit=100_000)]
            records = await store.log(name).read("t", limit=100_000)
            jobs = await store.queue(name).size()
            # In the order in which it was asked for, and nothing of the batch that was never answered twice.
            assert keys == list(range(len(keys)))
            assert sorted(int(record.data) for record in records) == keys[: len(records)]
            assert told <= jobs <= len(records) <= len(keys) <= told + 8
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_a_writer_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for round_ in range(3):
        told = await write_until_killed(path, f"{round_}", 0)
        await check(path, {f"{round_}": told})


async def test_writers_that_are_killed_beside_others(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    told = await asyncio.gather(*(write_until_killed(path, f"{n}", 0) for n in range(3)))
    await check(path, {f"{n}": number for n, number in enumerate(told)})


# Takes jobs and says so; a killed worker's job goes to the next, and none is done by two.
WORKER = """
import asyncio, os, sys
from dragoman.stores import LeaseLost
from dragoman.stores.sqlite import SQLiteStore

async def main(path, name):
    store = SQLiteStore(path)
    queue, done = store.queue("jobs"), store.kv("done")
    while (job := await queue.claim(name, lease=0.5, wait=2)) is not None:
        await asyncio.sleep(0.005)
        try:
            await done.put(job.id, name.encode(), fence=job)
            if await done.get(job.id + ".count") is None:
                await done.put_if_absent(job.id + ".count", b"1", fence=job)
            await queue.ack(job)
        except LeaseLost:
            pass
        os.write(1, b".")

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


async def test_jobs_of_killed_workers_are_done_by_others(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    jobs = 60
    async with SQLiteStore(path) as store:
        for i in range(jobs):
            await store.queue("jobs").put(f"{i}", b"")
        workers = []
        for n in range(4):
            worker = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", WORKER, str(path), f"{n}"), stdout=asyncio.subprocess.PIPE, cwd=ROOT
            )
            workers.append(worker)
        for worker in workers[:2]:
            assert worker.stdout is not None
            await worker.stdout.read(3)
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            await worker.communicate()
        assert [worker.returncode for worker in workers] == [-9, -9, 0, 0]
        assert await store.queue("jobs").size() == 0
        found = [entry.key for entry in await store.kv("done").scan(limit=1000)]
        assert sorted(found) == sorted([f"{i}" for i in range(jobs)] + [f"{i}.count" for i in range(jobs)])


def bells(path: Path) -> int:
    return len(list(Path(f"{path}.bells").iterdir()))


async def test_a_listener_survives_the_death_of_a_publisher(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    program = """
import asyncio, os, sys
from dragoman.stores.sqlite import SQLiteStore

async def main(path):
    store = SQLiteStore(path)
    async with store.bus("a").subscribe():
        for i in range(10):
            await store.bus("a").publish("t", b"%d" % i)
        os.kill(os.getpid(), 9)

asyncio.run(main(sys.argv[1]))
"""
    async with SQLiteStore(path) as store, store.bus("a").subscribe("t") as messages:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(path), cwd=ROOT)
        seen = [(await asyncio.wait_for(anext(messages), 20)).data for _ in range(10)]
        assert seen == [b"%d" % i for i in range(10)]
        assert await process.wait() == -signal.SIGKILL
        assert bells(path) == 2
        await store.bus("a").publish("t", b"more")
        assert (await anext(messages)).data == b"more"
        await until(lambda: bells(path) == 1)  # rung in vain, and taken down


@pytest.mark.parametrize("processes", [4])
async def test_processes_that_open_a_new_file_at_once(tmp_path: Path, processes: int) -> None:
    program = """
import asyncio, sys
from dragoman.stores.sqlite import SQLiteStore

async def main(path, name):
    async with SQLiteStore(path) as store:
        for i in range(50):
            await store.log("a").append("t", name.encode())

asyncio.run(main(*sys.argv[1:]))
"""
    path = tmp_path / "s.db"
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, str(path), f"{n}", cwd=ROOT)
        for n in range(processes)
    ]
    assert [await process.wait() for process in started] == [0] * processes
    async with SQLiteStore(path) as store:
        records = await store.log("a").read("t", limit=1000)
        assert sorted(record.data for record in records) == sorted(
            b"%d" % n for n in range(processes) for _ in range(50)
        )
