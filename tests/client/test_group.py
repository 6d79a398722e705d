"""`ClientGroup`: many servers, of which each may fail by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import sys

import pytest

from dragoman import Server
from dragoman.client.group import ClientGroup
from dragoman.client.member import Retry
from dragoman.errors import ClosedError, ConnectError, LocalError, RemoteError, UsageError
from tests.client.scripted import NEW, OLD, Fail, Scripted, handshake, stateless, text, tool
from tests.faults.test_http import answer, greets
from tests.http_client.server import Asked, serving

SOON = Retry(first=0.01, most=0.02)
BOUND = 20.0


def speaking(name: str, *tools: str) -> Server:
    server = Server(name, version="1")
    for title in tools:

        async def answer(word: str = "", *, title: str = title) -> str:
            return f"{name}:{title}:{word}"

        server.add_tool(_named(name, title))
    return server


def _named(server: str, tool_name: str):
    async def answer(word: str = "") -> str:
        return f"{server}:{tool_name}:{word}"

    answer.__name__ = tool_name
    return answer


def scripted(*tools: str, version: str = NEW) -> Scripted:
    async def calls(_transport, heard):
        if heard.method == "tools/list":
            return {"resultType": "complete", "tools": [tool(name) for name in tools]}
        if heard.method == "tools/call":
            return text(heard.params["name"])
        raise Fail(-32601)

    return Scripted(stateless(calls) if version == NEW else handshake(calls))


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level(logging.CRITICAL, "dragoman")


async def until(group: ClientGroup, server: str, state: str) -> None:
    """Wait for the state, told by the group's own changes."""
    stream = group.changes()
    async with asyncio.timeout(BOUND):
        while group.servers[server].state != state:
            await anext(stream)
    stream.close()


async def test_the_tools_of_all_under_names_that_lead_back():
    async with ClientGroup({"a": speaking("a", "one", "two"), "b": speaking("b", "one")}) as group:
        names = [entry.name for entry in await group.list_tools()]
        assert names == ["mcp__a__one", "mcp__a__two", "mcp__b__one"]
        assert (await group.call_tool("mcp__b__one", {"word": "hi"})).text == "b:one:hi"
        found = group.names.find("mcp__b__one")
        assert (found.server, found.tool) == ("b", "one")
        assert group.names.of("a", "two").model == "mcp__a__two"
        assert {name: member.state for name, member in group.servers.items()} == {
            "a": "connected",
            "b": "connected",
        }
    assert {member.state for member in group.servers.values()} == {"closed"}


async def test_each_server_speaks_its_own_revision():
    async with ClientGroup({"new": scripted("t"), "old": scripted("t", version=OLD)}) as group:
        assert group["new"].revision.version == NEW
        assert group["old"].revision.version == OLD
        assert (await group.call_tool("mcp__old__t")).text == "t"
        assert (await group.call_tool("mcp__new__t")).text == "t"


async def test_names_that_would_meet_are_told_apart_and_fit():
    long = "x" * 80
    servers = {"a": speaking("a", "b__c", long), "a__b": speaking("a__b", "c")}
    async with ClientGroup(servers) as group:
        tools = await group.list_tools()
        names = [entry.name for entry in tools]
        assert len(set(names)) == 3
        assert all(len(name) <= 64 for name in names)
        said = [(await group.call_tool(name)).text for name in names]
        assert said == ["a:b__c:", f"a:{long}:", "a__b:c:"]


async def test_a_server_that_does_not_start_takes_no_other_with_it(tmp_path):
    servers = {"good": speaking("good", "t"), "gone": ["no-such-program-at-all"], "bad": {"nothing": 1}}
    async with ClientGroup(servers, retry=Retry(first=30, most=30)) as group:
        assert [entry.name for entry in await group.list_tools()] == ["mcp__good__t"]
        gone, bad = group.servers["gone"], group.servers["bad"]
        assert (gone.state, bad.state) == ("waiting", "failed")
        assert "no-such-program-at-all" in gone.why
        assert "`command` or `url`" in bad.why
        assert isinstance(gone.error, ConnectError)
        with pytest.raises(ConnectError, match="no-such-program-at-all"):
            group["gone"]  # it raises
        with pytest.raises(
            UsageError, match=r"mcp__gone__t'\n.*server 'gone' is waiting: .*no-such-program-at-all"
        ):
            await group.call_tool("mcp__gone__t")


async def test_a_server_that_hangs_is_not_waited_for():
    async def script(transport, heard):
        await asyncio.Event().wait()

    hanging = Scripted(script)
    async with asyncio.timeout(BOUND):
        async with ClientGroup({"good": speaking("good", "t"), "hangs": hanging}, patience=0.05) as group:
            assert group.servers["hangs"].state == "starting"
            assert (await group.call_tool("mcp__good__t")).text == "good:t:"


