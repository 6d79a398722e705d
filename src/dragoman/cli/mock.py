"""`dragoman mock FILE`: a server with the tools of a file, and answers that fit them."""

from __future__ import annotations

from argparse import Namespace

from dragoman.cli import tapes
from dragoman.testing.mocks import mock


def run(options: Namespace) -> int:
    """Serve until the input ends or a signal comes; returns the exit status."""
    return tapes.perform(options, work=_mock)


def _mock(options: Namespace) -> int:
    server = mock(options.file, name=options.name)
    return tapes.serve(options, server.kernel, name=server.name)
