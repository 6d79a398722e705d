"""`dragoman explain`: the chain of a call from its configuration to its rule, in one command."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.host import Host, Machine, Trace
from tests.cli.machine import Place, new_place
from tests.cli.test_speed import BARE, fastest

SERVER = """
from typing import Annotated, Literal

from dragoman import Server

server = Server("shop", version="1.0.0")


@server.tool(annotations={"readOnlyHint": True})
def search(q: str, colour: Literal["red", "blue"] = "red") -> str:
    return q


@server.tool
def refund(order: str, amount: int) -> str:
    return order


@server.tool(name="a_name_that_is_too_long_for_the_api_of_any_model_that_there_is_today")
def lengthy() -> str:
    return ""


@server.tool(name="odd.name")
def odd() -> str:
    return ""


if __name__ == "__main__":
    server.run()
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = new_place(tmp_path)
    place.write("server.py", SERVER)
    place.write(".mcp.json", {"mcpServers": {"shop": {"command": sys.executable, "args": ["server.py"]}}})
    place.write(
        ".claude/settings.json",
        {
            "permissions": {
                "allow": ["mcp__shop__search", "mcp__shop__refund"],
                "deny": ["mcp__shop__refund"],
            },
            "enabledMcpjsonServers": ["shop"],
        },
    )
    return place


def explain(place: Place, *words: str, status: int = 0) -> dict[str, Any]:
    done = place.run("explain", *words, "--json")
    assert done.status == status, done
    value: dict[str, Any] = done.value["result"]
    return value


def link(value: dict[str, Any], step: str) -> dict[str, Any]:
    return next(item for item in value["chain"] if item["step"] == step)


def test_a_refused_call_is_explained_link_by_link(place: Place) -> None:
    value = explain(place, "mcp__shop__refund", "order=A-1", "amount=5", "--trusted", status=5)
    assert [(item["step"], item["ok"]) for item in value["chain"]] == [
        ("config", True),
        ("list", True),
        ("schema", True),
        ("permission", False),
    ]
    assert link(value, "config")["places"] == [{"file": ".mcp.json", "line": 3, "column": 5}]
    permission = link(value, "permission")
    assert "mcp__shop__refund in permissions.deny (.claude/settings.json:8)" in permission["text"]
    assert "loses: allow mcp__shop__refund (.claude/settings.json:5)" in permission["details"]
    assert ".claude/settings.json:8" in permission["remedy"]
    assert (value["verdict"], value["server"], value["tool"]) == ("deny", "shop", "refund")
    rule, source = value["decision"]["rule"], {"file": ".claude/settings.json", "line": 8, "column": 7}
    assert rule == {"effect": "deny", "text": "mcp__shop__refund", "scope": "project", "source": source}


@pytest.mark.parametrize("name", ["mcp__shop__search", "shop:search", "shop/search"])
def test_a_tool_may_be_named_in_three_ways(name: str, place: Place) -> None:
    value = explain(place, name, "q=x", "--trusted")
    assert (value["tool"], value["verdict"], value["host"]) == ("search", "allow", "claude-code")


def test_a_name_that_the_model_has_in_other_characters(place: Place) -> None:
    for name in ("mcp__shop__odd_name", "shop:odd.name"):
        value = explain(place, name, "--trusted")
        assert (value["tool"], value["verdict"]) == ("odd.name", "ask")


def test_a_name_that_was_cut(place: Place) -> None:
    tool = "a_name_that_is_too_long_for_the_api_of_any_model_that_there_is_today"
    value = explain(place, f"shop:{tool}", "--trusted")
    assert len(value["name"]) == 64
    again = explain(place, value["name"], "--trusted")
    assert again["tool"] == value["tool"] == tool


def test_what_the_schema_refuses_is_told_by_field(place: Place) -> None:
    value = explain(place, "shop:search", "q=x", "colour=green", "--trusted", status=5)
    (fault,) = link(value, "schema")["details"]
    assert fault.startswith("colour: expected ")
    assert '"green"' in fault
    assert value["verdict"] == "refused"
    # The rules have their say all the same.
    assert link(value, "permission")["ok"] is True


def test_arguments_are_read_by_the_schema_or_as_json(place: Place) -> None:
    assert link(explain(place, "shop:search", "q=1", "--trusted"), "schema")["ok"] is True
    wrong = explain(place, "shop:search", "--args", '{"q": 1}', "--trusted", status=5)
    assert "q: expected a string" in link(wrong, "schema")["details"][0]


