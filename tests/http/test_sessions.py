"""Sessions of the revisions with a handshake: opening, using, listening, ending."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.http.things import things
from tests.http.wire import (
    BASE,
    INITIALIZE,
    WAIT,
    Request,
    initialize,
    messages,
    open_session,
    post,
    rpc,
    stateless,
)
from tests.spec.oracle import validate_frame

OLD = {**BASE, "mcp-protocol-version": "2025-11-25"}
ADD = rpc("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})


async def test_initialize_opens_a_session() -> None:
    app = things().server.asgi()
    answer = await post(app, INITIALIZE, BASE)
    assert answer.status == 200
    assert answer.json["result"]["protocolVersion"] == "2025-11-25"
    key = answer.headers["mcp-session-id"]
    assert all(0x21 <= ord(char) <= 0x7E for char in key)
    assert len(key) >= 22, "at least 128 bits"
    assert key != (await post(app, INITIALIZE, BASE)).headers["mcp-session-id"]
    validate_frame("2025-11-25", answer.body, "initialize", "to_client", exact=True)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_every_revision_with_a_handshake(version: str) -> None:
    app = things().server.asgi()
    session = await open_session(app, version)
    answer = await post(app, ADD, session)
    assert answer.status == 200
    assert answer.json["result"]["content"] == [{"type": "text", "text": "3"}]
    assert "mcp-session-id" not in answer.headers
    validate_frame(version, answer.body, "tools/call", "to_client", exact=True)


async def test_version_header_may_be_absent_in_a_session() -> None:
    app = things().server.asgi()
    session = await open_session(app, "2025-03-26")
    del session["mcp-protocol-version"]
    assert (await post(app, ADD, session)).status == 200


async def test_initialize_may_carry_a_version_header() -> None:
    answer = await post(things().server.asgi(), INITIALIZE, OLD)
    assert answer.status == 200


async def test_refused_initialize_opens_nothing() -> None:
    app = things().server.asgi()
    answer = await post(app, rpc("initialize", {"protocolVersion": 7}), BASE)
    assert answer.code == -32602
    assert "mcp-session-id" not in answer.headers
    assert not app.sessions


async def test_delete_ends_the_session() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    assert (await Request(app, "DELETE", session).answer()).status == 204
    assert (await post(app, ADD, session)).status == 404
    assert (await Request(app, "DELETE", session).answer()).status == 404
    assert (await Request(app, "GET", session).answer()).status == 404


async def test_delete_stops_what_is_open() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    stream = Request(app, "GET", session)
    await stream.until(b"")
    call = Request(app, "POST", session, body=_json(rpc("tools/call", {"name": "wait"})))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await Request(app, "DELETE", session).answer()
    assert (await stream.answer()).messages == []
    assert stream.complete
    await call.answer()
    assert it.cancelled.is_set()


def _json(message: Any) -> bytes:
    return json.dumps(message).encode()


async def test_changes_reach_the_sessions_own_stream() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    stream = Request(app, "GET", {**session, "accept": "text/event-stream"})
    await stream.until(b"")
    assert (await post(app, rpc("tools/call", {"name": "add_tool"}), session)).status == 200
    await stream.until(b"tools/list_changed")
    assert stream.sent[0]["status"] == 200
    stream.disconnect()
    answer = await stream.answer()
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.messages == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    assert len(app.sessions) == 1


async def test_a_session_has_one_stream_of_its_own_and_the_newest_connection_carries_it() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    first = Request(app, "GET", session)
    await first.until(b"id: ")
    second = Request(app, "GET", session)
    assert (await first.answer()).messages == []
    assert first.complete
    it.server.notify_tools_changed()
    await second.until(b"list_changed")
    second.disconnect()
    assert len((await second.answer()).messages) == 1


async def test_what_came_before_the_stream_is_kept_for_it() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    for _ in range(100):
        it.server.notify_tools_changed()
    stream = Request(app, "GET", session)
    await stream.until(b"list_changed")
    stream.disconnect()
    assert 1 <= len((await stream.answer()).messages) <= 32


async def test_get_has_to_accept_streams() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    assert (await Request(app, "GET", {**session, "accept": "application/json"}).answer()).status == 406


async def test_cancellation_is_answered_by_silence() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    call = Request(app, "POST", session, body=_json(rpc("tools/call", {"name": "wait"}, id=5)))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    cancel = rpc("notifications/cancelled", {"requestId": 5, "reason": "enough"}, id=None)
    assert (await post(app, cancel, session)).status == 202
    answer = await call.answer()
    assert (answer.status, answer.body) == (202, b"")
    assert it.cancelled.is_set()


async def test_cancelled_stream_ends_without_a_response() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    message = rpc("tools/call", {"name": "tell_and_wait", "_meta": {"progressToken": "t"}}, id="5")
    call = Request(app, "POST", session, body=_json(message))
    await call.until(b"progress")
    # 5 and "5" are two ids.
    await post(app, rpc("notifications/cancelled", {"requestId": 5}, id=None), session)
    assert not it.cancelled.is_set()
    await post(app, rpc("notifications/cancelled", {"requestId": "5"}, id=None), session)
    answer = await call.answer()
    assert [message["method"] for message in answer.messages] == ["notifications/progress"]
    assert it.cancelled.is_set()


async def test_cancellation_reaches_no_other_session() -> None:
    it = things()
    app = it.server.asgi()
    mine, other = await open_session(app), await open_session(app)
    call = Request(app, "POST", mine, body=_json(rpc("tools/call", {"name": "wait"}, id=5)))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await post(app, rpc("notifications/cancelled", {"requestId": 5}, id=None), other)
    it.gate.set()
    assert (await call.answer()).json["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("params", [None, {}, {"requestId": None}, {"requestId": []}, {"requestId": 77}])
async def test_cancellations_of_nothing_are_passed_over(params: Any) -> None:
    app = things().server.asgi()
    session = await open_session(app)
    assert (await post(app, rpc("notifications/cancelled", params, id=None), session)).status == 202


async def test_server_asks_on_the_stream_and_is_answered_by_a_post() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    call = Request(
        app, "POST", session, body=_json(rpc("tools/call", {"name": "ask", "arguments": {"question": "?"}}))
    )
    await call.until(b"elicitation/create")
    asked = call_messages(call)[0]
    validate_frame("2025-11-25", asked, None, "to_client", exact=True)
    reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}}
    assert (await post(app, reply, session)).status == 202
    answer = await call.answer()
    assert answer.messages[-1]["result"]["content"] == [{"type": "text", "text": "accept"}]
    assert it.asked == [{"action": "accept", "content": {}}]
    assert (await post(app, reply, session)).status == 400, "answered once already"


def call_messages(request: Request) -> list[Any]:
    return messages(request.body)


async def test_another_session_cannot_answer() -> None:
    it = things()
    app = it.server.asgi()
    mine, other = await open_session(app), await open_session(app)
    call = Request(
        app, "POST", mine, body=_json(rpc("tools/call", {"name": "ask", "arguments": {"question": "?"}}))
    )
    await call.until(b"elicitation/create")
    reply = {"jsonrpc": "2.0", "id": call_messages(call)[0]["id"], "result": {"action": "accept"}}
    assert (await post(app, reply, other)).status == 400
    assert (await post(app, reply, mine)).status == 202
    await call.answer()


async def test_question_fails_when_its_client_does_not_come_back() -> None:
    it = things()
    app = it.server.asgi(resume_seconds=0.01)
    session = await open_session(app)
    call = Request(
        app, "POST", session, body=_json(rpc("tools/call", {"name": "ask", "arguments": {"question": "?"}}))
    )
    await call.until(b"elicitation/create")
    call.disconnect()
    await asyncio.wait_for(call.task, WAIT)
    assert it.asked == []


async def test_question_is_withdrawn_when_the_call_is_cancelled() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    call = Request(
        app,
        "POST",
        session,
        body=_json(rpc("tools/call", {"name": "ask", "arguments": {"question": "?"}}, id=9)),
    )
    await call.until(b"elicitation/create")
    await post(app, rpc("notifications/cancelled", {"requestId": 9}, id=None), session)
    messages = (await call.answer()).messages
    assert [message["method"] for message in messages] == ["elicitation/create", "notifications/cancelled"]
    assert messages[1]["params"]["requestId"] == messages[0]["id"]


async def test_stateless_revisions_have_no_requests_from_the_server() -> None:
    it = things()
    answer = await post(
        it.server.asgi(), stateless("tools/call", {"name": "ask", "arguments": {"question": "?"}})
    )
    assert answer.code == -32603
    assert it.asked == []


async def test_broken_connection_does_not_cancel() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    message = rpc("tools/call", {"name": "tell_and_wait", "_meta": {"progressToken": 1}})
    call = Request(app, "POST", session, body=_json(message))
    await call.until(b"progress")
    call.disconnect()
    it.gate.set()
    await asyncio.wait_for(call.task, WAIT)
    assert it.finished.is_set()
    assert not it.cancelled.is_set()


async def test_an_id_in_use_is_refused_and_the_first_call_goes_on() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    call = Request(app, "POST", session, body=_json(rpc("tools/call", {"name": "wait"}, id=5)))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    again = await post(app, rpc("ping", id=5), session)
    assert (again.status, again.code, again.json["id"]) == (400, -32600, 5)
    assert (await post(app, rpc("ping", id="5"), session)).status == 200
    it.gate.set()
    assert (await call.answer()).status == 200


async def test_idle_sessions_end_and_busy_ones_do_not() -> None:
    it = things()
    app = it.server.asgi(session_idle=60.0)
    idle, busy = await open_session(app), await open_session(app)
    stream = Request(app, "GET", busy)
    await stream.until(b"")
    app.sessions.expire(asyncio.get_running_loop().time() + 61)
    assert (await post(app, ADD, idle)).status == 404
    assert (await post(app, ADD, busy)).status == 200
    stream.disconnect()
    await stream.answer()


async def test_room_is_made_for_new_sessions_by_the_longest_idle() -> None:
    app = things().server.asgi(max_sessions=2)
    first, second = await open_session(app), await open_session(app)
    await post(app, ADD, first)
    third = await open_session(app)
    assert [(await post(app, ADD, session)).status for session in (first, second, third)] == [200, 404, 200]


async def test_no_room_when_all_are_in_use() -> None:
    it = things()
    app = it.server.asgi(max_sessions=1)
    session = await open_session(app)
    stream = Request(app, "GET", session)
    await stream.until(b"")
    answer = await post(app, INITIALIZE, BASE)
    assert answer.status == 503
    assert answer.headers["retry-after"]
    stream.disconnect()
    await stream.answer()


async def test_both_eras_side_by_side() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    old, new = await asyncio.gather(
        post(app, ADD, session), post(app, stateless("tools/call", ADD["params"]))
    )
    assert "resultType" not in old.json["result"]
    assert new.json["result"]["resultType"] == "complete"


# Batches: 2025-03-26 alone ----------------------------------------------------------------------------


async def test_batch_is_answered_by_an_array() -> None:
    app = things().server.asgi()
    session = await open_session(app, "2025-03-26")
    batch = [
        ADD,
        rpc("notifications/cancelled", {"requestId": 77}, id=None),
        rpc("nope", id="2"),
        {"jsonrpc": "2.0"},
    ]
    answer = await post(app, batch, session)
    assert answer.status == 200
    by_id = {str(message["id"]): message for message in answer.json}
    assert by_id["1"]["result"]["content"][0]["text"] == "3"
    assert by_id["2"]["error"]["code"] == -32601
    assert by_id["None"]["error"]["code"] == -32600
    assert len(answer.json) == 3


async def test_batch_of_notifications_is_answered_by_nothing() -> None:
    app = things().server.asgi()
    session = await open_session(app, "2025-03-26")
    answer = await post(app, [rpc("notifications/roots/list_changed", id=None)] * 2, session)
    assert (answer.status, answer.body) == (202, b"")


async def test_batch_that_streams() -> None:
    app = things().server.asgi()
    session = await open_session(app, "2025-03-26")
    tell = rpc("tools/call", {"name": "tell", "_meta": {"progressToken": "t"}}, id=2)
    answer = await post(app, [ADD, tell], session)
    assert answer.headers["content-type"] == "text/event-stream"
    assert {message.get("id") for message in answer.messages} == {None, 1, 2}
    assert sum("id" in message for message in answer.messages) == 2


async def test_an_id_twice_in_a_batch() -> None:
    app = things().server.asgi()
    session = await open_session(app, "2025-03-26")
    answer = await post(app, [rpc("ping", id=1), rpc("ping", id=1)], session)
    assert sorted("error" in message for message in answer.json) == [False, True]


async def test_initialize_cannot_be_in_a_batch() -> None:
    app = things().server.asgi()
    session = await open_session(app, "2025-03-26")
    answer = await post(app, [initialize("2025-03-26")], session)
    assert answer.json[0]["error"]["code"] == -32600


async def test_one_call_of_a_batch_is_cancelled() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app, "2025-03-26")
    batch = Request(app, "POST", session, body=_json([ADD, rpc("tools/call", {"name": "wait"}, id=2)]))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await post(app, rpc("notifications/cancelled", {"requestId": 2}, id=None), session)
    assert [message["id"] for message in (await batch.answer()).json] == [1]
