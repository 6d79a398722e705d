"""Tools: what a list shows of them, every kind of result and every kind of error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.room import (
    SINCE_2025_03,
    SINCE_2025_06,
    SINCE_2025_11,
    STATELESS,
    Room,
)

ICON = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
PNG = "iVBORw0KGgo="


def said(revision: str) -> dict[str, Any]:
    """The annotations of content, as far as the revision has them."""
    annotations = {"audience": ["user"], "priority": 0.5}
    return annotations | ({"lastModified": "2026-07-28T12:00:00Z"} if revision in SINCE_2025_06 else {})


def since(revisions: tuple[str, ...], room: Room, **members: Any) -> dict[str, Any]:
    """These members, on revisions that have them."""
    return members if room.revision in revisions else {}


async def blocks(room: Room, name: str, /, **arguments: Any) -> list[dict[str, Any]]:
    """The content of a result as it was on the wire."""
    await room.call(name, **arguments)
    return room.result_of("tools/call")["content"]


async def test_a_list_shows_what_the_revision_has_of_a_tool(room: Room) -> None:
    tool = (await room.entries("tools/list", "tools", "name"))["lookup"]
    schema = {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "pattern": r"^[A-Z]-\d{4}$"},
            "amount": {"type": "number", "default": 1.5},
        },
        "required": ["order_id"],
        "additionalProperties": False,
    }
    output = tool.pop("outputSchema", None)
    assert (output is not None) == (room.revision in SINCE_2025_06)
    if output is not None:
        assert output["type"] == "object"
        assert set(output["properties"]) == {"order_id", "amount", "note"}
    assert tool == {
        "name": "lookup",
        "description": "Find an order.",
        "inputSchema": schema,
        **since(SINCE_2025_03, room, annotations={"title": "Look up", "readOnlyHint": True}),
        **since(SINCE_2025_06, room, title="Look an order up", _meta={"example.com/team": "orders"}),
        **since(SINCE_2025_11, room, icons=[ICON]),
    }


async def test_a_list_comes_in_pages(room: Room) -> None:
    pages = await room.pages("tools/list", "tools")
    assert len(pages) > 3
    assert all(len(page) == 7 for page in pages[:-1])
    names = [tool["name"] for page in pages for tool in page]
    assert len(names) == len(set(names))
    assert names == [tool.name for tool in await room.client.list_tools(refresh=True)]


async def test_a_cursor_that_nobody_gave_out(room: Room) -> None:
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        error = await room.refused(method, cursor="made up")
        assert (error.code, error.data) == (-32602, {"cursor": "made up"})


async def test_a_cursor_of_another_list(room: Room) -> None:
    cursor = (await room.client.request("tools/list"))["nextCursor"]
    assert (await room.refused("resources/list", cursor=cursor)).code == -32602


async def test_hints_for_caches_are_there_where_the_revision_has_them(room: Room) -> None:
    # Who asks decides what is listed here, so that no cache may share it.
    for method, ttl in (("tools/list", 60_000), ("prompts/list", 5_000), ("resources/list", 60_000)):
        result = await room.client.request(method)
        hints = {key: result[key] for key in ("ttlMs", "cacheScope") if key in result}
        assert hints == since((STATELESS,), room, ttlMs=ttl, cacheScope="private")


# Results ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "add_in_thread", "add_inline"])
async def test_a_value(room: Room, name: str) -> None:
    result = await room.call(name, a=2, b=3)
    assert result.text == "5"
    expected = since(SINCE_2025_06, room, structuredContent={"result": 5})
    assert without_type(room) == {"content": [{"type": "text", "text": "5"}], **expected}


def without_type(room: Room) -> dict[str, Any]:
    """The last result of a tool without what every result of its revision has."""
    result = dict(room.result_of("tools/call"))
    if room.revision == STATELESS:
        assert result.pop("resultType") == "complete"
        meta = dict(result.pop("_meta"))
        assert meta.pop("io.modelcontextprotocol/serverInfo")["name"] == "contract"
        if meta:
            result["_meta"] = meta
    return result


async def test_an_object(room: Room) -> None:
    result = await room.call("lookup", order_id="A-1042")
    expected = {"order_id": "A-1042", "amount": 1.5, "note": None}
    assert json.loads(result.text) == expected
    structured = without_type(room).get("structuredContent")
    assert structured == (expected if room.revision in SINCE_2025_06 else None)


async def test_data_without_an_annotation_is_text_alone(room: Room) -> None:
    assert json.loads((await room.call("data")).text) == {"a": [1, None, True]}
    assert "structuredContent" not in room.result_of("tools/call")


async def test_nothing(room: Room) -> None:
    await room.call("nothing")
    assert without_type(room) == {"content": []}


async def test_structured_content_that_is_no_object(room: Room) -> None:
    result = await room.call("listed")
    assert result.text == "[1,2]"
    assert without_type(room).get("structuredContent") == ([1, 2] if room.revision == STATELESS else None)


async def test_a_whole_result(room: Room) -> None:
    await room.call("whole")
    assert without_type(room) == {
        "content": [{"type": "text", "text": "done"}],
        "_meta": {"example.com/a": 1},
        **since(SINCE_2025_06, room, structuredContent={"done": True}),
    }


async def test_a_picture(room: Room) -> None:
    assert await blocks(room, "picture") == [
        {"type": "image", "data": PNG, "mimeType": "image/png", "annotations": said(room.revision)}
    ]


async def test_a_sound(room: Room) -> None:
    (block,) = await blocks(room, "sound")
    if room.revision in SINCE_2025_03:
        assert block == {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    else:
        assert block["type"] == "text"
        assert "audio/wav" in block["text"]


async def test_a_file(room: Room) -> None:
    assert await blocks(room, "file") == [
        {
            "type": "resource",
            "resource": {"uri": "file:///data", "mimeType": "application/x-thing", "blob": "AAE="},
        }
    ]


async def test_a_link(room: Room) -> None:
    (block,) = await blocks(room, "link")
    if room.revision in SINCE_2025_06:
        assert block == {
            "type": "resource_link",
            "uri": "notes://text",
            "name": "text",
            "title": "Text",
            "mimeType": "text/plain",
            "size": 5,
            **since(SINCE_2025_11, room, icons=[ICON]),
        }
    else:
        assert block == {"type": "text", "text": "Text: notes://text"}


async def test_a_resource_inside_a_result(room: Room) -> None:
    contents = {"uri": "notes://text", "text": "hello"}
    assert await blocks(room, "embedded") == [
        {
            "type": "resource",
            "resource": contents | since(SINCE_2025_06, room, _meta={"example.com/a": 1}),
            "annotations": said(room.revision),
            **since(SINCE_2025_06, room, _meta={"example.com/b": 2}),
        }
    ]


async def test_several_blocks(room: Room) -> None:
    assert await blocks(room, "mixed") == [
        {
            "type": "text",
            "text": "look:",
            "annotations": said(room.revision),
            **since(SINCE_2025_06, room, _meta={"example.com/a": 1}),
        },
        {"type": "image", "data": PNG, "mimeType": "image/png"},
    ]


async def test_text_comes_through_as_it_is(room: Room) -> None:
    text = 'tab\t newline\n quote" NUL\0 \u2028 \U0001f600 e\u0301 {"a": 1}'
    assert (await room.call("say", text=text)).text == text


async def test_a_middleware_stands_around_the_call(room: Room) -> None:
    assert (await room.call("through")).text == "there\nand back"


# Errors ----------------------------------------------------------------------------------------------


async def test_a_tool_that_fails(room: Room) -> None:
    assert await room.failed("fail", text="nothing works today") == "nothing works today"
    assert without_type(room) == {
        "content": [{"type": "text", "text": "nothing works today"}],
        "isError": True,
    }


async def test_a_tool_that_raises(room: Room) -> None:
    assert await room.failed("crash") == "the shelf is empty"


async def test_a_tool_that_is_out_of_time(room: Room) -> None:
    assert await room.failed("slow") == "slow did not finish within 0.02 s"


async def test_a_tool_that_does_not_return_what_it_promises(room: Room) -> None:
    assert "broken" in await room.failed("broken")


async def test_arguments_that_do_not_fit(room: Room) -> None:
    text = await room.failed("lookup", order_id="1042", amount="much")
    assert text == (
        "Invalid arguments for lookup:\n"
        '- order_id: expected a string that matches ^[A-Z]-\\d{4}$; received "1042"\n'
        '- amount: expected a number; received "much"'
    )
    text = await room.failed("lookup", order_id="A-1042", colour="red")
    assert text == 'Invalid arguments for lookup:\n- unknown argument "colour"'


async def test_an_unknown_tool(room: Room) -> None:
    error = await room.refused("tools/call", name="look_up", arguments={})
    assert (error.code, error.message, error.data) == (-32602, "Unknown tool: look_up", {"name": "look_up"})


async def test_a_handler_that_refuses_the_request(room: Room) -> None:
    error = await room.refused("tools/call", name="refuse")
    assert (error.code, error.message, error.data) == (4001, "not on Sundays", {"day": "Sunday"})


async def test_params_of_the_wrong_shape(room: Room) -> None:
    error = await room.refused("tools/call", arguments={})
    assert error.code == -32602
    assert "name" in error.message
    room.frames.clear()  # on purpose not what the revision has
