"""Skills between this package and others: our client at their servers, their clients at ours."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from pathlib import Path

import pytest

from dragoman import Client, Server, SkillFault, Skills
from tests.client.test_http import served
from tests.interop.processes import MARK, marked, serving
from tests.interop.roster import SKILL_CLIENTS, SKILL_SERVERS, SkillRow
from tests.interop.test_our_server import played
from tests.interop.wire import Wire

LIMIT = 60.0
MANIFEST = """\
---
name: refunds
description: "Pay back: when, and how much."
license: MIT
metadata:
  version: "1.0"
---

Read [the style](references/my style.md) first, then use [the seal](seal.bin).
"""
FRONTMATTER = {
    "name": "refunds",
    "description": "Pay back: when, and how much.",
    "license": "MIT",
    "metadata": {"version": "1.0"},
}
FILES = {
    "SKILL.md": MANIFEST.encode(),
    "references/my style.md": "환불은 짧게.\n".encode(),
    "seal.bin": bytes(range(256)),
}
URI = "skill://acme/refunds/SKILL.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, data in FILES.items():
        place = tmp_path / "acme" / "refunds" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("row", SKILL_SERVERS, ids=lambda row: row.id)
async def test_our_client_loads_a_skill_of_another_server(row: SkillRow, folder: Path) -> None:
    mark, wire = uuid.uuid4().hex, Wire("client", extended=True)
    command = row.command("serve", str(folder), row.transport)
    async with asyncio.timeout(LIMIT):
        if row.transport == "stdio":
            await checked(Client(command, env={MARK: mark}, protocol=row.protocol, tap=wire.tap), row)
        else:
            with serving(command, mark=mark, ready="^port") as listening:
                await checked(Client(listening.url, protocol=row.protocol, tap=wire.tap), row)
    assert marked(mark) == []
    assert wire.check() == []


async def checked(client: Client, row: SkillRow) -> None:
    async with client:
        assert client.revision.version == row.revision
        (entry,) = await client.list_skills()
        assert (entry.uri, entry.frontmatter) == (URI, FRONTMATTER)
        assert await client.get_skill(URI) == entry
        skill = await client.load_skill(entry)
        assert skill.text == MANIFEST
        for path, data in FILES.items():
            assert (await client.read_skill(skill, path)).data == data
        with pytest.raises(SkillFault, match="none of the files"):
            await client.read_skill(skill, "no-such-file")
        if row.directories:
            found = {one.uri for one in await client.read_directory("skill://acme/refunds")}
            assert found == {
                f"skill://acme/refunds/{name}" for name in ("SKILL.md", "references", "seal.bin")
            }


@pytest.mark.parametrize("row", SKILL_CLIENTS, ids=lambda row: row.id)
async def test_another_client_loads_a_skill_of_our_server(row: SkillRow, folder: Path) -> None:
    mark = uuid.uuid4().hex
    async with asyncio.timeout(LIMIT):
        if row.transport == "stdio":
            server = f"Server('shop', extensions=[Skills({str(folder)!r})])"
            code = f"from dragoman import Server, Skills; {server}.run()"
            command = row.command("use", row.protocol, sys.executable, "-c", code)
            found = await played(command, mark, odd=Path(os.devnull))
        else:
            async with served(Server("shop", extensions=[Skills(folder)])) as url:
                found = await played(row.command("use", row.protocol, url), mark, odd=Path(os.devnull))
    directory = {
        "directory": sorted(f"skill://acme/refunds/{name}" for name in ("SKILL.md", "references", "seal.bin"))
    }
    assert found == {
        "revision": row.revision,
        "listed": [URI],
        "frontmatter": FRONTMATTER,
        "files": {path: len(data) for path, data in FILES.items()},
        **(directory if row.directories else {}),
    }
    assert marked(mark) == []
