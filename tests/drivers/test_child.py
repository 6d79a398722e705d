"""The child-process transport with a server that behaves: exchanges, both directions, flow, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import sys
from pathlib import Path

import pytest

from dragoman.errors import ClosedError, ConnectError, UsageError
from dragoman.jsonrpc.message import Request, encode_result
from dragoman.transports.base import Outgoing, Transport
from dragoman.transports.child import ChildLimits, ChildTransport
from dragoman.transports.spawn import short_name

from .wire import Wire, children, descriptors, gone, opened, puppet, refuse, until


def test_it_is_a_transport() -> None:
    transport: Transport = puppet()
    assert transport.shared


async def test_a_request_is_answered_byte_for_byte() -> None:
    text = {"text": "서울 \u2028 \u2029 \x85 — 🙂", "nested": {"empty": "", "null": None}}
    async with opened() as wire:
        assert await wire.call("echo", text) == text


async def test_answers_are_paired_by_id_in_any_order() -> None:
    async with opened() as wire:
        calls = [await wire.start("hold") for _ in range(100)]
        await wire.call("release")  # answers the newest first, in one write
        assert [(await call).id for call in calls] == list(range(1, 101))


async def test_lines_may_end_in_crlf_begin_with_a_mark_and_be_blank() -> None:
    async with opened() as wire:
        line = '\r\n\n  \n\xef\xbb\xbf{"jsonrpc":"2.0","id":$id,"result":{"windows":true}}\r\n'
        assert await wire.call("raw", {"text": line}) == {"windows": True}
        assert wire.facts["noise"] == 0


@pytest.mark.parametrize("size", [64 * 1024, 1_000_000, 10_000_000])
async def test_an_answer_may_be_far_longer_than_64_kib(size: int) -> None:
    async with opened() as wire:
        assert len((await wire.call("big", {"size": size}))["text"]) == size


async def test_both_pipes_full_at_once_is_no_deadlock() -> None:
    big = "x" * 2_000_000
    async with opened() as wire, asyncio.timeout(30):
        answers = await asyncio.gather(*[wire.call("echo", {"n": n, "text": big}) for n in range(6)])
        assert [answer["n"] for answer in answers] == list(range(6))


async def test_an_exchange_waits_while_the_server_does_not_read() -> None:
    async with opened() as wire:
        pid = (await wire.call("deaf"))["pid"]
        calls = [asyncio.create_task(wire.call("echo", {"text": "x" * 600_000})) for _ in range(20)]
        await until(lambda: wire.facts["unsent"] > 1_000_000)
        for _ in range(10):
            await asyncio.sleep(0)
        assert wire.facts["unsent"] < 2_000_000  # of 12 million
        os.kill(pid, signal.SIGUSR1)
        for answer in await asyncio.gather(*calls):
            assert len(answer["text"]) == 600_000
        assert wire.facts["unsent"] == 0


async def test_notifications_go_to_the_one_listener_in_their_order() -> None:
    lines = "".join(
        f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":{n}}}}}\n'
        for n in range(3)
    )
    async with opened() as wire:
        await wire.call("raw", {"text": lines + '{"jsonrpc":"2.0","id":$id,"result":{}}\n'})
        assert [bytes(one.params) for one in wire.notifications] == [b'{"progress":%d}' % n for n in range(3)]


async def test_a_listener_that_raises_disturbs_no_exchange(caplog: pytest.LogCaptureFixture) -> None:
    def listen(_: object) -> None:
        raise ValueError("mine")

    wire = Wire(puppet())
    await wire.transport.open(listen, refuse)
    text = '{"jsonrpc":"2.0","method":"x"}\n{"jsonrpc":"2.0","id":$id,"result":{}}\n'
    assert await wire.call("raw", {"text": text}) == {}
    assert "x of server 'puppet' failed in its handler" in caplog.text
    await wire.transport.close()


# Cancellation --------------------------------------------------------------------------------------


async def test_cancelling_tells_the_server_and_nothing_else() -> None:
    async with opened() as wire:
        other = await wire.start("hold")
        call = await wire.start("hold")
        await wire.call("echo")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        received = await wire.seen()
        assert received[-1] == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 2},
        }
        await wire.call("release")
        assert (await other).id == 1


async def test_the_late_answer_to_a_cancelled_request_is_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as wire:
        call = await wire.start("hold")
        await wire.call("echo")
        call.cancel()
        await asyncio.wait([call])
        await wire.call("release")
        assert (wire.facts["late"], wire.facts["unmatched"]) == (1, 0)
        assert not caplog.records


async def test_initialize_is_given_up_without_a_word() -> None:
    """2025-11-25, cancellation: the `initialize` request MUST NOT be cancelled by clients."""
    async with opened() as wire:
        call = await wire.start("hold", handshake=True)
        await wire.call("echo")
        call.cancel()
        await asyncio.wait([call])
        assert [message["method"] for message in await wire.seen()] == ["hold", "echo"]


async def test_a_request_that_was_never_written_is_not_cancelled_at_the_server() -> None:
    """Cancellation notifications reference requests that were issued (2026-07-28, cancellation)."""
    async with opened() as wire:
        pid = (await wire.call("deaf"))["pid"]
        first = await wire.start("echo", {"text": "x" * 2_000_000})
        await until(lambda: wire.facts["unsent"] > 1_000_000)
        waiting = await wire.start("echo")
        waiting.cancel()
        await asyncio.wait([waiting])
        os.kill(pid, signal.SIGUSR1)
        await first
        assert [message["method"] for message in await wire.seen()] == ["deaf", "echo"]


async def test_a_timeout_around_an_exchange_is_a_cancellation() -> None:
    async with opened() as wire:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await wire.ask("hold")
        assert [message["method"] for message in await wire.seen()] == ["hold", "notifications/cancelled"]


# What the server asks ------------------------------------------------------------------------------


def _question(id_: str, method: str = "roots/list") -> str:
    return f'{{"jsonrpc":"2.0","id":{id_},"method":"{method}"}}\n'


_DONE = '{"jsonrpc":"2.0","id":$id,"result":{}}\n'


async def test_the_server_may_ask_while_its_answer_is_awaited() -> None:
    async def answer(request: Request) -> bytes:
        return encode_result(request.id, {"roots": [request.method]})

    async with opened(on_request=answer) as wire:
        await wire.call("raw", {"text": _question('"q-1"') + _DONE})
        assert (await wire.seen())[-1] == {"jsonrpc": "2.0", "id": "q-1", "result": {"roots": ["roots/list"]}}


async def test_a_handler_that_raises_is_answered_with_an_internal_error_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(_: Request) -> bytes:
        raise ValueError("secret")

    async with opened(on_request=answer) as wire:
        await wire.call("raw", {"text": _question("7") + _DONE})
        error = {"code": -32603, "message": "Internal error"}
        assert (await wire.seen())[-1] == {"jsonrpc": "2.0", "id": 7, "error": error}
        assert "ValueError: secret" in caplog.text  # in the log, where the user looks


async def test_a_question_whose_id_is_in_use_is_refused() -> None:
    go_on = asyncio.Event()

    async def answer(request: Request) -> bytes:
        await go_on.wait()
        return encode_result(request.id, {})

    async with opened(on_request=answer) as wire:
        await wire.call("raw", {"text": _question("7") + _question("7") + _DONE})
        assert (await wire.seen())[-1]["error"] == {"code": -32600, "message": "id 7 is already in use"}
        go_on.set()
        await until(lambda: not wire.facts["asked"])
        assert (await wire.seen())[-1] == {"jsonrpc": "2.0", "id": 7, "result": {}}


async def test_a_cancelled_question_is_not_answered() -> None:
    asked = asyncio.Event()
    ended: list[str] = []

    async def answer(_: Request) -> bytes:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return b""

    async with opened(on_request=answer) as wire:
        call = asyncio.create_task(wire.call("raw", {"text": _question("7") + _DONE}))
        await asked.wait()
        await call
        cancelled = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'
        await wire.call("raw", {"text": cancelled + _DONE})
        await until(lambda: ended == ["cancelled"])
        assert all("method" in message for message in await wire.seen())
        assert [one.method for one in wire.notifications] == ["notifications/cancelled"]


async def test_a_handler_may_close_the_connection() -> None:
    async def answer(_: Request) -> bytes:
        await wire.transport.close()
        ended.set()
        return b""

    ended = asyncio.Event()
    async with opened(on_request=answer) as wire:
        await wire.call("raw", {"text": _question("7") + _DONE})
        await asyncio.wait_for(ended.wait(), 10)


async def test_questions_without_end_are_bounded() -> None:
    async def answer(_: Request) -> bytes:
        await asyncio.Event().wait()
        return b""

    async with opened(on_request=answer) as wire:
        await wire.call("raw", {"text": "".join(_question(str(n)) for n in range(300)) + _DONE})
        assert wire.facts["asked"] == 256
        refused = [message for message in await wire.seen() if "error" in message]
        assert [message["id"] for message in refused] == list(range(256, 300))


# The process -----------------------------------------------------------------------------------------


async def test_the_server_leads_a_group_of_its_own() -> None:
    async with opened() as wire:
        where = await wire.call("where")
        assert where["group"] == where["pid"] == wire.facts["pid"] != os.getpgid(0)


async def test_the_environment_is_laid_over_that_of_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INHERITED", "1")
    monkeypatch.setenv("CHANGED", "1")
    async with opened(env={"CHANGED": "2", "ADDED": "서울"}, cwd=tmp_path) as wire:
        where = await wire.call("where")
        assert [where["env"][key] for key in ("INHERITED", "CHANGED", "ADDED")] == ["1", "2", "서울"]
        assert where["cwd"] == str(tmp_path)


async def test_the_environment_may_be_only_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "1")
    async with opened(env={"ONLY": "1"}, inherit=False) as wire:
        env = (await wire.call("where"))["env"]
        assert env["ONLY"] == "1"
        assert "INHERITED" not in env
        assert "PATH" not in env


async def test_stderr_comes_line_by_line_and_its_tail_is_kept() -> None:
    async with opened(limits=ChildLimits(tail_lines=3, grace=(0.2, 0.2))) as wire:
        await wire.call("say", {"text": "one\r\n\ntwo \xff\nthree\nfo"})
        await wire.call("say", {"text": "ur\n"})
        await until(lambda: len(wire.stderr) == 5)
        assert wire.stderr == ["one", "", "two \ufffd", "three", "four"]
        assert wire.facts["stderr_tail"] == ("two \ufffd", "three", "four")
        await wire.call("say", {"text": "no line end"})
    assert wire.stderr[-1] == "no line end"


async def test_stderr_goes_to_our_stderr_even_without_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's stderr is an object without a file descriptor."""
    notebook = io.StringIO()
    monkeypatch.setattr(sys, "stderr", notebook)
    async with opened(on_stderr=None) as wire:
        await wire.call("say", {"text": "warming up \xec\x84\x9c\n"})
    assert notebook.getvalue() == "warming up 서\n"


