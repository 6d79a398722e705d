"""What a test needs from the machine, by name.

Each function returns the path of the thing. Where it is missing, the test is skipped with a reason
that names it and says how to get it; under CI, where the set-up has run, that is a failure.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".peers"


def missing(what: str, remedy: str) -> NoReturn:
    text = f"missing: {what} ({remedy})"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def program(name: str) -> str:
    """A program of the machine, such as `valgrind`."""
    return shutil.which(name) or missing(name, f"apt-get install {name}")


def node() -> str:
    """Node 24."""
    path = PEERS / "bin" / "node"
    return str(path) if path.exists() else missing("Node 24", "make setup")


def npm_package(name: str) -> Path:
    """The folder of an npm peer: `npm_package("@modelcontextprotocol/conformance")`."""
    path = PEERS / "npm" / "node_modules" / name
    return path if path.exists() else missing(f"the npm package {name}", "make setup")


def npm_modules() -> Path:
    """The folder that a script must stand below, or be given, to import the npm peers."""
    path = PEERS / "npm" / "node_modules"
    return path if path.exists() else missing("the npm peers", "make setup")


def peer_python(name: str) -> str:
    """The interpreter of a Python peer: `mcp2`, `mcp1`, `fastmcp4`, `servers` or `providers`."""
    folder = PEERS / name
    return (
        str(folder / "bin" / "python")
        if (folder / ".stamp").exists()
        else missing(f"the peer {name}", "make setup")
    )


def dragoman() -> str:
    """The installed command line program."""
    path = ROOT / ".venv" / "bin" / "dragoman"
    return str(path) if path.exists() else missing("the program dragoman", "make setup")
