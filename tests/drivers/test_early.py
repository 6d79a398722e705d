"""Programs that are started ahead of the client: taken once, by the very same words, or ended."""

from __future__ import annotations

import os
import sys

import pytest

from dragoman.transports import early

WAIT = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def test_a_program_is_taken_once_and_by_its_own_words() -> None:
    early.start(WAIT)
    assert early.take([*WAIT, "other"]) is None
    process = early.take(WAIT)
    assert process is not None
    assert early.take(WAIT) is None
    assert os.getsid(process.pid) == process.pid
    with process:
        process.communicate(b"")
    assert process.returncode == 0


def test_what_nobody_took_is_ended() -> None:
    early.start(WAIT)
    (process,) = early._waiting.values()
    early.drop()
    assert process.returncode == -9
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    early.drop()


@pytest.mark.parametrize("words", [["/no/such/program"], ["null\0character"]])
def test_what_cannot_be_started_is_told_by_whoever_would_take_it(words: list[str]) -> None:
    early.start(words)
    assert early.take(words) is None
