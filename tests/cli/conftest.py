"""A folder with a server in it, made once for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import SERVER


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    return folder
