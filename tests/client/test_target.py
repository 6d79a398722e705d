"""What a target means: each kind, and what is said about those that mean nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import Client
from dragoman.client.options import ClientOptions
from dragoman.client.target import Target, resolve
from dragoman.errors import ClosedError, UsageError
from dragoman.transports.child import ChildTransport
from dragoman.transports.http_client import HttpTransport
from dragoman.transports.memory import MemoryTransport
from tests.client.scripted import Scripted, stateless


def meant(target: Any, **options: Any) -> Target:
    return resolve(target, ClientOptions(**options))


def command(target: Target) -> list[str]:
    transport = target.make()
    assert isinstance(transport, ChildTransport)
    return transport._command


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (["server", "--flag", "a b"], ["server", "--flag", "a b"]),
        (("server",), ["server"]),
        ("server --flag 'a b'", ["server", "--flag", "a b"]),
        ("mcp-server-time", ["mcp-server-time"]),
        ("/opt/servers/time", ["/opt/servers/time"]),
        (Path("/opt/servers/time"), ["/opt/servers/time"]),
        ("python -c 'print(1)'", ["python", "-c", "print(1)"]),
        ({"command": "npx", "args": ["-y", "thing"]}, ["npx", "-y", "thing"]),
        ({"command": "thing", "type": "stdio"}, ["thing"]),
        ({"mcpServers": {"orders": {"command": "thing"}}}, ["thing"]),
    ],
)
def test_command_lines(target: Any, words: list[str]) -> None:
    assert command(meant(target)) == words


@pytest.mark.parametrize("spelled", [str, Path])
def test_a_python_file_is_run_by_this_program(spelled: Any, tmp_path: Path) -> None:
    file = tmp_path / "my server.py"
    file.touch()
    target = meant(spelled(file))
    assert command(target) == [sys.executable, "-P", "-m", "dragoman", "run", str(file)]
    assert target.name == "my server"


def test_a_python_file_may_name_the_server_in_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    target = meant(f"{tmp_path}/server.py:orders")
    assert command(target)[-1] == f"{tmp_path}/server.py:orders"


def test_a_python_file_is_looked_for_in_the_directory_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "server.py").touch()
    assert command(meant("server.py", cwd=tmp_path))[-1] == "server.py"
    with pytest.raises(UsageError, match="no such file"):
        meant("server.py", cwd=tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("http://127.0.0.1:8000/mcp", "127.0.0.1:8000"),
        ("https://example.com/mcp?token=secret", "example.com"),
        ({"url": "https://example.com/mcp"}, "example.com"),
        ({"url": "https://example.com/mcp", "type": "http"}, "example.com"),
        ({"url": "https://example.com/mcp", "type": "streamable-http"}, "example.com"),
        ({"mcpServers": {"orders": {"url": "https://example.com/mcp"}}}, "orders"),
    ],
)
def test_urls(target: Any, name: str) -> None:
    found = meant(target)
    assert isinstance(found.make(), HttpTransport)
    assert found.name == name


def test_what_is_remembered_of_a_url_holds_no_secret() -> None:
    found = meant("https://me:pass@example.com/mcp?token=secret#x")
    assert found.key == "https://example.com/mcp"


def test_the_directory_is_part_of_what_a_program_is(tmp_path: Path) -> None:
    assert meant(["a"]).key != meant(["a"], cwd=tmp_path).key
    assert meant(["a", "b c"]).key != meant(["a", "b", "c"]).key
    assert meant(["a"]).key == meant("a").key


class InThisProcess:
    name = "orders"
    kernel: Any = object()


def test_a_server_object_is_reached_in_this_process() -> None:
    found = meant(InThisProcess())
    assert isinstance(found.make(), MemoryTransport)
    assert (found.name, found.key, found.restarts) == ("orders", None, False)


def test_a_transport_is_used_as_it_is() -> None:
    transport = Scripted(stateless())
    assert meant(transport).make() is transport


def test_the_callers_name_wins() -> None:
    for target in (["a"], "https://example.com", InThisProcess(), {"name": "entry", "command": "a"}):
        assert meant(target, name="mine").name == "mine"
    assert meant({"name": "entry", "command": "a"}).name == "entry"


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("", "without a program"),
        ("   ", "without a program"),
        ([], "without a program"),
        ("server 'unclosed", "No closing quotation"),
        ("ftp://example.com", "'ftp'"),
        ("file:///mcp", "'file'"),
        ("http://", "expected a host"),
        ("http:///mcp", "expected a host"),
        ("http://example.com:port/", "[Pp]ort"),
        ("localhost:8000/mcp", "http://localhost:8000/mcp"),
        ("127.0.0.1:8000", "without a scheme"),
        ("server.py", "no such file"),
        ("server.py:name", "no such file"),
        (Path("nowhere.py"), "no such file"),
        ("server.py --flag", "sys.executable"),
        ("x" * 10_000 + ".py", "no such file"),
        ([1, 2], r"\[0\]"),
        (["a", None], r"\[1\]"),
        (7, "int"),
        (None, "NoneType"),
        ({}, "needs `command` or `url`"),
        ({"args": []}, "`args`"),
        ({"command": "a", "url": "http://b"}, "both"),
        ({"command": "a", "args": "b"}, "`args`"),
        ({"command": "a", "env": []}, "`env`"),
        ({"command": "a", "type": "http"}, "'http'"),
        ({"url": "http://a", "type": "smtp"}, "'smtp'"),
        ({"url": "http://a", "headers": []}, "`headers`"),
        ({"url": 7}, "`url`"),
        ({"mcpServers": {}}, "none"),
        ({"mcpServers": {"a": {}, "b": {}}}, "a, b"),
    ],
)
def test_a_target_that_means_nothing_or_too_much_is_refused(target: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        meant(target)


@pytest.mark.parametrize(
    ("target", "option"),
    [
        ("http://a", {"env": {"A": "b"}}),
        ("http://a", {"cwd": "/"}),
        (["a"], {"headers": {"A": "b"}}),
        (InThisProcess(), {"headers": {"A": "b"}}),
        (InThisProcess(), {"env": {"A": "b"}}),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(target: Any, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(option))}: of no use"):
        meant(target, **option)


def test_a_header_that_cannot_be_sent_is_refused_at_once() -> None:
    with pytest.raises(UsageError):
        meant("http://a", headers={"A": "line\nbreak"})


async def test_a_program_gets_its_own_environment_alone_where_that_is_asked_for(monkeypatch) -> None:
    monkeypatch.setenv("OF_THIS_PROCESS", "1")
    source = "import os, sys; sys.stderr.write(f'{sorted(os.environ)}'); sys.exit(3)"
    for inherit in (True, False):
        options = {"env": {"OF_ITS_OWN": "1"}, "inherit_env": inherit, "probe_timeout": 5.0}
        with pytest.raises(ClosedError) as caught:
            await Client([sys.executable, "-c", source], **options).connect()
        said = " ".join(caught.value.stderr_tail)
        assert "OF_ITS_OWN" in said
        assert ("OF_THIS_PROCESS" in said) is inherit


def test_env_and_directory_of_an_entry_are_kept_and_those_of_the_caller_win(tmp_path: Path) -> None:
    entry = {"command": "a", "env": {"A": "1", "B": "2"}, "cwd": str(tmp_path)}
    transport = meant(entry, env={"B": "3"}).make()
    assert isinstance(transport, ChildTransport)
    assert transport._env == {"A": "1", "B": "3"}
    assert str(transport._cwd) == str(tmp_path)
    other = meant(entry, cwd="/").make()
    assert isinstance(other, ChildTransport)
    assert str(other._cwd) == "/"


def test_options_that_do_not_exist_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="'timeut'"):
        ClientOptions.of({"timeut": 3})  # type: ignore[typeddict-unknown-key]  # the mistake to find


def test_a_revision_that_is_not_spoken_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"2026-07-28.*'1999-01-01'"):
        ClientOptions(protocol="1999-01-01")


def test_what_may_be_secret_is_in_no_description() -> None:
    options = ClientOptions(env={"TOKEN": "hush"}, headers={"Authorization": "hush"})
    assert "hush" not in repr(options)
    assert "hush" not in repr(meant(["program", "--token", "hush"]))
    for line in ("server.py --token hush", "server --token 'hush"):
        with pytest.raises(UsageError) as caught:
            meant(line)
        assert "hush" not in str(caught.value)
