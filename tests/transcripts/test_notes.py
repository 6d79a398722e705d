"""Resources, prompts, completion, changes, sessions: the wire, on both eras and both transports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.transcripts import player
from tests.transcripts.scene import play_scene

REVISIONS = ("2026-07-28", "2025-11-25")
FILE = player.example("notes")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("story", ["notes", "changes"])
def test_over_stdio(story: str, revision: str, tmp_path: Path) -> None:
    player.play_stdio(f"{story}-{revision}", revision, player.run_command(FILE), tmp_path)


def test_over_http_on_both_revisions_in_one_process(tmp_path: Path) -> None:
    with player.http_server(player.run_command(FILE, "--http", "127.0.0.1:0"), tmp_path) as address:
        for revision in REVISIONS:
            player.play_http(f"notes-{revision}", revision, address)


@pytest.mark.parametrize("scene", ["changes-http-2026-07-28", "session-http-2025-11-25"])
def test_over_http_with_streams(scene: str, tmp_path: Path) -> None:
    with player.http_server(player.run_command(FILE, "--http", "127.0.0.1:0"), tmp_path) as address:
        play_scene(scene, scene[-10:], address)


def answers(name: str) -> dict[Any, Any]:
    lines = player.transcript(name)
    return {line["to_client"].get("id"): line["to_client"] for line in lines if "to_client" in line}


def test_the_two_revisions_differ_in_what_the_newer_one_added_and_in_the_code_for_nothing_there() -> None:
    new, old = (answers(f"notes-{revision}") for revision in REVISIONS)
    assert new.keys() == old.keys()
    for id_ in new.keys() - {1, 6}:
        result = new[id_].get("result", {})
        for added in ("resultType", "_meta", "ttlMs", "cacheScope"):
            result.pop(added, None)
        assert json.dumps(new[id_], sort_keys=True) == json.dumps(old[id_], sort_keys=True)
    assert (new[6]["error"].pop("code"), old[6]["error"].pop("code")) == (-32602, -32002)
    assert new[6] == old[6]
