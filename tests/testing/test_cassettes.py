"""Recordings: written as they happen, played as a server, sent again as a client."""

from __future__ import annotations

import json

import pytest

from dragoman import Client
from dragoman.errors import ClosedError, RemoteError, UsageError
from dragoman.model import ElicitResult
from dragoman.testing import Cassette, Player, Recorder, compare
from tests.testing.servers import orders

ERAS = ["2026-07-28", "2025-11-25", "2025-03-26"]


def yes(params):
    return ElicitResult(action="accept", content={"yes": True})


def message(**members) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


async def session(client: Client) -> list[object]:
    """What a user of the server does, and sees."""
    seen: list[object] = []

    def progress(done, total, message):
        seen.append((done, total, message))

    seen.append([tool.name for tool in await client.list_tools()])
    seen.append((await client.call_tool("lookup", {"order_id": "A-1"}, progress=progress)).structured)
    failed = await client.call_tool("fail")
    seen.append((failed.is_error, failed.text))
    try:
        await client.call_tool("nothing")
    except RemoteError as exc:
        seen.append((exc.code, exc.message))
    return seen


async def recorded(path, *, protocol="2026-07-28", work=session, **options):
    with Recorder(path) as tap:
        async with Client(orders(), protocol=protocol, tap=tap, **options) as client:
            seen = await work(client)
    return seen


# --- the file ----------------------------------------------------------------------------------------


