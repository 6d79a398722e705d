"""What the fixtures of the pytest plugin give to a test. Needs pytest; loaded when a test asks for one."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pytest

from dragoman.client import Client, SyncClient
from dragoman.testing.cassette import Cassette, Recorder
from dragoman.testing.player import Player
from dragoman.testing.redaction import Redaction
from dragoman.testing.snapshot import check_snapshot

Mode: TypeAlias = Literal["missing", "all", "never"]

_OTHER: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class Clients:
    """Makes clients for one test."""

    def __init__(self, protocol: str | None) -> None:
        self._protocol = protocol
        self._made: list[SyncClient] = []

    def __call__(self, target: Any, **options: Any) -> Client:
        """A `Client`, for `async with`; of a server of the test's own, in this process."""
        return Client(target, **self._told(options))

    def sync(self, target: Any, **options: Any) -> SyncClient:
        """A `SyncClient` that is connected, and closed when the test is over."""
        client = SyncClient(target, **self._told(options))
        self._made.append(client)
        return client.connect()

    def _told(self, options: dict[str, Any]) -> dict[str, Any]:
        return options if self._protocol is None else {"protocol": self._protocol, **options}

    def close(self) -> None:
        """Close those without `await`."""
        for client in self._made:
            client.close()


class Cassettes:
    """Records what a client and a server say to each other, once, and plays it from then on."""

    def __init__(self, folder: Path, name: str, *, mode: Mode) -> None:
        self._folder = folder
        self._name = name
        self._mode = mode

    def path(self, name: str | None = None) -> Path:
        """The file of the cassette: that of the test, or another by its name."""
        return self._folder / f"{_file_name(name or self._name)}.jsonl"

    def __call__(
        self, target: Any, *, name: str | None = None, redaction: Redaction | None = None, **options: Any
    ) -> AbstractAsyncContextManager[Client]:
        """A client of `target`, for `async with`; of its cassette, where there is one.

        On replay `target` is not started, and a request that was not recorded fails the test. A test that
        fails while it is recorded leaves no cassette.
        """
        return self._client(target, path=self.path(name), redaction=redaction, options=options)

    @asynccontextmanager
    async def _client(
        self, target: Any, *, path: Path, redaction: Redaction | None, options: dict[str, Any]
    ) -> AsyncGenerator[Client]:
        if self._to_record(path):
            made = path.with_suffix(".part")
            try:
                with Recorder(made, redaction=redaction) as tap:
                    async with Client(target, tap=tap, **options) as client:
                        yield client
                made.replace(path)
            finally:
                made.unlink(missing_ok=True)
            return
        player = Player(Cassette.load(path), redaction=redaction)
        for name in ("env", "cwd", "headers"):  # of the target, which is not there
            options.pop(name, None)
        async with Client(player, **options) as client:
            yield client
        if player.misses:
            again = "run pytest --mcp-record=all to record it anew"
            pytest.fail("\n".join([*dict.fromkeys(player.misses), again]), pytrace=False)

    def _to_record(self, path: Path) -> bool:
        there = path.exists()
        if not there and self._mode == "never":
            pytest.fail(f"there is no cassette {path}, and --mcp-record=never", pytrace=False)
        return self._mode == "all" or not there


class Snapshots:
    """Holds values against files of the test."""

    def __init__(self, folder: Path, name: str, *, update: bool) -> None:
        self._folder = folder
        self._name = name
        self._update = update

    def __call__(self, value: Any, name: str | None = None) -> None:
        """As `check_snapshot`, with the file of the test, or another by its name."""
        __tracebackhide__ = True
        check_snapshot(value, self._folder / f"{_file_name(name or self._name)}.json", update=self._update)


def _file_name(name: str) -> str:
    return _OTHER.sub("-", name).strip("-.")
