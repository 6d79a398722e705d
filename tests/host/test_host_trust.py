"""What a project's own files may do: nothing before a person trusted the folder or approved the server."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.host.places import Place, use

FILES = {
    "claude-code": "project/.mcp.json",
    "cursor": "project/.cursor/mcp.json",
    "vscode": "project/.vscode/mcp.json",
    "gemini-cli": "project/.gemini/settings.json",
    "roo-code": "project/.roo/mcp.json",
    "copilot-cli": "project/.github/mcp.json",
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def write(place: Place, host: str, **more) -> None:
    key = "servers" if host == "vscode" else "mcpServers"
    place.write(FILES[host], {key: {"service": {**place.entry, **more}}})


@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("asked", [True, False])
async def test_a_projects_server_is_not_started_by_itself(place, host, asked):
    write(place, host)
    async with place.host(host, ask=(lambda question: True) if asked else None) as found:
        assert await found.tools() == []
        assert found.sessions == {}
        (standing,) = found.standings
        assert standing.state == "pending"
        assert standing.why
        assert standing.config.origin.file.startswith(FILES[host].removeprefix("project/"))
    assert place.starts == []


@pytest.mark.parametrize("host", FILES)
async def test_a_word_for_the_folder_is_enough_where_nobody_has_to_be_asked(place, host):
    write(place, host)
    async with place.host(host, trusted=True) as found:
        assert [session.state for session in found.sessions.values()] == ["connected"]
    assert len(place.starts) == 1


async def test_codex_leaves_out_the_files_of_a_folder_that_is_not_trusted(place):
    place.write("project/.codex/config.toml", place.toml)
    async with place.host("codex", approve=True) as found:
        assert [item.state for item in found.standings] == ["untrusted"]
    assert place.starts == []
    place.write("home/.codex/config.toml", f'[projects."{place.project}"]\ntrust_level = "trusted"\n')
    async with place.host("codex") as found:
        assert found.sessions["service"].state == "connected"


async def test_a_persons_own_files_need_no_further_word(place):
    place.write("home/.codex/config.toml", place.toml)
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    for host in ("codex", "claude-code"):
        async with place.host(host) as found:
            assert found.sessions["service"].state == "connected"


async def test_each_server_is_asked_about_once_and_only_a_plain_yes_counts(place):
    place.write("project/.mcp.json", {"mcpServers": dict.fromkeys(("one", "two", "three"), place.entry)})
    asked = []

    def approve(config):
        asked.append(config.name)
        return {"one": True, "two": "yes", "three": None}[config.name]

    async with place.host("claude-code", ask=lambda question: True, approve=approve) as found:
        assert {name: session.state for name, session in found.sessions.items()} == {"one": "connected"}
        assert {item.config.name: item.state for item in found.standings} == {
            "one": "active",
            "two": "pending",
            "three": "pending",
        }
        await found.reload()
    assert asked == ["one", "two", "three"]
    assert len(place.starts) == 1


async def test_the_person_is_asked_again_about_an_entry_that_has_changed(place):
    place.write("project/.mcp.json", {"mcpServers": {"service": place.entry}})
    asked = []

    async def approve(config):
        asked.append(config.args[-1])
        return len(asked) == 1

    async with place.host("claude-code", ask=lambda question: True, approve=approve) as found:
        entry = place.entry | {"args": [*place.entry["args"], "--more"]}
        place.write("project/.mcp.json", {"mcpServers": {"service": entry}})
        done = await found.reload()
        assert done.stopped == ("service",)
        assert found.sessions == {}
    assert asked == [str(place.ran), "--more"]
    assert len(place.starts) == 1


async def test_a_question_that_fails_is_no_yes_and_holds_up_nothing_else(place, caplog):
    caplog.set_level(logging.CRITICAL, "dragoman")
    place.write("project/.mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.claude.json", {"mcpServers": {"other": place.entry}})
    asked = []

    def approve(config):
        asked.append(config.name)
        if len(asked) < 3:
            raise RuntimeError("no terminal")
        return True

    async with place.host("claude-code", ask=lambda question: True, approve=approve) as found:
        assert list(found.sessions) == ["other"]
        place.write("home/.claude/settings.json", {"permissions": {"deny": ["mcp__other"]}})
        await found.reload()
        assert (await found.answer(use("look", "mcp__other__{}"))).by == "permission"
        await found.reload()
        assert sorted(found.sessions) == ["other", "service"]


async def test_an_approved_entry_stands_over_the_persons_own_of_its_name(place):
    place.write("home/.claude.json", {"mcpServers": {"service": {**place.entry, "env": {"OF": "person"}}}})
    place.write("project/.mcp.json", {"mcpServers": {"service": {**place.entry, "env": {"OF": "project"}}}})
    rules = {"permissions": {"allow": ["mcp__service"]}}
    place.write("home/.claude/settings.json", rules)
    for approve, whose in ((False, "person"), (True, "project")):
        async with place.host("claude-code", ask=lambda question: True, approve=approve) as found:
            outcome = await found.answer(use("environment"))
            assert outcome.result.structured["OF"] == whose


async def test_an_approval_is_of_the_server_and_not_of_the_folders_allow_rules(place):
    place.write("project/.mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("project/.claude/settings.json", {"permissions": {"allow": ["mcp__service"]}})
    place.write("project/.cursor/mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("project/.cursor/permissions.json", {"mcpAllowlist": ["*:*"]})
    for host in ("claude-code", "cursor"):
        async with place.host(host, approve=True) as found:
            outcome = await found.answer(use("look"))
            assert (outcome.by, outcome.decision.effect) == ("permission", "deny")
        async with place.host(host, approve=True, trusted=True) as found:
            assert not (await found.answer(use("look"))).is_error


async def test_settings_of_a_project_cannot_approve_its_own_servers(place):
    place.write("project/.mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("project/.claude/settings.json", {"enableAllProjectMcpServers": True})
    async with place.host("claude-code", ask=lambda question: True) as found:
        assert [item.state for item in found.standings] == ["pending"]
    place.write("home/.claude/settings.json", {"enabledMcpjsonServers": ["service"]})
    async with place.host("claude-code", ask=lambda question: True) as found:
        assert found.sessions["service"].state == "connected"
    assert len(place.starts) == 1


async def test_a_refusal_of_the_person_or_the_organisation_stands_over_every_yes(place):
    place.write("project/.mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("project/.claude/settings.local.json", {"disabledMcpjsonServers": ["service"]})
    async with place.host("claude-code", approve=True, trusted=True) as found:
        (standing,) = found.standings
        assert (standing.state, found.sessions) == ("rejected", {})
        assert standing.by.file == ".claude/settings.local.json"
    place.write("project/.claude/settings.local.json", {})
    place.write(
        "root/etc/claude-code/managed-settings.json", {"deniedMcpServers": [{"serverName": "service"}]}
    )
    async with place.host("claude-code", approve=True, trusted=True) as found:
        (standing,) = found.standings
        assert (standing.state, found.sessions) == ("blocked", {})
    assert place.starts == []
