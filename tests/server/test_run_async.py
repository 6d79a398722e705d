"""`await server.run_async(...)`: serving in an event loop that was there before and goes on afterwards."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from dragoman import Client, Server
from dragoman.errors import UsageError
from tests.drivers.stdio import call, stateless

PROGRAM = """
import asyncio
from contextlib import asynccontextmanager
from dragoman import Server

@asynccontextmanager
async def lifespan(server):
    yield
    print("lifespan over")

server = Server("s", lifespan=lifespan)
enough = asyncio.Event()

@server.tool
async def stop() -> str:
    enough.set()
    return "stopping"

async def main():
    serving = asyncio.create_task(server.run_async())
    stopped = asyncio.create_task(enough.wait())
    await asyncio.wait([serving, stopped], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        print("the input ended")
        stopped.cancel()
    else:
        serving.cancel()
        try:
            await serving
        except asyncio.CancelledError:
            print("cancelled")
    print("the loop goes on")

asyncio.run(main())
"""


def start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def frame(message: dict[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def test_stdio_ends_with_the_input_and_the_loop_goes_on() -> None:
    with start() as process:
        out, err = process.communicate(frame(stateless(1, "tools/list")), timeout=60)
    answer = json.loads(out)
    assert (answer["id"], answer["result"]["tools"][0]["name"]) == (1, "stop")
    assert err.decode().splitlines() == ["lifespan over", "the input ended", "the loop goes on"]
    assert process.returncode == 0


def test_stdio_that_is_cancelled_still_gives_the_answers_that_were_there() -> None:
    with start() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(frame(call(1, "stop")))
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["result"]["content"][0]["text"] == "stopping"
        # Its input is still open: it was the program that ended the serving.
        assert process.stdout.read() == b""
        assert process.stderr.read().decode().splitlines() == [
            "lifespan over",
            "cancelled",
            "the loop goes on",
        ]
    assert process.returncode == 0


async def test_http_says_its_port_and_ends_with_its_task(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server("s")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(server.run_async("http", port=0, path="/x", bound=port.set_result))
    async with Client(f"http://127.0.0.1:{await port}/x") as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"result": 3}
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert f"http://127.0.0.1:{port.result()}/x" in capsys.readouterr().err


async def test_run_in_a_running_loop_names_the_way_that_works_there() -> None:
    server: Any = Server("s")
    for transport in ("stdio", "http"):
        with pytest.raises(UsageError, match="one is running here") as caught:
            server.run(transport)
        assert caught.value.hint == f"await server.run_async({transport!r})"


async def test_a_transport_that_there_is_not() -> None:
    server: Any = Server("s")
    with pytest.raises(UsageError, match='expected "stdio" or "http", received \'sse\''):
        await server.run_async("sse")
    with pytest.raises(UsageError, match="max_bdoy"):
        await server.run_async("http", max_bdoy=1)


async def test_a_server_that_was_given_no_version_claims_none() -> None:
    async with Client(Server("s")) as client:
        assert client.server_info is not None
        assert client.server_info.version == "0.0.0"
