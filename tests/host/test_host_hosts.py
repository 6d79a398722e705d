"""A host as each of them: names, decisions, what the model sees, environments, limits, transports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Server
from dragoman.errors import ClosedError, ConnectError, UsageError
from dragoman.host import Host, ToolUse
from dragoman.transports.serve import serve
from tests.host.places import Place, content, permissions, use


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def yes(question):
    return True


# --- which host ------------------------------------------------------------------------------------------


def test_a_host_that_is_not_known_is_named_with_those_that_are():
    with pytest.raises(UsageError, match=r"'notepad' is not known: expected one of claude-code, codex"):
        Host.from_files(host="notepad")


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"absent: no such folder"):
        Host.from_files(tmp_path / "absent")


async def test_tools_of_a_host_that_is_not_connected_are_no_empty_list(place):
    host = place.host("claude-code")
    with pytest.raises(UsageError, match=r"this host is not connected yet\n  try: `async with Host"):
        await host.tools()
    await host.close()
    with pytest.raises(ClosedError, match="this host was closed"):
        await host.shown()


def test_an_option_that_does_not_exist_is_named():
    with pytest.raises(UsageError, match="Host has no option 'asks': did you mean 'ask'"):
        Host.from_files(asks=yes)


NAMES = {
    "claude-code": ("home/.claude.json", "mcpServers", "mcp__my-service__look"),
    "codex": ("home/.codex/config.toml", "", "mcp__my_service__look"),
    "cursor": ("home/.cursor/mcp.json", "mcpServers", "mcp__my-service__look"),
    "vscode": ("home/.config/Code/User/mcp.json", "servers", "mcp_my-service_look"),
    "gemini-cli": ("home/.gemini/settings.json", "mcpServers", "mcp_my-service_look"),
    "opencode": ("home/.config/opencode/opencode.json", "mcp", "my-service_look"),
    "zed": ("home/.config/zed/settings.json", "context_servers", "mcp__my-service__look"),
    "cline": ("home/.cline/mcp.json", "mcpServers", "my-service__look"),
    "roo-code": ("project/.roo/mcp.json", "mcpServers", "mcp--my-service--look"),
    "continue": ("home/.continue/mcpServers/one.json", "mcpServers", "my_service_look"),
    "claude-desktop": (
        "home/.config/Claude/claude_desktop_config.json",
        "mcpServers",
        "mcp__my-service__look",
    ),
    "copilot-cli": ("home/.copilot/mcp-config.json", "mcpServers", "mcp__my-service__look"),
}


@pytest.mark.parametrize("host", NAMES)
async def test_every_host_starts_its_servers_and_gives_its_names(place, host):
    file, key, name = NAMES[host]
    if host == "codex":
        place.write(file, place.toml.replace("service]", "my-service]"))
    elif host == "opencode":
        command = [place.entry["command"], *place.entry["args"]]
        place.write(file, {key: {"my-service": {"type": "local", "command": command}}})
    else:
        place.write(file, {key: {"my-service": place.entry}})
    async with place.host(host, trusted=True, ask=yes) as found:
        assert found.sessions["my-service"].state == "connected", found.sessions["my-service"].why
        assert name in [shown.name for shown in await found.shown()]
        outcome = await found.answer(ToolUse("1", name, {"what": "there"}))
        # VS Code's model sees the structured result in place of its text.
        assert outcome.result.text == ('{"result":"there"}' if host == "vscode" else "there")
        assert (outcome.name.server, outcome.name.tool) == ("my-service", "look")


# --- decisions -------------------------------------------------------------------------------------------


async def test_codex_decides_by_what_tools_say_of_themselves(place):
    place.write("home/.codex/config.toml", place.toml)
    asked = []

    def ask(question):
        asked.append(question.name.tool)
        return False

    async with place.host("codex", ask=ask) as found:
        effects = {
            tool: (await found.answer(use(tool))).decision.effect for tool in ("look", "change", "drop")
        }
    # No hints: it may destroy and reach out. `readOnlyHint` alone is enough, and what destroys is asked.
    assert effects == {"look": "allow", "change": "deny", "drop": "deny"}
    assert asked == ["change", "drop"]


async def test_codex_has_only_the_tools_of_the_entry(place):
    place.write(
        "home/.codex/config.toml", place.toml + 'enabled_tools = ["look", "pid"]\ndisabled_tools = ["pid"]\n'
    )
    async with place.host("codex", ask=yes) as found:
        assert [shown.name for shown in await found.shown()] == ["mcp__service__look"]
        outcome = await found.answer(use("pid"))
        assert (outcome.by, outcome.is_error) == ("permission", True)
        assert "config.toml" in outcome.text


async def test_codex_with_nobody_to_ask_refuses(place):
    place.write("home/.codex/config.toml", 'approval_policy = "never"\n' + place.toml)
    async with place.host("codex", ask=yes) as found:
        outcome = await found.answer(use("drop"))
        assert outcome.by == "permission"
        assert "approval_policy" in outcome.text
        assert not (await found.answer(use("look"))).is_error


async def test_cursor_goes_by_its_list_and_by_the_mode(place):
    place.write("home/.cursor/mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.cursor/permissions.json", {"mcpAllowlist": ["SERVICE:lo*"]})
    place.write("home/.cursor/cli-config.json", {"permissions": {"allow": [], "deny": ["Mcp(service:look)"]}})
    for mode, effect in (
        ("", "allow"),
        ("ask-every-time", "deny"),
        ("cli", "deny"),
        ("run-everything", "allow"),
    ):
        async with place.host("cursor", mode=mode) as found:
            assert (await found.answer(use("look"))).decision.effect == effect, mode


async def test_claude_takes_the_mode_of_its_files_and_asks_all_the_same_where_a_rule_does(place):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    permissions = {
        "defaultMode": "bypassPermissions",
        "ask": ["mcp__service__change"],
        "deny": ["mcp__service__drop"],
    }
    place.write("home/.claude/settings.json", {"permissions": permissions})
    asked = []

    def ask(question):
        asked.append(question.name.tool)
        return True

    async with place.host("claude-code", ask=ask) as found:
        effects = [(await found.answer(use(tool))).decision.effect for tool in ("look", "change", "drop")]
        assert effects == ["allow", "allow", "deny"]
        assert "mcp__service__drop" not in [tool["name"] for tool in await found.tools()]
    assert asked == ["change"]


# --- Dragoman's own rules --------------------------------------------------------------------------------

OWN = """
[[rule]]
effect = "deny"
tool = "drop"
[[rule]]
effect = "ask"
tool = "change"
arguments = { amount = { type = "integer", minimum = 100 } }
[[rule]]
effect = "allow"
tool = "pid"
"""


async def test_own_rules_make_any_host_stricter_and_none_laxer(place):
    place.write("home/.cursor/mcp.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.cursor/permissions.json", {"mcpAllowlist": ["service:drop", "service:change"]})
    place.write("home/.config/dragoman/permissions.toml", OWN)
    async with place.host("cursor") as found:
        drop = (await found.answer(use("drop"))).decision
        assert (drop.effect, str(drop.rule.origin)) == ("deny", "~/.config/dragoman/permissions.toml:2")
        assert [str(rule.origin) for rule in drop.lost] == ["~/.cursor/permissions.json:1"]
        assert (await found.answer(use("change", amount=99))).decision.effect == "allow"
        assert (await found.answer(use("change", amount=100))).decision.effect == "deny"  # nobody to ask
        # An allow of Dragoman's own is no word of the host's.
        assert (await found.answer(use("pid"))).decision.effect == "deny"
        assert "mcp__service__drop" not in [shown.name for shown in await found.shown()]


# --- answers for the session -----------------------------------------------------------------------------


async def test_yes_for_the_session_is_of_this_tool_alone(place):
    place.write("home/.cursor/mcp.json", {"mcpServers": {"service": place.entry}})
    asked = []

    def ask(question):
        asked.append(question.name.tool)
        return "session"

    async with place.host("cursor", ask=ask) as found:
        first = await found.answer(use("change", amount=1))
        again = await found.answer(use("change", amount=2))
        other = await found.answer(use("look"))
        assert (first.decision.effect, first.decision.answer) == ("allow", True)
        assert "yes for this session" in first.decision.why
        assert (again.decision.effect, str(again.decision.rule.origin)) == ("allow", "this session")
        assert not other.is_error
        assert [rule.detail["exactly"] for rule in found.grants] == [
            ("service", "change"),
            ("service", "look"),
        ]
    assert asked == ["change", "look"]


@pytest.mark.parametrize(
    ("host", "file", "content"),
    [
        ("claude-code", "home/.claude/settings.json", {"permissions": {"ask": ["mcp__service__change"]}}),
        ("cursor", "home/.config/dragoman/permissions.toml", '[[rule]]\neffect = "ask"\ntool = "change"\n'),
    ],
)
async def test_a_rule_that_asks_asks_each_time(place, host, file, content):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.cursor/mcp.json", {"mcpServers": {"service": place.entry}})
    place.write(file, content)
    asked = []

    def ask(question):
        asked.append(question.decision.once)
        return "session"

    async with place.host(host, ask=ask) as found:
        for _ in range(2):
            assert not (await found.answer(use("change"))).is_error
        assert found.grants == ()
    assert asked == [True, True]


async def test_codex_remembers_a_yes_in_the_mode_auto_alone(place):
    asked = []

    def ask(question):
        asked.append(question.name.tool)
        return "session"

    tools = '[mcp_servers.service.tools.change]\napproval_mode = "prompt"\n'
    place.write("home/.codex/config.toml", place.toml + tools)
    async with place.host("codex", ask=ask) as found:
        for tool in ("drop", "drop", "change", "change"):
            await found.answer(use(tool))
    assert asked == ["drop", "change", "change"]


# --- the facts on a call ---------------------------------------------------------------------------------


async def test_the_facts_on_a_call_without_sending_it(place):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    permissions = {"allow": ["mcp__service"], "deny": ["mcp__service__drop"]}
    place.write("home/.claude/settings.json", {"permissions": permissions})
    async with place.host("claude-code") as found:
        facts = found.judged(use("drop", surplus=1))
        # A call ends at the schema; here is what would have come next, too.
        assert facts.by == "schema"
        assert [fault.field for fault in facts.faults] == ["surplus"]
        assert facts.decision.effect == "deny"
        assert str(facts.decision.rule.origin) == "~/.claude/settings.json:1"
        assert [rule.text for rule in facts.decision.lost] == ["mcp__service"]
        assert (facts.standing.state, facts.state) == ("active", "connected")
        assert facts.tool.name == "drop"
        good = found.judged(use("look"))
        assert (good.by, good.text, good.decision.effect) == (None, "", "allow")
        unknown = found.judged(use("lok"))
        assert (unknown.by, unknown.name, unknown.near[0]) == ("host", None, "mcp__service__look")
        unread = found.judged(ToolUse("1", "mcp__service__look", {}, raw="{", fault="no JSON"))
        assert (unread.by, unread.text) == ("schema", "Invalid arguments for mcp__service__look: no JSON")


class Locked:
    """A lock that has something against one tool."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.seen = []

    def check(self, server, tool):
        self.seen.append((server, tool.name))
        return "its description was another one" if tool.name == self.tool else None


