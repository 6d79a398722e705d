"""Models over HTTP: each provider's wire form, spoken by local servers, and everything that goes wrong."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from dragoman.errors import UsageError
from dragoman.host import Model, ModelError, Prices
from dragoman.host.loop.events import Ended
from dragoman.host.models.base import TextDelta, Usage, UseStarted
from dragoman.host.provider import http as provider_http
from dragoman.host.provider.fault import retry_after
from dragoman.host.provider.talk import Waiting
from dragoman.transports.http_base import HttpOptions
from tests.host.loop.servers import calls, name, shop
from tests.host.loop.wire import (
    CUT,
    EVENTS,
    HANG,
    JSON,
    PROVIDERS,
    OpenAIChat,
    Provider,
    Reply,
    Use,
    model_server,
    sse,
)

KEY = "sk-test-0123456789abcdefghij"
each = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.api)

USES = [Use("c1", name("price"), {"item": "apple"}), Use("c2", name("buy"), {"item": "배", "count": 2})]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Faults that pass are tried again at once."""
    monkeypatch.setattr(provider_http, "_FIRST_WAIT", 0.001)


def model(provider: Provider, server, **more) -> Model:
    return Model(api=provider.api, model="m-1", url=server.url, key_env="TEST_KEY", **more)


# --- every provider -------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
async def test_a_streamed_run_with_two_calls(tmp_path, provider, size):
    replies = [
        provider.stream("잠깐, one moment.", USES, size=size),
        provider.stream("It costs 3. 끝", size=size),
    ]
    async with model_server(*replies) as server, shop(tmp_path) as host:
        events = [event async for event in host.run("how much?", model=model(provider, server))]
    result = events[-1].result
    assert (result.text, result.stop) == ("It costs 3. 끝", "end")
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == "잠깐, one moment.It costs 3. 끝"
    assert [event.name for event in events if isinstance(event, UseStarted)] == [use.name for use in USES]
    assert sorted(calls(tmp_path)) == ["buy 배 2", "price apple"]
    assert result.usage == Usage(input=60, output=14, cached=20)
    first, second = server.requests
    assert provider.results(second.body) == [("c1", "3"), ("c2", "bought 2 배")]
    assert name("price") in provider.tools(first.body)
    for request in server.requests:
        assert request.path == provider.streamed
        header, prefix = provider.key
        assert request.headers[header] == prefix + KEY
        assert request.headers["accept"] == "text/event-stream"


@each
async def test_a_run_that_is_not_streamed(tmp_path, provider):
    replies = [provider.plain("One moment.", USES), provider.plain("It costs 3.")]
    async with model_server(*replies) as server, shop(tmp_path) as host:
        events = [event async for event in host.run("how much?", model=model(provider, server, stream=False))]
    result = events[-1].result
    assert (result.text, result.stop, result.rounds) == ("It costs 3.", "end", 2)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["One moment.", "It costs 3."]
    assert provider.results(server.requests[1].body) == [("c1", "3"), ("c2", "bought 2 배")]
    assert [request.path for request in server.requests] == [provider.path] * 2
    assert all(not request.body.get("stream") for request in server.requests)


@each
async def test_what_the_model_said_is_sent_back_as_it_came(tmp_path, provider):
    """Signatures and encrypted reasoning are for the provider alone, and must not be lost."""
    replies = [provider.stream("x", USES), provider.stream("y")]
    async with model_server(*replies) as server, shop(tmp_path) as host:
        await host.run("go", model=model(provider, server))
    sent = json.dumps(server.requests[1].body)
    for opaque in {"openai-responses": ["opaque", "rs_1"], "gemini": ["c2ln"]}.get(provider.api, []):
        assert opaque in sent


@each
async def test_a_server_that_does_not_stream_though_asked(tmp_path, provider):
    async with model_server(provider.plain("whole")) as server, shop(tmp_path) as host:
        result = await host.run("x", model=model(provider, server))
    assert (result.text, result.stop) == ("whole", "end")


@each
@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_a_fault_that_passes_is_waited_for(tmp_path, provider, status):
    replies = [provider.refused(status), provider.refused(status, retry_after="0"), provider.stream("well")]
    async with model_server(*replies) as server, shop(tmp_path) as host:
        events = [event async for event in host.run("x", model=model(provider, server))]
    waits = [event for event in events if isinstance(event, Waiting)]
    assert [wait.attempt for wait in waits] == [1, 2]
    assert waits[1].seconds == 0
    assert f"HTTP {status}" in waits[0].why
    assert events[-1].result.text == "well"
    assert server.requests[0].body == server.requests[2].body


