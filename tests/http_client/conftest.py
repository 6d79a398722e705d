"""Ports and certificates."""

from __future__ import annotations

import socket

import pytest

from tests.http_client.tls import pki

__all__ = ["pki"]  # a fixture, for the tests of this folder


@pytest.fixture
def unused_port():
    """A port of the loopback address on which nobody listens: it is held, and never listened on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
