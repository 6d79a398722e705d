"""Two ends of one store, in each of the ways in which there can be two."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.protocol.sealing import Keys
from dragoman.stores import MemoryStore
from dragoman.stores.sqlite import SQLiteStore
from tests.stores.clock import FakeClock
from tests.stores.peer import Remote


class Ends(NamedTuple):
    """What `here` writes, `there` reads, and the other way round."""

    here: Any
    there: Any
    clock: FakeClock


Opened = Callable[[], AbstractAsyncContextManager[Ends]]


@pytest.fixture(params=["memory", "sqlite", "sealed", "two stores", "two processes"])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    path = tmp_path / "store.db"
    clock = FakeClock()

    @asynccontextmanager
    async def opened() -> AsyncIterator[Ends]:
        keys = Keys("the secret of these tests") if request.param == "sealed" else None
        memory = request.param == "memory"
        here = MemoryStore(clock=clock) if memory else SQLiteStore(path, clock=clock, keys=keys)
        there: Any = here
        if request.param == "two stores":
            there = SQLiteStore(path, clock=clock)
        elif request.param == "two processes":
            there = await Remote.start(str(path), clock)
        try:
            yield Ends(here, there, clock)
        finally:
            await there.close()
            await here.close()

    return opened