def test_a_server_that_nobody_approved_is_not_started(place: Place) -> None:
    place.write("server.py", "open('started', 'w').close()\n" + SERVER)
    value = explain(place, "shop:refund", status=5)
    assert "is pending" in link(value, "config")["text"]
    assert "approve it" in link(value, "config")["remedy"]
    assert link(value, "list")["ok"] is None
    assert "mcp__shop__refund in permissions.deny" in link(value, "permission")["text"]
    assert not (place.project / "started").exists()


def test_trusted_explains_a_server_that_waits_for_approval_as_if_it_had_it(place: Place) -> None:
    settings = {"permissions": {"deny": ["mcp__shop__refund"]}}
    place.write(".claude/settings.json", settings)
    waiting = link(explain(place, "shop:refund", status=5), "config")
    assert waiting["text"].endswith("is pending: a person has to approve servers of a project's file")
    assert waiting["remedy"].endswith("; `--trusted` explains the call as if somebody had")
    value = explain(place, "shop:refund", "order=A", "amount=five", "--trusted", status=5)
    config = link(value, "config")
    assert config["ok"] is True
    assert config["details"] == ["a person has to approve it first; explained as if one had (--trusted)"]
    assert link(value, "list")["ok"] is True
    assert link(value, "schema")["ok"] is False
    assert link(value, "permission")["ok"] is False


def test_a_server_that_does_not_answer_takes_neither_config_nor_rules_away(place: Place) -> None:
    place.write("server.py", "raise SystemExit(3)\n")
    value = explain(place, "shop:search", "--trusted", status=5)
    assert link(value, "config")["ok"] is True
    assert "did not answer" in link(value, "list")["text"]
    assert link(value, "permission")["text"].startswith("allowed: mcp__shop__search")
    assert value["verdict"] == "unknown"


def test_offline_starts_nothing(place: Place) -> None:
    place.write("server.py", "open('started', 'w').close()\n" + SERVER)
    value = explain(place, "shop:search", "--trusted", "--offline")
    assert link(value, "list")["text"] == "the server was not asked: as you said (--offline)"
    assert value["verdict"] == "allow"
    assert not (place.project / "started").exists()


def test_a_tool_that_is_not_there(place: Place) -> None:
    value = explain(place, "shop:serach", "--trusted", status=5)
    assert link(value, "list")["remedy"] == "did you mean 'search'?"
    assert value["verdict"] == "unknown"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shopp:search"], "did you mean the server 'shop'?"),
        (["mcp__shpo__search"], "did you mean the server 'shop'?"),
        (["xyzzy"], "the servers are shop. A tool is named SERVER:TOOL"),
        (["shop:search", "q"], "argument 'q': expected key=value"),
        (["shop:search", "--host", "emacs"], "invalid choice: 'emacs'"),
        (["shop:search", "--folder", "absent"], "absent: no such folder"),
    ],
)
def test_wrong_words(words: list[str], message: str, place: Place) -> None:
    done = place.run("explain", *words)
    assert done.status == 2
    assert message in done.err


def test_a_machine_without_files(tmp_path: Path) -> None:
    done = new_place(tmp_path).run("explain", "a:b")
    assert done.status == 2
    assert "no host has files" in done.err


def test_what_would_be_decided_elsewhere_is_told(place: Place) -> None:
    details = link(explain(place, "shop:odd.name", "--trusted"), "permission")["details"]
    assert any(text.startswith("where nobody can be asked: denied") for text in details)
    details = link(explain(place, "shop:search", "q=x", "--headless", status=5), "permission")["details"]
    assert any(text.startswith("in a trusted folder: allowed") for text in details)


def test_servers_of_the_command_line(place: Place) -> None:
    entry = {"command": sys.executable, "args": ["server.py"]}
    value = explain(place, "mine:search", "q=x", "--mcp-config", json.dumps({"mcpServers": {"mine": entry}}))
    assert link(value, "config")["text"] == "'mine' in --mcp-config:1:17 is used"
    assert value["verdict"] == "ask"


def test_modes(place: Place) -> None:
    assert explain(place, "shop:odd.name", "--trusted", "--mode", "bypassPermissions")["verdict"] == "allow"
    value = explain(place, "shop:odd.name", "--trusted", "--mode", "dontAsk", status=5)
    assert "the mode is dontAsk" in link(value, "permission")["text"]