@pytest.mark.parametrize("stderr", [None, "closed"])
async def test_without_a_stderr_of_our_own_the_servers_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch, stderr: str | None
) -> None:
    stream = None
    if stderr:
        stream = io.StringIO()
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    async with opened(on_stderr=None) as wire:
        await wire.call("say", {"text": "warming up\n"})
        await until(lambda: wire.facts["stderr_tail"] == ("warming up",))


async def test_a_listener_of_stderr_that_raises_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    def listen(_: str) -> None:
        raise ValueError("mine")

    async with opened(on_stderr=listen) as wire:
        await wire.call("say", {"text": "one\ntwo\n"})
        await until(lambda: wire.facts["stderr_tail"] == ("one", "two"))
    assert caplog.text.count("ValueError: mine") == 1


async def test_a_flood_on_stderr_without_line_ends_is_cut_into_pieces() -> None:
    async with opened() as wire:
        await asyncio.gather(*[wire.call("say", {"text": "x" * 100_000}) for _ in range(5)])
        await until(lambda: sum(map(len, wire.stderr)) > 400_000)
        assert max(map(len, wire.stderr)) < 200_000
        assert all(len(line) <= 1000 for line in wire.facts["stderr_tail"])


# Wrong use -------------------------------------------------------------------------------------------