@each
@pytest.mark.parametrize(
    ("status", "hint"), [(400, "names the member"), (401, "a key for"), (404, "model's name")]
)
async def test_a_fault_that_stays_says_who_what_and_what_to_do(tmp_path, provider, status, hint):
    async with model_server(provider.refused(status)) as server, shop(tmp_path) as host:
        run = host.run("x", model=model(provider, server))
        with pytest.raises(ModelError) as caught:
            await run
    error = caught.value
    assert error.status == status
    assert error.server == f"127.0.0.1:{server.port}"
    assert f"HTTP {status}" in error.message
    assert provider.error["error"]["message"] in error.message
    assert hint in error.hint
    assert len(server.requests) == 1
    # The state is as before the request, so that the run can go on.
    assert (len(run.state.history), run.state.calls, run.state.ended) == (1, [], False)


@each
async def test_retries_come_to_an_end(tmp_path, provider):
    replies = [provider.refused(503)] * 3
    async with model_server(*replies) as server, shop(tmp_path) as host:
        with pytest.raises(ModelError, match="HTTP 503"):
            await host.run("x", model=model(provider, server, retries=2))
    assert len(server.requests) == 3


@each
async def test_a_stream_that_ends_before_the_answer_does(tmp_path, provider):
    whole = provider.events("some text", [Use("c1", name("buy"), {"item": "apple"})])
    half = whole[: whole.index(b"e text") + 3]
    async with model_server(Reply([half], headers=EVENTS)) as server, shop(tmp_path) as host:
        run = host.run("x", model=model(provider, server))
        with pytest.raises(ModelError) as caught:
            await run
    assert "before the answer did" in caught.value.message
    assert calls(tmp_path) == []
    assert len(run.state.history) == 1


@each
async def test_a_connection_that_breaks_in_the_stream(tmp_path, provider):
    whole = provider.events("some text")
    async with model_server(Reply([whole[: whole.index(b"e text") + 3], CUT], headers=EVENTS)) as server:
        async with shop(tmp_path) as host:
            with pytest.raises(ModelError, match="closed by the server within the reply"):
                await host.run("x", model=model(provider, server))


@each
async def test_a_connection_that_breaks_before_anything_is_tried_again(tmp_path, provider):
    async with model_server(Reply([CUT], headers=EVENTS), provider.stream("now")) as server:
        async with shop(tmp_path) as host:
            assert (await host.run("x", model=model(provider, server))).text == "now"


@each
async def test_an_error_within_the_stream(tmp_path, provider):
    """Overload may come after the status has said 200: tried again if nothing was heard yet."""
    early = Reply([sse(provider.broken)], headers=EVENTS)
    async with model_server(early, provider.stream("now")) as server, shop(tmp_path) as host:
        assert (await host.run("x", model=model(provider, server))).text == "now"
    begun = provider.events("some text")
    begun = begun[: begun.index(b"\n\n", begun.index(b"som")) + 2]
    late = Reply([begun, sse(provider.broken)], headers=EVENTS)
    async with model_server(late) as server, shop(tmp_path) as host:
        with pytest.raises(ModelError, match=r"broke off with an error .*verloaded"):
            await host.run("x", model=model(provider, server))


@each
async def test_a_server_that_falls_silent(tmp_path, provider):
    async with model_server(Reply([provider.events("abc")[:30], HANG], headers=EVENTS)) as server:
        async with shop(tmp_path) as host:
            with pytest.raises(ModelError, match=r"no word from the server within 0\.2 s"):
                await host.run("x", model=model(provider, server, timeout=0.2, retries=0))


@each
async def test_stop_closes_the_connection(tmp_path, provider):
    whole = provider.events("some text")
    begun = whole[: whole.index(b"\n\n", whole.index(b"som")) + 2]
    async with model_server(Reply([begun, HANG], headers=EVENTS)) as server, shop(tmp_path) as host:
        run = host.run("x", model=model(provider, server))
        async for event in run:
            if isinstance(event, TextDelta):
                run.stop()
            if isinstance(event, Ended):
                assert event.result.stop == "stopped"
        await asyncio.wait_for(server.closed.wait(), 5)


@each
async def test_the_key_is_in_no_text(tmp_path, provider, caplog):
    """Not in errors, even if the server says it again, nor in repr, events, states and logs."""
    caplog.set_level(logging.DEBUG)
    echoing = dict(provider.error)
    echoing["error"] = {**echoing["error"], "message": f"Incorrect API key provided: {KEY[:9]}****; {KEY}"}
    seen = []
    reply = Reply([json.dumps(echoing).encode()], status=401, headers={**JSON, "x-echo": KEY})
    async with model_server(reply) as server, shop(tmp_path) as host:
        told = model(provider, server, headers={"x-more": "secret-of-a-header"})
        run = host.run("x", model=told)
        with pytest.raises(ModelError) as caught:
            async for event in run:
                seen.append(repr(event))  # noqa: PERF401 - what was seen before the error counts too
    texts = [
        str(caught.value),
        repr(caught.value),
        repr(told),
        str(told.open()),
        *seen,
        run.state.dump().decode(),
    ]
    texts += [record.getMessage() for record in caplog.records]
    for text in texts:
        assert KEY[:9] not in text, text
        assert "secret-of-a-header" not in text, text


