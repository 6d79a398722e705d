"""The drivers of JSON-RPC alone have one place to be imported from, which loads no more than is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dragoman.transports
from dragoman.transports.fds import serve_stdio

CODE = """
import sys
from dragoman.transports import serve_stream
loaded = {name for name in sys.modules if name.startswith("dragoman.transports.")}
assert serve_stream.__module__ in loaded, loaded
others = {"dragoman.transports." + name for name in ("post", "fds", "stdio")}
assert not loaded & others, loaded
assert "dragoman.server" not in sys.modules
"""


def test_every_name_is_there_and_is_that_of_its_module() -> None:
    for name in dragoman.transports.__all__:
        value = getattr(dragoman.transports, name)
        assert value is getattr(sys.modules[value.__module__], name)
    assert dragoman.transports.serve_stdio is serve_stdio
    assert set(dragoman.transports.__all__) <= set(dir(dragoman.transports))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'serve_pigeon'"):
        getattr(dragoman.transports, "serve_pigeon")  # noqa: B009  # a type checker knows that there is none


def test_a_driver_loads_no_other_one() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=60)
