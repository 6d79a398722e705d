"""What surrounds a handler: lifespans, dependencies, servers inside servers, who sees what, tasks."""

from __future__ import annotations

import asyncio
import json
from uuid import uuid4

import pytest

from tests.contract.conftest import Stage
from tests.contract.room import SESSIONS, SINCE_2025_06, STATELESS, Room

TASKS = "io.modelcontextprotocol/tasks"


async def test_a_lifespan_is_there_for_every_call(room: Room) -> None:
    assert json.loads((await room.call("facts")).text)["lifespan"] == {"of": "contract"}


async def test_dependencies_are_supplied_and_cleaned_up(room: Room) -> None:
    key = uuid4().hex
    result = await room.client.call_tool("supplied", {"text": "t"}, meta={"example.com/key": key})
    assert result.text == f"t: {key}, {key} {key}"
    assert (await room.call("noted", key=key, count=2)).text == '["opened","closed"]'


async def test_dependencies_are_no_arguments(room: Room) -> None:
    tool = (await room.entries("tools/list", "tools", "name"))["supplied"]
    assert list(tool["inputSchema"]["properties"]) == ["text"]
    assert "key" in await room.failed("supplied", text="t", key="mine")


async def test_a_server_inside_a_server_answers_at_home(room: Room) -> None:
    if room.revision in SINCE_2025_06:
        assert (await room.call("state")).text == "inner True from inside"
    else:
        assert room.revision in await room.failed("state")
    got = await room.client.request("prompts/get", {"name": "inner_greet", "arguments": {"name": "Mara"}})
    assert got["messages"][0]["content"]["text"] == "Greet Mara"
    read = await room.client.request("resources/read", {"uri": "inner://text"})
    assert read["contents"][0]["text"] == "from inside"


async def test_a_tool_in_another_shape(room: Room) -> None:
    tools = await room.entries("tools/list", "tools", "name")
    assert tools["state"]["description"] == "How it is inside"
    assert "inner_status" not in tools
    assert (await room.refused("tools/call", name="inner_status")).code == -32602


async def test_what_somebody_may_not_see_is_not_there(room: Room) -> None:
    assert "admin_tool" not in await room.entries("tools/list", "tools", "name")
    error = await room.refused("tools/call", name="admin_tool")
    assert (error.code, error.message) == (-32602, "Unknown tool: admin_tool")


@pytest.mark.parametrize("who", ["ada", "bob"])
async def test_who_calls_decides_what_there_is(stage: Stage, revision: str, who: str) -> None:
    async with Room.capable(stage.url, revision, headers={"authorization": f"Bearer {who}"}) as room:
        listed = (
            "admin_tool" in await room.entries("tools/list", "tools", "name"),
            "admin_prompt" in await room.entries("prompts/list", "prompts", "name"),
            "notes://admin" in await room.entries("resources/list", "resources", "uri"),
        )
        assert listed == ((True,) * 3 if who == "ada" else (False,) * 3)
        if who == "ada":
            assert (await room.call("admin_tool")).text == "for ada"
            await room.client.request("resources/read", {"uri": "notes://admin"})
        else:
            assert (await room.refused("tools/call", name="admin_tool")).code == -32602
            await room.refused("resources/read", uri="notes://admin")
    room.check()


@pytest.mark.parametrize("who", ["ada", "bob"])
async def test_who_may_not_see_a_resource_cannot_watch_it(stage: Stage, revision: str, who: str) -> None:
    watched = {"notes://admin", "notes://text"}
    async with Room.capable(stage.url, revision, headers={"authorization": f"Bearer {who}"}) as room:
        if revision == STATELESS:
            # Granted to both, so that the answer does not tell what is hidden from what is not there.
            listening = room.client.request(
                "subscriptions/listen", {"notifications": {"resourceSubscriptions": sorted(watched)}}
            )
            listen = asyncio.ensure_future(listening)
            told = await room.heard("notifications/subscriptions/acknowledged")
            assert set(told["notifications"]["resourceSubscriptions"]) == watched
        else:
            await room.client.request("resources/subscribe", {"uri": "notes://text"})
            if who == "ada":
                await room.client.request("resources/subscribe", {"uri": "notes://admin"})
            else:
                error = await room.refused("resources/subscribe", uri="notes://admin")
                assert (error.code, error.message) == (-32002, "Resource not found: notes://admin")
        for uri in ("notes://admin", "notes://text"):
            await room.call("update", uri=uri)
        uris = [(await room.heard("notifications/resources/updated"))["uri"]]
        if who == "ada":
            uris.append((await room.heard("notifications/resources/updated"))["uri"])
        assert uris == (["notes://admin", "notes://text"] if who == "ada" else ["notes://text"])
        if revision == STATELESS:
            listen.cancel()
            await asyncio.wait([listen])
    room.check()


# Tasks -----------------------------------------------------------------------------------------------


async def test_a_call_becomes_a_task_where_client_and_revision_have_them(
    stage: Stage, revision: str, transport: str
) -> None:
    key = uuid4().hex
    async with Room.capable(stage.target(transport), revision, tasks=True) as room:
        if revision not in SINCE_2025_06:
            assert revision in await room.failed("report", key=key)  # it asks by a form
            return
        assert (await room.call("report", key=key)).text == "printed True"
        assert (await room.call("noted", key=key)).text == '["collected"]'
        assert bool(room.sent("tasks/get")) == (revision == STATELESS)
        assert len(room.asked) == 1
    room.check()


async def test_without_tasks_the_call_takes_as_long_as_it_takes(room: Room) -> None:
    if room.revision not in SINCE_2025_06:
        assert room.revision in await room.failed("report", key=uuid4().hex)
        return
    assert (await room.call("report", key=uuid4().hex)).text == "printed True"
    assert room.sent("tasks/get") == []


async def test_a_tool_that_needs_tasks(room: Room) -> None:
    if room.revision in SESSIONS:
        assert "task" in await room.failed("only_task")
    else:
        error = await room.refused("tools/call", name="only_task")
        assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"extensions": {TASKS: {}}}})


@pytest.mark.parametrize("revision", SESSIONS)
async def test_tasks_do_not_exist_where_the_revision_has_none(room: Room) -> None:
    assert (await room.refused("tasks/get", taskId="none")).code == -32601
