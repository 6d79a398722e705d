"""The tap at the frame: every message, in the order of the wire, byte for byte, on every transport."""

from __future__ import annotations

import json
import sys

import pytest

from dragoman import Client, Context, Server
from tests.transcripts import player

PROGRESS = """
from dragoman import Context, Server

server = Server("steps")

@server.tool
async def step(ctx: Context) -> str:
    for number in (1, 2):
        await ctx.report_progress(number, 2, f"단계 {number}")
    return "done"

if __name__ == "__main__":
    import sys
    server.run(*sys.argv[1:], **({"port": 0} if sys.argv[1:] else {}))
"""


def methods(frames, way):
    bodies = [json.loads(data) for direction, data in frames if direction == way]
    return [body.get("method", "result" if "result" in body else "error") for body in bodies]


async def play(target, protocol, **options):
    frames = []
    async with Client(
        target, protocol=protocol, tap=lambda *frame: frames.append(frame), **options
    ) as client:
        await client.list_tools()
        result = await client.call_tool("step", progress=lambda *_: None)
    assert result.text == "done"
    return frames


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "steps.py"
    path.write_text(PROGRESS)
    return path


FIRST = {
    "2026-07-28": ["server/discover", "tools/list", "tools/call"],
    "2025-11-25": ["initialize", "notifications/initialized", "tools/list", "tools/call"],
}
CAME = {
    "2026-07-28": ["result", "result", "notifications/progress", "notifications/progress", "result"],
    "2025-11-25": ["result", "result", "notifications/progress", "notifications/progress", "result"],
}


@pytest.mark.parametrize("protocol", list(FIRST))
async def test_child_process(protocol, script):
    frames = await play([sys.executable, str(script)], protocol)
    assert (methods(frames, "out"), methods(frames, "in")) == (FIRST[protocol], CAME[protocol])
    assert "단계 1".encode() in b"".join(data for _, data in frames)


@pytest.mark.parametrize("protocol", list(FIRST))
async def test_http_with_events(protocol, script):
    with player.http_server([sys.executable, str(script), "http"], script.parent) as (host, port, path):
        frames = await play(f"http://{host}:{port}{path}", protocol)
    assert (methods(frames, "out"), methods(frames, "in")) == (FIRST[protocol], CAME[protocol])


@pytest.mark.parametrize("protocol", list(FIRST))
async def test_the_same_process(protocol):
    server = Server("steps")

    @server.tool
    async def step(ctx: Context) -> str:
        for number in (1, 2):
            await ctx.report_progress(number, 2)
        return "done"

    frames = await play(server, protocol)
    assert (methods(frames, "out"), methods(frames, "in")) == (FIRST[protocol], CAME[protocol])
