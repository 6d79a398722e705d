"""The loop with a real model on this machine, over a server that is not ours: SmolLM2 of 135M parameters."""

from __future__ import annotations

import asyncio
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.host import Host, Limits, Model, ModelError
from dragoman.host.loop.events import CallEnded
from dragoman.host.models.base import TextDelta, UseStarted
from tests.needs import peer_python

SCRIPT = Path(__file__).parent / "peers" / "small_model.py"
KEY = "local-key-0123456789"

SERVER = """
from typing import Annotated

from dragoman import Meta, Server

server = Server("orders")


@server.tool(annotations={"readOnlyHint": True})
def lookup_order(order_id: Annotated[str, Meta(pattern="^[A-Z]-[0-9]{4}$")]) -> str:
    return f"{order_id} is on its way"


server.run()
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("missing: a wheel of xllamacpp that the lock has for this machine")
    command = [peer_python("smallmodel"), str(SCRIPT), KEY]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("SMALL_MODEL_KEY", KEY)


def small(url: str, **more) -> Model:
    return Model(
        api="openai-chat",
        model="smollm2",
        url=f"{url}/v1",
        key_env="SMALL_MODEL_KEY",
        limit=60,
        more={"temperature": 0, "seed": 1, **more},
    )


def project(folder: Path, entries) -> Host:
    (folder / "orders.py").write_text(SERVER)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
    return Host.from_files(folder, user=False, trusted=True, approve=True, ask=lambda question: True)


async def test_it_says_something_piece_by_piece(tmp_path, url):
    async with project(tmp_path, {}) as host:
        events = [event async for event in host.run("What is the capital of France?", model=small(url))]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    result = events[-1].result
    assert len(pieces) > 3
    assert "".join(pieces) == result.text
    assert "Paris" in result.text
    assert result.stop in ("end", "length")
    assert 0 < result.usage.output <= 60
    assert result.usage.input > 5


async def test_it_calls_a_tool_with_what_the_person_said(tmp_path, url):
    entries = {"orders": {"command": sys.executable, "args": ["orders.py"]}}
    # A small push towards the character with which calls begin in its template.
    model = small(url, logit_bias=[["<", 5]])
    async with project(tmp_path, entries) as host:
        run = host.run("What is the status of order A-1042?", model=model, limits=Limits(rounds=2))
        events = [event async for event in run]
    assert [event.name for event in events if isinstance(event, UseStarted)][:1] == [
        "mcp__orders__lookup_order"
    ]
    ended = next(event for event in events if isinstance(event, CallEnded))
    assert ended.use.arguments == {"order_id": "A-1042"}
    assert ended.outcome.result.text == "A-1042 is on its way"
    result = events[-1].result
    assert result.rounds == 2
    assert "tool" in [item["role"] for item in result.state.history]


async def test_it_is_stopped_in_the_middle(tmp_path, url):
    async with project(tmp_path, {}) as host:
        run = host.run("Tell me a long story.", model=small(url))
        async for event in run:
            if isinstance(event, TextDelta):
                run.stop()
        assert (await run).stop == "stopped"
        # The server gave it up too: the next one is answered at once.
        again = host.run("What is the capital of France?", model=small(url))
        assert (await asyncio.wait_for(again.result(), 30)).text


async def test_a_key_that_it_does_not_take(tmp_path, url, monkeypatch):
    monkeypatch.setenv("SMALL_MODEL_KEY", "another-key-0123456789")
    async with project(tmp_path, {}) as host:
        with pytest.raises(ModelError, match="HTTP 401") as caught:
            await host.run("hello", model=small(url))
    assert "another-key" not in str(caught.value)
