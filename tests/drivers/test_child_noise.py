"""A server whose stdout holds more than messages, or messages that are not quite right."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from dragoman.errors import PeerFault, RemoteError
from dragoman.transports.child import ChildLimits

from .wire import Wire, opened

DONE = '{"jsonrpc":"2.0","id":$id,"result":{}}\n'


async def test_a_banner_is_skipped_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async with opened("banner=Weather server 1.0 - listening…") as wire:
        assert await wire.call("echo", {"still": "here"}) == {"still": "here"}
        assert wire.facts["noise"] == 1
        assert wire.facts["noise_lines"] == ("Weather server 1.0 - listening…",)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.name == "dragoman"
    text = record.getMessage()
    assert "server 'puppet' wrote a line to stdout that is no message" in text
    assert r"Weather server 1.0 - listening\u2026" in text


@pytest.mark.parametrize(
    "line",
    [
        "DEBUG: connected",
        "\xff\xfe",
        '{"level":"info","msg":"a log line in JSON"}',
        '{"jsonrpc":"1.0","id":1,"method":"x"}',
        "[]",
        "[1,2]",
        "17",
        '{"jsonrpc":"2.0","id":99',
        '{"jsonrpc":"2.0","id":99,"result":1,"error":{"code":1,"message":""}}',
        '{"jsonrpc":"2.0","result":{}}',
        "[" * 100_000,
        "x" * 100_000,
    ],
)
async def test_noise_costs_nothing_but_a_count(line: str) -> None:
    async with opened() as wire:
        assert await wire.call("raw", {"text": line + "\n" + DONE}) == {}
        assert wire.facts["noise"] >= 1
        assert await wire.call("echo", {"still": "here"}) == {"still": "here"}


async def test_endless_noise_is_logged_a_few_times_and_then_counted(caplog: pytest.LogCaptureFixture) -> None:
    noise = "".join(f"line {n}\n" for n in range(1000))
    async with opened() as wire:
        await wire.call("raw", {"text": noise + DONE})
        assert wire.facts["noise"] == 1000
        assert wire.facts["noise_lines"] == tuple(f"line {n}" for n in range(5))
    assert len(caplog.records) == 5
    assert "further ones are counted and not shown" in caplog.records[-1].getMessage()


async def test_a_long_line_of_noise_is_shown_cut_and_without_control_characters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as wire:
        await wire.call("raw", {"text": "\x1b[2J\x07" + "x" * 1000 + "\n" + DONE})
        assert len(wire.facts["noise_lines"][0]) == 200
    assert "\x1b" not in caplog.text
    assert r"\x1b[2J\x07xxx" in caplog.text
    assert "x" * 200 not in caplog.text


async def test_one_bad_byte_in_an_answer_fails_that_request_and_no_other() -> None:
    async with opened() as wire:
        other = await wire.start("hold")
        place = len('{"jsonrpc":"2.0","id":2,"result":{"t":"')
        with pytest.raises(PeerFault, match=rf"could not be read: not UTF-8: .*\(byte {place}\)") as caught:
            await wire.call("raw", {"text": '{"jsonrpc":"2.0","id":$id,"result":{"t":"\xff"}}\n'})
        assert caught.value.server == "puppet"
        await wire.call("release")
        assert (await other).error is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"jsonrpc":"2.0","id":$id,"result":1,"error":{"code":1,"message":"x"}}', "exactly one of them"),
        (
            '{"jsonrpc":"2.0","id":$id,"error":"broken"}',
            'member "error": expected an object, received a string',
        ),
        ('{"jsonrpc":"2.0","id":$id,"error":{"message":"x"}}', 'member "error.code"'),
        ('{"id":$id,"result":{}}', 'member "jsonrpc": expected "2.0", received nothing'),
        ('{"jsonrpc":"2.0","id":$id,"result":{"a":', "too early"),
        ('{"jsonrpc":"2.0","id":$id,"result":{"a":Infinity}}', "invalid"),
        ('{"jsonrpc":"2.0","id":"$id","error":"broken"}', 'member "error"'),
        ('{"jsonrpc":"2.0","id":$id,"result":' + "[" * 200 + "]" * 200 + "}", "nesting of 201 levels"),
    ],
)
async def test_an_answer_that_is_none_fails_its_request_at_once(line: str, why: str) -> None:
    async with opened() as wire, asyncio.timeout(10):
        with pytest.raises(PeerFault) as caught:
            await wire.call("raw", {"text": line + "\n"})
        assert why in str(caught.value)
        assert wire.facts["noise"] == 0
        assert await wire.call("echo", {"still": "here"}) == {"still": "here"}


async def test_an_answer_beyond_the_limit_fails_its_request_and_names_the_limit() -> None:
    async with opened(limits=ChildLimits(max_line=100_000, grace=(0.2, 0.2))) as wire:
        other = await wire.start("hold")
        with pytest.raises(PeerFault, match="message too large: expected at most 100000 bytes"):
            await wire.call("big", {"size": 1_000_000})
        assert len((await wire.call("big", {"size": 90_000}))["text"]) == 90_000
        await wire.call("release")
        await other


async def test_a_line_of_100_mb_is_held_neither_in_memory_nor_against_the_server() -> None:
    async with opened(limits=ChildLimits(max_line=1_000_000, grace=(0.2, 0.2))) as wire:
        await wire.call("echo")
        tracemalloc.start()
        try:
            assert await wire.call("flood", {"chunks": 100}) == {}
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 5_000_000
        assert wire.facts["noise"] == 1


async def test_an_id_that_came_back_as_text_is_matched_and_counted() -> None:
    async with opened() as wire:
        assert await wire.call(
            "raw", {"text": '{"jsonrpc":"2.0","id":"$id","result":{"lenient":true}}\n'}
        ) == {"lenient": True}
        assert (wire.facts["lenient"], wire.facts["unmatched"]) == (1, 0)


@pytest.mark.parametrize(
    "id_", ['"01"', '"1.0"', '" 1"', '"²"', '"x"', "99", "1.5", "null", '"' + "1" * 10_000 + '"']
)
async def test_an_answer_to_nothing_is_counted_and_named(id_: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as wire:
        line = f'{{"jsonrpc":"2.0","id":{id_},"result":{{"wrong":1}}}}\n'.encode().decode("latin-1")
        assert await wire.call("raw", {"text": line + DONE}) == {}
        assert (wire.facts["unmatched"], wire.facts["lenient"]) == (1, 0)
    assert "server 'puppet' answered a request that is not open" in caplog.text


async def test_a_second_answer_to_the_same_request_is_an_answer_to_nothing() -> None:
    async with opened() as wire:
        await wire.call("raw", {"text": DONE + DONE})
        await wire.call("echo")
        assert wire.facts["unmatched"] == 1


async def _lone_error(wire: Wire, code: int) -> None:
    line = f'{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"Parse error"}}}}\n'
    answer = await asyncio.wait_for(wire.ask("raw", {"text": line}), 5)
    assert answer.error is not None
    raise RemoteError(answer.error.code, answer.error.message)


async def test_an_error_whose_sender_could_not_read_the_id_is_for_the_only_open_request() -> None:
    """JSON-RPC 2.0, section 5: the id is null if it could not be detected."""
    async with opened() as wire:
        with pytest.raises(RemoteError, match="-32700"):
            await _lone_error(wire, -32700)
        assert wire.facts["lenient"] == 1


async def test_an_error_without_id_is_for_nobody_while_several_are_open_or_the_id_was_readable() -> None:
    async with opened() as wire:
        other = await wire.start("hold")
        line = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n'
        await wire.call("raw", {"text": line + DONE})
        await wire.call("release")
        await other
        line = line.replace("-32700", "-32601")  # says that the request was read
        await wire.call("raw", {"text": line + DONE})
        assert (wire.facts["unmatched"], wire.facts["lenient"]) == (2, 0)


async def test_the_members_of_a_batch_are_taken_one_by_one() -> None:
    """2025-03-26 lets a server send several messages in one array."""
    async with opened() as wire:
        batch = '[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":$id,"result":{"in":"batch"}},3]\n'
        assert await wire.call("raw", {"text": batch}) == {"in": "batch"}
        assert [one.method for one in wire.notifications] == ["x"]
        assert wire.facts["noise"] == 1
