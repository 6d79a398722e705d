"""How a connection opens, and which methods are there, in each revision's terms."""

from __future__ import annotations

import json

import pytest

from tests.contract.conftest import Stage
from tests.contract.room import (
    SERVER_INFO,
    SESSIONS,
    SINCE_2025_03,
    SINCE_2025_06,
    SINCE_2025_11,
    STATELESS,
    Room,
)

ICON = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}
ELSEWHERE = {
    # Methods that some revision has, with params that fit, and the revisions that have them.
    "ping": ({}, SESSIONS),
    "logging/setLevel": ({"level": "info"}, SESSIONS),
    "resources/subscribe": ({"uri": "notes://text"}, SESSIONS),
    "resources/unsubscribe": ({"uri": "notes://text"}, SESSIONS),
    "server/discover": ({}, (STATELESS,)),
}


async def test_the_server_says_who_it_is(stage: Stage, revision: str, transport: str) -> None:
    async with Room.capable(stage.target(transport), revision) as room:
        info = room.client.server_info
        assert (info.name, info.version) == ("contract", "2.1.0")
        assert room.client.instructions == "Ask before you book."
        said = room.result_of("initialize" if revision in SESSIONS else "server/discover")
        told = said["serverInfo"] if revision in SESSIONS else said["_meta"][SERVER_INFO]
        assert told == {
            "name": "contract",
            "version": "2.1.0",
            **({"title": "The contract"} if revision in SINCE_2025_06 else {}),
            **(
                {
                    "description": "Every feature once",
                    "websiteUrl": "https://example.com/contract",
                    "icons": [ICON],
                }
                if revision in SINCE_2025_11
                else {}
            ),
        }
    room.check()


async def test_the_server_says_what_it_can(stage: Stage, revision: str, transport: str) -> None:
    async with Room.capable(stage.target(transport), revision) as room:
        said = room.result_of("initialize" if revision in SESSIONS else "server/discover")
        assert said["capabilities"] == {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "logging": {},
            **({"completions": {}} if revision in SINCE_2025_03 else {}),
            **({"extensions": {"io.modelcontextprotocol/tasks": {}}} if revision == STATELESS else {}),
        }
        if revision == STATELESS:
            assert said["supportedVersions"] == [STATELESS]
            assert (said["ttlMs"], said["cacheScope"]) == (60_000, "public")
        else:
            assert said["protocolVersion"] == revision


async def test_a_sign_of_life(room: Room) -> None:
    room.frames.clear()
    await room.client.ping()
    assert len(room.sent("ping")) == (room.revision in SESSIONS)
    assert len(room.sent("server/discover")) == (room.revision == STATELESS)


async def test_a_method_of_no_revision(room: Room) -> None:
    error = await room.refused("no/such")
    assert (error.code, error.data["method"]) == (-32601, "no/such")


@pytest.mark.parametrize("method", ELSEWHERE)
async def test_a_method_is_there_on_the_revisions_that_have_it(
    room: Room, method: str, transport: str
) -> None:
    params, where = ELSEWHERE[method]
    if room.revision in where:
        await room.client.request(method, params)
        return
    error = await room.refused(method, **params)
    if room.revision in SESSIONS and transport != "http":
        # A channel that both kinds of request share: this is one of the other kind, and lacks what those say.
        assert (error.code, error.data) == (-32602, {"missing": "io.modelcontextprotocol/protocolVersion"})
    else:
        assert (error.code, error.data["method"]) == (-32601, method)
    room.frames.clear()  # on purpose not what the revision has


async def test_a_handler_knows_its_call(room: Room, transport: str) -> None:
    result = await room.client.call_tool("facts", meta={"example.com/trace": "t-1"})
    ids = [frame["id"] for way, frame in room.frames if frame.get("method") == "tools/call"]
    assert result.structured is None  # it is annotated with no type
    assert json.loads(result.text) == {
        "request_id": ids[-1],
        "revision": room.revision,
        "client": "dragoman",
        "elicitation": {"form": {}, "url": {}} if room.revision in SINCE_2025_11 else {},
        "principal": None,
        "lifespan": {"of": "contract"},
        "meta": "t-1",
        "by_http": transport == "http",
    }


async def test_who_calls_is_what_the_authorisation_says(stage: Stage, revision: str) -> None:
    async with Room.capable(stage.url, revision, headers={"authorization": "Bearer bob"}) as room:
        assert '"principal":"bob"' in (await room.call("facts")).text
    room.check()
