"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SERVER = '''
from dragoman import Server

server = Server("sums", version="1")

@server.tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b
'''


def run(folder: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        # By its name or by its entry point, as the installation has it: once in any case.
        [sys.executable, "-m", "pytest", "-q", "-p", "no:dragoman", "-p", "dragoman.testing.plugin",
         "-p", "no:cacheprovider", "-W", "error", *words],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def place(tmp_path):
    (tmp_path / "sums.py").write_text(SERVER)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_clients_with_and_without_await(place):
    (place / "test_it.py").write_text(
        """
import asyncio
from sums import server

def test_sync(mcp_client):
    client = mcp_client.sync(server)
    assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"

def test_async(mcp_client):
    async def work():
        async with mcp_client(server) as client:
            assert client.revision.version == "2025-11-25"
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    asyncio.run(work())
"""
    )
    status, out = run(place, "--mcp-protocol", "2025-11-25")
    assert status == 0, out
    assert "2 passed" in out


def test_a_cassette_is_recorded_once_and_then_played(place):
    (place / "test_it.py").write_text(
        """
import asyncio, os

def test_add(mcp_cassette):
    async def work():
        async with mcp_cassette("sums.py") as client:
            b = int(os.environ.get("B", 2))
            assert (await client.call_tool("add", {"a": 1, "b": b})).text == "3"
    asyncio.run(work())
"""
    )
    status, out = run(place, "--mcp-record=never")
    assert status == 1
    assert "there is no cassette" in out
    status, out = run(place)
    assert status == 0, out
    assert (place / "cassettes" / "test_it" / "test_add.jsonl").exists()
    (place / "sums.py").write_text("raise SystemExit('it must not be started')")
    status, out = run(place)
    assert status == 0, out
    os.environ["B"] = "3"
    try:
        status, out = run(place)
    finally:
        del os.environ["B"]
    assert status == 1
    assert "~ arguments.b: 2 -> 3" in out


def test_a_test_that_fails_leaves_no_cassette(place):
    (place / "test_it.py").write_text(
        """
import asyncio

def test_add(mcp_cassette):
    async def work():
        async with mcp_cassette("sums.py") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "4"
    asyncio.run(work())
"""
    )
    status, out = run(place)
    assert status == 1, out
    assert list((place / "cassettes").rglob("*.*")) == []


def test_a_snapshot_of_the_tools(place):
    (place / "test_it.py").write_text(
        """
from sums import server

def test_tools(mcp_client, mcp_snapshot):
    mcp_snapshot(mcp_client.sync(server).list_tools())
"""
    )
    status, out = run(place)
    assert status == 1
    assert "run pytest --mcp-update to write it" in out
    assert run(place, "--mcp-update")[0] == 0
    assert '"inputSchema"' in (place / "snapshots" / "test_it" / "test_tools.json").read_text()
    assert run(place)[0] == 0
    (place / "sums.py").write_text(SERVER.replace("Add.", "Add two.").replace("b: int", "b: int = 0"))
    status, out = run(place)
    assert status == 1
    assert '~ [0].description: "Add." -> "Add two."' in out
    assert '- [0].inputSchema.required[1]: "b"' in out
    assert run(place, "--mcp-update")[0] == 0
    assert run(place)[0] == 0


def test_the_plugin_alone_loads_nothing_of_dragoman(place):
    (place / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    assert not {'dragoman.client', 'msgspec'} & set(sys.modules)\n"
    )
    status, out = run(place)
    assert status == 0, out
