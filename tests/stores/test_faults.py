"""What can be wrong with a file: each fault names the file and the way out, and harms nothing else."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.errors import LocalError, UsageError
from dragoman.stores import StoreError
from dragoman.stores.sqlite import SQLiteStore
from dragoman.stores.sqlite_file import SCHEMAS
from tests.needs import ROOT
from tests.stores.clock import FakeClock


async def fault(store: SQLiteStore) -> str:
    """What the first write says."""
    async with store:
        with pytest.raises(StoreError) as caught:
            await store.kv("a").put("key", b"the value")
    error = caught.value
    assert isinstance(error, LocalError)
    assert store.path in error.message
    assert error.hint
    assert "the value" not in str(error)
    assert "INSERT" not in str(error)
    return str(error)


# --- the path -----------------------------------------------------------------------------------------


async def test_a_directory_that_is_missing(tmp_path: Path) -> None:
    text = await fault(SQLiteStore(tmp_path / "no" / "s.db"))
    assert "cannot be created: No such file or directory" in text
    assert f"create the directory {tmp_path / 'no'}" in text


async def test_a_directory_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "s.db").mkdir()
    assert "the file cannot be opened" in await fault(SQLiteStore(tmp_path / "s.db"))


async def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("")
    assert "cannot be created: Not a directory" in await fault(SQLiteStore(tmp_path / "no" / "s.db"))


async def test_a_store_opens_once_its_place_is_there(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "no" / "s.db") as store:
        with pytest.raises(StoreError):
            await store.kv("a").put("key", b"1")
        (tmp_path / "no").mkdir()
        await store.kv("a").put("key", b"1")


@pytest.mark.parametrize("path", [":memory:", ""])
def test_no_path_at_all(path: str) -> None:
    with pytest.raises(UsageError, match="use MemoryStore"):
        SQLiteStore(path)


def test_a_durability_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'full'; expected 'power' or 'process'"):
        SQLiteStore(tmp_path / "s.db", durability="full")  # type: ignore[arg-type]  # that is the point


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store, store.bus("a").subscribe():
        await store.kv("a").put("key", b"1")
        assert modes(tmp_path) == {"s.db": 0o600, "s.db-wal": 0o600, "s.db-shm": 0o600, "s.db.bells": 0o700}
    assert list(modes(tmp_path)) == ["s.db"]


async def test_a_relative_path_means_the_same_file_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("s.db")
    monkeypatch.chdir("/")
    async with store:
        await store.kv("a").put("key", b"1")
    assert (tmp_path / "s.db").exists()


# --- what is in it ------------------------------------------------------------------------------------


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"this is a letter to my aunt\n" * 300)
    text = await fault(SQLiteStore(tmp_path / "s.db"))
    assert "no SQLite database" in text
    assert ".recover" in text


async def test_somebody_elses_database_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("CREATE TABLE theirs (a)")
    connection.commit()
    connection.close()
    before = (tmp_path / "s.db").read_bytes()
    assert "no store of dragoman's" in await fault(SQLiteStore(tmp_path / "s.db"))
    assert (tmp_path / "s.db").read_bytes() == before


async def test_a_file_of_a_later_version(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.kv("a").put("key", b"1")
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute(f"PRAGMA user_version = {len(SCHEMAS) + 1}")
    connection.close()
    assert "written by a later dragoman" in await fault(SQLiteStore(tmp_path / "s.db"))


async def test_damage_in_the_middle(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        for i in range(200):
            await store.kv("a").put(f"{i:03}", b"x" * 500)
    size = (tmp_path / "s.db").stat().st_size
    with (tmp_path / "s.db").open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    assert "the file is damaged" in await fault(SQLiteStore(tmp_path / "s.db"))


# --- no room, no way in -------------------------------------------------------------------------------


async def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", max_bytes=200_000) as store:
        await store.kv("a").put("small", b"1")
        with pytest.raises(StoreError, match=r"s\.db: the disk is full, or the file has reached max_bytes"):
            await store.kv("a").put("large", b"x" * 300_000)
        assert await store.kv("a").get("large") is None
        entry = await store.kv("a").get("small")
        assert entry is not None
        await store.kv("a").put("small", b"2")


async def test_one_that_is_too_large_takes_no_others_along(tmp_path: Path) -> None:
    """They are written in one transaction as long as that goes well."""
    async with SQLiteStore(tmp_path / "s.db", max_bytes=200_000) as store:
        await store.kv("a").put("first", b"")
        values = [b"1", b"x" * 300_000, b"2"]
        outcomes = await asyncio.gather(
            *(store.kv("a").put(f"{i}", value) for i, value in enumerate(values)), return_exceptions=True
        )
        assert [isinstance(outcome, StoreError) for outcome in outcomes] == [False, True, False]
        assert [entry.key for entry in await store.kv("a").scan()] == ["0", "2", "first"]


def test_a_limit_on_what_the_process_may_write(tmp_path: Path) -> None:
    """The system itself refuses the write: as with a quota, or a disk that fails."""
    program = f"""
