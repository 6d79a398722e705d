"""`SyncClientGroup`: a group without an event loop in sight."""

from __future__ import annotations

import inspect
import threading

import pytest

from dragoman import Context, Server
from dragoman.client.group import ClientGroup
from dragoman.client.sync_group import SyncClientGroup
from dragoman.errors import ClosedError, UsageError


def adding(name: str) -> Server:
    server = Server(name, version="1")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


def test_verbs_without_await():
    with SyncClientGroup({"a": adding("a"), "b": adding("b")}) as group:
        assert [tool.name for tool in group.list_tools()] == ["mcp__a__add", "mcp__b__add"]
        assert group.call_tool("mcp__b__add", {"a": 1, "b": 2}).text == "3"
        assert group.names.find("mcp__a__add").server == "a"
        assert group.request("a", "tools/list")["tools"][0]["name"] == "add"
        group.add("c", adding("c"))
        group.remove("a")
        assert list(group.servers) == ["b", "c"]


def test_prompts_and_resources_without_await():
    server = Server("a", version="1")

    @server.prompt
    def greet(who: str) -> str:
        return f"hello {who}"

    server.add_resource("file:///x", "here")
    with SyncClientGroup({"a": server}) as group:
        assert [prompt.name for prompt in group.list_prompts()] == ["mcp__a__greet"]
        assert group.get_prompt("mcp__a__greet", {"who": "you"}).messages[0].content.text == "hello you"
        assert group.prompt_names.find("mcp__a__greet").tool == "greet"
        assert {server: len(found) for server, found in group.list_resources().items()} == {"a": 1}
        assert list(group.list_resource_templates()) == ["a"]
        assert group.read_resource("file:///x", server="a").contents[0].text == "here"


def test_it_has_what_the_group_has():
    ours = {name for name in dir(ClientGroup) if not name.startswith("_")}
    assert ours <= set(dir(SyncClientGroup))
    for name in ours - {"changes"}:
        mine, other = getattr(ClientGroup, name), getattr(SyncClientGroup, name)
        if inspect.isfunction(mine):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(other).parameters)


async def test_with_is_asked_for_where_async_with_was_written():
    with pytest.raises(UsageError, match="entered with `with`") as caught:
        async with SyncClientGroup({}):
            pass
    assert "ClientGroup where there is an event loop" in str(caught.value)


def test_several_threads():
    with SyncClientGroup({"a": adding("a"), "b": adding("b")}) as group:
        sums: list[str] = []

        def work(number: int) -> None:
            name = f"mcp__{'ab'[number % 2]}__add"
            sums.extend(group.call_tool(name, {"a": number, "b": n}).text for n in range(20))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(int, sums)) == sorted(a + b for a in range(4) for b in range(20))


def test_changes_end_with_the_group():
    group = SyncClientGroup({"a": adding("a")}).connect()
    heard = threading.Event()
    seen = set()

    def read(changes):
        for change in changes:
            seen.add((change.server, change.kind))
            if {("b", "tools"), ("b", "state")} <= seen:
                heard.set()

    reader = threading.Thread(target=read, args=[group.changes()])
    reader.start()
    changes = group.changes()
    group.add("b", adding("b"))
    assert {next(changes).kind, next(changes).kind} == {"tools", "state"}
    assert heard.wait(20)
    group.close()
    reader.join(20)
    assert not reader.is_alive()


def test_order_of_calls():
    group = SyncClientGroup({"a": adding("a")})
    with pytest.raises(UsageError, match="not connected yet"):
        group.list_tools()
    group.close()
    group.close()
    with pytest.raises(ClosedError):
        group.connect()


def test_not_from_its_own_handlers():
    said: list[str] = []

    def handler(entry):
        try:
            group.list_tools()
        except UsageError as exc:
            said.append(exc.message)

    server = adding("a")

    @server.tool
    async def tell(ctx: Context) -> str:
        await ctx.info("hello")
        return ""

    with SyncClientGroup({"a": server}, log_handler=handler) as group:
        group.call_tool("mcp__a__tell")
    assert said == ["a SyncClientGroup cannot be called from its own handlers: they run in its event loop"]
