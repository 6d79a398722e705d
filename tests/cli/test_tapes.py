"""`dragoman record`, `replay` and `mock`: the programs, as hosts and people start them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import Client, ClosedError, SyncClient
from dragoman.testing import Cassette, ScriptedServer
from dragoman.transports.serve import serve
from tests.cli.shell import SERVER, dragoman
from tests.testing.servers import orders

DRAGOMAN = [sys.executable, "-m", "dragoman"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of the test's own with a server in it."""
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def recording(file: str, *target: str) -> list[str]:
    return [*DRAGOMAN, "record", "-o", file, "--", *target]


def use(command: list[str], cwd: Path, **options) -> str:
    with SyncClient(command, cwd=cwd, **options) as client:
        client.list_tools()
        return client.call_tool("add", {"a": 1, "b": 2}).text


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_record_then_replay(protocol, place):
    assert use(recording("deep/s.jsonl", "server.py"), place, protocol=protocol) == "3"
    frames = Cassette.load(place / "deep" / "s.jsonl").frames
    assert {frame.dir for frame in frames} == {"in", "out"}
    (place / "server.py").write_text("raise SystemExit(1)")
    assert use([*DRAGOMAN, "replay", "deep/s.jsonl"], place) == "3"


def test_record_a_command_line_with_options_of_its_own(place):
    command = recording("s.jsonl", sys.executable, "-m", "dragoman", "run", "server.py", "--", "--verbose")
    assert use(command, place) == "3"
    assert use(recording("t.jsonl", f"{sys.executable} -m dragoman run server.py"), place) == "3"


def test_record_hands_on_what_is_wrong_too(tmp_path):
    server = ScriptedServer().greet().expect("tools/call").say("no json at all").exit(3)
    with SyncClient(recording("s.jsonl", *server.command), cwd=tmp_path) as client:
        with pytest.raises(ClosedError) as caught:
            client.call_tool("t")
    assert caught.value.exit_status == 3
    assert Cassette.load(tmp_path / "s.jsonl").frames[-1].text == "no json at all"


def test_record_ends_with_its_input_and_leaves_no_process(place):
    process = subprocess.Popen(
        recording("s.jsonl", "server.py"), cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, _ = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', timeout=30)
    assert process.returncode == 0
    assert json.loads(out)["id"] == 1
    assert len(Cassette.load(place / "s.jsonl").frames) == 2


def test_record_passes_a_signal_on(tmp_path):
    server = ScriptedServer(log=tmp_path / "heard").expect("ping").answer({})
    process = subprocess.Popen(
        recording("s.jsonl", *server.command), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    process.stdin.close()
    process.stdout.close()


def test_record_says_what_it_cannot_start(tmp_path):
    done = dragoman("record", "-o", "s.jsonl", "--", "no-such-program-at-all", cwd=tmp_path, stdin="")
    assert done.status == 4
    assert "no-such-program-at-all" in done.err
    done = dragoman("record", "-o", "s.jsonl", cwd=tmp_path, stdin="")
    assert done.status == 2
    assert "expected a target behind `--`" in done.err
    done = dragoman("record", "--json", "server.py", cwd=tmp_path, stdin="")
    assert done.status == 2
    assert "-o" in done.value["error"]["message"]
    (tmp_path / "file").write_text("")
    done = dragoman("record", "-o", "file/s.jsonl", "--", "x", cwd=tmp_path, stdin="")
    assert done.status == 2
    assert "cannot be written" in done.err


async def _over_http(command: list[str], work, protocol: str, cwd: Path):
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve(orders().asgi(), port=0, bound=bound.set_result))
    try:
        url = f"http://127.0.0.1:{await bound}/mcp"
        async with Client([*command, url], cwd=cwd, protocol=protocol, elicitation_handler=_yes) as client:
            return await work(client)
    finally:
        serving.cancel()
        await asyncio.wait([serving])


def _yes(params):
    return {"yes": True}


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_record_an_http_server(protocol, tmp_path):
    async def work(client):
        seen = []
        await client.list_tools()
        call = client.call_tool("lookup", {"order_id": "A-1"}, progress=lambda *told: seen.append(told))
        return [(await call).structured, seen, (await client.call_tool("confirm")).text]

    expected = [{"price": 10}, [(1.0, 2.0, "half")], "accept: True"]
    file = tmp_path / "s.jsonl"
    assert await _over_http(recording(str(file)), work, protocol, tmp_path) == expected
    assert Cassette.load(file).revision.version == protocol
    async with Client([*DRAGOMAN, "replay", str(file)], elicitation_handler=_yes) as client:
        assert await work(client) == expected


def test_replay_over_http(place):
    use(recording("s.jsonl", "server.py"), place)
    process = subprocess.Popen(
        [*DRAGOMAN, "replay", "s.jsonl", "--http", "127.0.0.1:0"],
        cwd=place, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        url = line.split()[-1]
        with SyncClient(url) as client:
            client.list_tools()
            assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
    finally:
        process.terminate()
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_replay_against_a_server(place):
    use(recording("s.jsonl", "server.py"), place)
    done = dragoman("replay", "s.jsonl", "--against", "server.py", cwd=place)
    assert (done.status, done.err) == (0, "2 answers, 0 of them different\n")
    assert done.out == 'same  tools/list\nsame  tools/call add {"a":1,"b":2}\n'
    source = (place / "server.py").read_text()
    (place / "server.py").write_text(source.replace("return a + b", "return a - b"))
    done = dragoman("replay", "s.jsonl", "--against", "server.py", cwd=place)
    assert done.status == 1
    assert '  ~ result.content[0].text: "3" -> "-1"' in done.out.splitlines()
    done = dragoman("replay", "s.jsonl", "--against", "server.py", "--json", cwd=place)
    assert done.status == 1
    assert [one["same"] for one in done.value["error"]["answers"]] == [True, False]
    ignored = ["--ignore", "content", "--ignore", "structuredContent"]
    assert dragoman("replay", "s.jsonl", *ignored, "--against", "server.py", cwd=place).status == 0


def test_what_cannot_be_replayed(tmp_path):
    done = dragoman("replay", "none.jsonl", cwd=tmp_path)
    assert done.status == 2
    assert "none.jsonl: cannot be read" in done.err
    (tmp_path / "s.jsonl").write_text("{}\n{}\n")
    done = dragoman("replay", "s.jsonl", "--json", cwd=tmp_path)
    assert done.status == 2
    assert "s.jsonl:1" in done.value["error"]["message"]
    done = dragoman("replay", "s.jsonl", "--redact-pattern", "(", "--against", "x", cwd=tmp_path)
    assert done.status == 2


def test_mock_of_what_list_prints(place):
    (place / "tools.json").write_text(dragoman("list", "server.py", "--json", cwd=place).out)
    with SyncClient([*DRAGOMAN, "mock", "tools.json"], cwd=place) as client:
        assert client.server_info.name == "tools"
        names = [tool.name for tool in client.list_tools()]
        assert "add" in names
        assert client.call_tool("add", {"a": 1}).structured == {"result": 0}
        assert client.call_tool("add", {"a": "x"}).is_error


def test_mock_of_a_recording(place):
    use(recording("s.jsonl", "server.py"), place)
    assert use([*DRAGOMAN, "mock", "s.jsonl", "--name", "other"], place, protocol="2025-06-18") == "3"


@pytest.mark.parametrize("name", ["record", "replay", "mock"])
def test_help(name, tmp_path):
    done = dragoman(name, "--help", cwd=tmp_path)
    assert done.status == 0
    assert done.out.startswith(f"usage: dragoman {name}")
    assert "examples:" in done.out
