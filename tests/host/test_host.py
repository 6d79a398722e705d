"""The host over real servers: order of the checks, evidence, and servers that do not take each other down."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from dragoman.errors import UsageError
from dragoman.host import Host, Trace
from tests.needs import ROOT

ORDERS = ROOT / "examples" / "orders"
NOTE = {"order_id": "A-1042", "text": "hello"}

COUNTING = """
import os
from dragoman import Server

server = Server("counting")

@server.tool
def add(a: int, b: int = 1) -> int:
    return a + b

@server.tool(name="delete.all")
def delete_all() -> str:
    return "gone"

@server.tool
def where() -> list[str]:
    return [os.getcwd(), os.environ["CLAUDE_PROJECT_DIR"], os.environ.get("SECRET_ONE", "")]

@server.tool
def die() -> None:
    os._exit(7)

@server.tool(input_schema={"type": "object", "properties": {"a": {"$ref": "http://elsewhere.example/a"}}})
def strange() -> None: ...

server.run()
"""


def use(tool, arguments=None, *, server="orders", id_="toolu_1"):
    return {"type": "tool_use", "id": id_, "name": f"mcp__{server}__{tool}", "input": arguments or {}}


def orders(**options) -> Host:
    env = {**os.environ, "PYTHON": sys.executable}
    return Host.from_files(ORDERS, user=False, trusted=True, env=env, **options)


def project(folder: Path, servers, permissions=None, **options) -> Host:
    (folder / "counting.py").write_text(COUNTING)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    if permissions is not None:
        (folder / ".claude").mkdir()
        (folder / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}))
    return Host.from_files(folder, **{"user": False, "trusted": True, "approve": True, **options})


COUNT = {"command": sys.executable, "args": ["counting.py"]}
ALLOW = {"allow": ["mcp__counting"]}


class Lines(list):
    """A trace in memory."""

    def trace(self) -> Trace:
        return Trace(lambda line: self.append(json.loads(line)))

    @property
    def kinds(self) -> list[str]:
        return [line["kind"] for line in self]


# --- the order service ----------------------------------------------------------------------------------


async def test_the_model_sees_what_it_may_call():
    async with orders() as host:
        tools = await host.tools()
        assert [tool["name"] for tool in tools] == ["mcp__orders__create_note", "mcp__orders__lookup_order"]
        assert tools[1]["description"] == "Find an order by its number."
        schema = tools[1]["input_schema"]
        assert schema["properties"]["order_id"]["pattern"] == r"^[A-Z]-\d{4}$"
        assert host.problems == ()


async def test_an_allowed_call_is_answered_under_the_models_id():
    lines = Lines()
    async with orders(trace=lines.trace()) as host:
        block = await host.call(use("lookup_order", {"order_id": "B-0007"}, id_="toolu_x"))
    assert block["tool_use_id"] == "toolu_x"
    assert "is_error" not in block
    assert json.loads(block["content"][0]["text"])["customer"] == "김서연"
    assert lines.kinds == ["tool_use", "tools/call", "result"]
    assert lines[1]["request"]["params"]["name"] == "lookup_order"


async def test_the_schema_is_asked_first_and_nobody_else_then():
    lines, asked = Lines(), []
    async with orders(trace=lines.trace(), ask=asked.append) as host:
        outcome = await host.answer(use("create_note", {"order_id": "1042", "text": ""}))
    assert (outcome.by, outcome.is_error, outcome.decision) == ("schema", True, None)
    assert {fault.field for fault in outcome.faults} == {"order_id", "text"}
    assert (
        'order_id: expected a string that matches ^[A-Z]-\\d{4}$; received "1042"' in outcome.block["content"]
    )
    assert lines.kinds == ["tool_use", "result"]
    assert asked == []


async def test_a_denied_call_is_not_sent_even_if_its_tool_is_known():
    lines = Lines()
    async with orders(trace=lines.trace(), ask=lambda question: True) as host:
        outcome = await host.answer(use("refund_order", {"order_id": "A-1042", "amount": 1}))
    assert (outcome.by, outcome.decision.effect) == ("permission", "deny")
    assert str(outcome.decision.rule.origin) == ".claude/settings.json:5"
    assert lines.kinds == ["tool_use", "result"]
    assert lines[0]["decision"]["rule"] == "mcp__orders__refund_order"


async def yes(question):
    return True


@pytest.mark.parametrize(
    ("ask", "sent"),
    [
        (lambda question: True, True),
        (yes, True),
        (lambda question: False, False),
        (lambda question: None, False),
        (lambda question: "no", False),  # only True is a yes
        (None, False),
    ],
)
async def test_a_question_needs_a_plain_yes(ask, sent):
    lines = Lines()
    async with orders(trace=lines.trace(), ask=ask) as host:
        outcome = await host.answer(use("create_note", NOTE))
    assert outcome.by == ("server" if sent else "permission")
    assert outcome.decision.answer == (None if ask is None else sent)
    assert ("tools/call" in lines.kinds) is sent


async def test_the_question_says_what_is_to_be_called_and_which_rule_asks():
    seen = []
    async with orders(ask=seen.append) as host:
        await host.call(use("create_note", NOTE))
    (question,) = seen
    assert (question.name.server, question.name.tool, question.arguments) == ("orders", "create_note", NOTE)
    assert str(question.decision.rule.origin) == ".claude/settings.json:4"
    assert question.tool.annotations.destructive_hint is False


async def test_a_tools_own_error_is_told_as_one():
    async with orders() as host:
        outcome = await host.answer(use("lookup_order", {"order_id": "Z-9999"}))
    assert (outcome.by, outcome.is_error) == ("server", True)
    assert outcome.block["content"] == [{"type": "text", "text": "There is no order Z-9999."}]


async def test_an_unknown_tool_names_those_that_the_model_may_see():
    lines = Lines()
    async with orders(trace=lines.trace()) as host:
        outcome = await host.answer(use("cancel_order"))
    assert (outcome.by, outcome.is_error) == ("host", True)
    assert "mcp__orders__lookup_order" in outcome.block["content"]
    assert "refund_order" not in outcome.block["content"]
    assert lines[0]["server"] is None
    assert lines.kinds == ["tool_use", "result"]


async def test_what_is_no_tool_use_is_the_callers_mistake():
    async with orders() as host:
        with pytest.raises(UsageError, match="tool_use: `input`"):
            await host.call({"type": "tool_use", "id": "1", "name": "mcp__orders__lookup_order"})


async def test_calls_at_the_same_time_keep_their_evidence_apart():
    lines = Lines()
    async with orders(trace=lines.trace()) as host:
        numbers = [f"{letter}-{number:04}" for letter in "AB" for number in range(20)]
        await asyncio.gather(*(host.call(use("lookup_order", {"order_id": one}, id_=one)) for one in numbers))
    by_call = {}
    for line in lines:
        by_call.setdefault(line["call"], []).append(line)
    assert len(by_call) == len(numbers)
    for entries in by_call.values():
        first, sent, last = entries
        assert first["block"]["input"] == sent["request"]["params"]["arguments"]
        assert first["block"]["id"] == last["block"]["tool_use_id"]


# --- other servers --------------------------------------------------------------------------------------


async def test_servers_that_fail_leave_the_others_alone(tmp_path):
    servers = {
        "counting": COUNT,
        "absent": {"command": "no-such-program-here"},
        "dies": {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]},
        "secret": {"command": sys.executable, "args": ["${NO_SUCH_VARIABLE}"]},
        "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
        "refused": {"type": "http", "url": "http://127.0.0.1:9/mcp"},
        "untyped": {"url": "http://127.0.0.1:9/mcp"},
    }
    async with project(tmp_path, servers, ALLOW) as host:
        states = {name: session.state for name, session in host.sessions.items()}
        assert states == {
            "counting": "connected",
            "absent": "failed",
            "dies": "failed",
            "secret": "skipped",
            "old": "failed",
            "refused": "failed",
        }
        assert "no-such-program-here" in host.sessions["absent"].why
        assert "no licence" in host.sessions["dies"].why
        assert "NO_SUCH_VARIABLE" in host.sessions["secret"].why
        assert "127.0.0.1:9" in host.sessions["old"].why
        assert any(problem.server == "untyped" for problem in host.problems)
        block = await host.call(use("add", {"a": 2}, server="counting"))
        assert block["content"] == [{"type": "text", "text": "3"}]


async def test_a_server_that_dies_in_a_call_is_told_without_its_last_words(tmp_path):
    servers = {"counting": COUNT, "other": COUNT}
    async with project(tmp_path, servers, {"allow": ["mcp__counting", "mcp__other"]}) as host:
        outcome = await host.answer(use("die", server="counting"))
        assert (outcome.by, outcome.is_error) == ("host", True)
        assert "came to nothing" in outcome.block["content"]
        again = await host.answer(use("add", {"a": 1}, server="counting"))
        assert not again.is_error  # it was started again
        other = await host.answer(use("add", {"a": 1}, server="other"))
        assert not other.is_error


async def test_a_server_runs_in_the_project_and_gets_what_its_entry_says(tmp_path):
    servers = {"counting": COUNT | {"env": {"SECRET_ONE": "${FROM_OUTSIDE}"}}}
    env = {**os.environ, "FROM_OUTSIDE": "value"}
    async with project(tmp_path, servers, ALLOW, env=env) as host:
        outcome = await host.answer(use("where", server="counting"))
        place = str(tmp_path.resolve())
        assert outcome.result.structured == {"result": [place, place, "value"]}


async def test_a_name_that_no_model_takes_leads_back_to_its_tool(tmp_path):
    async with project(tmp_path, {"count ing": COUNT}, {"allow": ["mcp__count_ing__delete.all"]}) as host:
        tools = await host.tools()
        assert "mcp__count_ing__delete_all" in [tool["name"] for tool in tools]
        outcome = await host.answer(use("delete_all", server="count_ing"))
        assert outcome.block["content"] == [{"type": "text", "text": "gone"}]


async def test_a_schema_that_cannot_be_used_lets_nothing_through(tmp_path):
    async with project(tmp_path, {"counting": COUNT}, ALLOW) as host:
        outcome = await host.answer(use("strange", {"a": 1}, server="counting"))
        assert (outcome.by, outcome.is_error) == ("schema", True)
        assert "cannot be used" in outcome.block["content"]


async def test_without_trust_a_projects_own_allow_rules_do_not_count(tmp_path):
    async with project(tmp_path, {"counting": COUNT}, ALLOW, trusted=False) as host:
        outcome = await host.answer(use("add", {"a": 1}, server="counting"))
        assert outcome.by == "permission"


async def test_rules_that_match_nothing_are_said(tmp_path):
    permissions = {"allow": ["mcp__counting__ad"], "deny": ["mcp__countng"]}
    async with project(tmp_path, {"counting": COUNT}, permissions) as host:
        texts = [problem.text for problem in host.problems]
    assert len(texts) == 2
    assert any("no such tool" in text for text in texts)
    assert any("no server of that name" in text for text in texts)


async def test_a_folder_without_files_is_a_host_without_tools(tmp_path):
    async with Host.from_files(tmp_path, user=False) as host:
        assert await host.tools() == []
        assert host.problems == ()
        assert host.standings == ()


async def test_a_persons_own_settings_count_too(tmp_path):
    home, folder = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    folder.mkdir()
    (home / "settings.json").write_text('{"permissions": {"deny": ["mcp__counting__add"]}}')
    host = project(folder, {"counting": COUNT}, ALLOW)
    assert len(host.rules) == 1
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(home)}
    async with Host.from_files(folder, trusted=True, env=env) as host:
        outcome = await host.answer(use("add", {"a": 1}, server="counting"))
        assert outcome.decision.rule.scope == "user"
        assert outcome.decision.lost[0].text == "mcp__counting"


async def test_closing_twice_and_without_connecting(tmp_path):
    host = project(tmp_path, {"counting": COUNT})
    await host.close()
    async with project_again(tmp_path) as other:
        await other.close()
        await other.close()
        assert other.sessions["counting"].state == "closed"


def project_again(folder: Path) -> Host:
    return Host.from_files(folder, user=False, trusted=True)