async def test_a_server_that_comes_late_joins():
    attempts = []

    async def script(transport, heard):
        if not attempts:
            attempts.append(heard)
            raise Fail(-32603, "not yet")
        return await stateless(_lists("t"))(transport, heard)

    class Reopening(Scripted):
        async def open(self, on_notification, on_request):
            self.closed = 0
            await super().open(on_notification, on_request)

    async with ClientGroup({"late": Reopening(script)}, retry=SOON, protocol=NEW) as group:
        await until(group, "late", "connected")
        assert [entry.name for entry in await group.list_tools()] == ["mcp__late__t"]
        assert group.servers["late"].failures == 1


def _lists(*names: str):
    async def calls(_transport, heard):
        if heard.method == "tools/list":
            return {"resultType": "complete", "tools": [tool(name) for name in names]}
        return text("done")

    return calls


CRASHING = """
import os
from dragoman import Server

server = Server("crashing", version="1")


@server.tool
async def pid() -> int:
    return os.getpid()


@server.tool
async def crash() -> str:
    os._exit(3)
"""


@pytest.fixture
def crashing(tmp_path):
    file = tmp_path / "crashing.py"
    file.write_text(CRASHING)
    return [sys.executable, "-m", "dragoman", "run", str(file)]


async def test_a_server_that_dies_says_so_and_comes_back(crashing):
    servers = {"c": crashing, "good": speaking("good", "t")}
    async with ClientGroup(servers, retry=SOON) as group:
        first = (await group.call_tool("mcp__c__pid")).structured["result"]
        with pytest.raises(LocalError) as caught:
            await group.call_tool("mcp__c__crash", timeout=BOUND)
        assert caught.value.server == "c"
        assert (await group.call_tool("mcp__good__t")).text == "good:t:"
        second = await _call_until_up(group, "mcp__c__pid")
        assert second.structured["result"] != first


async def _call_until_up(group: ClientGroup, name: str):
    async with asyncio.timeout(BOUND):
        while True:
            try:
                return await group.call_tool(name)
            except LocalError:
                await asyncio.sleep(0.01)


async def test_a_death_that_nobody_saw_is_seen(crashing):
    async with ClientGroup({"c": crashing}, retry=SOON) as group:
        before = (await group.call_tool("mcp__c__pid")).structured["result"]
        import os
        import signal

        os.kill(before, signal.SIGKILL)
        after = await _call_until_up(group, "mcp__c__pid")
        assert after.structured["result"] != before


async def test_without_retry_a_lost_server_stays_lost():
    async with ClientGroup({"gone": ["no-such-program-at-all"]}, retry=None) as group:
        assert group.servers["gone"].state == "failed"


async def test_retry_now():
    async with ClientGroup({"gone": ["no-such-program-at-all"]}, retry=Retry(first=1000, most=1000)) as group:
        member = group.servers["gone"]
        assert (member.state, member.failures) == ("waiting", 1)
        async with asyncio.timeout(BOUND):
            await group.retry("gone")
        assert (member.state, member.failures) == ("waiting", 2)


async def test_a_call_to_a_lost_server_says_why_and_when(crashing):
    server = scripted("t")
    async with ClientGroup({"s": server}, retry=Retry(first=1000, most=1000)) as group:
        await server.close()
        with pytest.raises(ClosedError):
            await group.call_tool("mcp__s__t")
        await until(group, "s", "waiting")
        with pytest.raises(ConnectError, match=r"server 's' \(call\): not connected.*(\n.*)*tried again in"):
            await group.call_tool("mcp__s__t")
        assert await group.list_tools() == []


async def test_unknown_names():
    async with ClientGroup({"a": speaking("a", "lookup")}) as group:
        with pytest.raises(UsageError, match="did you mean 'mcp__a__lookup'"):
            await group.call_tool("mcp__a__lokup")
        with pytest.raises(UsageError, match="there is no server 'b'; there is a"):
            group.member("b")


async def test_errors_of_a_server_pass_through():
    async def calls(_transport, heard):
        if heard.method == "tools/list":
            return {"resultType": "complete", "tools": [tool("t")]}
        raise Fail(-32602, "what?")

    async with ClientGroup({"s": Scripted(stateless(calls))}) as group:
        with pytest.raises(RemoteError, match="what"):
            await group.call_tool("mcp__s__t")
        assert group.servers["s"].state == "connected"


@pytest.mark.parametrize("protocol", [NEW, OLD])
async def test_changes_of_all_servers_in_one_stream_bursts_merged(protocol):
    a, b = speaking("a", "t"), speaking("b", "u")
    async with ClientGroup({"a": a, "b": b}, protocol=protocol) as group:
        async with group.changes() as changes, asyncio.timeout(BOUND):
            for number in range(50):
                a.add_tool(_named("a", f"more{number}"))
            b.remove_tool("u")
            told = [await anext(changes) for _ in range(2)]
            assert {(change.server, change.kind, change.missed) for change in told} == {
                ("a", "tools", False),
                ("b", "tools", False),
            }
            assert group.names.find("mcp__a__more49").tool == "more49"
            assert group.servers["b"].tools == {}
    assert await changes.next() is None


