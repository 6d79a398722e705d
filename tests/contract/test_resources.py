"""Resources, templates, prompts and completion, as each revision has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.room import SERVER_INFO, SINCE_2025_03, SINCE_2025_06, SINCE_2025_11, STATELESS, Room

ICON = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
PNG = "iVBORw0KGgo="


def since(revisions: tuple[str, ...], room: Room, **members: Any) -> dict[str, Any]:
    return members if room.revision in revisions else {}


def annotations(room: Room) -> dict[str, Any]:
    said: dict[str, Any] = {"audience": ["user"], "priority": 0.5}
    return said | since(SINCE_2025_06, room, lastModified="2026-07-28T12:00:00Z")


async def contents(room: Room, uri: str) -> list[dict[str, Any]]:
    return (await room.client.request("resources/read", {"uri": uri}))["contents"]


async def test_a_list_shows_what_the_revision_has_of_a_resource(room: Room) -> None:
    entries = await room.entries("resources/list", "resources", "uri")
    assert entries["notes://text"] == {
        "uri": "notes://text",
        "name": "text",
        "description": "Text.",
        "mimeType": "text/plain",
        "size": 5,
        "annotations": annotations(room),
        **since(SINCE_2025_06, room, title="A text", _meta={"example.com/a": 1}),
        **since(SINCE_2025_11, room, icons=[ICON]),
    }
    assert entries["notes://bytes"]["size"] == 2
    assert "notes://admin" not in entries
    assert "inner://text" in entries


async def test_a_list_of_resources_comes_in_pages(room: Room) -> None:
    pages = await room.pages("resources/list", "resources")
    assert [len(page) for page in pages[:-1]] == [7] * (len(pages) - 1)
    assert len(pages) > 1


async def test_a_list_of_templates(room: Room) -> None:
    entries = await room.entries("resources/templates/list", "resourceTemplates", "uriTemplate")
    assert entries["orders://{order_id}{?fields}"] == {
        "uriTemplate": "orders://{order_id}{?fields}",
        "name": "order",
        **since(SINCE_2025_06, room, title="An order"),
        **since(SINCE_2025_11, room, icons=[ICON]),
    }


async def test_text_bytes_files_and_json(room: Room) -> None:
    assert await contents(room, "notes://text") == [
        {"uri": "notes://text", "mimeType": "text/plain", "text": "hello"}
    ]
    assert await contents(room, "notes://bytes") == [
        {"uri": "notes://bytes", "mimeType": "application/x-thing", "blob": "AAE="}
    ]
    (source,) = await contents(room, "notes://source")
    assert source["text"] == Path(__file__).with_name("server.py").read_text()
    assert await contents(room, "notes://json") == [
        {"uri": "notes://json", "mimeType": "application/json", "text": '{"rows":3}'}
    ]


async def test_several_contents_of_one_resource(room: Room) -> None:
    assert await contents(room, "notes://several") == [
        {"uri": "notes://several/a", "text": "a"},
        {"uri": "notes://several/b", "text": "b", **since(SINCE_2025_06, room, _meta={"example.com/a": 1})},
    ]


async def test_a_template_reads_its_variables_out_of_the_uri(room: Room) -> None:
    (found,) = await contents(room, "orders://A%2D7?fields=few")
    assert found["text"] == '{"order_id":"A-7","fields":"few"}'


async def test_hints_for_caches(room: Room) -> None:
    result = await room.client.request("resources/read", {"uri": "notes://text"})
    hints = {key: result[key] for key in ("ttlMs", "cacheScope") if key in result}
    assert hints == since((STATELESS,), room, ttlMs=1_000, cacheScope="public")
    result = await room.client.request("resources/read", {"uri": "notes://json"})
    if room.revision == STATELESS:
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (0, "private", "complete")
        assert result["_meta"][SERVER_INFO]["name"] == "contract"


@pytest.mark.parametrize(
    "uri", ["notes://none", "orders://A-0", "notes://admin", "other://x", "orders://a/b"]
)
async def test_what_is_not_there(room: Room, uri: str) -> None:
    error = await room.refused("resources/read", uri=uri)
    # -32002 was the code for it until 2026-07-28 took -32602.
    assert error.code == (-32602 if room.revision == STATELESS else -32002)
    assert error.data == {"uri": uri}


async def test_a_value_that_the_template_does_not_take(room: Room) -> None:
    error = await room.refused("resources/read", uri="orders://A-1?fields=none")
    assert error.code == (-32602 if room.revision == STATELESS else -32002)
    assert "fields" in error.message


async def test_a_resource_that_fails(room: Room) -> None:
    error = await room.refused("resources/read", uri="notes://broken")
    assert (error.code, error.data) == (-32603, {"uri": "notes://broken"})
    assert "the shelf is empty" in error.message


async def test_a_tool_reads_a_resource(room: Room) -> None:
    assert (await room.call("read", uri="notes://json")).text == '{"rows":3}'
    assert "Resource not found" in await room.failed("read", uri="notes://none")


# Prompts ---------------------------------------------------------------------------------------------


async def test_a_list_shows_what_the_revision_has_of_a_prompt(room: Room) -> None:
    entries = await room.entries("prompts/list", "prompts", "name")
    assert entries["review"] == {
        "name": "review",
        "description": "Ask for a review.",
        "arguments": [
            {"name": "code", "required": True, **since(SINCE_2025_06, room, title="The code")},
            {"name": "language", "description": 'one of "python", "rust"', "required": False},
            {"name": "lines", "description": "an integer", "required": False},
        ],
        **since(SINCE_2025_06, room, title="Review code", _meta={"example.com/a": 1}),
        **since(SINCE_2025_11, room, icons=[ICON]),
    }
    assert "admin_prompt" not in entries
    assert "inner_greet" in entries


async def test_a_prompt_gets_typed_arguments(room: Room) -> None:
    given = {"name": "review", "arguments": {"code": "x", "lines": "7"}}
    result = await room.client.request("prompts/get", given)
    assert result["description"] == "Ask for a review."
    assert result["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "python 8: x"}},
        {"role": "assistant", "content": {"type": "text", "text": "Gladly."}},
    ]


async def test_all_that_a_prompt_can_hold(room: Room) -> None:
    messages = (await room.client.request("prompts/get", {"name": "rich"}))["messages"]
    picture, sound, resource, link, text = [message["content"] for message in messages]
    assert picture == {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert sound["type"] == ("audio" if room.revision in SINCE_2025_03 else "text")
    assert resource == {"type": "resource", "resource": {"uri": "notes://text", "text": "hello"}}
    assert link["type"] == ("resource_link" if room.revision in SINCE_2025_06 else "text")
    assert ("icons" in link) == (room.revision in SINCE_2025_11)
    assert text == {
        "type": "text",
        "text": "noted",
        "annotations": annotations(room),
        **since(SINCE_2025_06, room, _meta={"example.com/a": 1}),
    }


async def test_what_a_prompt_refuses(room: Room) -> None:
    error = await room.refused("prompts/get", name="none")
    assert (error.code, error.data) == (-32602, {"name": "none"})
    error = await room.refused("prompts/get", name="review")
    assert (error.code, error.data["field"]) == (-32602, "code")
    error = await room.refused("prompts/get", name="review", arguments={"code": "x", "lines": "many"})
    assert (error.code, error.data["field"], error.data["received"]) == (-32602, "lines", '"many"')
    error = await room.refused("prompts/get", name="broken_prompt")
    assert error.code == -32603
    assert "the shelf is empty" in error.message
    assert (await room.refused("prompts/get", name="admin_prompt")).code == -32602


# Completion ------------------------------------------------------------------------------------------


async def completed(room: Room, ref: dict[str, str], name: str, value: str, **settled: str) -> dict[str, Any]:
    params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
    if settled:
        params["context"] = {"arguments": settled}
    return (await room.client.request("completion/complete", params))["completion"]


PROMPT = {"type": "ref/prompt", "name": "review"}
TEMPLATE = {"type": "ref/resource", "uri": "orders://{order_id}{?fields}"}


async def test_suggestions_come_of_types_functions_and_lists(room: Room) -> None:
    found = await completed(room, PROMPT, "language", "ru")
    assert found == {"values": ["rust"], "total": 1, "hasMore": False}
    assert (await completed(room, PROMPT, "code", "x"))["values"] == [f"x in any on {room.revision}"]
    assert (await completed(room, TEMPLATE, "order_id", "a"))["values"] == ["A-1", "A-2"]
    assert (await completed(room, TEMPLATE, "fields", ""))["values"] == ["all", "few"]
    assert (await completed(room, PROMPT, "lines", "1"))["values"] == []


@pytest.mark.parametrize("revision", SINCE_2025_06)
async def test_suggestions_go_by_what_is_settled(room: Room) -> None:
    assert (await completed(room, PROMPT, "code", "x", language="rust"))["values"] == [
        f"x in rust on {room.revision}"
    ]


async def test_a_hundred_suggestions_at_most(room: Room) -> None:
    found = await completed(room, PROMPT, "code", "many")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 150, True)


async def test_suggestions_for_what_is_not_there(room: Room) -> None:
    argument = {"name": "code", "value": ""}
    for ref, wrong in (
        ({"type": "ref/prompt", "name": "none"}, argument),
        ({"type": "ref/prompt", "name": "admin_prompt"}, argument),
        ({"type": "ref/resource", "uri": "none://"}, argument),
        (PROMPT, {"name": "none", "value": ""}),
    ):
        error = await room.refused("completion/complete", ref=ref, argument=wrong)
        assert error.code == -32602
