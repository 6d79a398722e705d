"""Several processes that serve the same sessions, with a store between them and no sticky routing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.protocol.sse import Parser
from dragoman.stores import MemoryStore, Store
from dragoman.stores.sqlite import SQLiteStore
from dragoman.transports.asgi import HttpApp
from tests.http.test_resume import last_id, resume
from tests.http.things import Things, things
from tests.http.wire import BASE, INITIALIZE, WAIT, Request, messages, open_session, post, rpc
from tests.stores.clock import FakeClock

SECRET = "correct horse battery staple"
PING = rpc("ping")


class Worker(NamedTuple):
    """One of the processes: what it serves, and how."""

    it: Things
    app: HttpApp


class Service(NamedTuple):
    """Two processes of one service."""

    one: Worker
    two: Worker
    clock: FakeClock
    stores: list[Store]


Started = Callable[..., AbstractAsyncContextManager[Service]]


@pytest.fixture(params=["memory", "sqlite"])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Started:
    clock = FakeClock()

    @asynccontextmanager
    async def started(**options: Any) -> AsyncIterator[Service]:
        memory = MemoryStore(clock=clock)
        path = tmp_path / "sessions.db"
        stores: list[Any] = [memory, memory]
        if request.param == "sqlite":
            stores = [SQLiteStore(path, clock=clock) for _ in range(2)]
        workers = []
        for store in stores:
            it = things(secret=SECRET)
            workers.append(Worker(it, it.server.asgi(store=store, **options)))
        try:
            yield Service(*workers, clock, stores)
        finally:
            for worker, store in zip(workers, stores, strict=True):
                worker.app.close()
                await settled(worker.app)
                await store.close()

    return started


async def settled(app: HttpApp) -> None:
    """Wait until what nobody waits for is done."""
    shared = app.sessions.shared
    assert shared is not None
    while shared._tasks:
        await asyncio.wait(shared._tasks)


def body(message: Any) -> bytes:
    return json.dumps(message).encode()


def call(name: str, id: Any = 7, **arguments: Any) -> dict[str, Any]:  # noqa: A002  # the member's own name
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": "t"}}
    return rpc("tools/call", params, id=id)


def level(name: str) -> dict[str, Any]:
    return rpc("logging/setLevel", {"level": name})


async def test_any_process_serves_a_session(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        for worker in (service.two, service.one, service.two):
            answer = await post(
                worker.app, rpc("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}), session
            )
            assert answer.json["result"]["content"][0]["text"] == "3"


async def test_the_end_of_a_session_is_known_everywhere(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        assert (await post(service.two.app, PING, session)).status == 200
        waiting = Request(service.two.app, "POST", session, body=body(call("wait")))
        await asyncio.wait_for(service.two.it.entered.wait(), WAIT)
        stream = Request(service.two.app, "GET", session)
        await stream.until(b"id: ")
        assert (await Request(service.one.app, "DELETE", session).answer()).status == 204
        assert (await stream.answer()).messages == []
        await waiting.answer()
        assert service.two.it.cancelled.is_set()
        for worker in (service.one, service.two):
            assert (await post(worker.app, PING, session)).status == 404
            assert not worker.app.sessions


async def test_idleness_is_counted_over_all_processes(start: Started) -> None:
    async with start(session_idle=60.0) as service:
        session = await open_session(service.one.app)
        for _ in range(3):
            service.clock.pass_(40)
            assert (await post(service.two.app, PING, session)).status == 200
        assert (await post(service.one.app, PING, session)).status == 200, "used elsewhere is used"
        service.clock.pass_(61)
        for worker in (service.two, service.one):
            assert (await post(worker.app, PING, session)).status == 404


async def test_an_active_session_does_not_end_for_idleness(start: Started) -> None:
    async with start(session_idle=60.0) as service:
        session = await open_session(service.one.app)
        waiting = Request(service.two.app, "POST", session, body=body(call("wait")))
        await asyncio.wait_for(service.two.it.entered.wait(), WAIT)
        shared = service.two.app.sessions.shared
        assert shared is not None
        for _ in range(10):
            service.clock.pass_(20)
            shared.keep_house()
            await settled(service.two.app)
        service.two.it.gate.set()
        assert (await waiting.answer()).json["result"]["content"][0]["text"] == "done"
        assert (await post(service.one.app, PING, session)).status == 200


async def test_letting_go_of_a_session_does_not_end_it(start: Started) -> None:
    async with start(max_sessions=1) as service:
        session = await open_session(service.one.app)
        await open_session(service.one.app)
        assert len(service.one.app.sessions) == 1
        assert (await post(service.one.app, PING, session)).status == 200
        service.one.app.close()
        assert (await post(service.one.app, PING, session)).status == 200


async def test_the_log_level_is_the_sessions(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        assert (await post(service.two.app, PING, session)).status == 200
        assert (await post(service.one.app, level("debug"), session)).status == 200
        await post(service.two.app, PING, session)
        assert service.two.app.sessions[session["mcp-session-id"]].link.session.log_level == "debug"
        await post(service.two.app, level("error"), session)
        await post(service.one.app, PING, session)
        assert service.one.app.sessions[session["mcp-session-id"]].link.session.log_level == "error"


async def test_what_two_processes_change_at_once_is_changed(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        await post(service.two.app, PING, session)
        key = session["mcp-session-id"]
        seats = [worker.app.sessions[key] for worker in (service.one, service.two)]
        seats[0].link.subscriptions.add("a:1")
        seats[1].link.subscriptions.add("b:2")
        seats[1].link.session.log_level = "info"
        for worker, seat in zip((service.one, service.two), seats, strict=True):
            await worker.app.sessions.shared.save(seat)
        await post(service.one.app, PING, session)
        for seat in seats:
            assert seat.link.subscriptions == {"a:1", "b:2"}
            assert seat.link.session.log_level == "info"


async def test_an_answer_finds_the_process_that_asked(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        asking = Request(service.one.app, "POST", session, body=body(call("ask", question="?")))
        await asking.until(b"elicitation/create")
        [asked] = messages(asking.body)
        reply = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {}}}
        assert (await post(service.two.app, reply, session)).status == 202
        assert (await asking.answer()).messages[-1]["result"]["content"][0]["text"] == "accept"


async def test_an_error_for_an_answer_finds_it_too(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        asking = Request(service.one.app, "POST", session, body=body(call("ask", question="?")))
        await asking.until(b"elicitation/create")
        [asked] = messages(asking.body)
        reply = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no", "data": [1]}}
        assert (await post(service.two.app, reply, session)).status == 202
        assert "error" in (await asking.answer()).messages[-1]
        assert not service.one.it.asked


async def test_a_cancellation_finds_the_process_that_works(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        waiting = Request(service.one.app, "POST", session, body=body(call("wait")))
        await asyncio.wait_for(service.one.it.entered.wait(), WAIT)
        cancel = rpc("notifications/cancelled", {"requestId": 7}, id=None)
        assert (await post(service.two.app, cancel, session)).status == 202
        await waiting.answer()
        assert service.one.it.cancelled.is_set()


# Streams ----------------------------------------------------------------------------------------------


async def test_a_broken_stream_goes_on_in_another_process(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        broken = Request(service.one.app, "POST", session, body=body(call("tell_and_wait")))
        await broken.until(b"progress")
        first = Parser()
        first.feed(broken.body)
        broken.disconnect()
        again = resume(service.two.app, session, first.last_id.partition(".")[0] + ".0")
        await again.until(b"progress")
        service.one.it.gate.set()
        answer = await again.answer()
        assert [message.get("id") for message in answer.messages] == [None, 7]
        await asyncio.wait_for(broken.task, WAIT)


async def test_a_stream_that_is_over_is_replayed_by_another_process(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        whole = await post(service.one.app, call("tell"), session)
        events = Parser().feed(whole.body)
        answer = await resume(service.two.app, session, events[1].id).answer()
        assert Parser().feed(answer.body) == events[2:]


async def test_a_connection_in_another_process_takes_the_place_of_one_here(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        first = Request(service.one.app, "POST", session, body=body(call("tell_and_wait")))
        await first.until(b"progress")
        second = resume(service.two.app, session, last_id(first.body))
        await first.ended()
        assert b"result" not in first.body
        third = resume(service.one.app, session, last_id(first.body))
        assert (await second.answer()).messages == []
        service.one.it.gate.set()
        assert [message["id"] for message in (await third.answer()).messages] == [7]


async def test_events_of_another_session_are_not_there(start: Started) -> None:
    async with start() as service:
        session, other = await open_session(service.one.app), await open_session(service.one.app)
        whole = await post(service.one.app, call("tell"), session)
        for worker in (service.one, service.two):
            answer = await resume(worker.app, other, Parser().feed(whole.body)[0].id).answer()
            assert answer.status == 400


async def test_notices_reach_the_stream_wherever_it_is(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        stream = Request(service.two.app, "GET", session)
        await stream.until(b"id: ")
        service.one.it.server.notify_tools_changed()
        await stream.until(b"list_changed")
        stream.disconnect()
        assert len((await stream.answer()).messages) == 1


async def test_the_sessions_own_stream_goes_on_in_another_process(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        stream = Request(service.one.app, "GET", session)
        await stream.until(b"id: ")
        service.one.it.server.notify_tools_changed()
        await stream.until(b"list_changed")
        stream.disconnect()
        await stream.answer()
        service.one.it.server.notify_tools_changed()
        again = resume(service.two.app, session, last_id(stream.body))
        await again.until(b"list_changed")
        again.disconnect()
        assert len((await again.answer()).messages) == 1
        fresh = Request(service.one.app, "GET", session)
        await fresh.until(b"id: ")
        service.one.it.server.notify_tools_changed()
        await fresh.until(b"list_changed")
        fresh.disconnect()
        assert len((await fresh.answer()).messages) == 1


async def test_a_session_has_one_stream_of_its_own_over_all_processes(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        first = Request(service.one.app, "GET", session)
        await first.until(b"id: ")
        second = Request(service.two.app, "GET", session)
        await first.answer()
        assert first.complete
        service.one.it.server.notify_tools_changed()
        await second.until(b"list_changed")
        second.disconnect()
        assert len((await second.answer()).messages) == 1


async def test_old_events_go(start: Started) -> None:
    async with start(resume_seconds=60.0) as service:
        session = await open_session(service.one.app)
        whole = await post(service.one.app, call("tell"), session)
        shared = service.one.app.sessions.shared
        assert shared is not None
        await settled(service.one.app)
        service.clock.pass_(61)
        shared.keep_house()
        await settled(service.one.app)
        answer = await resume(service.two.app, session, Parser().feed(whole.body)[0].id).answer()
        assert answer.status == 400


# The store --------------------------------------------------------------------------------------------


async def test_a_store_that_fails_is_no_lost_session(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        for store in service.stores:
            await store.close()
        for answer in (
            await post(service.one.app, PING, session),
            await post(service.one.app, INITIALIZE, BASE),
            await Request(service.one.app, "GET", session).answer(),
            await Request(service.one.app, "DELETE", session).answer(),
        ):
            assert answer.status == 503, "and not 404: the session may still be open"
            assert answer.headers["retry-after"]
            assert "mcp-session-id" not in answer.headers


async def test_nobody_listens_when_there_is_no_session(start: Started) -> None:
    async with start() as service:
        session = await open_session(service.one.app)
        shared = service.one.app.sessions.shared
        assert shared is not None
        assert shared._listener is not None
        await Request(service.one.app, "DELETE", session).answer()
        service.one.app._keep_sessions(0.0)
        assert shared._listener is None


async def test_ids_are_looked_up_for_whoever_opened_them(start: Started) -> None:
    async with start(authenticate=lambda headers: headers.get("x-user")) as service:
        session = {**await open_session(service.one.app)}
        assert (await post(service.two.app, PING, {**session, "x-user": "bert"})).status == 404
        assert not service.two.app.sessions
        assert (await post(service.two.app, PING, session)).status == 200
        assert (await post(service.two.app, PING, {**session, "x-user": "bert"})).status == 404
