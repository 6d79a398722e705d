"""What one request says, and what its handler does with that, does not reach another request."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from copy import deepcopy
from typing import Any

import pytest

from dragoman import Context, Server
from tests.http.wire import post, routed, stateless
from tests.server.pair import Pair

INFO = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


def careless() -> Server:
    """Its tool tells who calls, and then changes whatever it was handed."""
    server = Server("careless")

    @server.tool(inline=True)
    def who(ctx: Context) -> dict[str, Any]:
        info, offered = ctx.client_info, ctx.client_capabilities
        assert info is not None
        assert isinstance(offered.extensions, dict)
        meta = ctx.meta
        found = {"name": info.name, "extensions": deepcopy(offered.extensions), "marked": "mark" in meta}
        info.name = "somebody else"
        offered.extensions["a/b"]["x"] = 2
        offered.extensions["c/d"] = {}
        offered.roots = {}
        meta["mark"] = True
        return found

    return server


SAYS = {
    INFO: {"name": "ada's", "version": "1"},
    CAPABILITIES: {"extensions": {"a/b": {"x": 1}}},
}
AS_SAID = {"name": "ada's", "extensions": {"a/b": {"x": 1}}, "marked": False}


async def test_what_a_handler_changes_of_its_caller_stays_with_it_over_http() -> None:
    app = careless().asgi(authenticate=lambda headers: headers.get("authorization"))
    for token in ("ada", "alan", "ada"):
        message = stateless("tools/call", {"name": "who", "arguments": {}}, **SAYS)
        answer = await post(app, message, routed(message, authorization=token))
        assert answer.json["result"]["structuredContent"] == AS_SAID


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_what_a_handler_changes_of_its_caller_stays_with_it_on_one_connection(revision: str) -> None:
    server = Server("careless")

    @server.tool
    async def who(ctx: Context) -> str:
        info, offered = ctx.client_info, ctx.client_capabilities
        assert info is not None
        found = f"{info.name} {offered.roots}"
        info.name, offered.roots = "somebody else", {"mine": True}
        return found

    async with Pair(server, revision) as pair:
        told = [(await pair.ask("tools/call", {"name": "who"}))["result"]["content"] for _ in range(3)]
    assert told[1] == told[0]
    assert told[2] == told[0]
    assert "somebody else" not in told[0][0]["text"]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_call_that_is_cancelled_while_it_begins_leaves_nothing_open(waits: bool) -> None:
    server = Server("s")
    went_on: list[int | str] = []

    @server.tool
    async def early(ctx: Context) -> None:
        # Where client and server are in one process, the client may do so while the tool runs.
        pair.tell("notifications/cancelled", {"requestId": ctx.request_id})
        if waits:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        went_on.append(ctx.request_id)

    async with Pair(server) as pair:
        for _ in range(4):
            asyncio.get_running_loop().call_soon(pair.send, "tools/call", {"name": "early"})
            for _ in range(10):
                await asyncio.sleep(0)
            assert pair.connection.in_flight == 0
        assert pair.frames == []
    assert len(went_on) == (0 if waits else 4)


async def test_a_layer_cannot_change_what_is_read_once_for_many_requests() -> None:
    server = Server("s")
    raised: list[Exception] = []

    @server.middleware
    async def layer(call: Any, proceed: Any) -> Any:
        try:
            call.meta.log_level = "debug"
        except AttributeError as exc:
            raised.append(exc)
        return await proceed(call)

    async with Pair(server) as pair:
        await pair.ask("tools/list")
    assert len(raised) == 1


@pytest.mark.parametrize("change", ["{}\n", "{}=", "{}====", "!{}", "{}AAAA", " {}", "{}*"])
async def test_a_cursor_is_known_as_it_was_given_out_and_no_other_way(change: str) -> None:
    server = Server("pages", page_size=1)
    for name in ("a", "b", "c"):
        server.add_tool(lambda: None, name=name)
    async with Pair(server) as pair:
        given = (await pair.ask("tools/list"))["result"]["nextCursor"]
        other = change.format(given)
        assert (await pair.ask("tools/list", {"cursor": other}))["error"]["code"] == -32602
        assert (await pair.ask("tools/list", {"cursor": given}))["result"]["tools"][0]["name"] == "b"
        forged = urlsafe_b64encode(b"12345678" + b"b").decode()
        assert (await pair.ask("tools/list", {"cursor": forged}))["error"]["code"] == -32602
