"""`client.listen`: the same changes on every revision, once each, and on through what breaks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Server
from dragoman.client import Client
from dragoman.client.feed import Change
from dragoman.client.sync import SyncClient
from dragoman.errors import ClosedError, DeadlineError, RemoteError, UsageError
from tests.client.scripted import Fail, Heard, Scripted, handshake, stateless, tool

ID = "io.modelcontextprotocol/subscriptionId"
OFFERED = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
NOTICE = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
}


class Stage:
    """A server of one of the eras, by which changes are told in its own way."""

    def __init__(self, era: str, grant: Callable[[Any], Any] = lambda wish: wish, **hello: Any) -> None:
        self.era = era
        self._grant = grant
        self.over: dict[Any, asyncio.Event] = {}
        self.broken: dict[Any, bool] = {}
        hello = {"capabilities": OFFERED, **hello}
        self.transport = Scripted((stateless if era == "new" else handshake)(self._answer, **hello))

    async def _answer(self, transport: Scripted, heard: Heard) -> Any:
        if heard.method == "subscriptions/listen":
            wish = self._grant(heard.params["notifications"])
            over = self.over[heard.id] = asyncio.Event()
            if wish is not None:
                self._say("notifications/subscriptions/acknowledged", heard.id, notifications=wish)
            await over.wait()
            if self.broken.get(heard.id):
                raise ClosedError("the stream broke", server="scripted")
            return {"resultType": "complete", "_meta": {ID: heard.id}}
        if heard.method in ("resources/subscribe", "resources/unsubscribe"):
            return {}
        if heard.method == "tools/list":
            return {"tools": [tool("t")], "ttlMs": 3_600_000}
        raise Fail(-32601, heard.method)

    def _say(self, method: str, id_: Any, **params: Any) -> None:
        self.transport.say(method, {"_meta": {ID: id_}, **params})

    def changed(self, kind: str) -> None:
        if self.era == "old":
            self.transport.say(NOTICE[kind])
        for id_, over in self.over.items():
            if not over.is_set():
                self._say(NOTICE[kind], id_)

    def updated(self, uri: str) -> None:
        method = "notifications/resources/updated"
        if self.era == "old":
            self.transport.say(method, {"uri": uri})
        for id_, over in self.over.items():
            if not over.is_set():
                self._say(method, id_, uri=uri)

    def break_(self) -> None:
        """What is said by itself is missed from here on, until it is listened to again."""
        if self.era == "old":
            self.transport.on_gap()
        for id_, over in self.over.items():
            self.broken.setdefault(id_, True)
            over.set()

    def end(self) -> None:
        for id_, over in self.over.items():
            self.broken.setdefault(id_, False)
            over.set()


BOTH = pytest.mark.parametrize("era", ["new", "old"])


async def soon(work: Any) -> Any:
    return await asyncio.wait_for(work, 5)


@BOTH
async def test_changes_come_as_they_are_told(era: str) -> None:
    stage = Stage(era)
    async with Client(stage.transport) as client:
        async with client.listen(tools=True, resources=["a://1"]) as changes:
            assert changes.heard == ("tools", "a://1")
            stage.changed("tools")
            assert await soon(anext(changes)) == Change("tools")
            stage.updated("a://1")
            assert await soon(anext(changes)) == Change("resource", "a://1")


@BOTH
async def test_what_was_not_asked_for_is_not_told(era: str) -> None:
    stage = Stage(era)
    async with Client(stage.transport) as client, client.listen(prompts=True) as changes:
        stage.changed("tools")
        stage.updated("a://1")
        stage.changed("prompts")
        assert await soon(anext(changes)) == Change("prompts")


@BOTH
async def test_with_nothing_named_all_lists_are_listened_to(era: str) -> None:
    stage = Stage(era)
    async with Client(stage.transport) as client, client.listen() as changes:
        assert changes.heard == ("tools", "prompts", "resources")
        for kind in NOTICE:
            stage.changed(kind)
        assert [await soon(anext(changes)) for _ in NOTICE] == [Change(kind) for kind in NOTICE]


@BOTH
async def test_a_burst_is_one_change(era: str) -> None:
    stage = Stage(era)
    async with Client(stage.transport) as client, client.listen(tools=True, prompts=True) as changes:
        for _ in range(100):
            stage.changed("tools")
        stage.changed("prompts")
        assert await soon(anext(changes)) == Change("tools")
        assert await soon(anext(changes)) == Change("prompts")


@BOTH
async def test_a_change_makes_the_kept_list_stale(era: str) -> None:
    stage = Stage(era)
    async with Client(stage.transport) as client, client.listen(tools=True) as changes:
        await client.list_tools()
        await client.list_tools()
        stage.changed("tools")
        await soon(anext(changes))
        await client.list_tools()
    assert len(stage.transport.of("tools/list")) == 2


@BOTH
async def test_after_a_break_it_goes_on_and_says_that_something_may_be_missing(era: str) -> None:
    stage = Stage(era)
    async with Client(stage.transport) as client:
        async with client.listen(tools=True, resources=["a://1"]) as changes:
            await client.list_tools()
            stage.break_()
            assert await soon(anext(changes)) == Change("tools", missed=True)
            assert await soon(anext(changes)) == Change("resource", "a://1", missed=True)
            await client.list_tools()  # the kept one counts no more
            stage.changed("tools")
            assert await soon(anext(changes)) == Change("tools")
    assert len(stage.transport.of("tools/list")) == 2
    listens = stage.transport.of("subscriptions/listen")
    assert len({heard.id for heard in listens}) == len(listens) == (2 if era == "new" else 0)


@BOTH
@pytest.mark.parametrize("how", ["aclose", "client", "cancel", "forget"])
async def test_it_ends_in_good_order_and_the_server_is_told(era: str, how: str) -> None:
    stage = Stage(era)
    client = await Client(stage.transport).connect()
    changes: Any = client.listen(resources=["a://1"])
    await soon(changes.established())

    async def read() -> list[Change]:
        return [change async for change in changes]

    reading = asyncio.create_task(read() if how != "forget" else changes.next())
    await asyncio.sleep(0)
    if how == "aclose":
        await soon(changes.aclose())
        assert await soon(reading) == []
    elif how == "client":
        await soon(client.close())
        assert await soon(reading) == []
    else:
        reading.cancel()
        await asyncio.wait({reading})
        assert reading.cancelled()
        assert not changes.over  # whoever gives up waiting does not end it for others
        ended = changes._feed.ended
        del changes, reading, read  # what was raised holds on to what it was raised in
        gc.collect()
        await soon(ended)
    left = [heard.method for heard in stage.transport.of("resources/unsubscribe")]
    assert left == (["resources/unsubscribe"] if era == "old" and how != "client" else [])
    assert len(stage.transport.cancelled) == (1 if era == "new" else 0)
    await client.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_server_ends_it_in_good_order() -> None:
    # 2026-07-28, Subscriptions, "Graceful Closure"
    stage = Stage("new")
    async with Client(stage.transport) as client, client.listen(tools=True) as changes:
        stage.changed("tools")
        stage.end()
        assert [change async for change in changes] == [Change("tools")]
    assert len(stage.transport.of("subscriptions/listen")) == 1


async def test_several_listeners_are_told_apart_by_their_ids() -> None:
    stage = Stage("new")
    async with Client(stage.transport) as client:
        async with client.listen(tools=True) as first, client.listen(tools=True) as second:
            ids = [heard.id for heard in stage.transport.of("subscriptions/listen")]
            stage._say(NOTICE["tools"], ids[1])
            assert await soon(second.next()) == Change("tools")
            stage._say(NOTICE["tools"], ids[0])
            assert await soon(first.next()) == Change("tools")
            await second.aclose()
            assert await second.next() is None


async def test_a_resource_is_watched_until_the_last_listener_leaves() -> None:
    stage = Stage("old")
    async with Client(stage.transport) as client:
        async with client.listen(resources=["a://1"]):
            async with client.listen(resources=["a://1"]) as changes:
                stage.updated("a://1/part")  # of one under it (2025-11-25, resources: Subscriptions)
                assert await soon(changes.next()) == Change("resource", "a://1/part")
            assert stage.transport.of("resources/unsubscribe") == []
        assert len(stage.transport.of("resources/unsubscribe")) == 1
    assert len(stage.transport.of("resources/subscribe")) == 1


@pytest.mark.parametrize(
    ("era", "options"),
    [
        ("new", {"grant": lambda wish: {"toolsListChanged": True}}),
        ("old", {"capabilities": {"tools": {"listChanged": True}, "resources": {}}}),
    ],
)
async def test_what_a_server_does_not_offer_is_logged_and_the_rest_is_heard(
    era: str, options: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(era, **options)
    async with Client(stage.transport) as client:
        async with client.listen(tools=True, prompts=True, resources=["a://1"]) as changes:
            assert changes.heard == ("tools",)
    assert "the list of prompts, a://1" in caplog.text


@pytest.mark.parametrize(
    ("era", "options"), [("new", {"grant": lambda wish: {}}), ("old", {"capabilities": {"tools": {}}})]
)
async def test_a_server_that_tells_of_nothing_is_an_error_and_not_silence(era: str, options: Any) -> None:
    stage = Stage(era, **options)
    async with Client(stage.transport) as client:
        with pytest.raises(UsageError, match="the list of tools"):
            await soon(client.listen(tools=True).next())


async def test_a_server_without_subscriptions_says_so() -> None:
    async with Client(Scripted(stateless())) as client:
        with pytest.raises(RemoteError, match="Method not found"):
            await soon(client.listen(tools=True).next())


async def test_an_acknowledgement_that_never_comes_is_waited_for_as_long_as_for_an_answer() -> None:
    stage = Stage("new", grant=lambda wish: None)
    async with Client(stage.transport, idle_timeout=0.05) as client:
        with pytest.raises(DeadlineError, match="not acknowledged within"):
            await soon(client.listen(tools=True).established())


async def test_listening_itself_has_no_time_limit() -> None:
    stage = Stage("new")
    async with Client(stage.transport, idle_timeout=0.05, timeout=0.05) as client:
        async with client.listen(tools=True) as changes:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(changes.next(), 0.2)
            stage.changed("tools")
            assert await soon(changes.next()) == Change("tools")


async def test_uris_are_not_one_text() -> None:
    async with Client(Scripted(stateless())) as client:
        with pytest.raises(UsageError, match="expected a list of URIs"):
            client.listen(resources="a://1")


async def test_a_stream_that_never_comes_back_is_an_error_in_the_end(monkeypatch: Any) -> None:
    monkeypatch.setattr("dragoman.client.listeners._FIRST_PAUSE", 0.0001)
    stage = Stage("new")
    async with Client(stage.transport) as client, client.listen(tools=True) as changes:

        def refuse(wish: Any) -> Any:
            raise ClosedError("still gone", server="scripted")

        stage._grant = refuse
        stage.break_()
        with pytest.raises(ClosedError, match="still gone"):
            await soon(changes.next())
        assert await changes.next() is None


@pytest.mark.parametrize("protocol", ["2026-07-28", "2025-11-25"])
async def test_a_server_of_this_package_is_heard(protocol: str) -> None:
    server = Server("changing")

    @server.tool
    def first() -> int:
        return 1

    async with Client(server, protocol=protocol) as client, client.listen(tools=True) as changes:
        assert [tool.name for tool in await client.list_tools()] == ["first"]

        @server.tool
        def second() -> int:
            return 2

        assert await soon(changes.next()) == Change("tools")
        assert [tool.name for tool in await client.list_tools()] == ["first", "second"]


def test_without_await_each_step_blocks_and_the_end_is_the_clients() -> None:
    server = Server("changing")

    @server.tool
    def grow() -> str:
        server.tool(lambda: 1, name="grown")
        return "grown"

    with SyncClient(server) as client:
        with client.listen(tools=True) as changes:
            client.call_tool("grow")
            assert next(changes) == Change("tools")
        assert list(changes) == []
        open_to_the_end = client.listen(tools=True)
    assert list(open_to_the_end) == []
