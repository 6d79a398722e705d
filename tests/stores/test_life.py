"""How a store begins and ends: lazily, on any loop, in each process of its own, and without leftovers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman.errors import ClosedError, UsageError
from dragoman.stores import MemoryStore
from dragoman.stores.bell import LONGEST, Bell
from dragoman.stores.sqlite import SQLiteStore
from tests.needs import ROOT
from tests.stores.conftest import Opened

OPEN = Path("/proc/self/fd")  # our open files, where the system shows them


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


async def test_nothing_is_opened_before_the_first_use(tmp_path: Path) -> None:
    threads = threading.active_count()
    async with SQLiteStore(tmp_path / "s.db") as store:
        assert names(tmp_path) == set()
        assert threading.active_count() == threads
        assert repr(store) == f"<SQLiteStore {tmp_path / 's.db'}>"
    assert repr(store) == f"<SQLiteStore {tmp_path / 's.db'}, closed>"


async def test_the_end_leaves_nothing_behind(tmp_path: Path) -> None:
    before = names(OPEN)
    async with SQLiteStore(tmp_path / "s.db") as store, store.bus("a").subscribe():
        await store.kv("a").put("key", b"1")
    assert names(tmp_path) == {"s.db"}
    assert not any(thread.name == "dragoman-store" for thread in threading.enumerate())
    assert names(OPEN) <= before


async def test_closing_does_what_was_asked_before(ends: Opened) -> None:
    async with ends() as (here, _, _):
        writing = [asyncio.ensure_future(here.kv("a").put(f"{i}", b"")) for i in range(20)]
        await asyncio.sleep(0)
        await here.close()
        assert len(set(await asyncio.gather(*writing))) == 20


async def test_a_closed_store_says_so(ends: Opened) -> None:
    async with ends() as (here, _, _):
        await here.close()
        await here.close()
        with pytest.raises(ClosedError, match="is closed"):
            await here.kv("a").get("key")
        with pytest.raises(ClosedError):
            async with here.bus("a").subscribe():
                pass


def test_those_who_open_a_new_file_at_once_see_it_whole(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def use(path: Path, start: threading.Barrier) -> None:
        async def look() -> None:
            async with SQLiteStore(path) as store:
                start.wait(10)
                await store.kv("a").get("key")

        try:
            asyncio.run(look())
        except BaseException as error:  # told to the test, which looks at all of them
            failures.append(error)

    for number in range(40):  # a chance of its own for each; before the view was one, half of them failed
        start = threading.Barrier(6)
        threads = [threading.Thread(target=use, args=(tmp_path / f"{number}.db", start)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert failures == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_any_number_of_loops_may_use_one_store(tmp_path: Path, kind: str) -> None:
    store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "s.db")
    heard: list[bytes] = []
    listening = threading.Event()

    async def listen() -> bytes:
        async with store.bus("a").subscribe("t") as messages:
            listening.set()
            return (await anext(messages)).data

    thread = threading.Thread(target=lambda: heard.append(asyncio.run(listen())))
    thread.start()
    listening.wait()
    asyncio.run(store.bus("a").publish("t", b"1"))
    thread.join(10)
    assert heard == [b"1"]
    asyncio.run(store.close())


def test_a_loop_that_ends_with_a_subscription_open_harms_nobody(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "s.db")
    kept = []

    async def leave() -> None:
        kept.append(await store.bus("a").subscribe("t").__aenter__())

    asyncio.run(leave())

    async def go_on() -> None:
        async with store, store.bus("a").subscribe("t") as messages:
            await store.bus("a").publish("t", b"1")
            assert (await anext(messages)).data == b"1"

    asyncio.run(go_on())


async def test_a_claim_that_nobody_waits_for_is_given_back(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        queue = store.queue("q")
        for turns in range(30):
            await queue.put("1", b"")
            claiming = asyncio.ensure_future(queue.claim("w", lease=1000))
            for _ in range(turns):
                await asyncio.sleep(0)
            claiming.cancel()
            outcome = (await asyncio.gather(claiming, return_exceptions=True))[0]
            if isinstance(outcome, asyncio.CancelledError):
                job = await asyncio.wait_for(queue.claim("v", lease=1000, wait=10), 10)
                assert job is not None
            await queue.remove("1")


async def test_a_write_that_is_cancelled_before_it_began_does_not_happen(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        writing = asyncio.ensure_future(store.kv("a").put("key", b""))
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await store.kv("a").get("key") is None


def test_a_store_can_be_made_before_a_fork_but_not_used(tmp_path: Path) -> None:
    program = """
