"""The examples as a person starts them: real processes, real pipes, a real HTTP server."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import RemoteError
from dragoman.jsonrpc import ContentLength, RpcError, Service
from dragoman.jsonrpc.service import Cancellation
from dragoman.transports.fds import open_fds
from dragoman.transports.runner import Options
from dragoman.transports.stream import StreamPeer, connect_stream, serve_stream

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "jsonrpc"
DOCUMENT = {"uri": "file:///notes.txt"}


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())


@asynccontextmanager
async def language_server(service: Service) -> AsyncIterator[StreamPeer]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / "language_server.py"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    options = Options(cancellation=Cancellation(method="$/cancelRequest", code=-32800))
    peer = await connect_stream(
        process.stdout, process.stdin, service=service, framing=ContentLength, options=options
    )
    try:
        yield peer
    finally:
        await peer.close()
        assert await process.wait() == 0


def test_language_server() -> None:
    """The life of an editor session, in which the server asks back while it answers."""
    editor, asked = Service(), []

    @editor.method("workspace/configuration")
    async def configuration(items: list[dict[str, str]]) -> list[str]:
        asked.append(items)
        return ["낱말"]

    async def hover(peer: StreamPeer, line: int, character: int) -> Any:
        params = {"textDocument": DOCUMENT, "position": {"line": line, "character": character}}
        return await peer.request("textDocument/hover", params)

    async def test() -> None:
        async with language_server(editor) as peer:
            answer = await peer.request(
                "initialize", {"processId": None, "rootUri": None, "capabilities": {}}
            )
            assert answer["capabilities"]["hoverProvider"] is True
            await peer.notify("initialized", {})
            with pytest.raises(RemoteError, match=r"document file:///notes\.txt is not open"):
                await hover(peer, 0, 0)
            document = {**DOCUMENT, "languageId": "text", "version": 1, "text": "one 🦜parrot\r\n둘 two"}
            await peer.notify("textDocument/didOpen", {"textDocument": document})
            assert (await hover(peer, 0, 8))["contents"]["value"] == "낱말: 🦜parrot (7 characters)"
            assert (await hover(peer, 1, 0))["contents"]["value"] == "낱말: 둘 (1 characters)"
            assert await hover(peer, 9, 0) is None
            assert await peer.request("shutdown") is None
        assert asked == [[{"scopeUri": DOCUMENT["uri"], "section": "words.greeting"}]] * 2

    run(test)


def test_language_server_with_an_editor_that_refuses_and_one_that_gives_up() -> None:
    editor, reached = Service(), asyncio.Event()

    @editor.method("workspace/configuration")
    async def configuration(items: list[dict[str, str]]) -> list[str]:
        if reached.is_set():
            raise RpcError(-32601, "no configuration here")
        reached.set()
        await asyncio.Event().wait()
        return []

    async def test() -> None:
        async with language_server(editor) as peer:
            await peer.notify("textDocument/didOpen", {"textDocument": {**DOCUMENT, "text": "one"}})
            params = {"textDocument": DOCUMENT, "position": {"line": 0, "character": 0}}
            given_up = asyncio.ensure_future(peer.request("textDocument/hover", params))
            await reached.wait()
            given_up.cancel()
            answer = await peer.request("textDocument/hover", params)
            assert answer["contents"]["value"] == "word: one (3 characters)"

    run(test)


@asynccontextmanager
async def ethereum_node() -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / "ethereum.py"),
        "--port",
        "0",
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    port = None
    async for line in process.stderr:
        if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
            port = int(found[1])
            break
    try:
        assert port is not None
        yield port
    finally:
        process.terminate()
        await process.communicate()


def post(port: int, body: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None
    finally:
        connection.close()


def call(id_: Any, method: str, *params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def test_ethereum() -> None:
    address = "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe"

    async def test() -> None:
        async with ethereum_node() as port:
            ask = asyncio.to_thread
            number = await ask(post, port, call(83, "eth_blockNumber"))
            assert number == (200, {"jsonrpc": "2.0", "id": 83, "result": "0x1312d00"})
            status, answers = await ask(
                post,
                port,
                [
                    call(1, "eth_getBalance", address, "latest"),
                    call("1", "eth_getBalance", address, "0x1312d01"),
                    call(2, "eth_getBalance", "0x1"),
                    call(3, "eth_chainId"),
                    {"jsonrpc": "2.0", "method": "eth_chainId"},
                ],
            )
            assert status == 200
            assert answers[0] == {"jsonrpc": "2.0", "id": 1, "result": hex(10**18 // 2)}
            assert answers[1]["id"] == "1"
            assert answers[1]["error"] == {
                "code": -32000,
                "message": "header not found",
                "data": {"block": "0x1312d01", "head": "0x1312d00"},
            }
            assert (answers[2]["error"]["code"], answers[2]["error"]["data"]["parameter"]) == (
                -32602,
                "address",
            )
            assert answers[3:] == [{"jsonrpc": "2.0", "id": 3, "result": "0x1"}]
            assert await ask(post, port, {"jsonrpc": "2.0", "method": "eth_chainId"}) == (204, None)

    run(test)


def test_open_fds_takes_pipes() -> None:
    async def test() -> None:
        there, back = os.pipe(), os.pipe()
        service = Service()
        service.method("ping")(lambda: "pong")
        near, far = await open_fds(back[0], there[1]), await open_fds(there[0], back[1])
        serving = asyncio.create_task(serve_stream(service, *far))
        async with await connect_stream(*near) as peer:
            assert await peer.request("ping") == "pong"
        await serving
        for fd in (*there, *back):
            with pytest.raises(OSError, match="Bad file descriptor"):
                os.fstat(fd)

    run(test)


def test_open_fds_takes_regular_files(tmp_path: Path) -> None:
    """`service < in > out`: a file cannot be waited for, and need not be."""
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b'{"jsonrpc":"2.0","id":1,"result":"from a file"}\n')

    async def test() -> None:
        fds = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT)
        peer = await connect_stream(*await open_fds(*fds))
        assert await peer.request("read") == "from a file"
        await peer.close()

    run(test)
    assert target.read_bytes() == b'{"jsonrpc":"2.0","id":1,"method":"read"}\n'


def test_prints_do_not_get_between_the_messages(tmp_path: Path) -> None:
    """What the program prints while it serves goes to stderr, with what is still buffered from before."""
    program = tmp_path / "chatty.py"
    program.write_text(
        """
import asyncio
from dragoman.jsonrpc import Service
from dragoman.transports.fds import serve_stdio
service = Service()
print("hello before")
@service.method
def chat():
    print("hello during", flush=True)
    return input.__name__
asyncio.run(serve_stdio(service))
"""
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        input=b'{"jsonrpc":"2.0","id":1,"method":"chat"}\n',
        capture_output=True,
        timeout=60,
        check=True,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    assert done.stdout == b'{"jsonrpc":"2.0","id":1,"result":"input"}\n'
    assert done.stderr.splitlines() == [b"hello before", b"hello during"]
