"""How servers of a host live: brought back, shared, stopped when idle, and changed with their files."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import member
from dragoman.client.member import Retry
from dragoman.errors import ClosedError, UsageError
from dragoman.host import Frame, Host, Supervisor, Trace
from tests.host.places import Place, alive, use

SOON = Retry(first=0.01, most=0.05)
ALLOW = {"permissions": {"allow": ["mcp__service", "mcp__other"]}}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.write("home/.claude/settings.json", ALLOW)
    return place


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "dragoman")


def servers(place: Place, **entries: Any) -> None:
    place.write("home/.claude.json", {"mcpServers": entries})


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # there is no event of a process that is gone
            await asyncio.sleep(0.01)


async def pid(found: Host) -> int:
    outcome = await found.answer(use("pid"))
    assert not outcome.is_error, outcome.text
    return outcome.result.structured["result"]


# --- brought back ----------------------------------------------------------------------------------------


async def test_nothing_is_left_behind(place):
    servers(place, service=place.entry, other=place.entry)
    async with place.host("claude-code") as found:
        assert {session.state for session in found.sessions.values()} == {"connected"}
    assert len(place.starts) == 2
    assert not any(alive(one) for one in place.starts)
    assert {session.state for session in found.sessions.values()} == {"closed"}


async def test_nothing_is_left_behind_when_the_start_is_given_up(place):
    mute = place.write(
        "mute.py", f"import os; open({str(place.ran)!r}, 'a').write(f'{{os.getpid()}}\\n'); input()"
    )
    servers(place, service=place.entry, other={**place.entry, "args": [str(mute)]})
    found = place.host("claude-code")
    task = asyncio.create_task(found.connect())
    await until(lambda: len(place.starts) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await found.close()
    assert not any(alive(one) for one in place.starts)


async def test_a_server_that_was_not_there_comes_later_by_itself(place):
    script = place.folder / "late.py"
    servers(place, service={**place.entry, "args": [str(script), str(place.ran)]})
    async with Supervisor(retry=SOON) as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            session = found.sessions["service"]
            assert session.state in ("failed", "starting")
            outcome = await found.answer(use("pid"))
            assert (outcome.by, outcome.is_error) == ("host", True)  # its tools are not known yet
            script.write_text(place.server.read_text())
            await until(lambda: session.state == "connected")
            assert "mcp__service__pid" in [shown.name for shown in await found.shown()]
            assert await pid(found) == place.starts[-1]


async def test_without_a_retry_a_server_that_failed_stays_so(place):
    servers(place, service={"command": "no-such-program"})
    async with (
        Supervisor(retry=None) as supervisor,
        place.host("claude-code", supervisor=supervisor) as found,
    ):
        session = found.sessions["service"]
        assert session.state == "failed"
        assert session.running.retry_at is None
        assert "no-such-program" in session.why


async def test_a_server_that_died_is_there_for_the_next_call(place):
    servers(place, service=place.entry)
    async with place.host("claude-code") as found:
        before = await pid(found)
        died = await found.answer(use("die"))
        assert (died.by, died.is_error) == ("host", True)
        after = await pid(found)
        assert before != after
        assert not alive(before)


async def test_a_server_that_hangs_is_replaced(place, monkeypatch):
    monkeypatch.setattr(member, "_PING", 1.0)
    servers(place, service=place.entry)
    async with Supervisor(retry=SOON, health=0.1) as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            first = await pid(found)
            os.kill(first, signal.SIGSTOP)
            await until(lambda: len(place.starts) == 2 and found.sessions["service"].state == "connected")
            assert not alive(first)
            assert await pid(found) == place.starts[1]


async def test_a_server_at_work_is_not_taken_for_one_that_hangs(place, monkeypatch):
    monkeypatch.setattr(member, "_PING", 1.0)
    servers(place, service=place.entry)
    async with Supervisor(retry=SOON, health=0.1) as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            outcome = await found.answer(use("busy", seconds=1.5))
            assert outcome.result.text == "done"
    assert len(place.starts) == 1


@pytest.mark.parametrize("options", [{"at_once": 0}, {"idle_stop": 0}, {"health": -1}])
def test_numbers_that_cannot_be_are_named(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        Supervisor(**options)


async def test_a_start_that_takes_long_holds_up_no_other(place):
    mute = place.write("mute.py", "import sys; sys.stdin.read()")
    text = place.toml.replace("service]", "mute]").replace(str(place.server), str(mute))
    place.write("home/.codex/config.toml", f"{place.toml}{text}startup_timeout_sec = 0.5\n")
    async with asyncio.timeout(20), place.host("codex") as found:
        assert found.sessions["service"].state == "connected"
        assert found.sessions["mute"].state in ("starting", "failed")
        assert "0.5 s" in found.sessions["mute"].why


LISTLESS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "listless", "version": "1"},
        }
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def test_a_server_that_never_lists_its_tools_is_waited_for_as_long_as_for_any_start(place):
    text = place.toml.replace(str(place.server), str(place.write("listless.py", LISTLESS)))
    place.write("home/.codex/config.toml", f"{text}startup_timeout_sec = 1\n")
    async with asyncio.timeout(20), place.host("codex", protocol="2025-11-25") as found:
        assert found.sessions["service"].state == "starting"
        assert found.sessions["service"].why == "it was not ready within 1 s"
        assert await found.tools() == []


async def test_only_so_many_programs_start_at_a_time(place):
    servers(place, **{f"s{number}": place.entry for number in range(4)})
    async with Supervisor(at_once=1) as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            assert {session.state for session in found.sessions.values()} == {"connected"}
    assert len(place.starts) == 4


# --- shared ----------------------------------------------------------------------------------------------


async def test_hosts_share_a_server_whose_revision_keeps_nothing(place):
    servers(place, service=place.entry)
    async with Supervisor() as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as one:
            async with place.host("claude-code", supervisor=supervisor) as two:
                assert await pid(one) == await pid(two)
                assert len(supervisor.running) == 1
            # The one that is left goes on as before.
            assert await pid(one) == place.starts[0]
        assert supervisor.running == ()
        assert not alive(place.starts[0])
    assert len(place.starts) == 1


async def test_hosts_that_begin_at_the_same_time_share_too(place):
    servers(place, service=place.entry)
    async with Supervisor() as supervisor:
        hosts = [place.host("claude-code", supervisor=supervisor) for _ in range(5)]
        await asyncio.gather(*(one.connect() for one in hosts))
        assert len({await pid(one) for one in hosts}) == 1
        await asyncio.gather(*(one.close() for one in hosts))
    assert len(place.starts) == 1


async def test_each_call_is_in_the_trace_of_its_own_host(place):
    servers(place, service=place.entry)
    lines: tuple[list[Any], list[Any]] = ([], [])

    def trace(at: int) -> Trace:
        return Trace(lambda line: lines[at].append(json.loads(line)))

    async with Supervisor() as supervisor:
        hosts = [place.host("claude-code", supervisor=supervisor, trace=trace(at)) for at in (0, 1)]
        await asyncio.gather(*(one.connect() for one in hosts))
        words = [(at, f"{at}-{number}") for number in range(10) for at in (0, 1)]
        await asyncio.gather(*(hosts[at].answer(use("look", what=word)) for at, word in words))
        await asyncio.gather(*(one.close() for one in hosts))
    for at in (0, 1):
        requests = [line["request"] for line in lines[at] if line["kind"] == "tools/call"]
        sent = [request["params"]["arguments"]["what"] for request in requests]
        assert sorted(sent) == [f"{at}-{number}" for number in range(10)]


@pytest.mark.parametrize("protocol", ["2025-11-25", "2025-06-18"])
async def test_a_server_that_keeps_a_session_is_nobody_elses(place, protocol):
    servers(place, service=place.entry)
    async with Supervisor() as supervisor:
        async with (
            place.host("claude-code", supervisor=supervisor, protocol=protocol) as one,
            place.host("claude-code", supervisor=supervisor, protocol=protocol) as two,
        ):
            assert await pid(one) != await pid(two)


async def test_entries_that_differ_in_anything_are_two_servers(place):
    servers(place, service=place.entry)
    async with Supervisor() as supervisor:
        async with (
            place.host("claude-code", supervisor=supervisor) as one,
            place.host("claude-code", supervisor=supervisor, env={"ANOTHER": "1"}) as two,
        ):
            assert await pid(one) != await pid(two)


async def test_who_looks_on_has_a_server_alone(place):
    servers(place, service=place.entry)
    frames: list[Frame] = []
    async with Supervisor() as supervisor:
        async with (
            place.host("claude-code", supervisor=supervisor) as one,
            place.host("claude-code", supervisor=supervisor, tap=frames.append) as two,
        ):
            assert await pid(one) != await pid(two)
            assert {frame.server for frame in frames} == {"service"}


async def test_a_closed_supervisor_starts_nothing(place):
    servers(place, service=place.entry)
    supervisor = Supervisor()
    await supervisor.close()
    with pytest.raises(ClosedError):
        async with place.host("claude-code", supervisor=supervisor):
            pass
    assert place.starts == []


async def test_a_host_is_connected_once_and_closed_for_good(place):
    servers(place, service=place.entry)
    found = place.host("claude-code")
    async with found:
        await found.connect()
        assert await pid(found) == place.starts[0]
    for again in (found.connect(), found.reload()):
        with pytest.raises(ClosedError, match="this host was closed"):
            await again
    assert len(place.starts) == 1


async def test_a_host_that_is_closed_while_it_changes_leaves_nothing_with_the_others(place):
    servers(place, service=place.entry)
    async with Supervisor() as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            servers(place, service=place.entry, other=place.entry)
            reload = asyncio.create_task(found.reload())
            await until(lambda: "other" in found.sessions)
        await reload
        assert supervisor.running == ()
        assert not any(alive(one) for one in place.starts)


# --- idle ------------------------------------------------------------------------------------------------


async def test_an_idle_server_is_stopped_and_started_by_the_next_call(place):
    servers(place, service=place.entry)
    async with Supervisor(idle_stop=0.2) as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            session = found.sessions["service"]
            first = place.starts[0]
            await until(lambda: session.state == "idle" and not alive(first))
            # Its tools are known all the while, and looking at them wakes nobody.
            assert "mcp__service__pid" in [shown.name for shown in await found.shown()]
            assert session.state == "idle"
            second = await pid(found)
            assert second == place.starts[1] != first
            await until(lambda: session.state == "idle" and not alive(second))
        assert supervisor.running == ()


async def test_a_server_is_not_idle_while_it_works(place):
    servers(place, service=place.entry)
    async with Supervisor(idle_stop=0.1) as supervisor:
        async with place.host("claude-code", supervisor=supervisor) as found:
            outcome = await found.answer(use("slow", seconds=0.6))
            assert outcome.result.text == "done"
    assert len(place.starts) <= 2  # it may have been stopped before the call, and not in it


# --- changed files ---------------------------------------------------------------------------------------


async def test_changed_files_change_only_the_servers_that_they_change(place):
    servers(place, service=place.entry, other=place.entry, gone=place.entry)
    async with place.host("claude-code") as found:
        kept = await pid(found)
        changed = {**place.entry, "env": {"NEW": "1"}}
        text = json.dumps(
            {"mcpServers": {"fresh": place.entry, "service": place.entry, "other": changed}}, indent=4
        )
        place.write("home/.claude.json", "\n\n" + text)  # the same entry in another place is the same
        done = await found.reload()
        assert (done.kept, done.restarted, done.started, done.stopped) == (
            ("service",),
            ("other",),
            ("fresh",),
            ("gone",),
        )
        assert await pid(found) == kept
        assert found.sessions["service"].config.origin.line > 2
        assert {name: session.state for name, session in found.sessions.items()} == {
            "fresh": "connected",
            "service": "connected",
            "other": "connected",
        }
        running = [one for one in place.starts if alive(one)]
        assert len(running) == 3
    assert not any(alive(one) for one in place.starts)


async def test_calls_on_their_way_come_to_their_end_at_the_old_server(place):
    servers(place, service=place.entry)
    async with place.host("claude-code") as found:
        call = asyncio.create_task(found.answer(use("slow", seconds=0.5)))
        await until(lambda: found.sessions["service"].running.busy)
        servers(place, service={**place.entry, "env": {"NEW": "1"}})
        done, outcome = await asyncio.gather(found.reload(), call)
        assert done.restarted == ("service",)
        assert outcome.result.text == "done"
        assert not alive(place.starts[0])
        assert await pid(found) == place.starts[1]


async def test_a_call_waits_for_a_server_that_is_started_again(place):
    servers(place, service=place.entry)
    async with place.host("claude-code") as found:
        servers(place, service={**place.entry, "env": {"NEW": "1"}})
        reload = asyncio.create_task(found.reload())
        await until(lambda: found.sessions["service"].state != "connected")
        outcome = await found.answer(use("environment"))
        assert outcome.result.structured["NEW"] == "1"
        assert (await found.answer(use("never"))).text.startswith("Unknown tool")
        await reload


async def test_a_tool_whose_server_did_not_come_back_is_not_called_unknown(place):
    servers(place, service=place.entry)
    async with place.host("claude-code") as found:
        servers(place, service={"command": "no-such-program"})
        await found.reload()
        facts = found.judged(use("look"))
        assert (facts.by, facts.name.tool, facts.state) == ("host", "look", "failed")
        assert facts.text == "mcp__service__look is not there now: its server cannot be reached"
        assert "no-such-program" in facts.why


async def test_changed_rules_hold_from_the_next_call_on(place):
    servers(place, service=place.entry)
    async with place.host("claude-code") as found:
        assert not (await found.answer(use("look"))).is_error
        place.write("home/.claude/settings.json", {"permissions": {"deny": ["mcp__service__look"]}})
        done = await found.reload()
        assert done.kept == ("service",)
        assert (await found.answer(use("look"))).by == "permission"
        assert "mcp__service__look" not in [shown.name for shown in await found.shown()]
    assert len(place.starts) == 1


@pytest.mark.parametrize("file", ["home/.claude.json", "home/.claude/settings.json"])
async def test_a_file_that_cannot_be_read_any_more_changes_nothing(place, file):
    servers(place, service=place.entry)
    place.write(
        "home/.claude/settings.json",
        {"permissions": {"allow": ["mcp__service"], "deny": ["mcp__service__drop"]}},
    )
    before = (place.folder / file).read_text()
    async with place.host("claude-code") as found:
        place.write(file, '{ "half')
        done = await found.reload()
        assert "not JSON" in done.why
        assert done.kept == ("service",)
        assert (await found.answer(use("drop"))).decision.effect == "deny"
        assert any("not JSON" in problem.text for problem in found.problems)
        place.write(file, before)
        assert (await found.reload()).why == ""
        assert not any("not JSON" in problem.text for problem in found.problems)
        assert await pid(found) == place.starts[0]
    assert len(place.starts) == 1


async def test_what_codex_would_not_start_with_does_not_stop_what_runs(place):
    place.write("home/.codex/config.toml", place.toml)
    async with place.host("codex") as found:
        place.write("home/.codex/config.toml", place.toml + 'url = "http://127.0.0.1:9/"\n')
        assert (await found.reload()).why
        assert await pid(found) == place.starts[0]


async def test_watched_files_are_read_again_by_themselves(place):
    servers(place, service=place.entry)
    async with place.host("claude-code", watch=True) as found:
        servers(place, service=place.entry, other=place.entry)
        await until(lambda: "other" in found.sessions and found.sessions["other"].state == "connected")
        place.write("project/.dragoman/permissions.toml", '[[rule]]\neffect = "deny"\nserver = "other"\n')
        await until(lambda: len(found.files.own.rules) == 1)
        outcome = await found.answer(use("look", "mcp__other__{}"))
        assert outcome.by == "permission"
    assert len(place.starts) == 2


async def test_codexs_files_above_the_folder_are_watched_and_told_of_too(place):
    place.write("project/.git/HEAD", "")
    machine = replace(place.machine(), folder=place.project / "inner")
    machine.folder.mkdir()
    async with Host.from_files(host="codex", machine=machine, trusted=True, watch=True) as found:
        place.write("project/.codex/config.toml", place.toml)
        await until(lambda: "service" in found.sessions and found.sessions["service"].state == "connected")
    (place.project / ".codex/config.toml").unlink()
    (place.project / ".codex/config.toml").mkdir()
    (problem,) = Host.from_files(host="codex", machine=machine, trusted=True).problems
    assert "not a regular file" in problem.text


async def test_a_tool_that_changes_while_a_person_thinks_is_not_called(place):
    servers(place, service=place.entry)
    place.write("home/.claude/settings.json", {"permissions": {"ask": ["mcp__service"]}})

    async def ask(question):
        servers(place)
        await found.reload()
        return True

    async with place.host("claude-code", ask=ask) as found:
        outcome = await found.answer(use("look"))
        assert (outcome.by, outcome.is_error) == ("host", True)
        assert "has changed" in outcome.text
