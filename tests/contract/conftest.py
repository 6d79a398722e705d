"""Rooms for the tests of the contract: one loop for all of them, and servers that stay up in between.

A child process over stdio for each revision and one over HTTP are started when they are first needed
and serve every test of this folder; in memory, each test has a connection of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.room import PATIENCE, REVISIONS, Room
from tests.needs import ROOT

TRANSPORTS = ("memory", "stdio", "http")
COMMAND = [sys.executable, "-m", "tests.contract.server"]


class Stage:
    """The loop that all tests share, and what stays up."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self._children: dict[str, Room] = {}
        self._served: subprocess.Popen[str] | None = None
        self._url = ""

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def target(self, transport: str) -> Any:
        """What a client is pointed at."""
        if transport == "memory":
            from tests.contract.server import server

            return server
        return {"command": COMMAND, "cwd": str(ROOT)} if transport == "stdio" else self.url

    @property
    def url(self) -> str:
        if self._served is None:
            self._served = subprocess.Popen([*COMMAND, "http"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
            assert self._served.stderr is not None
            said = self._served.stderr.readline()
            assert " at http://" in said, said + self._served.stderr.read()
            self._url = said.strip().rpartition(" at ")[2]
        return self._url

    def room(self, transport: str, revision: str) -> Room:
        """A room that is ready: over stdio the one that is there already."""
        if transport != "stdio":
            return self.run(Room.capable(self.target(transport), revision).__aenter__())
        room = self._children.get(revision)
        if room is None:
            room = self.run(Room.capable(self.target("stdio"), revision).__aenter__())
            room.check()
            self._children[revision] = room
        room.reset()
        return room

    def leave(self, transport: str, revision: str, room: Room) -> None:
        """The test is over; where it failed, nobody else should find the room as it is."""
        if transport == "stdio" and self._children.get(revision) is room:
            return
        self.run(room.client.close())

    def spoilt(self, room: Room) -> None:
        self._children = {key: known for key, known in self._children.items() if known is not room}

    def close(self) -> None:
        for room in self._children.values():
            self.run(room.client.close())
        self.runner.close()
        if self._served is not None:
            assert self._served.stderr is not None
            self._served.terminate()
            try:
                assert self._served.wait(PATIENCE) == 0
            finally:
                self._served.kill()
                self._served.stderr.close()


STAGE = pytest.StashKey[Stage]()
FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="package")
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    stage = request.config.stash[STAGE] = Stage()
    yield stage
    del request.config.stash[STAGE]
    stage.close()


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def room(stage: Stage, revision: str, transport: str, request: pytest.FixtureRequest) -> Iterator[Room]:
    """A client that answers everything, on this revision over this transport."""
    room = stage.room(transport, revision)
    yield room
    if request.node.stash.get(FAILED, False):
        stage.spoilt(room)
    stage.leave(transport, revision, room)
    room.check()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test in the loop of the stage, within bounds."""
    stage = pyfuncitem.config.stash.get(STAGE, None)
    if stage is None or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}

    async def bounded() -> None:
        async with asyncio.timeout(2 * PATIENCE):
            await pyfuncitem.obj(**arguments)

    try:
        stage.run(bounded())
    except BaseException:
        pyfuncitem.stash[FAILED] = True
        raise
    return True
