"""Clients of others at our server: over both transports, in both ways to open a connection."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.interop.processes import MARK, marked
from tests.interop.recording import logged, serving_ours
from tests.interop.roster import CLIENT_ROWS, CLIENTS, ODD, ClientRow
from tests.needs import ROOT

LIMIT = 60.0
TEE = str(Path(__file__).with_name("tee.py"))

# What every client has to have seen, whatever it speaks.
SEEN = {
    "server": "served",
    "instructions": "Add before you wait.",
    "tools": [
        "add",
        "book",
        "change",
        "echo",
        "fail",
        "heard",
        "order",
        "picture",
        "steps",
        "wait",
        "waits_stopped",
    ],
    "text": "5",
    "structured": [{"result": 5}, {"order_id": "A-1042", "amount": 12.5, "note": None}],
    "booked": "saturday, 4, a model's word, file:///srv/project",
    "changed": True,
    "echoed": 10,
    "content": ["text", "image"],
    "failed": [True, "nothing works today"],
    "refused": "isError",
    "unknown": "-32602",
    "progress": [[1, 3, "step 1"], [2, 3, "step 2"], [3, 3, "step 3"]],
    "done": "done",
    "stopped": "1",
}
# A client that is told which revision to speak never asks who the server is.
NOT_ASKED = {"server": None, "instructions": None}


async def played(command: list[str], mark: str, *, odd: Path) -> dict[str, Any]:
    """The JSON line that a client of others prints; shown with all else it said where there is none."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, MARK: mark, "ODD": str(odd)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    assert process.returncode == 0, errors.decode()
    return json.loads(output.splitlines()[-1])


@pytest.mark.parametrize("row", CLIENT_ROWS, ids=lambda row: row.id)
async def test_a_client(row: ClientRow, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    odd = tmp_path / "odd.txt"
    odd.write_bytes(ODD.encode())
    peer = CLIENTS[row.peer]
    async with asyncio.timeout(LIMIT):
        if row.transport == "stdio":
            log = tmp_path / "frames.log"
            ours = [sys.executable, "-m", "tests.interop.served"]
            found = await played(peer.command([sys.executable, TEE, str(log), *ours]), mark, odd=odd)
            wire, status = logged(log)
            end = f"exit {status}"
        else:
            async with serving_ours() as (url, app):
                found = await played(peer.command([url]), mark, odd=odd)
            wire = app.wire
            deleted = [status for verb, status in app.answered if verb == "DELETE"]
            end = "session deleted" if deleted == [204] else "nothing to end" if not deleted else f"{deleted}"
    assert found == {**SEEN, "revision": row.revision, **({} if peer.asks else NOT_ASKED)}
    assert end == row.end
    assert wire.check() == []
    assert marked(mark) == []
    methods = {frame["method"] for way, frame in wire.frames if way == "to_server" and "method" in frame}
    assert methods & {"server/discover", "initialize"} == set(peer.opens)