async def test_a_lock_stands_behind_the_schema_and_before_the_rules(place):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    lock, asked = Locked("look"), []
    async with place.host("claude-code", lock=lock, ask=asked.append) as found:
        outcome = await found.answer(use("look"))
        assert (outcome.by, outcome.decision) == ("lock", None)
        assert "its description was another one" in outcome.text
        assert (await found.answer(use("look", surplus=1))).by == "schema"
        assert found.judged(use("look")).locked == "its description was another one"
        assert asked == []
        await found.answer(use("change"))
    assert lock.seen == [("service", "look"), ("service", "look"), ("service", "change")]
    assert len(asked) == 1


# --- environments ----------------------------------------------------------------------------------------


async def seen_by_server(found: Host) -> dict[str, str]:
    outcome = await found.answer(use("environment"))
    return outcome.result.structured


async def test_codex_hands_over_a_short_list_and_what_is_named(place):
    place.write("home/.codex/config.toml", place.toml + 'env_vars = ["NAMED"]\nenv = { SAID = "$NAMED" }\n')
    env = {"NAMED": "value", "SECRET": "hush", "TERM": "dumb"}
    async with place.host("codex", env=env) as found:
        seen = await seen_by_server(found)
    assert {name: seen.get(name) for name in ("NAMED", "SECRET", "TERM", "SAID")} == {
        "NAMED": "value",
        "SECRET": None,
        "TERM": "dumb",
        "SAID": "$NAMED",  # nothing is expanded
    }


