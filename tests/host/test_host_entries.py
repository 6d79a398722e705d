"""Entries that nothing can be started or reached by, and programs that repeat what they were given."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from dragoman.host.config.record import Origin, ServerConfig
from dragoman.host.masking import held, without
from tests.host.places import Place, use

SECRET = "tops3cretvalue1234"
TELLING = """
import os, sys
print("token", os.environ.get("API_TOKEN"), "args", sys.argv[1:], file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "dragoman")


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "ls", "args": ["\ud800"]},
        {"command": "a\x00b"},
        {"command": "\ud800"},
        {"command": "ls", "env": {"A": "x\x00y"}},
        {"command": "ls", "env": {"\ud800": "\ud800"}},
        {"command": "ls", "args": ["a" * 200_000]},
        {"command": "x" * 5000},
        {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X A": "1"}},
        {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X": "a\r\nEvil: 1"}},
        {"type": "http", "url": "http://[::1/"},
        {"type": "http", "url": "http://127.0.0.1:99999999/"},
        {"type": "http", "url": "http://\ud800/"},
        {"type": "http", "url": f"http://{'a' * 70}.example/"},
    ],
)
async def test_an_entry_that_nothing_can_be_started_by_hurts_no_other(place, entry):
    place.write("home/.claude.json", {"mcpServers": {"bad": entry, "service": place.entry}})
    place.write("home/.claude/settings.json", {"permissions": {"allow": ["mcp__service"]}})
    async with place.host("claude-code") as found:
        assert found.sessions["bad"].state == "failed"
        assert found.sessions["bad"].why
        assert not (await found.answer(use("look"))).is_error


FILES = {
    "claude-code": ("home/.claude.json", "mcpServers"),
    "cursor": ("home/.cursor/mcp.json", "mcpServers"),
    "gemini-cli": ("home/.gemini/settings.json", "mcpServers"),
    "cline": ("home/.cline/mcp.json", "mcpServers"),
    "vscode": ("home/.config/Code/User/mcp.json", "servers"),
}


@pytest.mark.parametrize("host", FILES)
def test_a_number_that_nothing_can_count_to_hurts_its_own_entry_at_most(place, host):
    file, key = FILES[host]
    place.write(file, {key: {"bad": {**place.entry, "timeout": 10**400}, "service": place.entry}})
    assert "service" in place.host(host).setup.active


@pytest.mark.parametrize("value", ["nan", "1" * 400])
@pytest.mark.parametrize("member", ["startup_timeout_sec", "tool_timeout_sec"])
def test_a_time_that_is_none_is_told_as_any_bad_entry_is(place, member, value):
    bad = place.toml.replace("service", "bad")
    place.write("home/.codex/config.toml", f"{bad}{member} = {value}\n{place.toml}")
    found = place.host("codex")
    assert found.setup.active == {}  # Codex starts with no server then
    assert "a number of a sane size" in str(found.problems)


@pytest.mark.parametrize("value", ["9" * 5000, "\u00b2", "-1", "nan", ""])
async def test_numbers_of_the_environment_that_are_none_count_as_none(place, value):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    names = ("MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MAX_MCP_OUTPUT_TOKENS", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT")
    env = dict.fromkeys((*names, "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH"), value)
    async with place.host("claude-code", env=env, ask=lambda question: True) as found:
        assert max(len(tool["description"]) for tool in await found.tools() if "description" in tool) == 2048
        assert not (await found.answer(use("big", characters=1000))).is_error


async def test_secrets_that_a_program_repeats_are_not_in_why_it_is_not_there(place):
    program = str(place.write("telling.py", TELLING))
    entry = {
        "command": sys.executable,
        "args": [program, "--token", "${GIVEN}"],
        "env": {"API_TOKEN": "${GIVEN}"},
    }
    gone = {"command": "/nowhere/${MY_SECRET}"}
    place.write("home/.claude.json", {"mcpServers": {"telling": entry, "gone": gone}})
    async with place.host("claude-code", env={"GIVEN": SECRET, "MY_SECRET": SECRET}) as found:
        assert "token [hidden] args ['--token', '[hidden]']" in found.sessions["telling"].why
        assert "/nowhere/[hidden]" in found.sessions["gone"].why


def test_the_secrets_that_an_entry_comes_to():
    env = {
        "HOME": "/home/somebody",
        "PLACE": "/opt/tools/some",
        "A_TOKEN": "by-its-name",
        "B": "ghp_" + "aB1" * 12,
        "C": "in-a-header",
        "D": "in-the-env",
        "E": "by-bearer",
        "F": "in-the-url",
        "G_KEY": "short",
    }
    config = ServerConfig(
        "s",
        "stdio",
        Origin("f"),
        command="${PLACE}/run",
        args=("${HOME}/x", "${A_TOKEN}", "${B}", "--password=literal-one", "${G_KEY}"),
        env={"API_KEY": "${D}", "PASSWORD": "literal-two", "DEBUG": "everything"},
        url="https://example.com/${F}",
        headers={"X-Run": "${C}", "Authorization": "Bearer literal-three"},
        bearer_env="E",
    )
    found = held(config, env)
    for value in ("by-its-name", env["B"], "in-a-header", "in-the-env", "by-bearer", "in-the-url"):
        assert value in found
    for value in ("literal-one", "literal-two", "literal-three"):
        assert value in found
    text = json.dumps([env["HOME"], env["PLACE"], "everything", "short"])
    assert without(text, found) == text
