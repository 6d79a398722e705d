"""The pytest plugin: the fixtures `mcp_client`, `mcp_cassette` and `mcp_snapshot`.

Loaded by every run of pytest where dragoman is installed, so it loads nothing of dragoman before a test
asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from dragoman.testing.fixtures import Cassettes, Clients, Mode, Snapshots


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--mcp-record`, `--mcp-update` and `--mcp-protocol`."""
    group = parser.getgroup("mcp", "Model Context Protocol (dragoman)")
    group.addoption(
        "--mcp-record",
        choices=("missing", "all", "never"),
        default="missing",
        help="which cassettes are recorded: those that are missing (the default), all of them anew, or none",
    )
    group.addoption("--mcp-update", action="store_true", help="write the snapshots of mcp_snapshot anew")
    group.addoption(
        "--mcp-protocol",
        metavar="REVISION",
        default=None,
        help="the only revision that the clients of mcp_client speak, such as 2025-11-25",
    )


@pytest.fixture
def mcp_client(request: pytest.FixtureRequest) -> Iterator[Clients]:
    """Makes clients of a server.

    `async with mcp_client(server) as client`, or, connected already, `mcp_client.sync(server)`.
    """
    from dragoman.testing.fixtures import Clients

    clients = Clients(request.config.getoption("--mcp-protocol"))
    yield clients
    clients.close()


@pytest.fixture
def mcp_cassette(request: pytest.FixtureRequest) -> Cassettes:
    """Records what a client and a server say, once, and plays it from then on.

    `async with mcp_cassette(target) as client`. The files are in `cassettes/` beside the test.
    """
    from dragoman.testing.fixtures import Cassettes

    folder = request.path.parent / "cassettes" / request.path.stem
    mode = cast("Mode", request.config.getoption("--mcp-record"))
    return Cassettes(folder, request.node.name, mode=mode)


@pytest.fixture
def mcp_snapshot(request: pytest.FixtureRequest) -> Snapshots:
    """Holds a value against a file.

    `mcp_snapshot(await client.list_tools())`. The files are in `snapshots/` beside the test.
    """
    from dragoman.testing.fixtures import Snapshots

    folder = request.path.parent / "snapshots" / request.path.stem
    return Snapshots(folder, request.node.name, update=bool(request.config.getoption("--mcp-update")))