async def test_claude_hands_over_nearly_all(place):
    place.write(
        "home/.claude.json", {"mcpServers": {"service": {**place.entry, "env": {"SAID": "${NAMED:-x}"}}}}
    )
    place.write("home/.claude/settings.json", {"permissions": {"allow": ["mcp__service"]}})
    env = {"NAMED": "value", "OTEL_EXPORTER": "x"}
    async with place.host("claude-code", env=env) as found:
        seen = await seen_by_server(found)
    assert (seen["NAMED"], seen["SAID"], seen["CLAUDECODE"]) == ("value", "value", "1")
    assert seen["CLAUDE_PROJECT_DIR"] == str(place.project)
    assert "OTEL_EXPORTER" not in seen


async def test_cursor_reads_a_file_of_variables_below_the_entry(place):
    text = "# a comment\nexport ONE=1\nTWO='two # two'\nTHREE=\"a\\nb\" # c\nFOUR = 4 # d\nnonsense\n"
    place.write("home/vars.env", text)
    entry = {**place.entry, "envFile": "${userHome}/vars.env", "env": {"ONE": "mine"}}
    place.write("home/.cursor/mcp.json", {"mcpServers": {"service": entry}})
    async with place.host("cursor", mode="run-everything", env={"SECRET": "hush"}) as found:
        seen = await seen_by_server(found)
    assert [seen.get(name) for name in ("ONE", "TWO", "THREE", "FOUR", "SECRET")] == [
        "mine",
        "two # two",
        "a\nb",
        "4",
        None,
    ]


