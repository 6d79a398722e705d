"""Session ids: what stands in them, who can open them, and for whom and how long they are good."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from msgspec import UNSET

from dragoman import Context, Server
from dragoman.errors import Refusal
from dragoman.model import ClientCapabilities, Implementation
from dragoman.protocol.link import Session
from dragoman.protocol.sealing import BrokenSeal, Keys
from dragoman.protocol.sessions import MAX_ID, Ticket, event_id, issue, read_event_id, seal, unseal
from dragoman.revisions import BY_VERSION
from dragoman.revisions.base import Caller
from dragoman.transports.asgi import HttpApp
from tests.http.wire import BASE, INITIALIZE, Request, initialize, messages, open_session, post, rpc

SECRET = "correct horse battery staple"
KEYS = Keys(SECRET)
PING = rpc("ping")


def ticket(**changes: Any) -> Ticket:
    caller = Caller(
        changes.pop("info", Implementation(name="test", version="1")),
        changes.pop("capabilities", ClientCapabilities(sampling={}, elicitation={"form": {}})),
    )
    session = Session(BY_VERSION[changes.pop("version", "2025-11-25")], caller)
    return issue("key", session, **{"principal": "anna", "now": 1000.0, "lifetime": 60.0, **changes})


# The text ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_what_was_agreed_on_comes_back(version: str) -> None:
    text = seal(ticket(version=version), KEYS, server="orders")
    assert all(0x21 <= ord(char) <= 0x7E for char in text), "visible ASCII"
    opened = unseal(text, KEYS, server="orders", now=1000.0)
    assert opened == ticket(version=version)
    session = opened.session()
    assert session.revision is BY_VERSION[version]
    assert session.caller == Caller(
        Implementation(name="test", version="1"), ClientCapabilities(sampling={}, elicitation={"form": {}})
    )
    assert (opened.principal, opened.issued, opened.expires) == ("anna", 1000, 1060)


def test_nothing_of_it_can_be_read() -> None:
    text = seal(ticket(), KEYS, server="orders")
    assert "anna" not in text
    assert text != seal(ticket(), KEYS, server="orders")


@pytest.mark.parametrize("now", [1059.0, 1059.9])
def test_it_is_good_for_its_time(now: float) -> None:
    assert unseal(seal(ticket(), KEYS, server="orders"), KEYS, server="orders", now=now) is not None


@pytest.mark.parametrize("now", [1060.0, 9e9])
def test_it_is_good_no_longer(now: float) -> None:
    assert unseal(seal(ticket(), KEYS, server="orders"), KEYS, server="orders", now=now) is None


def test_it_is_good_for_one_server_with_one_secret() -> None:
    text = seal(ticket(), KEYS, server="orders")
    for keys, server in [(Keys.random(), "orders"), (KEYS, "others")]:
        with pytest.raises(BrokenSeal):
            unseal(text, keys, server=server, now=1000.0)
    assert unseal(text, Keys("a newer secret, also long", SECRET), server="orders", now=1000.0) is not None


def test_any_change_breaks_it() -> None:
    text = seal(ticket(), KEYS, server="orders")
    for at in range(len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        with pytest.raises(BrokenSeal):
            unseal(changed, KEYS, server="orders", now=1000.0)
    with pytest.raises(BrokenSeal):
        unseal("A" * (MAX_ID + 1), KEYS, server="orders", now=1000.0)


def test_what_was_sealed_for_another_purpose_is_no_session() -> None:
    with pytest.raises(BrokenSeal):
        unseal(KEYS.seal_text(b"x", purpose="state", bound=b"orders"), KEYS, server="orders", now=0.0)
    with pytest.raises(BrokenSeal):
        unseal(KEYS.seal_text(b"x", purpose="session", bound=b"orders"), KEYS, server="orders", now=0.0)


def test_what_only_describes_a_client_is_left_out_of_a_long_id() -> None:
    info = Implementation(name="n" * 9000, version="1", title="t" * 9000, description="d" * 9000)
    capabilities = ClientCapabilities(sampling={"tools": {}}, experimental={"x": "y" * 9000})
    text = seal(ticket(info=info, capabilities=capabilities), KEYS, server="orders")
    assert len(text) <= MAX_ID
    opened = unseal(text, KEYS, server="orders", now=1000.0)
    assert opened.info == Implementation(name="n" * 128, version="1", title="t" * 128)
    assert opened.capabilities == ClientCapabilities(sampling={"tools": {}})


def test_what_a_client_can_do_is_never_left_out() -> None:
    with pytest.raises(Refusal, match="clientInfo and capabilities") as caught:
        seal(
            ticket(capabilities=ClientCapabilities(extensions={"x": {"y": "z" * 9000}})),
            KEYS,
            server="orders",
        )
    assert caught.value.code == -32602


def test_a_client_without_a_name() -> None:
    text = seal(ticket(info=UNSET), KEYS, server="orders")
    assert unseal(text, KEYS, server="orders", now=1000.0).session().caller.info is UNSET


@pytest.mark.parametrize(("stream", "number"), [("own", 0), ("a-b_c", 17), ("a.b", 10**17)])
def test_event_ids(stream: str, number: int) -> None:
    assert read_event_id(event_id(stream, number)) == (stream, number)


# In the app -------------------------------------------------------------------------------------------


def server(**options: Any) -> Server:
    it = Server("orders", **{"secret": SECRET, **options})

    @it.tool
    async def who(ctx: Context) -> str:
        """Who calls, as far as the handshake said."""
        assert ctx.client_info is not None
        able = ctx.client_capabilities.elicitation is not UNSET
        return f"{ctx.client_info.name} {ctx.revision} {able} {ctx.principal}"

    @it.tool
    async def ask(ctx: Context) -> str:
        """Ask the person."""
        answer = await ctx.elicit("sure?", {"type": "object", "properties": {}})
        return answer.action

    return it


def by_user(headers: Any) -> str | None:
    return headers.get("x-user")


WHO = rpc("tools/call", {"name": "who", "arguments": {}})


def text(answer: Any) -> str:
    return answer.json["result"]["content"][0]["text"]


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
async def test_another_process_takes_a_session_up(version: str) -> None:
    session = await open_session(server().asgi(), version)
    other = server().asgi()
    assert text(await post(other, WHO, session)) == f"test {version} True None"
    assert len(other.sessions) == 1


async def test_a_session_outlives_a_restart() -> None:
    session = await open_session(server().asgi())
    again = server().asgi()
    stream = Request(again, "GET", session)
    await stream.until(b"id: ")
    assert (await post(again, WHO, session)).status == 200
    stream.disconnect()
    await stream.answer()


async def test_a_session_taken_up_is_told_of_changes() -> None:
    session = await open_session(server().asgi())
    it = server()
    app = it.asgi()
    stream = Request(app, "GET", session)
    await stream.until(b"id: ")
    it.notify_tools_changed()
    await stream.until(b"list_changed")
    stream.disconnect()
    await stream.answer()


async def test_requests_of_two_processes_to_one_client_have_different_ids() -> None:
    first, second = server().asgi(), server().asgi()
    session = await open_session(first)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}'
    calls = [Request(app, "POST", session, body=body) for app in (first, second)]
    asked = []
    for call in calls:
        await call.until(b"elicitation/create")
        asked.append(next(m["id"] for m in messages(call.body) if m["method"] == "elicitation/create"))
    assert asked[0] != asked[1]
    assert all(0 < id_ < 2**53 for id_ in asked)
    for app, call, id_ in zip((first, second), calls, asked, strict=True):
        reply = {"jsonrpc": "2.0", "id": id_, "result": {"action": "decline"}}
        assert (await post(app, reply, session)).status == 202
        await call.answer()


@pytest.mark.parametrize(
    "other", [{"secret": "another secret, as long"}, {"secret": None}], ids=["another secret", "none"]
)
async def test_no_process_with_another_secret_does(other: Any, caplog: pytest.LogCaptureFixture) -> None:
    session = await open_session(server().asgi())
    app = server(**other).asgi()
    with caplog.at_level(logging.WARNING, "dragoman.http"):
        for _ in range(2):
            answer = await post(app, PING, session)
            assert answer.status == 404
    assert len(caplog.records) == 1, "told once"
    assert "DRAGOMAN_SECRET" in caplog.text
    assert session["mcp-session-id"] not in caplog.text
    assert not app.sessions


async def test_an_ended_session_is_not_taken_up_again() -> None:
    app = server().asgi()
    session = await open_session(app)
    assert (await Request(app, "DELETE", session).answer()).status == 204
    assert (await post(app, PING, session)).status == 404


async def test_an_idle_session_is_not_taken_up_again() -> None:
    app = server().asgi(session_idle=60.0)
    session = await open_session(app)
    app.sessions.expire(asyncio.get_running_loop().time() + 61)
    assert (await post(app, PING, session)).status == 404


async def test_a_session_has_a_longest_life() -> None:
    app, other = server().asgi(session_lifetime=100.0), server().asgi()
    now = app.sessions.clock()
    app.sessions.clock = other.sessions.clock = lambda: now
    session = await open_session(app)
    now += 99
    assert (await post(other, PING, session)).status == 200
    assert (await post(app, PING, session)).status == 200
    now += 2
    for each in (app, other):
        each.sessions.expire(asyncio.get_running_loop().time())
        assert (await post(each, PING, session)).status == 404
        assert not each.sessions


async def test_what_is_remembered_of_ended_sessions_goes_when_their_time_is_up() -> None:
    app = server().asgi(session_lifetime=100.0)
    session = await open_session(app)
    await Request(app, "DELETE", session).answer()
    assert len(app.sessions._ended) == 1
    later = app.sessions.clock() + 101
    app.sessions.clock = lambda: later
    app.sessions.expire(asyncio.get_running_loop().time())
    assert not app.sessions._ended
    assert (await post(app, PING, session)).status == 404


# Whose they are ---------------------------------------------------------------------------------------


async def shake(app: HttpApp, user: str | None) -> dict[str, str]:
    mine = {} if user is None else {"x-user": user}
    answer = await post(app, initialize("2025-11-25"), {**BASE, **mine})
    return {**BASE, **mine, "mcp-session-id": answer.headers["mcp-session-id"]}


@pytest.mark.parametrize("thief", ["bert", None, "anna "])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_session_answers_to_whoever_opened_it(thief: str | None, elsewhere: bool) -> None:
    app = server().asgi(authenticate=by_user)
    session = await shake(app, "anna")
    other = server().asgi(authenticate=by_user) if elsewhere else app
    stolen = {**session, "x-user": thief}
    if thief is None:
        del stolen["x-user"]
    unknown = {**stolen, "mcp-session-id": "nonsense"}
    for verb, body in [("POST", WHO), ("GET", None), ("DELETE", None)]:
        if body is None:
            refused, plain = [await Request(other, verb, headers).answer() for headers in (stolen, unknown)]
        else:
            refused, plain = [await post(other, body, headers) for headers in (stolen, unknown)]
        assert refused.status == 404
        assert refused.body == plain.body, "nothing tells it from a session that never was"
    reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (await post(other, reply, stolen)).status == 404
    assert text(await post(other, WHO, session)) == "test 2025-11-25 True anna"


async def test_a_session_of_nobody_answers_to_nobody_else() -> None:
    app = server().asgi(authenticate=by_user)
    session = await shake(app, None)
    assert (await post(app, WHO, {**session, "x-user": "anna"})).status == 404
    assert text(await post(app, WHO, session)) == "test 2025-11-25 True None"


async def test_a_client_that_says_too_much_opens_no_session() -> None:
    app = server().asgi()
    params = {**INITIALIZE["params"], "capabilities": {"extensions": {"x": {"y": "z" * 9000}}}}
    answer = await post(app, {**INITIALIZE, "params": params}, BASE)
    assert answer.code == -32602
    assert "mcp-session-id" not in answer.headers
    assert not app.sessions
