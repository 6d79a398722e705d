"""What the revisions with a handshake have over HTTP: sessions, a listening stream, resumption."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from dragoman.errors import ClosedError, PeerFault
from dragoman.jsonrpc.message import encode_error, encode_request, encode_result
from dragoman.transports.http_client import HttpTransport

from .server import SESSIONS, Asked, Ears, call, connected, initialize, progress, serving

INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
Step = Callable[[Asked], Awaitable[None]]


class Peer:
    """A server of sessions whose calls, GETs and DELETEs a test scripts."""

    def __init__(self, call: Step | None = None, get: Step | None = None, delete: Step | None = None) -> None:
        self.call, self.get, self.delete = call, get, delete
        self.answers: list[dict] = []
        self.answered = asyncio.Event()

    async def __call__(self, asked: Asked) -> None:
        if asked.method == "GET":
            await (self.get(asked) if self.get else asked.reply(405, kind=None))
        elif asked.method == "DELETE":
            await (self.delete(asked) if self.delete else asked.reply(200, kind=None))
        elif "method" not in asked.message:
            await asked.accept()
            self.answers.append(asked.message)
            self.answered.set()
        elif "id" not in asked.message:
            await asked.accept()
        elif asked.message["method"] == "initialize":
            await asked.result({}, extra="Mcp-Session-Id: s-1\r\n")
        else:
            assert self.call is not None
            await self.call(asked)


async def greet(transport: HttpTransport) -> None:
    await transport.exchange(initialize())
    transport.agreed(SESSIONS)
    await transport.notify(INITIALIZED, SESSIONS)


async def plain(asked: Asked) -> None:
    await asked.result(asked.id)


def requests(server, method: str) -> list[Asked]:
    return [asked for asked in server.asked if asked.method == method]


async def test_every_request_after_the_handshake_names_session_and_revision():
    async with serving(Peer(plain)) as server:
        async with connected(server.url, headers={"X-Tenant": "acme"}) as transport:
            await greet(transport)
            await transport.exchange(call(revision=SESSIONS))
            assert transport.facts()["session"] is True
            await server.find(lambda asked: asked.method == "GET")
        first, *later = server.asked
    assert "mcp-session-id" not in first.headers
    assert {asked.method for asked in later} == {"POST", "GET", "DELETE"}
    for asked in later:
        assert asked.headers["mcp-session-id"] == "s-1"
        assert asked.headers["mcp-protocol-version"] == "2025-11-25"
        assert asked.headers["x-tenant"] == "acme"
        assert "mcp-method" not in asked.headers
    assert requests(server, "GET")[0].headers["accept"] == "text/event-stream"


async def test_a_new_handshake_forgets_the_session():
    async with serving(Peer(plain)) as server, connected(server.url) as transport:
        await greet(transport)
        await transport.exchange(initialize())
    assert ["mcp-session-id" in a.headers for a in server.asked if b'"initialize"' in a.body] == [
        False,
        False,
    ]


async def test_a_refused_handshake_opens_no_session():
    async def answer(asked):
        await asked.reply(200, encode_error(asked.id, -32600, "no"), extra="Mcp-Session-Id: s\r\n")

    async with serving(answer) as server, connected(server.url) as transport:
        assert (await transport.exchange(initialize())).error.code == -32600
        assert transport.facts()["session"] is False
    assert len(server.asked) == 1  # no DELETE either


async def test_a_session_id_that_no_id_may_be():
    async def answer(asked):
        await asked.result({}, extra="Mcp-Session-Id: a b\r\n")

    async with serving(answer) as server, connected(server.url) as transport:
        with pytest.raises(PeerFault, match="session id"):
            await transport.exchange(initialize())


async def test_stateless_requests_never_name_a_session():
    async with serving(Peer(plain)) as server, connected(server.url) as transport:
        await greet(transport)
        await transport.exchange(call())
    post = next(asked for asked in server.asked if b"tools/call" in asked.body)
    assert "mcp-session-id" not in post.headers


@pytest.mark.parametrize("status", [405, 404, 400, 200])
async def test_a_server_without_a_listening_stream_is_fine(status):
    async def get(asked):
        await asked.reply(status, b"{}")

    async with serving(Peer(plain, get)) as server, connected(server.url) as transport:
        await greet(transport)
        await server.find(lambda asked: asked.method == "GET")
        for id_ in range(3):
            await transport.exchange(call(id_, revision=SESSIONS))
    assert len(requests(server, "GET")) == 1


async def test_what_comes_on_the_listening_stream_is_handed_on():
    async def get(asked):
        await asked.stream()
        await asked.event(b"")
        await asked.event(encode_request("s1", "roots/list", {}))
        await asked.event(progress(7))
        await asked.gone()

    ears = Ears()
    peer = Peer(plain, get)
    async with serving(peer) as server, connected(server.url, ears) as transport:
        await greet(transport)
        await ears.news.wait()
        await server.find(lambda asked: asked.method == "POST" and b'"result"' in asked.body)
        await peer.answered.wait()
        await transport.exchange(call(revision=SESSIONS))
    assert ears.methods == ["notifications/progress"]
    assert peer.answers == [{"jsonrpc": "2.0", "id": "s1", "result": {"action": "decline"}}]


async def test_the_listening_stream_is_taken_up_again_where_it_broke_off(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_stream._RETRY", 0.0)

    async def get(asked):
        await asked.stream()
        last = asked.headers.get("last-event-id")
        if last is None:
            await asked.send(b"id: e1\nretry: 1\ndata: \n\n")
            await asked.end()
        elif last == "e1":
            await asked.event(progress(1), "id: e2\n")
            asked.drop()
        else:
            await asked.event(progress(2))
            await asked.gone()

    ears = Ears()
    async with serving(Peer(plain, get)) as server, connected(server.url, ears) as transport:
        await greet(transport)
        await server.find(lambda asked: asked.headers.get("last-event-id") == "e2")
        while len(ears.heard) < 2:
            ears.news.clear()
            await ears.news.wait()
    assert [a.headers.get("last-event-id") for a in requests(server, "GET")] == [None, "e1", "e2"]


async def test_a_listening_stream_that_brings_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_stream._RETRY", 0.0)

    async def get(asked):
        if len(requests(server, "GET")) % 2:
            await asked.reply(503, kind=None)
        else:
            await asked.stream()
            await asked.end()

    async with serving(Peer(plain, get)) as server, connected(server.url) as transport:
        await greet(transport)
        await transport._listener
        await transport.exchange(call(revision=SESSIONS))
    assert len(requests(server, "GET")) == 5


async def test_a_request_of_the_server_is_answered_while_the_call_is_open():
    peer = Peer()

    async def elicit(asked):
        await asked.stream()
        await asked.event(encode_request(41, "elicitation/create", {"message": "sure?"}))
        await peer.answered.wait()
        await asked.event(encode_result(asked.id, peer.answers))
        await asked.end()

    peer.call = elicit
    ears = Ears()
    # One connection, and it is taken: the answer may not queue behind the call that waits for it.
    async with serving(peer) as server, connected(server.url, ears, max_connections=1) as transport:
        await greet(transport)
        response = await transport.exchange(call(revision=SESSIONS))
    assert json.loads(bytes(response.result)) == [
        {"jsonrpc": "2.0", "id": 41, "result": {"action": "decline"}}
    ]
    assert [request.method for request in ears.requests] == ["elicitation/create"]
    answered = next(asked for asked in server.asked if b"decline" in asked.body)
    assert answered.headers["mcp-session-id"] == "s-1"


async def test_a_handler_that_fails_is_an_internal_error_for_the_server(caplog):
    peer = Peer()

    async def elicit(asked):
        await asked.stream()
        await asked.event(encode_request(41, "elicitation/create", {}))
        await peer.answered.wait()
        await asked.event(encode_result(asked.id, peer.answers[0]["error"]["code"]))
        await asked.end()

    class Broken(Ears):
        async def answer(self, request):
            raise ZeroDivisionError

    peer.call = elicit
    async with serving(peer) as server, connected(server.url, Broken()) as transport:
        await greet(transport)
        assert bytes((await transport.exchange(call(revision=SESSIONS))).result) == b"-32603"
    assert "the handler of elicitation/create failed" in caplog.text


async def test_a_stateless_server_may_not_ask(caplog):
    async def answer(asked):
        await asked.stream()
        await asked.event(encode_request(41, "elicitation/create", {}))
        await asked.event(encode_result(asked.id, 1))
        await asked.end()

    ears = Ears()
    async with serving(answer) as server, connected(server.url, ears) as transport:
        await transport.exchange(call())
    assert ears.requests == []
    assert "elicitation/create" in caplog.text
    assert len(server.asked) == 1


# Resumption ----------------------------------------------------------------------------------------


class Resumed:
    """A call whose stream breaks off after an event with an id; GETs with `Last-Event-ID` are scripted."""

    def __init__(self, *gets: Step, broken: bool = False, retry: int = 120) -> None:
        self.gets = list(gets)
        self.retry = retry
        self.broken = broken
        self.last_ids: list[str] = []
        self.cut_at = 0.0
        self.waited: list[float] = []

    def peer(self) -> Peer:
        return Peer(self.call, self.get)

    async def call(self, asked):
        await asked.stream()
        await asked.send(b"id: e1\nretry: %d\ndata: \n\n" % self.retry)
        await (self.drop(asked) if self.broken else asked.end())
        self.cut_at = asyncio.get_running_loop().time()

    async def drop(self, asked):
        asked.drop()

    async def get(self, asked):
        if "last-event-id" not in asked.headers:
            await asked.reply(405, kind=None)
            return
        self.waited.append(asyncio.get_running_loop().time() - self.cut_at)
        self.last_ids.append(asked.headers["last-event-id"])
        await self.gets.pop(0)(asked)
        self.cut_at = asyncio.get_running_loop().time()


async def answer_on_get(asked):
    await asked.stream()
    await asked.event(progress(1))
    await asked.event(encode_result(1, "resumed"), "id: e9\n")
    await asked.gone()


async def poll_again(asked):
    await asked.stream()
    await asked.send(b"id: e2\nretry: 1\ndata: \n\n")
    await asked.end()


async def nothing_new(asked):
    await asked.stream()
    await asked.end()


def status(code: int) -> Step:
    async def answer(asked):
        await asked.reply(code, kind=None)

    return answer


@pytest.mark.parametrize("broken", [False, True])
async def test_a_stream_that_breaks_off_is_resumed_after_the_time_that_the_server_asked_for(broken):
    script = Resumed(answer_on_get, broken=broken)
    own = Ears()
    async with serving(script.peer()) as server, connected(server.url) as transport:
        await greet(transport)
        response = await transport.exchange(call(revision=SESSIONS), own.hear)
    assert bytes(response.result) == b'"resumed"'
    assert own.methods == ["notifications/progress"]
    assert script.last_ids == ["e1"]
    assert 0.115 <= script.waited[0] <= 5  # milliseconds count: 120 of them, and not seconds


async def test_polling_goes_on_while_it_brings_something():
    script = Resumed(poll_again, answer_on_get)
    async with serving(script.peer()) as server, connected(server.url) as transport:
        await greet(transport)
        response = await transport.exchange(call(revision=SESSIONS))
    assert bytes(response.result) == b'"resumed"'
    assert script.last_ids == ["e1", "e2"]


async def test_a_server_that_is_not_there_for_a_moment(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_stream._backoff", lambda failures: 0.0)
    script = Resumed(status(503), answer_on_get)
    async with serving(script.peer()) as server, connected(server.url) as transport:
        await greet(transport)
        response = await transport.exchange(call(revision=SESSIONS))
    assert bytes(response.result) == b'"resumed"'


@pytest.mark.parametrize(
    ("gets", "tries", "complaint"),
    [
        ([status(405)], 1, "resuming it failed: HTTP 405"),
        ([status(503)] * 5, 5, "resuming it failed: HTTP 503"),
        ([nothing_new] * 5, 5, "ended without the answer"),
    ],
)
async def test_resumption_ends_when_it_is_no_use(monkeypatch, gets, tries, complaint):
    monkeypatch.setattr("dragoman.transports.http_stream._backoff", lambda failures: 0.0)
    script = Resumed(*gets, retry=1)
    async with serving(script.peer()) as server, connected(server.url) as transport:
        await greet(transport)
        with pytest.raises(ClosedError, match=complaint):
            await transport.exchange(call(revision=SESSIONS))
    assert script.last_ids == ["e1"] * tries


async def test_without_an_event_id_there_is_nothing_to_resume():
    async def cut(asked):
        await asked.stream()
        await asked.event(progress(1))
        await asked.end()

    async with serving(Peer(cut)) as server, connected(server.url) as transport:
        await greet(transport)
        with pytest.raises(ClosedError, match="ended without the answer"):
            await transport.exchange(call(revision=SESSIONS))


async def test_giving_up_closes_a_resumed_stream_too():
    closed = asyncio.Event()

    async def resumed(asked):
        await asked.stream()
        await asked.event(progress(1))
        await asked.gone()
        closed.set()

    script = Resumed(resumed, retry=1)
    own = Ears()
    async with serving(script.peer()) as server, connected(server.url) as transport:
        await greet(transport)
        task = asyncio.create_task(transport.exchange(call(revision=SESSIONS), own.hear))
        await own.news.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()
        await server.find(lambda asked: b"notifications/cancelled" in asked.body)


async def test_closing_ends_the_wait_for_a_resumption():
    async def cut(asked):
        await asked.stream()
        await asked.send(b"id: e1\nretry: 3600000\ndata: \n\n")
        await asked.end()
        ended.set()

    ended = asyncio.Event()
    async with serving(Peer(cut)) as server, connected(server.url) as transport:
        await greet(transport)
        task = asyncio.create_task(transport.exchange(call(revision=SESSIONS)))
        await ended.wait()
        await transport.close()
        with pytest.raises(ClosedError):
            await task


# The end of a session ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [200, 204, 404, 405, 500])
async def test_the_session_is_ended_whatever_the_server_says_to_it(code):
    async with serving(Peer(plain, delete=status(code))) as server:
        async with connected(server.url) as transport:
            await greet(transport)
        assert len(requests(server, "DELETE")) == 1


async def test_a_server_that_does_not_say_goodbye_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_client._GOODBYE", 0.02)

    async def deaf(asked):
        await asked.gone()

    async with serving(Peer(plain, delete=deaf)) as server:
        async with connected(server.url) as transport:
            await greet(transport)
        assert len(requests(server, "DELETE")) == 1


async def test_closing_does_not_wait_for_an_answer_that_a_person_still_thinks_about():
    asked_for = asyncio.Event()

    class Thinking(Ears):
        async def answer(self, request):
            asked_for.set()
            await asyncio.Event().wait()
            raise AssertionError

    async def elicit(asked):
        await asked.stream()
        await asked.event(encode_request(41, "elicitation/create", {}))
        await asked.gone()

    async with serving(Peer(elicit)) as server:
        async with connected(server.url, Thinking()) as transport:
            await greet(transport)
            task = asyncio.create_task(transport.exchange(call(revision=SESSIONS)))
            await asked_for.wait()
            await asyncio.wait_for(transport.close(), 1)
            with pytest.raises(ClosedError):
                await task
