"""The everything server as a process of its own, and where it listens."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from tests import needs

SERVER = needs.ROOT / "examples" / "everything" / "server.py"
PORTS = range(20_000, 32_000)  # below those that the system gives to the suite's own servers
_READY = "dragoman: serving"


@contextmanager
def serving() -> Iterator[str]:
    """The URL of a running server; what it wrote is shown if it broke, and must hold no traceback."""
    port = _free_port()
    line = [sys.executable, "-W", "error", str(SERVER), str(port)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        # The pipe has to be emptied while the suite runs, or the server would wait for it in the end.
        reader = Thread(target=said.extend, args=(process.stderr,), daemon=True)
        reader.start()
        try:
            assert said[0].startswith(_READY), said
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            try:
                process.wait(10)
            finally:
                process.kill()
            reader.join(10)
    assert "Traceback" not in "".join(said), "".join(said)
    assert process.returncode == 0, "".join(said)


def _free_port() -> int:
    for port in random.sample(PORTS, 50):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"no free port in {PORTS}")