import asyncio, os, sys
from dragoman.errors import UsageError
from dragoman.stores.sqlite import SQLiteStore

unused, used = SQLiteStore("unused.db"), SQLiteStore("used.db")
asyncio.run(used.kv("a").put("key", b"1"))
if os.fork() == 0:
    asyncio.run(unused.kv("a").put("child", b"1"))
    try:
        asyncio.run(used.kv("a").put("child", b"1"))
    except UsageError as error:
        print(error, flush=True)
    asyncio.run(used.close())
    os._exit(0)
os.wait()
asyncio.run(unused.kv("a").put("parent", b"1"))
print([entry.key for entry in asyncio.run(unused.kv("a").scan())])
print([entry.key for entry in asyncio.run(used.kv("a").scan())])
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "used before the process was forked" in done.stdout
    assert done.stdout.endswith("['child', 'parent']\n['key']\n")


def test_a_program_that_forgets_to_close_still_ends(tmp_path: Path) -> None:
    program = """
import asyncio
from dragoman.stores.sqlite import SQLiteStore
store = SQLiteStore("s.db")
asyncio.run(store.kv("a").put("key", b"1"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_stores_in_memory_load_no_database() -> None:
    program = """
import sys
import dragoman.stores
print([name for name in ("sqlite3", "cryptography") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# --- the bell -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 2 * LONGEST], ids=["short", "long"])
async def test_the_bell_rings_wherever_the_file_is(tmp_path: Path, length: int) -> None:
    folder = tmp_path / ("x" * length) if length else tmp_path
    folder.mkdir(exist_ok=True)
    one, two = Bell(str(folder / "bells")), Bell(str(folder / "bells"))
    assert one.hang()
    assert two.hang()
    one.ring()
    one.ring()
    fd = two.fileno()
    assert fd is not None
    rung = asyncio.Event()
    asyncio.get_running_loop().add_reader(fd, rung.set)
    await asyncio.wait_for(rung.wait(), 10)
    asyncio.get_running_loop().remove_reader(fd)
    two.hush()
    one.close()
    two.close()
    assert not (folder / "bells").exists()


def test_what_a_killed_process_left_hanging_is_taken_down(tmp_path: Path) -> None:
    (tmp_path / "bells").mkdir()
    program = """
import os, socket, sys
ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ear.bind(sys.argv[1])
os._exit(1)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "bells" / "1.dead")], check=False)
    assert (tmp_path / "bells" / "1.dead").exists()
    bell = Bell(str(tmp_path / "bells"))
    bell.ring()
    assert not (tmp_path / "bells" / "1.dead").exists()
    bell.close()


@pytest.mark.parametrize("end", ["here", "there"])
async def test_without_a_bell_one_looks(tmp_path: Path, end: str) -> None:
    """A file where the bells would hang: they cannot."""
    path = tmp_path / "s.db"
    (tmp_path / "s.db.bells").write_text("")
    async with SQLiteStore(path) as here, SQLiteStore(path) as there:
        listens, publishes = (here, there) if end == "here" else (there, here)
        async with listens.bus("a").subscribe("t") as messages:
            await publishes.bus("a").publish("t", b"1")
            assert (await asyncio.wait_for(anext(messages), 10)).data == b"1"
        waiting = asyncio.ensure_future(listens.queue("q").claim("w", lease=1, wait=10))
        await listens.queue("q").size()
        await publishes.queue("q").put("1", b"")
        assert await waiting is not None


async def test_a_subscription_used_with_a_wrong_buffer() -> None:
    with pytest.raises(UsageError, match="buffer is 0"):
        MemoryStore().bus("a").subscribe(buffer=0)