@pytest.mark.parametrize(
    ("host", "file", "entry", "missing"),
    [
        ("claude-code", "home/.claude.json", {"env": {"A": "${NOT_THERE}"}}, "NOT_THERE"),
        ("cursor", "home/.cursor/mcp.json", {"env": {"A": "${env:NOT_THERE}"}}, "NOT_THERE"),
        ("cursor", "home/.cursor/mcp.json", {"envFile": "no-such.env"}, "no-such.env"),
    ],
)
async def test_what_has_no_value_starts_nothing_and_says_why(place, host, file, entry, missing):
    place.write(file, {"mcpServers": {"service": {**place.entry, **entry}, "other": place.entry}})
    async with place.host(host) as found:
        states = {name: session.state for name, session in found.sessions.items()}
        assert states == {"service": "skipped", "other": "connected"}
        assert missing in found.sessions["service"].why
        assert (
            found.standings[0].state == "active"
        )  # the entry is fine: it is this machine that lacks something
    assert len(place.starts) == 1


async def test_codex_needs_its_token(place):
    text = '[mcp_servers.remote]\nurl = "http://127.0.0.1:9/mcp"\nbearer_token_env_var = "TOKEN_OF"\n'
    place.write("home/.codex/config.toml", text)
    async with place.host("codex") as found:
        assert found.sessions["remote"].state == "skipped"
        assert "TOKEN_OF" in found.sessions["remote"].why


