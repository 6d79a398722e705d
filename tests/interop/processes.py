"""Processes of other projects: started, listened to, and counted when they should be gone."""

from __future__ import annotations

import os
import random
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

MARK = "DRAGOMAN_INTEROP"
PATIENCE = 30.0
PORTS = range(20_000, 32_000)  # below those that the system gives away by itself


def marked(mark: str) -> list[str]:
    """The live processes with this mark in their environment, and all they started: pid and command."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(f"{folder.name}: {(folder / 'cmdline').read_bytes().replace(bytes(1), b' ')!r}")
        except OSError:  # gone, or a zombie, whose environment is gone
            continue
    return found


class Served:
    """A running HTTP server of a peer: where it listens, and what it said so far."""

    def __init__(self, url: str, said: list[str]) -> None:
        self.url = url
        self.said = said


@contextmanager
def serving(
    command: Sequence[str],
    *,
    mark: str,
    ready: str,
    port_option: str | None = None,
    host: str = "127.0.0.1",
) -> Iterator[Served]:
    """Start a server that says where it listens, in a line that `ready` matches and that ends in the port.

    One that cannot choose a free port itself is given one in the environment variable `port_option`. `host`
    is the name by which it wants to be called.
    """
    environment = {**os.environ, MARK: mark}
    if port_option is not None:
        environment[port_option] = str(free_port())
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    try:
        assert process.stdout is not None
        while (found := re.search(ready + r".*?(\d+)$", line := process.stdout.readline().rstrip())) is None:
            said.append(line)
            assert line or process.poll() is None, said
        reader = Thread(target=lambda: said.extend(map(str.rstrip, process.stdout or ())), daemon=True)
        reader.start()
        yield Served(f"http://{host}:{found[1]}/mcp", said)
        process.terminate()
        process.wait(PATIENCE)
        reader.join(PATIENCE)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def free_port() -> int:
    for port in random.sample(PORTS, 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port in {PORTS}")