async def test_changes_are_heard_after_a_server_came_back():
    server = scripted("t")
    server.script = handshake(_lists("t"), capabilities={"tools": {"listChanged": True}})
    async with ClientGroup({"s": server}, retry=SOON) as group:
        async with group.changes() as changes, asyncio.timeout(BOUND):
            await server.close()
            group.servers["s"].suspect()
            while group.servers["s"].state == "connected":
                await anext(changes)
            server.closed = 0
            while group.servers["s"].state != "connected":
                await anext(changes)
            await group.servers["s"].heard.wait()
            server.script = handshake(_lists("t", "u"))
            server.say("notifications/tools/list_changed")
            while (await anext(changes)).kind != "tools":
                pass
            assert set(group.servers["s"].tools) == {"t", "u"}


async def test_servers_that_tell_of_nothing_are_not_waited_for():
    async with ClientGroup({"s": scripted("t", version=OLD), "n": scripted("t")}) as group:
        async with asyncio.timeout(BOUND), group.changes() as changes:
            assert group["s"].connected
            await group.servers["s"].close()
            assert [(await anext(changes)).kind] == ["state"]


async def test_changes_end_with_the_group():
    group = await ClientGroup({"a": speaking("a", "t")}).connect()
    changes = group.changes()
    await group.close()
    assert [change.kind async for change in changes] == ["state"]
    assert [change async for change in group.changes()] == []


async def test_servers_come_and_go():
    async with ClientGroup({"a": speaking("a", "t")}) as group:
        await group.add("b", speaking("b", "t"))
        assert [entry.name for entry in await group.list_tools()] == ["mcp__a__t", "mcp__b__t"]
        with pytest.raises(UsageError, match="there is a server 'b' already"):
            await group.add("b", speaking("b"))
        await group.remove("a")
        assert [entry.name for entry in await group.list_tools()] == ["mcp__b__t"]
        with pytest.raises(UsageError, match="no tool is called"):
            await group.call_tool("mcp__a__t")


async def test_entered_in_one_task_and_left_in_another():
    group = ClientGroup({"a": speaking("a", "t"), "b": scripted("t")})
    await asyncio.create_task(group.connect())
    await asyncio.create_task(group.remove("a"))
    await asyncio.gather(group.close(), group.close())
    with pytest.raises(ClosedError):
        await group.connect()
    assert len(asyncio.all_tasks()) == 1


async def test_a_closed_member_leaves_the_others_alone():
    a, b = scripted("t"), scripted("t")
    async with ClientGroup({"a": a, "b": b}) as group:
        await group.servers["a"].close()
        assert a.closed
        assert (await group.call_tool("mcp__b__t")).text == "t"
        with pytest.raises(ClosedError):
            await group.call_tool("mcp__a__t")


async def test_options_for_all_and_for_one():
    frames: list[str] = []
    servers = {"a": scripted("t", version=OLD), "b": speaking("b", "t")}
    each = {"a": {"protocol": OLD}, "b": {"tap": lambda direction, frame: frames.append(direction)}}
    async with ClientGroup(servers, each=each) as group:
        assert group["a"].revision.version == OLD
        assert frames


def test_options_that_are_none():
    with pytest.raises(UsageError, match="no option 'protocl'"):
        ClientGroup({}, protocl="auto")
    with pytest.raises(UsageError, match="first <= most"):
        Retry(first=2, most=1)


# --- configuration -----------------------------------------------------------------------------------


async def test_a_file_with_references(crashing, tmp_path):
    program, *arguments = crashing
    config = {
        "mcpServers": {
            "here": {"command": "${PROGRAM}", "args": [*arguments[:-1], "${FILE:-nothing}"]},
            "unset": {"command": "${NOWHERE_TO_BE_FOUND}"},
            "off": {"command": "x", "disabled": True},
            "null": None,
        }
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(config))
    variables = {"PROGRAM": program, "FILE": arguments[-1]}
    async with ClientGroup(file, variables=variables) as group:
        assert {name: member.state for name, member in group.servers.items()} == {
            "here": "connected",
            "unset": "failed",
            "off": "failed",
            "null": "failed",
        }
        assert "NOWHERE_TO_BE_FOUND" in group.servers["unset"].why
        assert "disabled" in group.servers["off"].why