async def test_a_server_that_is_required_has_to_come(place):
    place.write(
        "home/.codex/config.toml", '[mcp_servers.gone]\ncommand = "no-such-program"\nrequired = true\n'
    )
    with pytest.raises(ConnectError, match=r"required server is not there.*no-such-program") as caught:
        async with place.host("codex"):
            pass
    assert caught.value.server == "gone"


# --- limits ----------------------------------------------------------------------------------------------


async def test_a_call_ends_when_its_entry_says_so(place):
    place.write("home/.codex/config.toml", place.toml + "tool_timeout_sec = 0.2\n")
    async with place.host("codex") as found:
        outcome = await found.answer(use("slow", seconds=30))
        assert (outcome.by, outcome.is_error) == ("host", True)
        assert "0.2 s" in outcome.text


async def test_a_start_ends_when_its_entry_says_so(place):
    text = place.toml.replace(str(place.server), str(place.write("mute.py", "import sys; sys.stdin.read()")))
    place.write("home/.codex/config.toml", text + "startup_timeout_sec = 0.3\n")
    async with asyncio.timeout(20):
        async with place.host("codex") as found:
            assert found.sessions["service"].state in ("failed", "starting")
            assert "0.3 s" in found.sessions["service"].why


async def test_claude_puts_a_long_result_into_a_file_that_goes_with_the_host(place):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.claude/settings.json", {"permissions": {"allow": ["mcp__service"]}})
    async with place.host("claude-code", env={"MAX_MCP_OUTPUT_TOKENS": "500"}) as found:
        short = await found.answer(use("big", characters=1000))
        assert short.full is None
        long = await found.answer(use("big", characters=50_000))
        text = long.result.text
        assert len(text) < 3000
        assert "500 tokens" in text
        path = Path(text.partition("whole in ")[2].partition(". It begins")[0])
        assert content(path) == long.full.text == "word " * 10_000
        assert permissions(path) == 0o600
        # A tool may ask for more, in characters.
        assert (await found.answer(use("roomy", characters=50_000))).full is None
        assert (await found.answer(use("roomy", characters=250_000))).full is not None
    assert content(path) is None


async def test_long_results_stay_where_the_caller_wants_them(place):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.claude/settings.json", {"permissions": {"allow": ["mcp__service"]}})
    spill = place.folder / "kept" / "here"
    async with place.host("claude-code", env={"MAX_MCP_OUTPUT_TOKENS": "500"}, spill=spill) as found:
        await found.answer(use("big", characters=50_000))
    (path,) = spill.iterdir()
    assert path.read_text() == "word " * 10_000


async def test_codex_cuts_a_result_to_what_the_entry_gives_the_tool(place):
    tools = "[mcp_servers.service.tools.big]\noutput_token_limit = 100\n"
    place.write("home/.codex/config.toml", place.toml + tools)
    async with place.host("codex") as found:
        text = (await found.answer(use("big", characters=10_000))).result.text
    assert len(text) < 500
    assert text.startswith("word word")
    assert "characters are left out" in text


async def test_descriptions_are_as_long_as_claude_shows_them_and_some_tools_are_always_there(place):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    async with place.host("claude-code") as found:
        shown = {item.name: item for item in await found.shown(defer=True)}
        assert len(shown["mcp__service__always"].tool.description) == 2048
        assert [name for name, item in shown.items() if not item.deferred] == ["mcp__service__always"]
        assert {item.group for item in shown.values()} == {"service"}
        assert not any(item.deferred for item in await found.shown())
    place.write("home/.claude.json", {"mcpServers": {"service": {**place.entry, "alwaysLoad": True}}})
    async with place.host("claude-code", env={"CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH": "10"}) as found:
        shown = {item.name: item for item in await found.shown(defer=True)}
        assert len(shown["mcp__service__always"].tool.description) == 10
        assert not any(item.deferred for item in shown.values())


