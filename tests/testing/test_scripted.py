"""Scripted servers do what the script says, whoever the client is."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from dragoman import Client
from dragoman.errors import ClosedError, DeadlineError, LocalError, RemoteError, UsageError
from dragoman.testing import ScriptedServer

TOOL = {"name": "t", "inputSchema": {"type": "object"}}
DONE = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level("CRITICAL", "dragoman")


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2024-11-05"])
async def test_greeting_in_every_revision(revision, tmp_path):
    server = ScriptedServer(log=tmp_path / "heard.jsonl").greet(revision)
    server.expect("tools/call", {"name": "t"}).answer(DONE)
    async with Client(server) as client:
        assert client.revision.version == revision
        assert (await client.call_tool("t")).text == "done"
    methods = [message["method"] for message in server.heard()]
    assert methods[0] == "server/discover"
    assert methods[-1] == "tools/call"
    assert len(methods) == len(set(methods))


async def test_a_line_then_the_end():
    server = ScriptedServer().greet().expect("tools/call").complain("out of memory").exit(3)
    async with Client(server, name="s") as client:
        with pytest.raises(ClosedError) as caught:
            await client.call_tool("t")
    assert caught.value.exit_status == 3
    assert caught.value.stderr_tail == ("out of memory",)


async def test_it_hangs():
    async with Client(ScriptedServer().greet().expect("tools/call").hang()) as client:
        with pytest.raises(DeadlineError):
            await client.call_tool("t", timeout=0.1)


async def test_half_a_line_and_the_other_half():
    head, tail = '{"jsonrpc":"2.0","id":$id,', '"error":{"code":-32000,"message":"no"}}'
    server = ScriptedServer().greet().expect("tools/call").say(head, end="").say(tail)
    async with Client(server) as client:
        with pytest.raises(RemoteError, match="no"):
            await client.call_tool("t")


async def test_answers_out_of_order():
    server = ScriptedServer().greet().expect("tools/call").expect("tools/call")
    server.answer(DONE, to=-1).answer(error={"code": -32000, "message": "the first"}, to=-2)
    async with Client(server) as client:
        first = asyncio.ensure_future(client.call_tool("t"))
        second = asyncio.ensure_future(client.call_tool("t"))
        assert (await second).text == "done"
        with pytest.raises(RemoteError, match="the first"):
            await first


async def test_noise_and_messages_of_its_own():
    server = ScriptedServer().greet().expect("tools/call").say(b"\xff\xfe").say("x" * 1000, end="", times=100)
    server.say("").say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).answer(DONE)
    async with Client(server) as client:
        assert (await client.call_tool("t")).text == "done"


async def test_stdout_is_closed():
    async with Client(ScriptedServer().greet().expect("tools/call").close("stdout")) as client:
        with pytest.raises(ClosedError, match="closed its standard output"):
            await client.call_tool("t")


async def test_killed():
    async with Client(ScriptedServer().greet().expect("tools/call").kill()) as client:
        with pytest.raises(ClosedError) as caught:
            await client.call_tool("t")
    assert caught.value.exit_status == -9


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (ScriptedServer().greet().expect("tools/list"), "expected tools/list; received tools/call"),
        (
            ScriptedServer().greet().expect("tools/call", {"name": "u"}),
            "expected tools/call with name = 'u'; received 't'",
        ),
    ],
)
async def test_a_client_that_does_something_else_is_told(script, said):
    async with Client(script) as client:
        with pytest.raises(LocalError) as caught:
            await client.call_tool("t")
    assert caught.value.exit_status == 97
    assert caught.value.stderr_tail == (f"script: {said}",)


def test_any_program_can_start_it():
    server = ScriptedServer().expect("ping").answer({})
    notice = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    ping = b'{"jsonrpc":"2.0","id":"7","method":"ping"}\n'
    done = subprocess.run(list(server), input=notice + ping, capture_output=True, timeout=20, check=True)
    assert done.stdout == b'{"jsonrpc":"2.0","id":"7","result":{}}\n'
    assert done.stderr == b""


def test_scripts_that_cannot_be():
    with pytest.raises(UsageError, match="expected a result or an error"):
        ScriptedServer().answer()
    with pytest.raises(UsageError, match=r"revision: expected one of 2024-11-05.*received '2030'"):
        ScriptedServer().greet("2030")
    with pytest.raises(UsageError, match="more than 100000 bytes"):
        ScriptedServer().say("x" * 200_000).command  # noqa: B018  # it raises
    with pytest.raises(UsageError, match="a file to keep"):
        ScriptedServer().heard()
