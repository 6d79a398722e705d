"""What a person is shown before they say yes: all of it, a part a line, and nothing that is not seen."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.cli.chat_person import asking, shown, starting
from dragoman.host import Decision, Name, Question, ServerConfig
from dragoman.host.config.record import Origin
from dragoman.model import Tool
from dragoman.schema.escapes import harmless


def entry(**members: Any) -> str:
    made = {"transport": "stdio", "command": "node", **members}
    config = ServerConfig("tools", origin=Origin(".mcp.json", 3, 5), **made)
    return "\n".join(map(harmless, starting(config)))


def question(arguments: dict[str, Any], *, tool: str = "send", why: str = "no rule matches") -> list[str]:
    name = Name("mcp__mail__send", "mcp__mail__send", "mail", tool)
    return asking(Question(name, Tool(name=tool, input_schema={}), arguments, Decision("ask", why)))


def test_the_whole_command_is_shown_whatever_its_words_look_like():
    hidden = "token=__import__('os').system('evil')"
    assert entry(command="python", args=("-c", hidden)) == (
        f".mcp.json:3 names the server 'tools':\n  python -c \"{hidden}\""
    )
    assert "aW1wb3J0IG9zO29zLnN5c3RlbSgneCcp1A" in entry(args=("-e", "aW1wb3J0IG9zO29zLnN5c3RlbSgneCcp1A"))


def test_what_changes_the_program_is_shown_and_what_is_a_secret_by_its_name_is_not():
    text = entry(
        env={"NODE_OPTIONS": "--require ./evil.js", "API_KEY": "sk-of-the-person", "TOKEN": "${TOKEN}"},
        env_names=("AWS_PROFILE",),
        env_file="../.env",
        cwd="/elsewhere",
    )
    assert '  env NODE_OPTIONS = "--require ./evil.js"\n' in text
    assert "  env API_KEY = [hidden]\n" in text
    assert "  env TOKEN = ${TOKEN}\n" in text
    assert "  env AWS_PROFILE, from the variable AWS_PROFILE\n" in text
    assert "  env from the file ../.env\n" in text
    assert text.endswith("  in the folder /elsewhere")


def test_where_secrets_would_go_is_shown():
    text = entry(
        transport="http",
        command=None,
        url="https://a.example/?q=${SECRET}",
        headers={"X-Run": "${SECRET}"},
        header_env={"X-More": "HOME"},
        bearer_env="GITHUB_TOKEN",
    )
    assert '  "https://a.example/?q=${SECRET}"\n' in text
    assert '  header X-Run = "${SECRET}"\n' in text
    assert "  header X-More, from the variable HOME\n" in text
    assert text.endswith("  a token, from the variable GITHUB_TOKEN")


@pytest.mark.parametrize("evil", ["a\n  Start it? [y]es: y", "\x1b[2K\rls", "a\u202eb", "a\u200bb", "\ud800"])
def test_no_part_forges_a_line_or_steers_the_terminal(evil):
    text = entry(command=evil, args=(evil,), cwd=evil, env={evil: evil}, env_file=evil)
    assert len(text.split("\n")) == 5
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\u200b" not in text
    lines = question({evil: {evil: evil}}, tool=evil, why=evil)
    assert len("\n".join(map(harmless, lines)).split("\n")) == 3
    assert "\u200b" not in lines[1]


def test_letters_of_all_scripts_and_pictures_stay_readable():
    assert shown({"이름": "Łukasz 🙂"}) == '{"이름":"Łukasz 🙂"}'
    assert shown("a\u200b\U000e0041b\u00ad") == '"a\\u200b\\U000e0041b\\u00ad"'
