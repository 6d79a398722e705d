"""Changes: lists at run time and resources that were updated, told in each revision's own way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.contract.room import SESSIONS, STATELESS, SUBSCRIPTION_ID, Room

KINDS = ("tools", "prompts", "resources")


@asynccontextmanager
async def listening(room: Room, **wish: Any) -> AsyncIterator[dict[str, Any]]:
    """A `subscriptions/listen` request while it is open; gives what was acknowledged."""
    listen = asyncio.ensure_future(room.client.request("subscriptions/listen", {"notifications": wish}))
    try:
        yield await room.heard("notifications/subscriptions/acknowledged")
    finally:
        listen.cancel()
        await asyncio.wait([listen])


def made_name() -> str:
    return f"made_{uuid4().hex[:8]}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_session_is_told_of_lists_that_changed(room: Room, kind: str) -> None:
    await room.call("change", kind=kind, name=made_name())
    assert await room.heard(f"notifications/{kind}/list_changed") is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("revision", [STATELESS])
async def test_who_listens_is_told_of_lists_that_changed(room: Room, kind: str) -> None:
    wish = f"{kind}ListChanged"
    async with listening(room, **{wish: True}) as acknowledged:
        assert acknowledged["notifications"] == {wish: True}
        tag = acknowledged["_meta"][SUBSCRIPTION_ID]
        await room.call("change", kind=kind, name=made_name())
        told = await room.heard(f"notifications/{kind}/list_changed")
        assert told["_meta"][SUBSCRIPTION_ID] == tag
    assert room.received(f"notifications/{kind}/list_changed")


@pytest.mark.parametrize("revision", [STATELESS])
async def test_nobody_is_told_what_they_did_not_ask_for(room: Room) -> None:
    await room.call("change", kind="tools", name=made_name())
    async with listening(room, promptsListChanged=True):
        await room.call("change", kind="tools", name=made_name())
        await room.call("change", kind="prompts", name=made_name())
        await room.heard("notifications/prompts/list_changed")
    assert room.received("notifications/tools/list_changed") == []


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_session_watches_a_resource(room: Room) -> None:
    await room.client.request("resources/subscribe", {"uri": "notes://text"})
    await room.call("update", uri="notes://json")
    await room.call("update", uri="notes://text")
    assert await room.heard("notifications/resources/updated") == {"uri": "notes://text"}
    await room.client.request("resources/unsubscribe", {"uri": "notes://text"})
    await room.call("update", uri="notes://text")
    await room.client.ping()
    assert len(room.received("notifications/resources/updated")) == 1


@pytest.mark.parametrize("revision", SESSIONS)
async def test_a_resource_that_is_not_there_cannot_be_watched(room: Room) -> None:
    error = await room.refused("resources/subscribe", uri="notes://none")
    assert (error.code, error.data) == (-32002, {"uri": "notes://none"})


@pytest.mark.parametrize("revision", [STATELESS])
async def test_who_listens_watches_resources(room: Room) -> None:
    async with listening(room, resourceSubscriptions=["notes://text"]) as acknowledged:
        assert acknowledged["notifications"] == {"resourceSubscriptions": ["notes://text"]}
        await room.call("update", uri="notes://json")
        await room.call("update", uri="notes://text")
        told = await room.heard("notifications/resources/updated")
        assert told["uri"] == "notes://text"
        assert told["_meta"] == acknowledged["_meta"]
    assert len(room.received("notifications/resources/updated")) == 1


@pytest.mark.parametrize("revision", [STATELESS])
async def test_two_that_listen_are_told_apart(room: Room) -> None:
    async with (
        listening(room, toolsListChanged=True) as first,
        listening(room, toolsListChanged=True) as second,
    ):
        assert first["_meta"] != second["_meta"]
        await room.call("change", kind="tools", name=made_name())
        # It was added and taken away again: each of the two hears of it twice.
        told = [await room.heard("notifications/tools/list_changed") for _ in range(4)]
        tags = sorted(params["_meta"][SUBSCRIPTION_ID] for params in told)
        assert tags == sorted([first["_meta"][SUBSCRIPTION_ID], second["_meta"][SUBSCRIPTION_ID]] * 2)


async def test_what_was_added_can_be_called_and_what_was_removed_cannot(room: Room) -> None:
    name = made_name()
    await room.call("change", kind="tools", name=name)
    assert name not in await room.entries("tools/list", "tools", "name")
    assert (await room.refused("tools/call", name=name)).code == -32602