# --- what is not peculiar to one ------------------------------------------------------------------------

CHAT = OpenAIChat()


async def test_a_local_server_by_its_url_gets_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "not for strangers")
    async with model_server(CHAT.stream("a"), CHAT.stream("b"), CHAT.stream("c")) as server:
        async with shop(tmp_path) as host:
            for url in (server.url, f"{server.url}/v1", f"{server.url}/v1/"):
                await host.run("x", model=Model.of("llama3.2:1b", url=url))
    assert [request.path for request in server.requests] == ["/v1/chat/completions"] * 3
    assert {request.body["model"] for request in server.requests} == {"llama3.2:1b"}
    assert all("authorization" not in request.headers for request in server.requests)


async def test_members_and_headers_of_ones_own(tmp_path):
    async with model_server(CHAT.stream("a")) as server, shop(tmp_path) as host:
        told = model(CHAT, server, more={"temperature": 0}, headers={"X-Team": "blue"}, limit=99)
        await host.run("x", model=told, system="Be brief.", instructions=False)
    (request,) = server.requests
    assert request.body["temperature"] == 0
    assert request.headers["x-team"] == "blue"
    assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert 99 in request.body.values()


async def test_a_wait_that_is_too_long_is_not_waited_for(tmp_path):
    async with model_server(CHAT.refused(429, retry_after="3600")) as server, shop(tmp_path) as host:
        with pytest.raises(ModelError) as caught:
            await host.run("x", model=model(CHAT, server))
    assert caught.value.retry_after == 3600


async def test_a_quota_that_is_spent_is_not_asked_again(tmp_path):
    spent = {"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}}
    spent["error"] |= {"param": None, "code": "insufficient_quota"}
    reply = Reply([json.dumps(spent).encode()], status=429, headers=JSON)
    async with model_server(reply) as server, shop(tmp_path) as host:
        with pytest.raises(ModelError, match="exceeded your current quota"):
            await host.run("x", model=model(CHAT, server))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({}, None),
    ],
)
def test_when_to_ask_again(headers, seconds):
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply([b"<html>hello</html>"], headers={"content-type": "text/html"}), "no JSON: <html>hello"),
        (Reply([b"[1]"], headers=JSON), "no object, but list"),
        (Reply([b'{"hello": 1}'], headers=JSON), "no answer of a model"),
        (Reply([b"data: {nonsense\n\n"], headers=EVENTS), "no JSON: {nonsense"),
        (Reply([b" "], status=302, headers={"location": "http://elsewhere/"}), "HTTP 302"),
        (Reply([b"<h1>Bad gateway</h1>"], status=404, headers={"content-type": "text/html"}), "Bad gateway"),
    ],
)
async def test_what_is_no_answer(tmp_path, reply, why):
    async with model_server(reply) as server, shop(tmp_path) as host:
        with pytest.raises(ModelError, match=why) as caught:
            await host.run("x", model=model(CHAT, server))
    assert caught.value.hint or "object" in why


async def test_a_server_that_is_not_there(tmp_path):
    async with model_server() as server:
        gone = server.url
    async with shop(tmp_path) as host:
        with pytest.raises(ModelError, match="connection refused") as caught:
            await host.run("x", model=Model(api="openai-chat", model="m", url=gone, retries=1))
    assert "is the server running" in caught.value.hint


async def test_events_after_the_answer_are_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(provider_http, "_GRACE", 0.05)
    whole = CHAT.events("fine").removesuffix(b"data: [DONE]\n\n")
    async with model_server(Reply([whole, HANG], headers=EVENTS)) as server, shop(tmp_path) as host:
        assert (await host.run("x", model=model(CHAT, server))).text == "fine"


async def test_events_that_never_end_after_the_answer_are_not_heard_to_their_end(tmp_path, monkeypatch):
    monkeypatch.setattr(provider_http, "_GRACE", 0.2)
    whole = CHAT.events("fine").removesuffix(b"data: [DONE]\n\n")
    more = [b": still here\n\n"] * 100_000
    async with model_server(Reply([whole, *more, HANG], headers=EVENTS)) as server, shop(tmp_path) as host:
        async with asyncio.timeout(20):
            assert (await host.run("x", model=model(CHAT, server))).text == "fine"