async def test_cursor_leaves_out_names_that_are_too_long_for_it(place):
    name = "s" * 58
    place.write("home/.cursor/mcp.json", {"mcpServers": {name: place.entry}})
    async with place.host("cursor") as found:
        tools = await found.tools()
        assert tools == []
        assert f"{name}:look" in [item.name for item in found.left_out]
        assert "below 60 fit" in found.left_out[0].why


# --- what servers ask ------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_what_a_server_asks_goes_to_whom_the_caller_names(place, protocol):
    place.write("home/.claude.json", {"mcpServers": {"service": place.entry}})
    place.write("home/.claude/settings.json", {"permissions": {"allow": ["mcp__service"]}})
    client = {"elicitation_handler": lambda params: {"one": params.message}}
    async with place.host("claude-code", client=client, protocol=protocol) as found:
        outcome = await found.answer(use("wish"))
        assert "Which one?" in outcome.result.text
    async with place.host("claude-code", protocol=protocol) as found:
        assert (await found.answer(use("wish"))).is_error  # nobody is there to be asked


def test_an_option_of_clients_that_does_not_exist_is_named():
    with pytest.raises(UsageError, match="Client has no option 'elicit'"):
        Host.from_files(client={"elicit": None})


# --- transports ------------------------------------------------------------------------------------------


@asynccontextmanager
async def on_the_net() -> AsyncIterator[int]:
    server = Server("net", version="1")

    @server.tool(annotations={"readOnlyHint": True})
    def hello() -> str:
        return "from the net"

    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(server.asgi(sse_path="/sse"), port=0, bound=bound.set_result))
    try:
        yield await bound
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    ("host", "file", "entry"),
    [
        ("claude-code", "home/.claude.json", {"type": "http", "url": "http://127.0.0.1:{port}/mcp"}),
        ("claude-code", "home/.claude.json", {"type": "sse", "url": "http://127.0.0.1:{port}/sse"}),
        ("cursor", "home/.cursor/mcp.json", {"url": "http://127.0.0.1:{port}/mcp"}),
        # Cursor tries HTTP first, and the older transport next.
        ("cursor", "home/.cursor/mcp.json", {"url": "http://127.0.0.1:{port}/sse"}),
        # Cline takes an address of which nothing is said for one of the older transport.
        ("cline", "home/.cline/mcp.json", {"url": "http://127.0.0.1:{port}/sse"}),
    ],
)
async def test_every_transport_of_an_entry_is_spoken(place, host, file, entry):
    async with on_the_net() as port:
        entry = json.loads(json.dumps(entry).replace("{port}", str(port)))
        place.write(file, {"mcpServers": {"net": entry}})
        async with place.host(host, ask=yes) as found:
            assert found.sessions["net"].state == "connected", found.sessions["net"].why
            (shown,) = await found.shown()
            outcome = await found.answer(ToolUse("1", shown.name, {}))
            assert outcome.result.text == "from the net"


async def test_a_web_socket_needs_an_address_of_one(place):
    place.write("home/.claude.json", {"mcpServers": {"net": {"type": "ws", "url": "http://127.0.0.1:9/ws"}}})
    async with place.host("claude-code") as found:
        assert found.sessions["net"].state == "skipped"
        assert "ws:// or wss://" in found.sessions["net"].why


async def test_of_vs_codes_two_servers_of_one_name_both_run(place):
    place.write("home/.config/Code/User/mcp.json", {"servers": {"service": place.entry}})
    place.write("project/.vscode/mcp.json", {"servers": {"service": place.entry}})
    async with place.host("vscode", trusted=True) as found:
        assert len(found.sessions) == 2
        assert {session.state for session in found.sessions.values()} == {"connected"}
        names = [shown.name for shown in await found.shown()]
        assert len(set(names)) == len(names) == 2 * 13