import asyncio
from dragoman.stores import StoreError
from dragoman.stores.sqlite import SQLiteStore

async def main():
    async with SQLiteStore({str(tmp_path / "s.db")!r}) as store:
        await store.kv("a").put("small", b"1")
        try:
            await store.kv("a").put("large", b"x" * 3_000_000)
        except StoreError as error:
            print(error)
        print((await store.kv("a").get("small")).value, await store.kv("a").get("large"))
        await store.kv("a").put("small", b"2")

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"{tmp_path / 's.db'}: the file could not be read or written"
    assert lines[-1] == "b'1' None"


@contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    finally:
        connection.close()


async def test_a_file_that_somebody_holds_locked(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", busy_seconds=0.05) as store:
        await store.kv("a").put("key", b"1")
        with locked(tmp_path / "s.db"):
            with pytest.raises(
                StoreError, match=r"held the file locked for 0\.05 seconds\n.*fuser"
            ) as caught:
                await store.kv("a").put("key", b"2")
            assert str(tmp_path / "s.db") in str(caught.value)
            entry = await store.kv("a").get("key")  # reading goes on
            assert entry is not None
            assert entry.value == b"1"
        await store.kv("a").put("key", b"3")


async def test_a_lock_that_goes_away_in_time_is_waited_for(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db") as store:
        await store.kv("a").put("key", b"1")
        with locked(tmp_path / "s.db") as connection:
            writing = asyncio.ensure_future(store.kv("a").put("key", b"2"))
            await asyncio.sleep(0)
            connection.execute("COMMIT")
            await writing


def test_a_file_that_this_user_may_only_read() -> None:
    """As somebody whom file modes bind: root, too, becomes one."""
    program = """
import asyncio, os, sys
import sqlite3
from dragoman.stores import StoreError
from dragoman.stores.sqlite import SQLiteStore

async def write(path):
    async with SQLiteStore(path) as store:
        await store.kv("a").put("key", b"1")

path = sys.argv[1]
asyncio.run(write(path))
os.chmod(path, 0o444)
os.chmod(os.path.dirname(path), 0o555)
if os.geteuid() == 0:
    os.setuid(65534)
try:
    asyncio.run(write(path))
except StoreError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, cwd=ROOT, check=False
        )
        Path(folder).chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{path}: the file cannot be")
    assert "this user" in done.stdout


# --- upkeep -------------------------------------------------------------------------------------------


async def test_the_write_ahead_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", durability="process") as store:
        largest = 0
        for _ in range(40):
            await store.kv("a").put("key", b"x" * 500_000)
            largest = max(largest, (tmp_path / "s.db-wal").stat().st_size)
        assert largest < 6_000_000
        assert (tmp_path / "s.db").stat().st_size < 3_000_000


async def test_a_long_reader_delays_the_log_and_not_the_writers(tmp_path: Path) -> None:
    async with SQLiteStore(tmp_path / "s.db", durability="process", busy_seconds=0.05) as store:
        await store.kv("a").put("key", b"1")
        reader = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM kv").fetchone() == (1,)
        for _ in range(20):
            await store.kv("a").put("key", b"x" * 500_000)
        assert (tmp_path / "s.db-wal").stat().st_size > 8_000_000
        reader.close()
        for _ in range(20):
            await store.kv("a").put("key", b"x" * 500_000)
        assert (tmp_path / "s.db-wal").stat().st_size < 8_000_000


async def test_what_nobody_can_see_any_more_leaves_the_file(tmp_path: Path) -> None:
    clock = FakeClock()
    async with SQLiteStore(tmp_path / "s.db", clock=clock) as store:
        for i in range(50):
            await store.kv("a").put(f"{i}", b"", ttl=5)
            await store.bus("a").publish("t", b"")
        clock.pass_(100)
        await store.kv("a").put("last", b"")
    connection = sqlite3.connect(tmp_path / "s.db")
    assert connection.execute("SELECT count(*) FROM kv").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM bus").fetchone() == (0,)
    connection.close()
