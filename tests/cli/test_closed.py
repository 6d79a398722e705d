"""Standard streams that are closed or full: no command takes a pipe of its own for one of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.needs import dragoman as program

TIME_LIMIT = 60


def shell(place: Path, words: str, *, redirected: str) -> subprocess.CompletedProcess[str]:
    """The program with redirections as a shell writes them, stdout and stderr read where they are left."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$0" {words} {redirected}', program()],
        cwd=place,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT,
    )


@pytest.mark.parametrize(
    "redirected", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"]
)
def test_a_client_works_with_standard_streams_closed(place: Path, redirected: str) -> None:
    done = shell(place, "call server.py add a=1 b=2", redirected=redirected)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if ">&-" in redirected.replace("2>&-", "") else "3\n")


@pytest.mark.parametrize(("redirected", "which"), [("<&-", "input"), (">&-", "output")])
def test_a_server_over_stdio_says_which_stream_it_lacks(place: Path, redirected: str, which: str) -> None:
    done = shell(place, "run server.py", redirected=redirected)
    assert done.returncode == 2
    assert f"standard {which} is closed" in done.stderr


@pytest.mark.parametrize("words", ["--version", "list server.py"])
def test_a_full_disk_is_told_in_a_line(place: Path, words: str) -> None:
    done = shell(place, words, redirected="> /dev/full")
    assert done.returncode == 74
    assert done.stderr == "dragoman: the output could not be written: No space left on device\n"