def test_other_hosts_decide_by_their_own_files(place: Place) -> None:
    command = json.dumps(sys.executable)
    text = f'[mcp_servers.shop]\ncommand = {command}\nargs = ["server.py"]\n'
    place.write(".codex/config.toml", text + '[mcp_servers.shop.tools.refund]\napproval_mode = "prompt"\n')
    value = explain(place, "shop:search", "q=x", "--host", "codex", "--trusted")
    assert value["verdict"] == "allow"
    assert "it does no harm" in link(value, "permission")["text"]
    value = explain(place, "shop:refund", "order=a", "amount=1", "--host", "codex", "--trusted")
    assert value["verdict"] == "ask"
    assert ".codex/config.toml:5" in link(value, "permission")["remedy"]
    assert "codex" in explain(place, "shop:search", "q=x", "--trusted")["other_hosts"]


def test_a_lock_is_a_link_of_its_own(place: Place) -> None:
    assert place.run("lock", "--host", "claude-code", "--trusted").status == 0
    assert link(explain(place, "shop:search", "q=x", "--trusted"), "lock")["ok"] is True
    place.write("server.py", SERVER.replace('Literal["red", "blue"]', 'Literal["red", "green"]'))
    value = explain(place, "shop:search", "q=x", "--trusted", status=5)
    assert link(value, "lock")["ok"] is False
    assert value["verdict"] == "refused"


def test_the_words_for_a_person(place: Place) -> None:
    done = place.run("explain", "shop:refund", "order=a", "amount=1", "--trusted")
    assert done.status == 5
    first, *_, last = done.out.splitlines()
    assert first == "mcp__shop__refund: 'refund' of server 'shop', as claude-code decides"
    assert last == "=> denied: mcp__shop__refund in permissions.deny (.claude/settings.json:8)"
    assert "  permission  STOP denied: " in done.out


@pytest.mark.alone
def test_the_answer_comes_in_less_than_a_second(place: Place) -> None:
    bare = fastest([sys.executable, "-c", "pass"], place.project)
    words = ["explain", "shop:search", "q=x", "--trusted", "--folder", str(place.project)]
    told = fastest([sys.executable, "-m", "dragoman", *words], place.project)
    assert told < max(1.0, bare / BARE), f"{told:.3f} s, where the interpreter takes {bare:.3f} s"


# Calls of a trace ------------------------------------------------------------------------------------------


def traced(place: Place, *uses: tuple[str, dict[str, Any]]) -> list[str]:
    """Have a host answer calls, and return their ids in its trace."""
    machine = Machine(place.project, place.home, place.env())
    file = place.project / "trace.jsonl"

    async def work() -> None:
        trace = Trace(file)
        async with Host.from_files(machine=machine, trusted=True, trace=trace) as host:
            for name, arguments in uses:
                await host.call({"type": "tool_use", "id": "t", "name": name, "input": arguments})
        trace.close()

    asyncio.run(work())
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line["call"] for line in lines if line["kind"] == "tool_use"]


def test_a_recorded_call_is_explained_and_compared(place: Place) -> None:
    denied, fine, wrong = traced(
        place,
        ("mcp__shop__refund", {"order": "a", "amount": 1}),
        ("mcp__shop__search", {"q": "x"}),
        ("mcp__shop__search", {"q": 1}),
    )
    words = ("--trace", "trace.jsonl", "--trusted")
    value = explain(place, *words, denied, status=5)
    assert "denied" in value["recorded"]["text"]
    assert value["differences"] == []
    assert explain(place, *words, fine)["differences"] == []
    assert explain(place, *words, wrong, status=5)["recorded"]["faults"]

    settings = {"permissions": {"deny": ["mcp__shop__search"]}, "enabledMcpjsonServers": ["shop"]}
    place.write(".claude/settings.json", settings)
    (difference,) = explain(place, *words, fine, status=5)["differences"]
    assert difference == (
        "then allow by mcp__shop__search (.claude/settings.json:4); "
        "now deny by mcp__shop__search (.claude/settings.json:4)"
    )
    place.write("server.py", SERVER.replace("q: str", "q: int"))
    told = explain(place, *words, wrong, status=5)["differences"]
    assert "the tool's input schema changed since" in told
    assert "the schema refused the arguments then and takes them now" in told


def test_a_recorded_call_that_is_not_there(place: Place) -> None:
    traced(place, ("mcp__shop__search", {"q": "x"}))
    done = place.run("explain", "--trace", "trace.jsonl", "zzzz")
    assert done.status == 2
    assert "no call 'zzzz'" in done.err
    assert place.run("explain", "--trace", "absent.jsonl", "zzzz").status == 2
