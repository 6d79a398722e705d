"""How a child process and what it started come to their end: closed, died, killed, never started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.errors import ClosedError, ConnectError, UsageError
from dragoman.transports.child import ChildLimits, ChildTransport

from .wire import HOST, Wire, alive, children, descriptors, gone, opened, puppet, refuse, until

# Close -----------------------------------------------------------------------------------------------


async def test_a_server_that_heeds_the_end_of_its_input_is_sent_no_signal() -> None:
    async with opened(limits=ChildLimits(grace=(30.0, 30.0))) as wire:
        await wire.call("echo")
        started = time.monotonic()
        await wire.transport.close()
        assert time.monotonic() - started < 10
        assert wire.facts["exit_status"] == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [(("ignore-eof",), -signal.SIGTERM), (("ignore-eof", "ignore-term"), -signal.SIGKILL)],
)
async def test_a_server_that_does_not_is_ended_in_steps(words: tuple[str, ...], status: int) -> None:
    async with opened(*words) as wire:
        await wire.call("echo")
        started = time.monotonic()
        await wire.transport.close()
        assert time.monotonic() - started < 5
        assert wire.facts["exit_status"] == status
        assert not wire.facts["running"]


@pytest.mark.parametrize("words", [(), ("ignore-eof",), ("ignore-eof", "ignore-term")])
async def test_the_server_behind_a_wrapper_ends_with_it(words: tuple[str, ...]) -> None:
    async with opened("wrap", *words) as wire:
        pid = (await wire.call("where"))["pid"]
        assert pid != wire.facts["pid"]
        await wire.transport.close()
        assert gone(pid, wire.facts["pid"], seconds=1)


async def test_what_the_server_started_and_left_behind_ends_too() -> None:
    async with opened() as wire:
        pid = (await wire.call("bear"))["pid"]
        await wire.transport.close()
        assert wire.facts["exit_status"] == 0
        assert gone(pid, seconds=1)


async def test_close_ends_open_exchanges_at_once_with_closed_error() -> None:
    async with opened("ignore-eof", limits=ChildLimits(grace=(0.5, 0.5))) as wire:
        calls = [await wire.start("hold", handshake=n == 0) for n in range(3)]
        await wire.call("echo")
        closing = asyncio.create_task(wire.transport.close())
        await asyncio.wait(calls)
        assert not closing.done()
        for call in calls:
            error = call.exception()
            assert isinstance(error, ClosedError)
            assert (error.server, error.exit_status) == ("puppet", None)
            assert "closed from this side" in str(error)
        assert [call.exception().stage for call in calls] == ["initialize", "call", "call"]
        with pytest.raises(ClosedError, match="closed from this side"):
            await wire.ask("echo")
        with pytest.raises(ClosedError, match="closed from this side"):
            await wire.tell("x", {})
        await closing


async def test_close_from_any_task_in_any_order_any_number_of_times() -> None:
    first, second = Wire(puppet()), Wire(puppet())

    async def start(wire: Wire) -> None:
        await wire.transport.open(wire.notifications.append, refuse)
        await wire.call("echo")

    await asyncio.gather(start(first), start(second))
    closers = [asyncio.create_task(one.transport.close()) for one in (first, second, first, second, first)]
    await asyncio.gather(*closers)
    await first.transport.close()
    await second.transport.close()
    assert not first.facts["running"]
    assert not second.facts["running"]


async def test_close_goes_on_when_whoever_awaits_it_is_cancelled() -> None:
    async with opened("ignore-eof") as wire:
        await wire.call("echo")
        closing = asyncio.create_task(wire.transport.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        await until(lambda: not wire.facts["running"])


async def test_close_right_after_open_and_before_it() -> None:
    before, processes = descriptors(), children()
    transport = puppet()
    await transport.open(print, refuse)
    await transport.close()
    transport = puppet()
    await transport.close()
    with pytest.raises(ClosedError):
        await transport.open(print, refuse)
    with pytest.raises(ClosedError):
        await Wire(transport).ask("echo")
    assert (descriptors(), children()) == (before, processes)


async def test_a_notification_before_close_still_arrives(tmp_path: Path) -> None:
    script = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"
    received = tmp_path / "received"
    wire = Wire(ChildTransport([sys.executable, "-c", script, str(received)], name="reader"))
    await wire.transport.open(print, refuse)
    await wire.tell("big", {"text": "x" * 300_000})
    await wire.transport.close()
    assert json.loads(received.read_bytes())["params"] == {"text": "x" * 300_000}


async def test_what_a_server_says_while_it_ends_is_read_and_goes_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = (
        "import os, sys; sys.stdin.read(); os.write(1, b'bye\\n' * 100_000); os.write(2, b'last words\\n')"
    )
    lines: list[str] = []
    transport = ChildTransport([sys.executable, "-c", script], name="talker", on_stderr=lines.append)
    await transport.open(print, refuse)
    await transport.close()
    assert transport.facts()["exit_status"] == 0
    assert lines == ["last words"]
    assert not caplog.records


def test_the_end_of_the_event_loop_ends_the_server_too() -> None:
    pids: list[int] = []

    async def main() -> None:
        wire = Wire(puppet("ignore-eof", "ignore-term", limits=ChildLimits(grace=(60.0, 60.0))))
        await wire.transport.open(wire.notifications.append, refuse)
        pids.extend([(await wire.call("where"))["pid"], (await wire.call("bear"))["pid"]])
        closing = asyncio.create_task(wire.transport.close())
        await asyncio.sleep(0)
        assert not closing.done()

    before = descriptors()
    asyncio.run(main())
    assert gone(*pids, seconds=2)
    assert descriptors() == before


# Death -----------------------------------------------------------------------------------------------


async def test_open_exchanges_fail_when_the_server_dies_with_status_and_last_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened() as wire, asyncio.timeout(10):
        calls = [await wire.start("hold") for _ in range(3)]
        calls.append(await wire.start("die", {"status": 3, "stderr": "Traceback ...\nKeyError: 'x'\n"}))
        for call in calls:
            with pytest.raises(ClosedError) as caught:
                await call
            error = caught.value
            assert (error.server, error.stage, error.exit_status) == ("puppet", "call", 3)
            assert error.stderr_tail == ("Traceback ...", "KeyError: 'x'")
            assert "exit status 3" in str(error)
        assert len({id(call.exception()) for call in calls}) == len(
            calls
        )  # one each: tracebacks are not shared
        with pytest.raises(ClosedError, match="exit status 3"):
            await wire.ask("echo")
    assert "exit status 3" in caplog.text


async def test_a_signal_that_ended_the_server_is_named() -> None:
    async with opened() as wire, asyncio.timeout(10):
        with pytest.raises(ClosedError, match="killed by signal 9") as caught:
            await wire.call("die", {"signal": 9})
        assert caught.value.exit_status == -9


async def test_a_server_that_dies_at_its_start_says_why() -> None:
    async with opened("die=2") as wire, asyncio.timeout(10):
        with pytest.raises(ClosedError, match="exit status 2") as caught:
            await wire.ask("initialize", handshake=True)
        assert caught.value.stage == "initialize"
        assert caught.value.stderr_tail == ("no database",)


async def test_a_server_that_is_no_server_says_why() -> None:
    wire = Wire(ChildTransport([sys.executable, "/nonexistent/server.py"], on_stderr=lambda _: None))
    await wire.transport.open(print, refuse)
    with pytest.raises(ClosedError, match="exit status 2") as caught:
        await wire.ask("server/discover")
    assert "No such file or directory" in caught.value.stderr_tail[-1]
    assert caught.value.server == "server.py"
    await wire.transport.close()


async def test_an_answer_written_before_death_counts_with_and_without_a_line_end() -> None:
    for end in ("\n", ""):
        async with opened() as wire, asyncio.timeout(10):
            other = await wire.start("hold")
            text = '{"jsonrpc":"2.0","id":$id,"result":{"last":true}}' + end
            assert await wire.call("die", {"text": text, "status": 1}) == {"last": True}
            with pytest.raises(ClosedError, match="exit status 1"):
                await other


async def test_half_an_answer_is_none() -> None:
    async with opened() as wire, asyncio.timeout(10):
        other = await wire.start("hold")
        with pytest.raises(ClosedError, match=r"in the middle of a message \[exit status 3\]"):
            await wire.call("die", {"text": '{"jsonrpc":"2.0","id":$id,"result":{"la', "status": 3})
        with pytest.raises(ClosedError, match="the server ended"):
            await other


async def test_death_between_two_calls_is_told_by_the_next() -> None:
    async with opened() as wire, asyncio.timeout(10):
        await wire.call("echo")
        os.kill(wire.facts["pid"], signal.SIGKILL)
        with pytest.raises(ClosedError, match="killed by signal 9"):
            await wire.ask("echo")


async def test_a_server_that_closes_its_output_and_runs_on_is_ended() -> None:
    async with opened() as wire, asyncio.timeout(10):
        pid = wire.facts["pid"]
        other = await wire.start("hold")
        await wire.call("leave", {"fd": 1})
        with pytest.raises(ClosedError, match="closed its standard output, though it still runs") as caught:
            await other
        assert caught.value.exit_status is None
        await until(lambda: not alive(pid))


async def test_a_server_that_closes_its_input_and_runs_on_is_ended() -> None:
    async with opened() as wire, asyncio.timeout(10):
        pid = wire.facts["pid"]
        other = await wire.start("hold")
        await wire.call("leave", {"fd": 0})
        with pytest.raises(ClosedError):
            while True:  # the first may still have met an open pipe
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(wire.ask("echo"), 0.1)
        with pytest.raises(ClosedError, match="closed its standard input, though it still runs"):
            await other
        await until(lambda: not alive(pid))


async def test_output_held_open_by_another_process_hides_no_death() -> None:
    async with opened() as wire, asyncio.timeout(10):
        with pytest.raises(
            ClosedError, match="something that it started holds its standard output"
        ) as caught:
            await wire.call("heir", {"status": 4})
        assert caught.value.exit_status == 4


async def test_exchanges_that_wait_for_room_fail_when_the_server_dies() -> None:
    async with opened() as wire, asyncio.timeout(10):
        pid = (await wire.call("deaf"))["pid"]
        calls = [await wire.start("echo", {"text": "x" * 600_000}) for _ in range(10)]
        os.kill(pid, signal.SIGKILL)
        for call in calls:
            with pytest.raises(ClosedError, match="killed by signal 9"):
                await call
        assert wire.facts["unsent"] == 0


async def test_death_is_seen_where_the_system_has_no_process_descriptors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_it(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse_it)
    async with opened() as wire, asyncio.timeout(10):
        with pytest.raises(ClosedError, match="exit status 5"):
            await wire.call("die", {"status": 5})
    async with opened("ignore-eof") as wire:
        await wire.call("echo")
        await wire.transport.close()
        assert wire.facts["exit_status"] == -signal.SIGTERM


# The host is killed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("wrap",), ("fork",)])
def test_nothing_outlives_a_host_that_was_killed(words: tuple[str, ...]) -> None:
    """Servers that ignore the end of input and TERM, a wrapper, what they started; a fork of the host."""
    host = subprocess.Popen(
        [sys.executable, str(HOST), "ignore-eof", "ignore-term", *words],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert host.stdout is not None
    facts = json.loads(host.stdout.readline())
    try:
        assert facts["watched"]
        servers = {*facts["pids"], facts["leader"]}
        watch = children_of(host.pid) - servers - {facts["forked"]}
        assert len(watch) == 1
        assert all(alive(pid) for pid in servers)
        host.send_signal(signal.SIGKILL)
        host.wait()
        assert gone(*servers, *watch)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
        if facts["forked"]:
            os.kill(facts["forked"], signal.SIGKILL)


def children_of(pid: int) -> set[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return {int(word) for word in text.split()}


async def test_without_a_shell_the_server_runs_and_the_missing_watch_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened() as wire:
        await wire.call("echo")
        assert wire.facts["watched"]
    monkeypatch.setattr("dragoman.transports.spawn.SHELL", "/nonexistent/sh")
    async with opened() as wire:
        await wire.call("echo")
        assert not wire.facts["watched"]
    assert "would outlive this one if it were killed" in caplog.text


# No start --------------------------------------------------------------------------------------------


async def failure(command: list[str], **options: object) -> ConnectError:
    transport = ChildTransport(command, name="weather", **options)  # type: ignore[arg-type]  # as a test gives them
    with pytest.raises(ConnectError) as caught:
        await transport.open(print, refuse)
    assert (caught.value.server, caught.value.stage) == ("weather", "spawn")
    await transport.close()
    return caught.value


async def test_a_program_that_is_not_on_the_path() -> None:
    error = await failure(["no-such-program-7"], env={"PATH": "/opt/a:/opt/b"})
    assert "'no-such-program-7' was not found on PATH (/opt/a:/opt/b)" in error.message
    assert "full path" in (error.hint or "")


async def test_a_long_path_is_told_by_its_beginning() -> None:
    path = os.pathsep.join(f"/opt/{number}" for number in range(12))
    error = await failure(["no-such-program-7"], env={"PATH": path})
    assert error.message.endswith("was not found on PATH (/opt/0:/opt/1:/opt/2 and 9 more)")


async def test_a_launcher_that_is_not_installed() -> None:
    error = await failure(["npx", "-y", "x"], env={"PATH": "/nonexistent"})
    assert error.hint == "install Node.js, which brings npx"


async def test_a_command_line_in_one_word() -> None:
    error = await failure(["python3 server.py"])
    assert error.hint == "give the program and its arguments as separate words"


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    error = await failure(["./server"], cwd=tmp_path)
    assert f"there is no file './server' (seen from {tmp_path})" in error.message


async def test_a_file_that_is_not_executable(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text("print()")
    error = await failure([str(script)])
    assert error.message == f"{str(script)!r} is not executable"
    assert "chmod +x" in (error.hint or "")


async def test_a_directory_is_no_program(tmp_path: Path) -> None:
    assert (await failure([str(tmp_path)])).message == f"{str(tmp_path)!r} is a directory, not a program"


async def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/nonexistent/python\n")
    script.chmod(0o755)
    assert "the interpreter that the first line of" in (await failure([str(script)])).message


async def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("print()\n")
    script.chmod(0o755)
    assert "no program for this system" in (await failure([str(script)])).message


async def test_a_working_directory_that_is_not_there() -> None:
    error = await failure(["true"], cwd="/nonexistent/here")
    assert error.message == "the working directory '/nonexistent/here' is no directory"


async def test_arguments_beyond_what_the_system_takes() -> None:
    error = await failure([sys.executable, "x" * 3_000_000])
    assert "Argument list too long" in error.message
    assert "xxx" not in error.message


async def test_after_a_failed_start_another_may_work(tmp_path: Path) -> None:
    program = tmp_path / "server"
    wire = Wire(ChildTransport([str(program)], name="late", limits=ChildLimits(grace=(0.2, 0.2))))
    with pytest.raises(ConnectError):
        await wire.transport.open(print, refuse)
    program.symlink_to("/bin/cat")
    await wire.transport.open(print, refuse)
    assert wire.facts["running"]
    await wire.transport.close()


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("python3 server.py", "expected a list of words"),
        (b"python3", "expected a list of words"),
        ([], "received no word at all"),
        (["python3", "\ud800"], r"command\[1\]: expected text that UTF-8 has"),
        (["python3", 7], r"command\[1\]: expected text without null characters, received int"),
        (["python3", "a\0b"], r"command\[1\]"),
        ([None], r"command\[0\].*NoneType"),
    ],
)
def test_a_command_that_is_none(command: object, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        ChildTransport(command)  # type: ignore[arg-type]  # the wrong type is what is tested


@pytest.mark.parametrize(
    ("env", "complaint"),
    [
        ({"TOKEN": "\ud800"}, r"env\['TOKEN'\]: expected text that UTF-8 has"),
        ({"\ud800": "x"}, r"env: '\\ud800' is no name of a variable"),
        ({"TOKEN": 12345}, r"env\['TOKEN'\]: expected text without null characters, received int"),
        ({"TOKEN": None}, r"env\['TOKEN'\].*NoneType"),
        ({"TOKEN": "secret\0"}, r"env\['TOKEN'\]"),
        ({"A=B": "x"}, "'A=B' is no name of a variable"),
        ({"": "x"}, "'' is no name of a variable"),
        ({7: "x"}, "7 is no name of a variable"),
    ],
)
async def test_an_environment_that_is_none_and_no_value_shown(env: dict, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        await ChildTransport(["true"], env=env).open(print, refuse)
    assert "12345" not in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_program_whose_name_is_too_long_for_a_file() -> None:
    error = await failure(["x" * 10_000])
    assert error.message.endswith("could not be started: File name too long")
