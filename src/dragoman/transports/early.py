"""Programs that are started before anything else is loaded, so that they load while this process does.

The command line starts a server's file here, loads the client meanwhile, and the client takes the
process that it would have started. Loads no more than it takes to start a process, and refuses to
know what is said over the pipes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

_waiting: dict[tuple[str, ...], subprocess.Popen[bytes]] = {}


def popen(
    words: Sequence[str], *, cwd: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A process with pipes for its three standard streams, in a session of its own. Raises OSError."""
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        cwd=cwd,
        env=env,
    )


def start(words: Sequence[str]) -> None:
    """Start a program in this directory and environment. One that cannot be started is not told of here:
    whoever would have taken it finds out, and says it better.
    """
    with contextlib.suppress(OSError, ValueError):
        _waiting[tuple(words)] = popen(words)


def take(words: Sequence[str]) -> subprocess.Popen[bytes] | None:
    """The process that was started with these very words, if nobody took it yet."""
    return _waiting.pop(tuple(words), None)


def drop() -> None:
    """End what nobody took."""
    while _waiting:
        _, process = _waiting.popitem()
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
