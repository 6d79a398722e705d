"""`dragoman config export` and `undo`: what is shown, what is written, and that it can be taken back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.machine import Place, new_place

SECRET = "q7Zf0kP2mX9vB4nT6wL1"
SERVERS = {
    "orders": {"command": "orders-mcp", "env": {"DB": "${DB}"}},
    "docs": {"url": "https://docs.example/mcp", "type": "http"},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = new_place(tmp_path)
    place.write("~/.claude.json", {"mcpServers": SERVERS})
    return place


def written(place: Place, name: str) -> object:
    return json.loads((place.project / name).read_text())


def test_without_write_the_change_is_shown_and_nothing_is_written(place: Place) -> None:
    done = place.run("config", "export", "--to", "vscode")
    assert (done.status, done.err) == (0, "")
    assert '+      "command": "orders-mcp",' in done.out.splitlines()
    assert '+        "DB": "${env:DB}"' in done.out.splitlines()
    assert done.out.endswith(".vscode/mcp.json: 2 servers would be written; --write writes it\n")
    assert not (place.project / ".vscode").exists()
    assert not (place.home / ".local").exists()


def test_written_and_taken_back(place: Place) -> None:
    done = place.run("config", "export", "orders", "--to", "cursor", "--write")
    assert done.status == 0
    assert written(place, ".cursor/mcp.json") == {
        "mcpServers": {"orders": {"type": "stdio", "command": "orders-mcp", "env": {"DB": "${env:DB}"}}}
    }
    undone = place.run("config", "undo")
    assert (undone.status, undone.err) == (0, "")
    assert not (place.project / ".cursor/mcp.json").exists()
    assert place.run("config", "undo").err == "dragoman: there is nothing to take back\n"


def test_a_file_that_was_there_keeps_comments_mode_and_link_and_comes_back(place: Place) -> None:
    text = '{\n  // mine\n  "mcpServers": {\n    "own": {"command": "own"}\n  }\n}\n'
    real = place.write("shared/mcp.json", text)
    real.chmod(0o640)
    link = place.project / ".cursor/mcp.json"
    link.parent.mkdir()
    link.symlink_to("../shared/mcp.json")
    done = place.run("config", "export", "docs", "--to", "cursor", "--write")
    assert f"(a link to {real})" in done.out
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_text() == text.replace(
        '"own"}\n',
        '"own"},\n    "docs": {\n      "type": "http",\n      "url": "https://docs.example/mcp"\n    }\n',
    )
    assert place.run("config", "undo", ".cursor/mcp.json").status == 0
    assert real.read_text() == text
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_copies_are_for_their_owner_alone(place: Place) -> None:
    place.write(".cursor/mcp.json", {"mcpServers": {}})
    place.run("config", "export", "--to", "cursor", "--write")
    folder = place.home / ".local/state/dragoman/config"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_undo_steps_back_one_change_after_another(place: Place) -> None:
    path = place.write(".cursor/mcp.json", "{}\n")
    place.run("config", "export", "orders", "--to", "cursor", "--write")
    first = path.read_text()
    place.run("config", "export", "docs", "--to", "cursor", "--write")
    place.run("config", "undo", ".cursor/mcp.json")
    assert path.read_text() == first
    place.run("config", "undo", ".cursor/mcp.json")
    assert path.read_text() == "{}\n"
    assert "was not written from here" in place.run("config", "undo", ".cursor/mcp.json").err


def test_undo_leaves_a_file_alone_that_was_changed_since(place: Place) -> None:
    path = place.write(".cursor/mcp.json", "{}\n")
    place.run("config", "export", "--to", "cursor", "--write")
    path.write_text('{"mcpServers": {}, "mine": 1}')
    done = place.run("config", "undo")
    assert done.status == 2
    assert "was changed since" in done.err
    assert "mine" in path.read_text()
    assert place.run("config", "undo", "--force").status == 0
    assert path.read_text() == "{}\n"


def test_what_is_there_already_is_not_written_again(place: Place) -> None:
    place.run("config", "export", "--to", "codex", "--write")
    text = (place.project / ".codex/config.toml").read_text()
    done = place.run("config", "export", "--to", "codex", "--write")
    assert done.out.endswith(".codex/config.toml: nothing to change\n")
    assert (place.project / ".codex/config.toml").read_text() == text


def test_a_server_that_the_host_cannot_have_is_told_of(place: Place) -> None:
    done = place.run("config", "export", "--to", "claude-desktop", "--user")
    assert "left out\n  orders: `env.DB`: it refers to the variable DB" in done.out
    assert "docs: it is reached over http, which that host does not speak" in done.out
    assert done.out.endswith("claude_desktop_config.json: nothing to write\n")


def test_secrets_are_told_of_and_never_shown(place: Place) -> None:
    place.write(
        "~/.claude.json",
        {"mcpServers": {"s": {"command": "r", "args": ["--token", SECRET], "env": {"X": SECRET, "Y": "1"}}}},
    )
    place.write(".cursor/mcp.json", {"mcpServers": {"old": {"command": "o", "env": {"KEY": f"{SECRET}z"}}}})
    for words in ([], ["--write"], ["--json"]):
        done = place.run("config", "export", "--to", "cursor", *words)
        assert done.status == 0
        assert SECRET not in done.out + done.err
    assert SECRET in (place.project / ".cursor/mcp.json").read_text()
    assert "env.X, args[1]" in place.run("config", "export", "--to", "roo-code").out
    place.run("config", "export", "--to", "roo-code", "--write")
    assert stat.S_IMODE((place.project / ".roo/mcp.json").stat().st_mode) == 0o600


def test_what_waits_for_an_approval_is_written_only_by_its_name(place: Place) -> None:
    place.write(".mcp.json", {"mcpServers": {"new": {"command": "n"}}})
    done = place.run("config", "export", "--to", "cursor", "--from", "claude-code")
    assert "new: it is pending in claude-code; name it to write it all the same" in done.out
    assert '"new"' not in done.out
    assert '"new"' in place.run("config", "export", "new", "--to", "cursor", "--from", "claude-code").out


def test_one_name_in_two_hosts(place: Place) -> None:
    place.write("~/.codex/config.toml", '[mcp_servers.orders]\ncommand = "other"\n')
    out = place.run("config", "export", "--to", "cursor").out
    assert "orders: claude-code (~/.claude.json:3); another one in codex (~/.codex/config.toml:1)" in out
    assert '"command": "other"' in place.run("config", "export", "--to", "cursor", "--from", "codex").out


def test_continue_has_two_forms(place: Place) -> None:
    place.run("config", "export", "orders", "--to", "continue", "--write")
    assert written(place, ".continue/mcpServers/mcp.json") == {
        "mcpServers": {"orders": {"command": "orders-mcp", "env": {"DB": "${DB}"}}}
    }
    place.run("config", "export", "orders", "--to", "continue", "--user", "--write")
    text = (place.home / ".continue/config.yaml").read_text()
    assert 'DB: "${{ secrets.DB }}"' in text


def test_output_is_any_file(place: Place) -> None:
    path = place.project / "out/codex.toml"
    place.run("config", "export", "orders", "--to", "codex", "--output", str(path), "--write")
    assert path.read_text() == '[mcp_servers.orders]\ncommand = "orders-mcp"\nenv_vars = ["DB"]\n'


def test_json(place: Place) -> None:
    value = place.run("config", "export", "--to", "codex", "--json").value["result"]
    assert (value["changed"], value["written"]) == (True, False)
    assert value["servers"] == [
        {"name": "orders", "changed": True, "notes": []},
        {"name": "docs", "changed": True, "notes": []},
    ]
    place.run("config", "export", "--to", "codex", "--write")
    undone = place.run("config", "undo", "--json").value["result"]
    assert undone["file"] == str(place.project / ".codex/config.toml")
    assert undone["removed"] is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ordres", "--to", "cursor"], "no server 'ordres': did you mean 'orders'?"),
        (["--to", "emacs"], "--to: invalid choice: 'emacs'"),
        ([], "the following arguments are required: --to"),
        (["--to", "cline"], "Cline reads no file of a project: use --user"),
        (["--to", "cursor", "--folder", "absent"], "absent: no such folder"),
    ],
)
def test_wrong_words(words: list[str], message: str, place: Place) -> None:
    done = place.run("config", "export", *words)
    assert done.status == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n"mcpServers": {,}}', ".cursor/mcp.json:2:16: not JSON"),
        ('{"mcpServers": []}', "mcpServers is no object"),
        ("[]", "the file is no object"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_left_alone(text: str, message: str, place: Place) -> None:
    path = place.write(".cursor/mcp.json", text)
    done = place.run("config", "export", "--to", "cursor", "--write")
    assert done.status == 2
    assert message in done.err
    assert path.read_text() == text


def test_a_folder_that_is_a_link_is_told_of(place: Place) -> None:
    (place.home / "elsewhere").mkdir()
    (place.project / ".cursor").symlink_to(place.home / "elsewhere")
    out = place.run("config", "export", "--to", "cursor").out
    assert f"(a link to {place.home}/elsewhere/mcp.json)" in out


def test_a_link_that_leads_nowhere_is_not_followed(place: Place) -> None:
    (place.project / ".cursor").mkdir()
    (place.project / ".cursor/mcp.json").symlink_to(place.home / ".ssh-config")
    done = place.run("config", "export", "--to", "cursor", "--write")
    assert done.status == 2
    assert "a link that leads nowhere" in done.err
    assert not (place.home / ".ssh-config").exists()


@pytest.mark.skipif(
    os.geteuid() == 0, reason="needs a user whom modes of folders keep out, which root is not"
)
def test_a_folder_that_takes_no_file(place: Place) -> None:
    (place.project / ".cursor").mkdir(mode=0o500)
    done = place.run("config", "export", "--to", "cursor", "--write")
    assert done.status == 2
    assert "it cannot be written" in done.err
