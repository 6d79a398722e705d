"""Story 2: `build-app` and `lint-check`, with schemas on both sides and what happens outside of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts import player

REVISIONS = ("2026-07-28", "2025-11-25")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an app of two modules, beside a module that does not compile."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "one.py").write_text("assert True\n")
    (app / "two.py").write_text("import one\n")
    (tmp_path / "broken.py").write_text("print(\n")
    return tmp_path


@pytest.mark.parametrize("revision", REVISIONS)
def test_over_stdio(revision: str, project: Path) -> None:
    player.play_stdio(f"build-{revision}", revision, player.run_command(player.example("build")), project)


def test_over_http_on_both_revisions_in_one_process(project: Path) -> None:
    command = player.run_command(player.example("build"), "--http", "127.0.0.1:0")
    with player.http_server(command, project) as address:
        for revision in REVISIONS:
            player.play_http(f"build-{revision}", revision, address)