async def test_credentials_do_not_leave_the_machine():
    entry = {"type": "http", "url": "http://127.0.0.1:9/${NPM_TOKEN}", "headers": {"X": "${NPM_TOKEN}"}}
    from dragoman.client.servers import read

    assert read({"s": entry}, {"NPM_TOKEN": "secret"}) == {
        "s": {"type": "http", "url": "http://127.0.0.1:9/", "headers": {"X": ""}}
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object with `mcpServers`"),
        ('{"mcpServers": []}', "expected an object of servers by name"),
        ('{"mcpServers": {"": {}}}', "expected a name"),
    ],
)
def test_files_that_cannot_be(content, said, tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text(content)
    with pytest.raises(UsageError, match=said) as caught:
        ClientGroup(file)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        ClientGroup(tmp_path / "none.json")


# --- prompts and resources --------------------------------------------------------------------------


def library(name: str, *resources: str) -> Server:
    """A server with a prompt, these resources and a family of its own."""
    server = Server(name, version="1")

    @server.prompt
    def greet(who: str = "you") -> str:
        return f"{name} greets {who}"

    @server.resource(f"{name}://items/{{item}}")
    def item(item: str) -> str:
        return f"{name} has {item}"

    for uri in resources:
        server.add_resource(uri, f"{name}: {uri}")
    return server


async def test_the_prompts_of_all_under_names_that_lead_back():
    servers = {"a": library("a"), "b": library("b"), "c": scripted("t")}
    async with ClientGroup(servers) as group:
        assert [prompt.name for prompt in await group.list_prompts()] == ["mcp__a__greet", "mcp__b__greet"]
        result = await group.get_prompt("mcp__b__greet", {"who": "her"}, timeout=5)
        assert result.messages[0].content.text == "b greets her"
        found = group.prompt_names.find("mcp__a__greet")
        assert (found.server, found.tool) == ("a", "greet")


async def test_a_prompt_is_found_without_a_list_before():
    async with ClientGroup({"a": library("a")}) as group:
        assert (await group.get_prompt("mcp__a__greet")).messages[0].content.text == "a greets you"
        with pytest.raises(UsageError, match=r"no prompt is called 'mcp__a__great'.*\n.*'mcp__a__greet'"):
            await group.get_prompt("mcp__a__great")


async def test_resources_are_told_apart_by_their_server():
    servers = {"a": library("a", "file:///x", "file:///y"), "b": library("b", "file:///x")}
    async with ClientGroup(servers) as group:
        found = {server: [one.uri for one in ones] for server, ones in (await group.list_resources()).items()}
        assert found == {"a": ["file:///x", "file:///y"], "b": ["file:///x"]}
        families = await group.list_resource_templates()
        assert [one.uri_template for one in families["b"]] == ["b://items/{item}"]

        async def read(uri: str, **where: str) -> str:
            return (await group.read_resource(uri, **where)).contents[0].text

        assert await read("file:///y") == "a: file:///y"
        assert await read("b://items/7") == "b has 7"
        assert await read("file:///x", server="b") == "b: file:///x"
        with pytest.raises(UsageError, match="several servers have 'file:///x': a, b"):
            await read("file:///x")
        with pytest.raises(UsageError, match="no server lists 'c://1'"):
            await read("c://1")
        with pytest.raises(UsageError, match="no server 'c'"):
            await read("file:///x", server="c")


async def test_a_server_that_joins_later_is_looked_at_before_a_resource_is_read():
    async with ClientGroup({"a": library("a", "file:///x")}) as group:
        await group.read_resource("file:///x")
        await group.add("b", library("b", "file:///x"))
        with pytest.raises(UsageError, match="several servers"):
            await group.read_resource("file:///x")
        await group.remove("a")
        assert (await group.read_resource("file:///x")).contents[0].text == "b: file:///x"


async def test_one_server_that_cannot_list_does_not_hide_the_others():
    async def calls(_transport, heard):
        raise Fail(-32603, "broken")

    broken = Scripted(stateless(calls, capabilities={"prompts": {}, "resources": {}}))
    async with ClientGroup({"broken": broken, "a": library("a", "file:///x")}) as group:
        assert [prompt.name for prompt in await group.list_prompts()] == ["mcp__a__greet"]
        assert list(await group.list_resources()) == ["a"]
        assert (await group.read_resource("file:///x")).contents


async def test_the_caller_says_whether_a_call_may_be_made_again():
    left = 0

    async def call(asked: Asked) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            await asked.stream()
            asked.drop()
        else:
            await asked.reply(200, answer(asked))

    async with asyncio.timeout(BOUND), serving(greets(call)) as server:
        async with ClientGroup({"a": server.url}) as group:
            (tool,) = await group.list_tools()  # its readOnlyHint says that it may be called again
            left = 1
            assert (await group.call_tool(tool.name)).text == "well"
            left = 1
            with pytest.raises(ClosedError):
                await group.call_tool(tool.name, idempotent=False)
