"""The order service that the demo shows: where its files are, and the HTTP server that is started of it."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from dragoman.errors import ConnectError, UsageError
from dragoman.transports.pipes import Reader, Tail
from dragoman.transports.spawn import Child, spawn

_NAME: Final = "orders"
_PACKAGE: Final = Path(__file__).resolve().parents[2]
_PLACES: Final = (_PACKAGE.parents[1] / "examples" / _NAME, _PACKAGE / "_examples" / _NAME)
_ADDRESS: Final = re.compile(r"\bhttp://\S+")
_START_SECONDS: Final = 30.0
_GRACE: Final = (0.0, 3.0)  # an HTTP server does not end with its input, so TERM comes at once


def folder() -> Path:
    """The folder of the order service: in a checkout, or in the installed package.

    Raises:
        UsageError: it is in neither.
    """
    for place in _PLACES:
        if (place / "server.py").is_file():
            return place
    where = " and ".join(map(str, _PLACES))
    raise UsageError(f"the order service is not there (looked in {where})", hint="run it from a checkout")


def server_environment() -> dict[str, str]:
    """The environment in which references of the example's files are resolved: this Python, no database.

    Files of hosts that replace no reference name `python3`, which is this one too.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    kept = {name: value for name, value in os.environ.items() if name != "ORDERS_DB"}
    return {**kept, "PYTHON": sys.executable, "PATH": path}


class HttpServer:
    """The order service as a process of its own that serves HTTP on a free port of this machine."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._child: Child | None = None
        self._tail = Tail(20, self._line)
        self.url = ""

    async def __aenter__(self) -> Self:
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        command = [sys.executable, "server.py", "--http", "127.0.0.1:0"]
        env = {"ORDERS_DB": ":memory:", "PYTHONUNBUFFERED": "1"}
        self._child = child = spawn(command, env=env, cwd=self._place, name=_NAME)
        self._output = Reader(child.stdout, lambda data: None)
        self._errors = Reader(child.stderr, self._tail.feed)
        child.watch((0.1, 3.0))
        try:
            waiting: list[asyncio.Future[Any]] = [self._ready, child.exited]
            await asyncio.wait(waiting, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not self._ready.done():
                raise self._failed(child)
        except BaseException:
            await self._end(child)
            raise
        self.url = self._ready.result()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            await self._end(self._child)

    def _line(self, line: str) -> None:
        found = _ADDRESS.search(line)
        if found is not None and not self._ready.done():
            self._ready.set_result(found[0])

    def _failed(self, child: Child) -> ConnectError:
        why = (
            "it ended" if child.status is not None else f"it did not say its address in {_START_SECONDS:g} s"
        )
        return ConnectError(
            f"the HTTP server did not start: {why}",
            server=_NAME,
            stage="spawn",
            exit_status=child.status,
            stderr_tail=self._tail.lines,
        )

    async def _end(self, child: Child) -> None:
        child.stdin.close()
        await child.end(_GRACE)
        self._output.close()
        self._errors.close()
