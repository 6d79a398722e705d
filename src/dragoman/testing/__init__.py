"""For tests of servers and clients: scripted servers, cassettes, mocks, and how two answers differ.

Each name is loaded when it is first used: a test that needs one of them does not wait for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.schema.difference import Difference, differences
    from dragoman.testing.cassette import Cassette, Frame, Recorder
    from dragoman.testing.comparison import Compared, compare
    from dragoman.testing.mocks import mock
    from dragoman.testing.player import Player
    from dragoman.testing.redaction import Redaction
    from dragoman.testing.samples import sample
    from dragoman.testing.scripted import ScriptedServer
    from dragoman.testing.snapshot import check_snapshot

_HOMES = {
    "Cassette": ".cassette",
    "Compared": ".comparison",
    "Difference": "dragoman.schema.difference",
    "Frame": ".cassette",
    "Player": ".player",
    "Recorder": ".cassette",
    "Redaction": ".redaction",
    "ScriptedServer": ".scripted",
    "check_snapshot": ".snapshot",
    "compare": ".comparison",
    "differences": "dragoman.schema.difference",
    "mock": ".mocks",
    "sample": ".samples",
}

__all__ = [
    "Cassette",
    "Compared",
    "Difference",
    "Frame",
    "Player",
    "Recorder",
    "Redaction",
    "ScriptedServer",
    "check_snapshot",
    "compare",
    "differences",
    "mock",
    "sample",
]


def __getattr__(name: str) -> Any:
    """Load the module that has `name`."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dragoman.testing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value
