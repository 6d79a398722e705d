"""What of a server's entry is shown: references and plain words; no secret, wherever it stands."""

from __future__ import annotations

import pytest

from dragoman.host import ServerConfig
from dragoman.host.config.record import Origin
from dragoman.host.masking import covered, literals, secrets, shown_args, shown_table, shown_url, what

TOKEN = "q7Zf0kP2mX9vB4nT6wL1"


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (("--port", "8080", "-v"), ("--port", "8080", "-v")),
        (("--token", "abc", "x"), ("--token", "[hidden]", "x")),
        (("--api-key=abc", "--name=n"), ("--api-key=[hidden]", "--name=n")),
        (("--token", "${TOKEN}"), ("--token", "${TOKEN}")),
        (("--api-key=${KEY}",), ("--api-key=${KEY}",)),
        (("--token", "--verbose"), ("--token", "--verbose")),
        (("--header", "Authorization: Bearer abc"), ("--header", "Authorization: [hidden]")),
        (("--header", "Authorization: Bearer ${T}"), ("--header", "Authorization: Bearer ${T}")),
        (("-e", "API_KEY=abc", "-e", "MODE=fast"), ("-e", "API_KEY=[hidden]", "-e", "MODE=fast")),
        ((TOKEN,), ("[hidden]",)),
        (("ghp_" + "a1" * 18,), ("[hidden]",)),
        (("postgres://u:pw@h/db",), ("postgres://[hidden]@h/db",)),
        (("-y", "@scope/server-everything@1.2.3"), ("-y", "@scope/server-everything@1.2.3")),
        (("--model=claude-sonnet-4-20250514",), ("--model=claude-sonnet-4-20250514",)),
        (
            ("/home/u/very-long-folder-name-2024/server.py",),
            ("/home/u/very-long-folder-name-2024/server.py",),
        ),
    ],
)
def test_words_of_a_command_line(args, shown):
    assert shown_args(args, "claude-code") == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://h.example:8/mcp", "https://h.example:8/mcp"),
        ("https://u:p@h.example/mcp", "https://[hidden]@h.example/mcp"),
        ("https://h/mcp?key=1&region=eu#f", "https://h/mcp?key=[hidden]&region=[hidden]#[hidden]"),
        ("https://h/mcp?key=${KEY}", "https://h/mcp?key=${KEY}"),
        ("https://h/mcp?onlyavalue", "https://h/mcp?[hidden]"),
        (f"https://h/s/{TOKEN}/mcp", "https://h/s/[hidden]/mcp"),
        ("https://${HOST}/mcp", "https://${HOST}/mcp"),
        ("https://[bad", "[hidden]"),
    ],
)
def test_urls(url, shown):
    assert shown_url(url, "claude-code") == shown


def test_of_tables_the_references_alone_are_shown():
    table = {"A": "plain", "B": "${B}", "C": "Bearer ${C}", "D": "x${D}", "E": "${E:-fallback}"}
    assert shown_table(table, "claude-code") == {
        "A": "[hidden]",
        "B": "${B}",
        "C": "Bearer ${C}",
        "D": "[hidden]",
        "E": "[hidden]",
    }
    # Codex replaces nothing: what looks like a reference is a text there.
    assert shown_table({"B": "${B}"}, "codex") == {"B": "[hidden]"}


def config(**members):
    return ServerConfig("s", members.pop("transport", "stdio"), Origin("f", 1, 1), **members)


def test_where_secrets_stand():
    program = config(command="r", args=("--token", "abc"), env={"API_KEY": "1", "MODE": "fast", "X": TOKEN})
    assert list(secrets(program)) == ["env.API_KEY", "env.X", "args[1]"]
    remote = config(transport="http", url="https://h/?token=a", headers={"Authorization": "b", "X": "y"})
    assert list(secrets(remote)) == ["headers.Authorization", "url"]
    clean = config(transport="http", url="https://h/?region=eu", headers={"Authorization": "Bearer ${T}"})
    assert list(secrets(clean)) == []


def test_a_line_of_a_file_without_what_is_not_shown():
    one = config(command="r", args=("--key=abcdefghij",), env={"A": "1", "B": 'say "hi"'})
    hidden = literals([one])
    assert covered('  "A": "1", "n": 1', hidden) == '  "A": "[hidden]", "n": 1'
    assert covered('"B": "say \\"hi\\""', hidden) == '"B": "[hidden]"'
    assert covered("args = ['--key=abcdefghij']", hidden) == "args = ['--key=[hidden]']"
    assert covered("x: sk-" + "a" * 20, {}) == "x: [hidden]"


def test_what_an_entry_starts():
    assert what(config(command="r", args=("--token=a", "b"))) == "r --token=[hidden] b"
    assert what(config(transport="http", url="https://h/?a=b")) == "https://h/?a=[hidden]"
