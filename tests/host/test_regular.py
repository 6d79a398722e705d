"""Pipes, links, devices and giants in the place of a file: told, never waited for, never written through."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.host.config import toml
from dragoman.host.config.record import Origin, ServerConfig
from dragoman.host.export.files import Journal
from dragoman.host.lock import read_lock
from dragoman.host.loop.state import RunState, saver
from dragoman.host.reaching import Plan, plan
from dragoman.host.regular import read_regular


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_is_not_waited_for(pipe):
    for read in (read_lock, RunState.load):
        with pytest.raises(UsageError, match="not a regular file"):
            read(pipe)
    with pytest.raises(ValueError, match="not a regular file"):
        read_regular(pipe, most=10)
    with pytest.raises(UsageError, match="not a regular file"):
        Journal(pipe.parent / "state").write(pipe, "{}", seen=None)


def test_a_pipe_that_takes_the_place_of_a_file_between_two_looks_is_not_waited_for(pipe, monkeypatch):
    file = pipe.with_name("file")
    file.write_text("x")
    known = file.stat()
    monkeypatch.setattr(Path, "stat", lambda self, **_: known)
    with pytest.raises(ValueError, match="not a regular file"):
        read_regular(pipe, most=10)


def test_more_than_the_most_is_not_read(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_regular(file, most=5) == b"12345"
    with pytest.raises(ValueError, match="larger than 4 bytes"):
        read_regular(file, most=4)


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "."])
def test_a_file_of_variables_is_a_file(pipe, name):
    config = ServerConfig("s", "stdio", Origin("f"), command="x", env_file=name)
    why = plan(config, "s", env={}, folder=pipe.parent)
    assert not isinstance(why, Plan)
    assert why == f"`envFile` {name!r} cannot be read: not a regular file"


def test_a_state_is_not_saved_through_a_link_that_somebody_left(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".run.json.{os.getpid()}").symlink_to(victim)
    saver(tmp_path / "run.json")(RunState(api="gemini", model="m"))
    assert victim.read_text() == "mine"
    assert RunState.load(tmp_path / "run.json").model == "m"


def test_of_two_runs_from_one_state_the_second_to_save_ends(tmp_path):
    file = tmp_path / "run.json"
    state = RunState(api="gemini", model="m")
    saver(file)(state)
    one, two = saver(file), saver(file)
    one(state)
    one(state)
    with pytest.raises(UsageError, match="another run has gone on from this state"):
        two(state)
    one(state)
    file.unlink()
    one(state)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_number_of_too_many_digits_is_told_as_such():
    with pytest.raises(toml.TomlError, match="too many digits"):
        toml.parse("a = " + "1" * 10_000)


def test_a_change_is_not_lost_behind_a_line_of_the_journal_that_was_cut_off(tmp_path):
    changes = Journal(tmp_path / "state")
    target = tmp_path / "mcp.json"
    changes.write(target, "1", seen=None)
    journal = next(path for path in (tmp_path / "state").iterdir() if "copy" not in path.name)
    whole = journal.read_bytes()
    journal.write_bytes(whole + whole[:30])
    changes.write(target, "2", seen=b"1")
    assert [json.loads(line)["file"] for line in journal.read_bytes().splitlines()[::2]] == [str(target)] * 2
    changes.undo(target)
    assert target.read_text() == "1"