async def test_one_line_a_frame_with_time_and_direction(tmp_path):
    path = tmp_path / "deep" / "orders.jsonl"
    await recorded(path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(set(line) == {"t", "dir", "frame"} for line in lines)
    assert lines[0]["t"] == 0
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    assert (lines[0]["dir"], lines[0]["frame"]["method"]) == ("out", "server/discover")
    assert lines[1]["dir"] == "in"
    assert lines[1]["frame"]["id"] == lines[0]["frame"]["id"]


async def test_secrets_do_not_get_into_it(tmp_path):
    async def work(client):
        return (await client.call_tool("login", {"user": "ann", "password": "hunter2-hunter2"})).text

    assert await recorded(tmp_path / "a.jsonl", work=work) == "ann is in, with hunter2-hunter2"
    text = (tmp_path / "a.jsonl").read_text()
    assert "hunter2" not in text
    assert "ann is in, with [redacted]" in text
    # Asked with the secret, the recording is found all the same.
    async with Client(Player(Cassette.load(tmp_path / "a.jsonl"))) as client:
        assert await work(client) == "ann is in, with [redacted]"


def test_what_is_no_json_is_kept_as_text(tmp_path):
    with Recorder(tmp_path / "a.jsonl", clock=iter([5.0, 5.25]).__next__) as tap:
        tap("in", b"Hello \xff, password is Bearer abc123def456")
        tap("out", b"{}")
    first, second = Cassette.load(tmp_path / "a.jsonl").frames
    assert (first.t, first.dir, first.text) == (0, "in", "Hello \\xff, password is Bearer [redacted]")
    assert (second.t, second.dir, second.frame) == (0.25, "out", {})


def test_files_that_are_none(tmp_path):
    path = tmp_path / "a.jsonl"
    with pytest.raises(UsageError, match="cannot be read"):
        Cassette.load(path)
    path.write_text('{"t":0,"dir":"in","frame":{}}\n{"t":0,"dir":"up","frame":{}}\n')
    with pytest.raises(UsageError, match=r"a\.jsonl:2: no frame of a cassette: .*'up'"):
        Cassette.load(path)
    path.write_text('{"t":0,"dir":"in","frame":{}}\n{"t":0,"dir":"i')
    assert len(Cassette.load(path).frames) == 1


@pytest.mark.parametrize("protocol", ERAS)
async def test_it_knows_the_revision(protocol, tmp_path):
    await recorded(tmp_path / "a.jsonl", protocol=protocol)
    assert Cassette.load(tmp_path / "a.jsonl").revision.version == protocol


# --- as a server -------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ERAS)
async def test_what_was_seen_is_seen_again(protocol, tmp_path):
    seen = await recorded(tmp_path / "a.jsonl", protocol=protocol)
    player = Player(Cassette.load(tmp_path / "a.jsonl"))
    async with Client(player) as client:
        assert client.revision.version == protocol
        assert client.instructions == "ask politely"
        assert client.server_info.name == "orders"
        assert await session(client) == seen
    assert player.misses == []
    assert (1.0, 2.0, "half") in seen or protocol == "2025-03-26"


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_questions_of_the_server_are_asked_again(protocol, tmp_path):
    async def work(client):
        return (await client.call_tool("confirm")).text

    path = tmp_path / "a.jsonl"
    assert await recorded(path, protocol=protocol, work=work, elicitation_handler=yes) == "accept: True"
    asked = []

    def handler(params):
        asked.append(params.message)
        return yes(params)

    async with Client(Player(Cassette.load(path)), elicitation_handler=handler) as client:
        assert await work(client) == "accept: True"
    assert asked == ["Sure?"]


async def test_answers_in_turn_and_then_the_last(tmp_path):
    price = iter([1, 2])
    frames = []

    def changing(direction, frame):
        frames.append((direction, frame))

    for value in price:
        async with Client(orders(price=value), protocol="2026-07-28", tap=changing) as client:
            await client.call_tool("fail")
    # Two sessions in one: their ids are the same, and each answer belongs to the request before it.
    async with Client(Player(Cassette.of(frames))) as client:
        texts = [(await client.call_tool("fail")).text for _ in range(3)]
    assert texts == ["it costs 1", "it costs 2", "it costs 2"]


async def test_what_was_not_recorded_is_an_error_that_names_the_nearest(tmp_path):
    await recorded(tmp_path / "a.jsonl")
    player = Player(Cassette.load(tmp_path / "a.jsonl"))
    async with Client(player) as client:
        with pytest.raises(RemoteError, match=r'~ arguments\.order_id: "A-1" -> "A-2"') as caught:
            await client.call_tool("lookup", {"order_id": "A-2"})
        assert caught.value.code == -32602
        with pytest.raises(RemoteError, match=r"nothing was recorded for this prompts/list"):
            await client.request("prompts/list")
        await client.ping()
    assert len(player.misses) == 2


async def test_a_request_without_an_answer_stays_open(tmp_path):
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    call = {"method": "tools/call", "params": {"name": "t", "arguments": {}}}
    frames = [
        ("out", message(id=1, method="initialize", params={})),
        ("in", message(id=1, result=hello)),
        ("out", message(id=2, **call)),
    ]
    async with Client(Player(Cassette.of(frames))) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("t", timeout=0.05)


async def test_methods_of_extensions(tmp_path):
    async def work(client):
        return await client.request("x/echo", {"odd name": 1, "other": [2]})

    frames = [
        ("out", b'{"jsonrpc":"2.0","id":2,"method":"x/echo","params":{"odd name":1,"other":[2]}}'),
        ("in", b'{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","found":true}}'),
    ]
    hello = Cassette.load
    await recorded(tmp_path / "a.jsonl")
    both = Cassette((*hello(tmp_path / "a.jsonl").frames, *Cassette.of(frames).frames))
    async with Client(Player(both)) as client:
        assert (await work(client))["found"] is True
        with pytest.raises(RemoteError, match="~ odd name: 1 -> 2"):
            await client.request("x/echo", {"odd name": 2, "other": [2]})


# --- as a client -------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ERAS)
async def test_the_same_server_answers_the_same(protocol, tmp_path):
    await recorded(tmp_path / "a.jsonl", protocol=protocol)
    compared = await compare(Cassette.load(tmp_path / "a.jsonl"), orders())
    assert [str(one) for one in compared] == [
        "same  tools/list",
        'same  tools/call lookup {"order_id":"A-1"}',
        "same  tools/call fail",
        "same  tools/call nothing",
    ]


async def test_another_server_is_told_apart(tmp_path):
    await recorded(tmp_path / "a.jsonl")
    compared = await compare(Cassette.load(tmp_path / "a.jsonl"), orders(price=11))
    different = [str(one) for one in compared if not one.same]
    assert "\n".join(different).splitlines() == [
        'DIFFERENT  tools/call lookup {"order_id":"A-1"}',
        '  ~ result.content[0].text: "{\\"price\\":10}" -> "{\\"price\\":11}"',
        "  ~ result.structuredContent.price: 10 -> 11",
        "DIFFERENT  tools/call fail",
        '  ~ result.content[0].text: "it costs 10" -> "it costs 11"',
    ]
    ignored = ["price", "result.content[*].text"]
    compared = await compare(Cassette.load(tmp_path / "a.jsonl"), orders(price=11), ignore=ignored)
    assert all(one.same for one in compared)


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_questions_are_answered_as_they_were(protocol, tmp_path):
    async def work(client):
        return await client.call_tool("confirm")

    await recorded(tmp_path / "a.jsonl", protocol=protocol, work=work, elicitation_handler=yes)
    compared = await compare(Cassette.load(tmp_path / "a.jsonl"), orders())
    assert compared
    assert all(one.same for one in compared), [str(one) for one in compared]


async def test_a_server_that_is_not_there(tmp_path):
    await recorded(tmp_path / "a.jsonl")
    with pytest.raises((ClosedError, Exception), match="no-such-program"):
        await compare(Cassette.load(tmp_path / "a.jsonl"), ["no-such-program-at-all"])
