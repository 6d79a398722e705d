"""When a response is a stream, what goes out on it, and what a broken or unread one leads to."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.http.things import things
from tests.http.wire import META, WAIT, Request, open_session, post, routed, rpc, stateless
from tests.spec.oracle import validate_frame


def tell(name: str = "tell", **arguments: Any) -> dict[str, Any]:
    return stateless("tools/call", {"name": name, "arguments": arguments}, progressToken="t")


def start(app: Any, message: Any) -> Request:
    return Request(app, "POST", routed(message), body=json.dumps(message).encode())


async def test_json_when_nothing_streams() -> None:
    answer = await post(things().server.asgi(), stateless("tools/call", {"name": "tell"}))
    assert answer.headers["content-type"] == "application/json"
    validate_frame("2026-07-28", answer.body, "tools/call", "to_client", exact=True)


async def test_stream_when_something_streams() -> None:
    answer = await post(things().server.asgi(), tell())
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-cache"
    assert [m.get("method", "answer") for m in answer.messages] == ["notifications/progress"] * 3 + ["answer"]
    for message in answer.messages:
        validate_frame("2026-07-28", message, "tools/call", "to_client", exact=True)


@pytest.mark.parametrize("text", ["two\nlines", "\u2028", "a\r\nb", "서울"])
async def test_each_message_is_one_data_line(text: str) -> None:
    answer = await post(things().server.asgi(), tell(text=text))
    lines = [line for line in answer.body.split(b"\n") if line]
    assert len(lines) == 4
    assert all(line.startswith(b"data: {") and line.endswith(b"}") for line in lines)
    assert answer.messages[0]["params"]["message"] == text


async def test_messages_from_a_worker_thread_come_before_the_answer() -> None:
    answer = await post(things().server.asgi(), tell("tell_from_thread"))
    assert [m.get("method", "answer") for m in answer.messages] == ["notifications/progress"] * 3 + ["answer"]


async def test_messages_go_out_before_the_answer_is_there() -> None:
    it = things()
    call = start(it.server.asgi(), tell("tell_and_wait"))
    await call.until(b"notifications/progress")
    assert not call.complete
    it.gate.set()
    assert (await call.answer()).messages[-1]["result"]["content"][0]["text"] == "done"


async def test_error_at_the_end_of_a_stream() -> None:
    it = things()

    @it.server.middleware("tools/call")
    async def refuse_after_progress(call: Any, proceed: Any) -> Any:
        from dragoman.errors import Refusal

        await proceed(call)
        raise Refusal(-32602, "no")

    answer = await post(it.server.asgi(), tell())
    assert answer.status == 200
    assert answer.messages[-1]["error"] == {"code": -32602, "message": "no"}


@pytest.mark.parametrize("name", ["wait", "tell_and_wait"])
async def test_broken_connection_cancels(name: str) -> None:
    it = things()
    call = start(it.server.asgi(), tell(name))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    call.disconnect()
    await asyncio.wait_for(call.task, WAIT)
    assert it.cancelled.is_set()
    assert not it.finished.is_set()


async def test_nothing_is_sent_for_a_cancelled_request() -> None:
    it = things()
    call = start(it.server.asgi(), tell("tell_and_wait"))
    await call.until(b"progress")
    before = len(call.sent)
    call.disconnect()
    await asyncio.wait_for(call.task, WAIT)
    assert b"result" not in b"".join(message.get("body", b"") for message in call.sent[before:])


async def test_cancelling_leaves_the_task_of_the_server_alone() -> None:
    it = things()
    app = it.server.asgi()
    after: list[bool] = []

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        await asyncio.sleep(0)  # a cancellation that is left over would end this
        after.append(True)

    message = tell("wait")
    call = Request(outer, "POST", routed(message), body=json.dumps(message).encode())
    await asyncio.wait_for(it.entered.wait(), WAIT)
    call.disconnect()
    await asyncio.wait_for(call.task, WAIT)
    assert after == [True]


async def test_server_cancels_the_task() -> None:
    it = things()
    call = start(it.server.asgi(), tell("wait"))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    assert it.cancelled.is_set()


async def test_work_that_cancels_itself_is_a_failure_and_no_silence() -> None:
    it = things()

    @it.server.middleware("tools/call")
    async def give_up(call: Any, proceed: Any) -> Any:
        raise asyncio.CancelledError

    assert (await post(it.server.asgi(), stateless("tools/call", {"name": "add"}))).code == -32603


async def test_unread_stream_ends_and_the_server_goes_on() -> None:
    it = things()
    app = it.server.asgi(max_queue=256 * 1024)
    call = start(app, tell("flood", size=64))
    call.stop_reading()
    await asyncio.wait_for(it.entered.wait(), WAIT)
    assert not it.cancelled.is_set(), "a full queue is no reason yet"
    flood = start(app, tell("flood", size=1024 * 1024))
    flood.stop_reading()
    await asyncio.wait_for(flood.task, WAIT)
    assert it.cancelled.is_set()
    assert not flood.complete, "a server closes the connection of a response that does not end"
    assert (await post(app, stateless("tools/list"))).status == 200
    call.disconnect()
    await asyncio.wait_for(call.task, WAIT)


async def test_congestion_can_be_seen() -> None:
    it = things()
    seen: list[bool] = []

    @it.server.middleware("tools/call")
    async def watch(call: Any, proceed: Any) -> Any:
        seen.append(call.channel.congested)
        for _ in range(100):
            call.channel.notify(
                "notifications/progress", {"progressToken": "t", "progress": 1, "message": "x" * 1024}
            )
        seen.append(call.channel.congested)
        return await proceed(call)

    await post(it.server.asgi(), tell())
    assert seen == [False, True]


async def test_listen_stream() -> None:
    it = things()
    app = it.server.asgi()
    listen = stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="L")
    stream = start(app, listen)
    await stream.until(b"acknowledged")
    it.server.notify_tools_changed()
    await stream.until(b"tools/list_changed")
    stream.disconnect()
    answer = await stream.answer()
    assert [message["method"] for message in answer.messages] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    for message in answer.messages:
        assert message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "L"
    assert not it.server.kernel.hub.subscriptions


async def test_winding_down_ends_listen_streams_with_their_result() -> None:
    app = things().server.asgi()
    stream = start(app, stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
    await stream.until(b"acknowledged")
    app.wind_down()
    answer = await stream.answer()
    assert answer.messages[-1]["id"] == 1
    assert answer.messages[-1]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1


async def test_closing_lets_calls_finish_and_ends_sessions() -> None:
    it = things()
    app = it.server.asgi()
    session = await open_session(app)
    own = Request(app, "GET", session)
    call = start(app, tell("wait"))
    await asyncio.wait_for(it.entered.wait(), WAIT)
    await own.until(b"")
    app.close()
    assert (await own.answer()).messages == []
    assert not app.sessions
    it.gate.set()
    assert (await call.answer()).json["result"]["content"][0]["text"] == "done"


async def test_quiet_streams_are_kept_alive() -> None:
    it = things()
    app = it.server.asgi(keep_alive=0.02)
    stream = start(app, stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
    await stream.until(b": keep-alive\n\n: keep-alive\n\n")
    stream.disconnect()
    assert len((await stream.answer()).messages) == 1, "a comment is no message"


async def test_a_stream_that_is_busy_gets_no_comments() -> None:
    it = things()
    app = it.server.asgi()
    stream = start(app, stateless("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
    await stream.until(b"acknowledged")
    [exchange] = app.open_exchanges
    exchange.keep_alive()
    await asyncio.sleep(0)
    assert b"keep-alive" not in stream.body
    exchange.keep_alive()
    await stream.until(b"keep-alive")
    stream.disconnect()
    await stream.answer()


async def test_a_call_may_read_headers_and_client() -> None:
    it = things()
    app = it.server.asgi(trusted_proxies=["127.0.0.1"])
    message = stateless("tools/call", {"name": "look"})
    await post(app, message, routed(message, x_request_id="r-7", x_forwarded_for="7.7.7.7"))
    headers, client = it.seen[0]
    assert headers["x-request-id"] == "r-7"
    assert headers["mcp-name"] == "look"
    assert client == ("7.7.7.7", None)


async def test_notifications_are_taken_without_an_answer() -> None:
    message = rpc("notifications/anything", {"_meta": META}, id=None)
    answer = await post(things().server.asgi(), message)
    assert (answer.status, answer.body) == (202, b"")


async def test_many_at_once() -> None:
    it = things()
    app = it.server.asgi()
    calls = [
        stateless("tools/call", {"name": "add", "arguments": {"a": n, "b": 1}}, id=n) for n in range(100)
    ]
    answers = await asyncio.gather(*(post(app, call) for call in calls))
    assert [answer.json["id"] for answer in answers] == list(range(100))
    assert [answer.json["result"]["structuredContent"]["result"] for answer in answers] == list(range(1, 101))
    assert not app.open_exchanges
