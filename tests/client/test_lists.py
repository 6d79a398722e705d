"""`tools/list`: all pages, the end of them, how long a list is fresh, and what HTTP makes of annotations."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from dragoman.client import Client
from dragoman.errors import PeerFault, RemoteError
from tests.client.scripted import Fail, Heard, Scripted, handshake, stateless, text, tool


def pages(*results: dict[str, Any]) -> Any:
    """A script: `tools/list` answers these in their order, then the last one again and again."""
    left = list(results)

    async def calls(transport: Scripted, heard: Heard) -> Any:
        return left.pop(0) if len(left) > 1 else left[0]

    return calls


def page(*names: str, **more: Any) -> dict[str, Any]:
    return {"tools": [tool(name) for name in names], **more}


async def names(client: Client, **options: Any) -> list[str]:
    return [found.name for found in await client.list_tools(**options)]


async def test_all_pages_are_read_and_cursors_sent_back_as_they_were() -> None:
    transport = Scripted(
        stateless(pages(page("a", nextCursor="x y"), page("b", nextCursor=""), page("c", nextCursor=None)))
    )
    async with Client(transport) as client:
        assert await names(client) == ["a", "b", "c"]
    asked = [heard.params.get("cursor", "absent") for heard in transport.of("tools/list")]
    assert asked == ["absent", "x y", ""]


@pytest.mark.parametrize("cursor", ["", "again"])
async def test_a_cursor_that_comes_again_ends_the_list_and_what_is_there_is_kept(
    cursor: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport = Scripted(stateless(pages(page("a", nextCursor=cursor), page("b", nextCursor=cursor))))
    async with Client(transport) as client:
        assert await names(client) == ["a", "b"]
    assert len(transport.of("tools/list")) == 2
    assert "twice" in caplog.text


async def test_a_circle_of_cursors_ends() -> None:
    left = {"absent": "1", "1": "2", "2": "3", "3": "1"}

    async def calls(transport: Scripted, heard: Heard) -> Any:
        cursor = heard.params.get("cursor", "absent")
        return page("t" + cursor, nextCursor=left[cursor])

    async with Client(Scripted(stateless(calls))) as client:
        assert await names(client) == ["tabsent", "t1", "t2", "t3"]


async def test_a_malformed_entry_does_not_take_the_others_with_it(caplog: pytest.LogCaptureFixture) -> None:
    bad = [{"name": "no schema"}, 7, {"inputSchema": {}}]
    async with Client(Scripted(stateless(pages({"tools": [tool("a"), *bad, tool("b")]})))) as client:
        assert await names(client) == ["a", "b"]
    assert caplog.text.count("malformed entry") == 3


async def test_members_of_a_tool_that_are_null_are_taken_as_absent() -> None:
    schema = {"type": "object", "properties": {"a": {"default": None, "enum": [None, 1]}}}
    entry = {"name": "a", "inputSchema": schema, "description": None, "annotations": {"title": None}}
    async with Client(Scripted(stateless(pages({"tools": [entry], "nextCursor": None})))) as client:
        (found,) = await client.list_tools()
    assert found.description is UNSET
    assert found.input_schema == schema


async def test_a_tool_that_is_listed_twice_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(Scripted(stateless(pages(page("a", "b", "a"))))) as client:
        assert await names(client) == ["a", "b"]
    assert "'a' twice" in caplog.text


@pytest.mark.parametrize("result", [{}, [], {"tools": {}}, None])
async def test_a_page_that_is_none_is_a_fault_of_the_server(result: Any) -> None:
    async with Client(Scripted(stateless(pages(result)))) as client:
        with pytest.raises(PeerFault, match="tools/list"):
            await client.list_tools()


async def test_an_error_on_a_later_page_is_raised() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if "cursor" in heard.params:
            raise Fail(-32602, "Invalid cursor")
        return page("a", nextCursor="x")

    async with Client(Scripted(stateless(calls))) as client:
        with pytest.raises(RemoteError, match="Invalid cursor"):
            await client.list_tools()


# Freshness


@pytest.mark.parametrize(
    ("lifetimes", "requests"),
    [
        ([{"ttlMs": 3_600_000, "cacheScope": "public"}], 1),
        ([{"ttlMs": 3_600_000, "cacheScope": "private"}], 1),
        ([{"ttlMs": 0}], 2),
        ([{}], 2),
        ([{"ttlMs": -5}], 2),
    ],
)
async def test_a_list_is_read_again_when_it_is_not_fresh(lifetimes: Any, requests: int) -> None:
    transport = Scripted(stateless(pages(*(page("a", **more) for more in lifetimes))))
    async with Client(transport) as client:
        assert await names(client) == await names(client) == ["a"]
    assert len(transport.of("tools/list")) == requests


async def test_each_page_is_fresh_for_as_long_as_it_says_itself() -> None:
    # 2026-07-28, Caching, "Interaction with Pagination"
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if "cursor" in heard.params:
            return page("b", ttlMs=0)
        return page("a", nextCursor="x", ttlMs=3_600_000)

    transport = Scripted(stateless(calls))
    async with Client(transport) as client:
        assert await names(client) == await names(client) == ["a", "b"]
    asked = [heard.params.get("cursor") for heard in transport.of("tools/list")]
    assert asked == [None, "x", "x"]


async def test_a_cursor_that_became_invalid_starts_the_list_anew() -> None:
    valid = ["x"]

    async def calls(transport: Scripted, heard: Heard) -> Any:
        cursor = heard.params.get("cursor")
        if cursor is None:
            return page("a", nextCursor=valid[0], ttlMs=3_600_000)
        if cursor != valid[0]:
            raise Fail(-32602, "Invalid cursor")
        return page("b")

    transport = Scripted(stateless(calls))
    async with Client(transport) as client:
        assert await names(client) == ["a", "b"]
        valid[0] = "y"
        assert await names(client) == ["a", "b"]
    asked = [heard.params.get("cursor") for heard in transport.of("tools/list")]
    assert asked == [None, "x", "x", None, "y"]


async def test_refresh_reads_anew_in_any_case() -> None:
    transport = Scripted(stateless(pages(page("a", ttlMs=3_600_000), page("b", ttlMs=3_600_000))))
    async with Client(transport) as client:
        assert [await names(client), await names(client, refresh=True), await names(client)] == [
            ["a"],
            ["b"],
            ["b"],
        ]


async def test_nothing_is_kept_without_a_cache() -> None:
    transport = Scripted(stateless(pages(page("a", ttlMs=3_600_000))))
    async with Client(transport, cache=False) as client:
        await client.list_tools()
        await client.list_tools()
    assert len(transport.of("tools/list")) == 2


async def test_what_the_caller_does_to_a_list_does_not_change_the_next() -> None:
    async with Client(Scripted(stateless(pages(page("a", ttlMs=3_600_000))))) as client:
        (await client.list_tools()).clear()
        assert await names(client) == ["a"]


@pytest.mark.parametrize("script", [stateless, handshake])
async def test_a_changed_list_is_read_again_though_it_was_fresh(script: Any) -> None:
    transport = Scripted(script(pages(page("a", ttlMs=3_600_000), page("b", ttlMs=3_600_000))))
    async with Client(transport) as client:
        assert await names(client) == ["a"]
        transport.say("notifications/tools/list_changed")
        assert await names(client) == ["b"]


async def test_a_change_while_a_list_is_read_makes_it_stale() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if len(transport.of("tools/list")) == 1:
            transport.say("notifications/tools/list_changed")
        return page("a", ttlMs=3_600_000)

    transport = Scripted(stateless(calls))
    async with Client(transport) as client:
        for _ in range(3):
            await client.list_tools()
    assert len(transport.of("tools/list")) == 2


# Parameters that HTTP mirrors into headers


def annotated(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


REGION = annotated(
    region={"type": "string", "x-mcp-header": "Region"},
    count={"type": "integer", "x-mcp-header": "Count"},
    dry={"type": "boolean", "x-mcp-header": "Dry"},
    inner={"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
    query={"type": "string"},
)


def mirroring(schema: dict[str, Any]) -> Any:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        return {"tools": [tool("t") | {"inputSchema": schema}]} if heard.method == "tools/list" else text()

    return calls


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "us-west1", "query": "q"}, {"Region": "us-west1"}),
        ({"region": "Hello, 世界"}, {"Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
        ({"region": " padded "}, {"Region": "=?base64?IHBhZGRlZCA=?="}),
        ({"region": "line1\nline2"}, {"Region": "=?base64?bGluZTEKbGluZTI=?="}),
        ({"region": "=?base64?literal?="}, {"Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}),
        ({"region": ""}, {"Region": ""}),
        ({"region": None}, {}),
        ({}, {}),
        ({"count": 42, "dry": True}, {"Count": "42", "Dry": "true"}),
        ({"count": -7, "dry": False}, {"Count": "-7", "Dry": "false"}),
        ({"inner": {"deep": "x"}}, {"Deep": "x"}),
        ({"inner": {}}, {}),
        ({"inner": "no object"}, {}),
        ({"deep": "elsewhere"}, {}),
    ],
)
async def test_annotated_parameters_are_mirrored_over_http(arguments: Any, headers: dict[str, str]) -> None:
    # 2026-07-28, Streamable HTTP, "Value Encoding": the examples of its table are among these.
    transport = Scripted(stateless(mirroring(REGION)), shared=False)
    async with Client(transport) as client:
        await client.list_tools()
        await client.call_tool("t", arguments)
        await client.request("tools/call", {"name": "t", "arguments": arguments})
    for heard in transport.of("tools/call"):
        assert heard.outgoing.mirrored == {f"Mcp-Param-{name}": value for name, value in headers.items()}


async def test_nothing_is_mirrored_where_there_are_no_headers() -> None:
    for transport in (
        Scripted(stateless(mirroring(REGION))),
        Scripted(handshake(mirroring(REGION)), shared=False),
    ):
        async with Client(transport) as client:
            await client.list_tools()
            await client.call_tool("t", {"region": "x"})
        assert transport.of("tools/call")[0].outgoing.mirrored == {}


BAD = [
    annotated(a={"type": "string", "x-mcp-header": ""}),
    annotated(a={"type": "number", "x-mcp-header": "A"}),
    annotated(a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}),
    annotated(a={"type": "string", "x-mcp-header": "A B"}),
]


@pytest.mark.parametrize("schema", BAD)
async def test_a_tool_with_forbidden_annotations_is_left_out_over_http(
    schema: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    listed = {"tools": [tool("good"), {"name": "bad", "inputSchema": schema}]}
    async with Client(Scripted(stateless(pages(listed)), shared=False)) as client:
        assert await names(client) == ["good"]
    assert "tool 'bad' is left out" in caplog.text
    async with Client(Scripted(stateless(pages(listed)))) as client:
        assert await names(client) == ["good", "bad"]  # of no consequence on other transports


async def test_a_header_mismatch_is_answered_by_one_fresh_list_and_one_more_call() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "tools/list":
            return {"tools": [tool("t") | {"inputSchema": REGION}], "ttlMs": 3_600_000}
        if "Mcp-Param-Region" not in heard.outgoing.mirrored:
            raise Fail(-32020, "Header mismatch")
        return text()

    transport = Scripted(stateless(calls), shared=False)
    async with Client(transport) as client:
        assert (await client.call_tool("t", {"region": "x"})).text == "done"
    methods = [heard.method for heard in transport.heard]
    assert methods == ["server/discover", "tools/call", "tools/list", "tools/call"]


async def test_a_second_header_mismatch_is_raised() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "tools/list":
            return {"tools": []}
        raise Fail(-32020, "Header mismatch")

    transport = Scripted(stateless(calls), shared=False)
    async with Client(transport) as client:
        with pytest.raises(RemoteError, match="Header mismatch"):
            await client.call_tool("t")
    assert len(transport.of("tools/call")) == 2