@each
async def test_two_calls_of_one_id_are_answered_or_not_made_at_all(tmp_path, provider):
    twice = [Use("c1", name("price"), {"item": "apple"}), Use("c1", name("price"), {"item": "pear"})]
    async with model_server(provider.stream("", twice), provider.stream("done")) as server:
        async with shop(tmp_path) as host:
            run = host.run("x", model=model(provider, server))
            if provider.api in ("anthropic-messages", "openai-responses"):
                with pytest.raises(ModelError, match="two calls of the model's message have one id"):
                    await run
                assert calls(tmp_path) == []
                result = await host.run(model=model(provider, server), state=run.state)
            else:
                result = await run
                assert [text for _, text in provider.results(server.requests[1].body)] == ["3", "4"]
            assert result.text == "done"


async def test_an_answer_without_an_end_is_given_up(tmp_path):
    begun = CHAT.events("fine").partition(b"\n\n")[0] + b"\n\n"
    flood = [begun * 1000] * 10_000
    http = HttpOptions(max_body=100_000)
    async with model_server(Reply([*flood, HANG], headers=EVENTS)) as server, shop(tmp_path) as host:
        with pytest.raises(ModelError, match="the answer has no end") as caught:
            await host.run("x", model=model(CHAT, server, http=http))
        assert len(server.requests) == 1
    assert not caught.value.passing


async def test_a_call_that_was_cut_at_the_limit_is_not_made(tmp_path):
    body = CHAT.whole("", [Use("c1", name("buy"), {"item": "apple", "count": 1})])
    body["choices"][0]["finish_reason"] = "length"
    reply = Reply([json.dumps(body).encode()], headers=JSON)
    async with model_server(reply, CHAT.stream("sorry")) as server, shop(tmp_path) as host:
        result = await host.run("x", model=model(CHAT, server))
    assert calls(tmp_path) == []
    assert result.text == "sorry"
    ((_, said),) = CHAT.results(server.requests[1].body)
    assert "cut at its limit of tokens" in said


async def test_tokens_are_estimated_where_the_server_does_not_count(tmp_path):
    body = CHAT.whole("some text of a certain length, to be counted by somebody else")
    del body["usage"]
    reply = Reply([json.dumps(body).encode()], headers=JSON)
    async with model_server(reply) as server, shop(tmp_path) as host:
        result = await host.run("x", model=model(CHAT, server, prices=Prices(1, 1)))
    assert result.usage.input > 50  # the tools' definitions count too
    assert 5 < result.usage.output < 100
    assert result.cost == pytest.approx((result.usage.input + result.usage.output) / 1e6)


# --- naming a model -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "api", "named"),
    [
        ("anthropic:claude-x", "anthropic-messages", "claude-x"),
        ("openai:gpt-x", "openai-responses", "gpt-x"),
        ("openai-chat:gpt-x", "openai-chat", "gpt-x"),
        ("gemini:gemini-x", "gemini", "gemini-x"),
        ("google:gemini-x", "gemini", "gemini-x"),
        ("openai:ft:gpt-x:org", "openai-responses", "ft:gpt-x:org"),
    ],
)
def test_a_model_by_a_text(text, api, named):
    found = Model.of(text)
    assert (found.api, found.name) == (api, named)
    assert found.base.startswith("https://")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Model.of("claude-x"), "expected anthropic:NAME.*received 'claude-x'"),
        (lambda: Model.of("anthropic:"), "model: expected a name"),
        (lambda: Model(api="soap", model="m"), "api: expected one of .*gemini.*; received 'soap'"),
        (lambda: Model(api="gemini", model="m", url="ftp://x"), "expected http or https"),
        (lambda: Model(api="gemini", model="m", headers={"X": "a\nb"}), "header X"),
    ],
)
def test_what_is_no_model(make, why):
    with pytest.raises(UsageError, match=why):
        make()


async def test_a_key_that_is_missing_is_named_before_anything_is_sent(tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with shop(tmp_path) as host:
        with pytest.raises(UsageError, match="environment variable ANTHROPIC_API_KEY has no key"):
            await host.run("x", model="anthropic:claude-x")


def test_a_key_does_not_travel_in_the_clear():
    told = Model.of("m", url="http://models.example/v1", key_env="TEST_KEY")
    with pytest.raises(UsageError, match="in the clear") as caught:
        told.open()
    assert KEY not in str(caught.value)


def test_a_key_with_a_line_break_is_refused_and_not_shown(monkeypatch):
    monkeypatch.setenv("TEST_KEY", "abc\r\nx-evil: 1")
    with pytest.raises(UsageError, match="what TEST_KEY holds is no key") as caught:
        Model.of("openai:m", key_env="TEST_KEY").open()
    assert "evil" not in str(caught.value)