async def test_before_open_nothing_can_be_sent() -> None:
    wire = Wire(puppet())
    with pytest.raises(UsageError, match="not opened"):
        await wire.ask("echo")
    with pytest.raises(UsageError, match="not opened"):
        await wire.tell("x", {})


async def test_opening_twice_is_an_error_and_starts_nothing() -> None:
    async with opened() as wire:
        before = children()
        with pytest.raises(UsageError, match="open already"):
            await wire.transport.open(wire.notifications.append, refuse)
        assert children() == before


async def test_an_id_in_use_is_an_error() -> None:
    async with opened() as wire:
        outgoing = wire.outgoing("hold")
        call = asyncio.create_task(wire.transport.exchange(outgoing))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="id 1 is already in use"):
            await wire.transport.exchange(outgoing)
        await wire.call("release")
        assert (await call).id == 1


async def test_a_frame_with_a_line_end_is_never_written() -> None:
    """Messages MUST NOT contain embedded newlines (2026-07-28, stdio)."""
    smuggled = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":\n{"y":1}}}'
    async with opened() as wire:
        with pytest.raises(UsageError, match="one line"):
            await wire.transport.exchange(Outgoing(1, "echo", smuggled))
        with pytest.raises(UsageError, match="one line"):
            await wire.transport.notify(smuggled, None)
        assert await wire.seen() == []


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/local/bin/weather", "--token", "secret"], "weather"),
        (["python3", "-u", "servers/weather.py", "secret"], "weather.py"),
        (
            ["npx", "-y", "@modelcontextprotocol/server-everything", "secret"],
            "@modelcontextprotocol/server-everything",
        ),
        (["node", "/opt/node_modules/.bin/weather", "secret"], "weather"),
        (["python3", "-m", "weather"], "weather"),
        (["python3", "-c", "import secret"], "python3"),
        (["/usr/bin/node"], "node"),
        (["postgres-mcp", "postgres://user:secret@host/db"], "postgres-mcp"),
    ],
)
def test_a_command_names_its_server_without_its_arguments(command: list[str], name: str) -> None:
    assert short_name(command) == name
    assert ChildTransport(command).name == name


