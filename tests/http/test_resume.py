"""Streams of sessions that break off, or are closed by the server, and go on over another connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman import Context
from dragoman.protocol.sse import Event, Parser
from tests.http.things import Things, things
from tests.http.wire import (
    BASE,
    WAIT,
    Request,
    Wire,
    initialize,
    messages,
    open_session,
    post,
    rpc,
    served,
    stateless,
)

TOKEN = {"_meta": {"progressToken": "t"}}
RESUMABLE = ["2025-03-26", "2025-06-18", "2025-11-25"]


def call(name: str, id: Any = 7, **arguments: Any) -> dict[str, Any]:  # noqa: A002  # the member's own name
    return rpc("tools/call", {"name": name, "arguments": arguments, **TOKEN}, id=id)


def start(app: Any, session: Any, message: Any) -> Request:
    return Request(app, "POST", session, body=json.dumps(message).encode())


def resume(app: Any, session: Any, last: str) -> Request:
    return Request(app, "GET", {**session, "last-event-id": last})


def all_events(body: bytes) -> list[Event]:
    return [event for event in Parser().feed(body) if isinstance(event, Event)]


def last_id(body: bytes) -> str:
    parser = Parser()
    parser.feed(body)
    assert parser.last_id is not None
    return parser.last_id


def polling() -> Things:
    it = things()

    @it.server.tool
    async def poll(ctx: Context, retry: int = 500) -> str:
        """Close the connection, then wait for the gate."""
        await ctx.report_progress(1)
        await ctx.close_sse_stream(retry)
        await ctx.report_progress(2)
        it.entered.set()
        await it.gate.wait()
        await ctx.report_progress(3)
        return "done"

    @it.server.tool
    def poll_from_thread(ctx: Context) -> str:
        """The same from a worker thread, where nothing can be awaited."""
        ctx.close_sse_stream(250)
        return "done"

    return it


# What a stream looks like -----------------------------------------------------------------------------


async def test_a_stream_begins_with_an_id_and_no_data_where_it_may_be_polled() -> None:
    app = things().server.asgi()
    answer = await post(app, call("tell"), await open_session(app))
    first, *rest = all_events(answer.body)
    assert first.data == b""
    assert first.id
    assert [json.loads(event.data).get("method", "answer") for event in rest] == [
        *["notifications/progress"] * 3,
        "answer",
    ]
    ids = [event.id for event in (first, *rest)]
    assert len(set(ids)) == len(ids), "each event has an id of its own"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_before_there_was_polling_every_event_has_data(version: str) -> None:
    app = things().server.asgi()
    answer = await post(app, call("tell"), await open_session(app, version))
    events = all_events(answer.body)
    assert all(event.data for event in events)
    assert len({event.id for event in events}) == 4


async def test_ids_of_two_streams_of_a_session_are_different() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    bodies = [(await post(app, call("tell"), session)).body for _ in range(2)]
    ids = [event.id for body in bodies for event in all_events(body)]
    assert len(set(ids)) == len(ids)


async def test_stateless_streams_have_no_ids() -> None:
    app = things().server.asgi()
    answer = await post(app, stateless("tools/call", {"name": "tell"}, progressToken="t"))
    assert b"id:" not in answer.body.replace(b'"id":', b"")


async def test_one_answer_without_a_stream_has_none_either() -> None:
    app = things().server.asgi()
    answer = await post(app, rpc("ping"), await open_session(app))
    assert answer.headers["content-type"] == "application/json"


# Broken by the network --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", RESUMABLE)
async def test_a_broken_stream_goes_on_over_a_get(version: str) -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app, version)
    broken = start(app, session, call("tell_and_wait"))
    await broken.until(b"progress")
    broken.disconnect()
    it.gate.set()
    await asyncio.wait_for(broken.task, WAIT)
    answer = await resume(app, session, last_id(broken.body)).answer()
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    [message] = answer.messages
    assert (message["id"], message["result"]["content"][0]["text"]) == (7, "done")


async def test_a_broken_stream_goes_on_while_the_call_does() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    broken = start(app, session, call("tell_and_wait"))
    await broken.until(b"progress")
    broken.disconnect()
    again = resume(app, session, last_id(broken.body))
    await again.until(b"")
    it.gate.set()
    assert [message["id"] for message in (await again.answer()).messages] == [7]
    assert not app.sessions.values()[0].busy


async def test_what_was_missed_comes_first_and_once() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    whole = await post(app, call("tell", steps=5), session)
    events = all_events(whole.body)
    for index, event in enumerate(events):
        answer = await resume(app, session, event.id).answer()
        assert [other.id for other in all_events(answer.body)] == [other.id for other in events[index + 1 :]]


async def test_only_the_stream_that_broke_is_replayed() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    one = await post(app, call("tell", 1, text="one"), session)
    await post(app, call("tell", 2, text="two"), session)
    answer = await resume(app, session, all_events(one.body)[0].id).answer()
    assert {message.get("id", 1) for message in answer.messages} == {1}
    assert b"two" not in answer.body


async def test_events_of_another_session_are_not_there() -> None:
    app = things().server.asgi()
    mine, other = await open_session(app), await open_session(app)
    whole = await post(app, call("tell"), mine)
    answer = await resume(app, other, all_events(whole.body)[0].id).answer()
    assert answer.status == 400
    assert b"tell" not in answer.body


@pytest.mark.parametrize(
    "last", ["nonsense", "x.1", ".1", "own.", "own.-1", "own.1e3", "own." + "9" * 40, "é"]
)
async def test_an_event_id_that_is_none_is_refused(last: str) -> None:
    app = things().server.asgi()
    answer = await resume(app, await open_session(app), last).answer()
    assert answer.status == 400
    assert "Last-Event-ID" in answer.json["error"]["message"]


async def test_a_newer_connection_takes_the_stream_over() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    first = start(app, session, call("tell_and_wait"))
    await first.until(b"progress")
    second = resume(app, session, all_events(first.body)[0].id)  # the first is half-open, for all we know
    await second.until(b"progress")
    third = resume(app, session, last_id(second.body))
    assert (await second.answer()).messages[0]["method"] == "notifications/progress"
    assert second.complete
    await third.until(b"")
    it.gate.set()
    assert [message["id"] for message in (await third.answer()).messages] == [7]
    await asyncio.wait_for(first.task, WAIT)
    assert first.complete
    assert b"result" not in first.body


async def test_an_unread_stream_is_given_up_and_can_be_resumed() -> None:
    it = things()
    app = it.server.asgi(max_queue=64 * 1024, resume_bytes=8 * 1024 * 1024)
    session = await open_session(app)
    unread = start(app, session, call("flood", size=1024 * 1024))
    unread.stop_reading()
    await asyncio.wait_for(it.entered.wait(), WAIT)
    it.gate.set()
    await asyncio.wait_for(unread.task, WAIT)
    assert not it.cancelled.is_set(), "a session's call goes on"
    assert not unread.complete
    [stream] = [s for s in app.sessions.values()[0].shelf.streams.values() if s.id != "own"]
    answer = await resume(app, session, f"{stream.id}.0").answer()
    numbers = [event.id for event in all_events(answer.body)]
    assert numbers == [f"{stream.id}.{number}" for number in range(1, stream.last + 1)]
    assert answer.messages[-1]["id"] == 7


async def test_a_question_is_asked_again_on_the_resumed_stream() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    broken = start(app, session, call("ask", question="?"))
    await broken.until(b"elicitation/create")
    first = all_events(broken.body)[0].id
    broken.disconnect()
    again = resume(app, session, first)
    await again.until(b"elicitation/create")
    [asked] = messages(again.body)
    reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}}
    assert (await post(app, reply, session)).status == 202
    assert (await again.answer()).messages[-1]["result"]["content"][0]["text"] == "accept"


async def test_cancelling_ends_a_stream_that_is_carried_elsewhere() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    broken = start(app, session, call("tell_and_wait"))
    await broken.until(b"progress")
    broken.disconnect()
    again = resume(app, session, last_id(broken.body))
    await again.until(b"")
    await post(app, rpc("notifications/cancelled", {"requestId": 7}, id=None), session)
    assert (await again.answer()).messages == []
    assert again.complete


async def test_a_batch_is_resumed_too() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app, "2025-03-26")
    broken = start(app, session, [call("tell_and_wait", 1), call("add", 2, a=1, b=2)])
    await broken.until(b"progress")
    broken.disconnect()
    it.gate.set()
    await asyncio.wait_for(broken.task, WAIT)
    answer = await resume(app, session, all_events(broken.body)[0].id).answer()
    seen = messages(broken.body)[:1] + answer.messages
    assert {message["id"] for message in seen if "id" in message} == {1, 2}


# Closed by the server ---------------------------------------------------------------------------------


async def test_the_server_closes_the_connection_and_the_client_polls() -> None:
    it = polling()
    app = it.server.asgi()
    session = await open_session(app)
    closed = start(app, session, call("poll"))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await closed.until(b"retry")
    await closed.ended()
    parser = Parser()
    events = parser.feed(closed.body)
    assert parser.retry == 500
    assert [event.data[:1] for event in events] == [b"", b"{"]
    again = resume(app, session, parser.last_id)
    await again.until(b"progress")
    it.gate.set()
    answer = await again.answer()
    assert [m["params"]["progress"] for m in answer.messages[:-1]] == [2, 3]
    assert answer.messages[-1]["result"]["content"][0]["text"] == "done"
    await asyncio.wait_for(closed.task, WAIT)


async def test_a_connection_that_carries_the_rest_can_be_closed_as_well() -> None:
    it = polling()
    app = it.server.asgi()
    turns = [asyncio.Event(), asyncio.Event()]

    @it.server.tool
    async def poll_twice(ctx: Context) -> str:
        await ctx.close_sse_stream(1)
        for turn in turns:
            await turn.wait()
            await ctx.close_sse_stream(2)
        return "done"

    session = await open_session(app)
    closed = start(app, session, call("poll_twice"))
    await closed.until(b"retry: 1\n")
    for turn in turns:
        again = resume(app, session, last_id(closed.body))
        await again.begun()
        turn.set()
        answer = await again.answer()
    final = answer if answer.messages else await resume(app, session, last_id(closed.body)).answer()
    assert final.messages[-1]["result"]["content"][0]["text"] == "done"


async def test_closing_from_a_worker_thread() -> None:
    app = polling().server.asgi()
    session = await open_session(app)
    closed = start(app, session, call("poll_from_thread"))
    await closed.until(b"retry: 250\n\n")
    answer = await resume(app, session, last_id(closed.body)).answer()
    assert answer.messages[-1]["result"]["content"][0]["text"] == "done"
    await asyncio.wait_for(closed.task, WAIT)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_nothing_is_closed_where_clients_do_not_poll(version: str) -> None:
    it = polling()
    it.gate.set()
    app = it.server.asgi()
    answer = await post(app, call("poll"), await open_session(app, version))
    assert b"retry" not in answer.body
    assert answer.messages[-1]["result"]["content"][0]["text"] == "done"


async def test_nothing_is_closed_where_there_are_no_sessions() -> None:
    it = polling()
    it.gate.set()
    answer = await post(it.server.asgi(), stateless("tools/call", {"name": "poll"}))
    assert answer.json["result"]["content"][0]["text"] == "done"


def test_polling_on_a_real_socket() -> None:
    it = polling()
    with served(it.server.asgi()) as port, Wire(port) as wire, Wire(port) as other:
        session = wire.request("POST", initialize("2025-11-25"), BASE).answer().headers["mcp-session-id"]
        headers = {**BASE, "mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        closed = wire.request("POST", call("poll_from_thread"), headers).answer()
        assert closed.messages == []
        # The connection is as good as new.
        assert wire.request("POST", rpc("ping"), headers).answer().json["result"] == {}
        again = other.request("GET", None, {**headers, "last-event-id": last_id(closed.body)}).answer()
        assert again.messages[-1]["result"]["content"][0]["text"] == "done"


# The session's own stream -----------------------------------------------------------------------------


async def test_the_sessions_own_stream_is_resumed() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    stream = Request(app, "GET", session)
    await stream.until(b"id: ")
    it.server.notify_tools_changed()
    await stream.until(b"list_changed")
    stream.disconnect()
    await stream.answer()
    for _ in range(3):
        it.server.notify_tools_changed()
    again = resume(app, session, last_id(stream.body))
    await again.until(b"list_changed")
    again.disconnect()
    answer = await again.answer()
    assert len(answer.messages) == 3
    assert all_events(answer.body)[0].data, "the client has an id to go on from"


async def test_without_an_id_the_stream_goes_on_behind_what_was_carried() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    for expected in (1, 2, 0):
        for _ in range(expected):
            it.server.notify_tools_changed()
        stream = Request(app, "GET", session)
        await stream.until(b"list_changed" if expected else b"id: ")
        stream.disconnect()
        assert len((await stream.answer()).messages) == expected


# Bounds -----------------------------------------------------------------------------------------------


async def test_events_are_kept_up_to_a_number() -> None:
    app = things().server.asgi(resume_events=10)
    session = await open_session(app)
    whole = await post(app, call("tell", steps=100), session)
    answer = await resume(app, session, all_events(whole.body)[0].id).answer()
    assert len(answer.messages) == 10
    assert answer.messages[-1]["id"] == 7, "the newest are kept, the answer among them"
    assert answer.body.startswith(b": events before this one are no longer kept\n\n")


async def test_events_are_kept_up_to_a_size() -> None:
    app = things().server.asgi(resume_bytes=64 * 1024)
    session = await open_session(app)
    for _ in range(8):
        whole = await post(app, call("tell", steps=4, text="x" * 8192), session)
    log = app.sessions.events
    assert log.size <= 64 * 1024
    [seat] = app.sessions.values()
    assert seat.shelf.size == sum(stream.size for stream in seat.shelf.streams.values()) <= 64 * 1024
    assert len((await resume(app, session, all_events(whole.body)[0].id).answer()).messages) == 5


async def test_an_answer_is_kept_whatever_its_size() -> None:
    it = polling()

    @it.server.tool
    async def much(ctx: Context) -> str:
        await ctx.close_sse_stream(1)
        return "x" * 50_000

    app = it.server.asgi(resume_bytes=8192)
    session = await open_session(app)
    closed = await start(app, session, call("much")).answer()
    answer = await resume(app, session, last_id(closed.body)).answer()
    assert len(answer.messages[-1]["result"]["content"][0]["text"]) == 50_000


async def test_events_are_kept_for_a_time() -> None:
    app = things().server.asgi(resume_seconds=60.0)
    session = await open_session(app)
    whole = await post(app, call("tell"), session)
    log = app.sessions.events
    [seat] = app.sessions.values()
    now = asyncio.get_running_loop().time()
    log.trim(now + 59)
    assert len(seat.shelf.streams) == 2
    log.trim(now + 61)
    assert list(seat.shelf.streams) == ["own"]
    assert (log.size, log.count) == (0, 0)
    assert (await resume(app, session, all_events(whole.body)[0].id).answer()).status == 400


async def test_nothing_is_left_of_a_session_that_ended() -> None:
    app = things().server.asgi()
    for _ in range(3):
        session = await open_session(app)
        await post(app, call("tell"), session)
        assert app.sessions.events.size
        assert (await Request(app, "DELETE", session).answer()).status == 204
    assert (app.sessions.events.size, app.sessions.events.count) == (0, 0)


async def test_the_order_of_events_does_not_grow_with_those_that_are_gone() -> None:
    it = things()
    app = it.server.asgi()
    await open_session(app)
    for _ in range(1000):
        it.server.notify_tools_changed()
    log = app.sessions.events
    assert log.count == 32
    assert len(log._order) <= 2 * 32 + 65


async def test_one_session_does_not_push_out_what_all_others_keep() -> None:
    app = things().server.asgi(resume_bytes=32 * 1024)
    quiet, busy = await open_session(app), await open_session(app)
    whole = await post(app, call("tell"), quiet)
    for _ in range(50):
        await post(app, call("tell", text="x" * 4096), busy)
    answer = await resume(app, quiet, all_events(whole.body)[0].id).answer()
    assert len(answer.messages) == 4


async def test_all_sessions_together_are_bounded_too() -> None:
    app = things().server.asgi(resume_bytes=8 * 1024)
    for _ in range(40):
        await post(app, call("tell", text="x" * 1024), await open_session(app))
    assert app.sessions.events.size <= 16 * 8 * 1024


async def test_a_server_that_is_stopped_in_a_call_leaves_no_stream_open() -> None:
    app = things().server.asgi()
    session = await open_session(app)
    for message in (call("tell_and_wait"), [call("tell_and_wait")]):
        if isinstance(message, list):
            session = await open_session(app, "2025-03-26")
        stopped = start(app, session, message)
        await stopped.until(b"progress")
        stopped.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stopped.task
        answer = await resume(app, session, last_id(stopped.body)).answer()
        assert answer.messages == []
