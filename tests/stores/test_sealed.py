"""Encryption at rest: nothing readable in the file, nothing that opens elsewhere, keys that change."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from dragoman.protocol.sealing import Keys
from dragoman.stores import StoreError
from dragoman.stores.sqlite import SQLiteStore

OLD = "the first secret of this server"
NEW = "the second secret of this server"
WORD = b"a word that nobody may read"


def store(path: Path, *secrets: str) -> SQLiteStore:
    return SQLiteStore(path, keys=Keys(*secrets) if secrets else None)


async def fill(path: Path, *secrets: str) -> None:
    async with store(path, *secrets) as filled:
        await filled.kv("a").put("key", WORD)
        await filled.kv("a").put("other", WORD + b"!")
        await filled.log("a").append("t", WORD)
        await filled.log("a").append("t", WORD + b"!")
        await filled.bus("a").publish("t", WORD)
        await filled.queue("a").put("1", WORD)


def files(path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in path.parent.iterdir() if each.is_file())


async def test_values_cannot_be_read_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "sealed").mkdir()
    await fill(tmp_path / "plain" / "s.db")
    await fill(tmp_path / "sealed" / "s.db", OLD)
    assert WORD in files(tmp_path / "plain" / "s.db")
    assert WORD not in files(tmp_path / "sealed" / "s.db")


async def test_values_open_in_another_process_with_the_same_secret(tmp_path: Path) -> None:
    await fill(tmp_path / "s.db", OLD)
    async with store(tmp_path / "s.db", OLD) as again:
        entry = await again.kv("a").get("key")
        assert entry is not None
        assert entry.value == WORD
        assert [record.data for record in await again.log("a").read("t")] == [WORD, WORD + b"!"]
        job = await again.queue("a").claim("w", lease=1)
        assert job is not None
        assert job.payload == WORD


async def test_a_new_secret_takes_over(tmp_path: Path) -> None:
    await fill(tmp_path / "s.db", OLD)
    async with store(tmp_path / "s.db", NEW, OLD) as both:
        entry = await both.kv("a").get("key")
        assert entry is not None
        assert entry.value == WORD
        await both.kv("a").put("key", b"written anew")
    async with store(tmp_path / "s.db", NEW) as later:
        entry = await later.kv("a").get("key")
        assert entry is not None
        assert entry.value == b"written anew"
        with pytest.raises(StoreError, match=r"the table 'kv' does not open.*\n.*Keys\(new, former\)"):
            await later.kv("a").get("other")


@pytest.mark.parametrize(
    ("written", "opened", "text"),
    [
        ((OLD,), (NEW,), "encrypted with a secret that the key ring does not have"),
        ((OLD,), (), "the file is encrypted, and the store was given no keys"),
        ((), (OLD,), "the file is not encrypted, and the store was given keys"),
    ],
)
async def test_the_wrong_keys_are_noticed_at_once(
    tmp_path: Path, written: tuple[str, ...], opened: tuple[str, ...], text: str
) -> None:
    await fill(tmp_path / "s.db", *written)
    async with store(tmp_path / "s.db", *opened) as wrong:
        with pytest.raises(StoreError, match=text) as caught:
            await wrong.kv("b").put("key", b"")
    assert str(tmp_path / "s.db") in str(caught.value)
    assert "try: " in str(caught.value)
    assert not any(secret in str(caught.value) for secret in (OLD, NEW))


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE kv SET value = (SELECT value FROM kv WHERE key = 'other') WHERE key = 'key'",
        "UPDATE kv SET value = (SELECT data FROM log LIMIT 1) WHERE key = 'key'",
        "UPDATE kv SET space = 'a', key = 'key' WHERE key = 'other'",
        "UPDATE kv SET value = substr(value, 1, length(value) - 1) || x'00' WHERE key = 'key'",
        "UPDATE kv SET value = x'' WHERE key = 'key'",
    ],
)
async def test_what_was_moved_or_changed_in_the_file_does_not_open(tmp_path: Path, forgery: str) -> None:
    await fill(tmp_path / "s.db", OLD)
    connection = sqlite3.connect(tmp_path / "s.db")
    if "SET space" in forgery:
        connection.execute("DELETE FROM kv WHERE key = 'key'")
    connection.execute(forgery)
    connection.commit()
    connection.close()
    async with store(tmp_path / "s.db", OLD) as forged:
        with pytest.raises(StoreError, match="it was changed in the file") as caught:
            await forged.kv("a").get("key")
    assert "key'" not in str(caught.value)  # a key may be what gives access
    assert WORD.decode() not in str(caught.value)


async def test_records_cannot_change_places(tmp_path: Path) -> None:
    await fill(tmp_path / "s.db", OLD)
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("UPDATE log SET id = -id")
    connection.execute("UPDATE log SET id = 3 + id")
    connection.commit()
    connection.close()
    async with store(tmp_path / "s.db", OLD) as forged:
        with pytest.raises(StoreError, match="the table 'log' does not open"):
            await forged.log("a").read("t")


async def test_a_job_that_does_not_open_is_not_in_the_way_of_others(tmp_path: Path) -> None:
    await fill(tmp_path / "s.db", OLD)
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute("UPDATE queue SET payload = x'00'")
    connection.commit()
    connection.close()
    async with store(tmp_path / "s.db", OLD) as forged:
        await forged.queue("a").put("2", b"good")
        with pytest.raises(StoreError, match="the table 'queue' does not open"):
            await forged.queue("a").claim("w", lease=60)
        job = await forged.queue("a").claim("w", lease=60)
        assert job is not None
        assert job.payload == b"good"
