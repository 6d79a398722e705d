"""Story 1: `demo_calculate` answers 10 + 5 with `15.0`, on both eras and both transports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.transcripts import player

REVISIONS = ("2026-07-28", "2025-11-25")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("started", ["as a program", "by dragoman run"])
def test_over_stdio(revision: str, started: str, tmp_path: Path) -> None:
    file = player.example("calculate")
    command = [sys.executable, file] if started == "as a program" else player.run_command(file)
    player.play_stdio(f"calculate-{revision}", revision, command, tmp_path)


def test_over_http_on_both_revisions_in_one_process(tmp_path: Path) -> None:
    command = player.run_command(player.example("calculate"), "--http", "127.0.0.1:0")
    with player.http_server(command, tmp_path) as address:
        for revision in REVISIONS:
            player.play_http(f"calculate-{revision}", revision, address)


def test_the_result_has_a_result_type_on_the_stateless_revision_only() -> None:
    for revision, expected in zip(REVISIONS, ("complete", None), strict=True):
        (answer,) = [
            line["to_client"]["result"]
            for line in player.transcript(f"calculate-{revision}")
            if line.get("to_client", {}).get("id") == 3
        ]
        assert answer["content"] == [{"type": "text", "text": "15.0"}]
        assert answer.get("resultType") == expected
