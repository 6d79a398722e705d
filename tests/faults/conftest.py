"""Nothing is remembered of servers from one test to the next."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from dragoman.client import opening
from tests.http_client.tls import pki

__all__ = ["pki"]  # a fixture, for the tests of this folder


@pytest.fixture(autouse=True)
def no_verdicts() -> Iterator[None]:
    opening.forget(None)
    yield
    opening.forget(None)


@pytest.fixture
def unused_port() -> int:
    """A port of the loopback address on which nobody listens yet."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