# Nothing is left -------------------------------------------------------------------------------------


async def test_fifty_starts_and_stops_leave_nothing() -> None:
    async with opened() as wire:
        await wire.call("echo")
    tasks, before, processes = asyncio.all_tasks(), descriptors(), children()
    for _ in range(50):
        async with opened() as wire:
            await wire.call("echo")
    assert descriptors() == before
    assert children() == processes
    assert asyncio.all_tasks() == tasks


async def test_what_cannot_start_leaves_nothing(tmp_path: Path) -> None:
    before, processes = descriptors(), children()
    for _ in range(20):
        with contextlib.suppress(ConnectError):
            await ChildTransport([str(tmp_path / "none")]).open(print, refuse)
    assert descriptors() == before
    assert children() == processes


async def test_a_server_that_died_leaves_nothing_even_before_close() -> None:
    before, processes = descriptors(), children()
    async with opened() as wire:
        pid = (await wire.call("bear"))["pid"]
        with pytest.raises(ClosedError):
            await wire.call("die")
        await until(lambda: children() == processes and descriptors() == before)
        assert gone(pid)


async def test_after_its_death_a_server_can_be_started_anew() -> None:
    async with opened() as wire:
        with pytest.raises(ClosedError):
            await wire.call("die", {"status": 3})
        await wire.transport.open(wire.notifications.append, refuse)
        assert wire.facts["running"]
        assert await wire.call("echo", {"again": True}) == {"again": True}
