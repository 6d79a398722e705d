"""Story: `jira_search` as a plain JSON-RPC method, line by line as it goes over the pipes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from dragoman.jsonrpc import Service
from dragoman.transports.stream import connect_stream

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "jsonrpc" / "jira_search.py"

TRANSCRIPT = (Path(__file__).parent / "jira_search.txt").read_text(encoding="utf-8")
SENT = [line[3:] for line in TRANSCRIPT.splitlines() if line.startswith("-> ")]
RECEIVED = [line[3:] for line in TRANSCRIPT.splitlines() if line.startswith("<- ")]


def test_the_transcript(tmp_path: Path) -> None:
    """The requests go in at once, so that all are in flight together; the pipe ends; all is answered."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        input="".join(line + "\n" for line in SENT).encode(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    received = done.stdout.decode().splitlines()
    assert sorted(received) == sorted(RECEIVED)

    # Of each request the messages come in order; between requests they mix, and the short one wins.
    def about(id_: Any, lines: list[str]) -> list[str]:
        messages = [(json.loads(line), line) for line in lines]
        return [
            line
            for message, line in messages
            if _same(message.get("id", message.get("params", {}).get("id")), id_)
        ]

    for id_ in ("long", 7, "7", 8, 9):
        assert about(id_, received) == about(id_, RECEIVED)
    answered = [message["id"] for message in map(json.loads, received) if "result" in message]
    assert answered == [7, "long"]


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def test_many_at_once_are_paired_by_id() -> None:
    client, progress = Service(), {}

    @client.method("progress")
    def note(id: int, message: str, **rest: int) -> None:  # noqa: A002 - the member's own name
        progress.setdefault(id, []).append(message)

    async def test() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(EXAMPLE), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        order: list[int] = []

        async def search(n: int) -> int:
            answer = await peer.request("jira_search", ["project = PAY" if n % 2 else "project = WEB"])
            order.append(n)
            return answer["total"]

        async with await connect_stream(process.stdout, process.stdin, service=client) as peer:
            totals = await asyncio.gather(*(search(n) for n in range(500)))
        assert totals == [5 if n % 2 else 1 for n in range(500)]
        assert order != sorted(order)  # short searches overtook long ones
        assert await process.wait() == 0

    asyncio.run(asyncio.wait_for(test(), 60))
    assert len(progress) == 500
    assert progress[2] == [f"이슈 5건 중 {read}건을 검색했습니다" for read in (2, 4, 5)]
