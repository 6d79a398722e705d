"""One request over HTTP: what goes out, and every form in which the answer may come back."""

from __future__ import annotations

import asyncio
import json

import pytest

from dragoman.errors import ClosedError, ConnectError, HttpError, PeerFault, UsageError
from dragoman.jsonrpc.message import encode_error, encode_result
from dragoman.protocol.sse import encode_event
from dragoman.transports.http_client import HttpTransport

from .server import SESSIONS, STATELESS, Asked, Ears, call, connected, initialize, progress, serving


async def answer_result(asked: Asked) -> None:
    await asked.result({"ok": True})


def read(response):
    return json.loads(bytes(response.result))


# What goes out -------------------------------------------------------------------------------------


async def test_a_stateless_request_names_its_revision_method_and_subject():
    async with serving(answer_result) as server, connected(server.url) as transport:
        outgoing = call(subject="조회", mirrored={"Mcp-Param-Region": "us-west1"})
        assert read(await transport.exchange(outgoing)) == {"ok": True}
    headers = server.asked[0].headers
    assert server.asked[0].method == "POST"
    assert server.asked[0].body == outgoing.frame
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "=?base64?7KGw7ZqM?="
    assert headers["mcp-param-region"] == "us-west1"
    assert headers["content-type"] == "application/json"
    assert headers["accept"] == "application/json, text/event-stream"
    assert "mcp-session-id" not in headers


async def test_initialize_names_no_revision_and_later_requests_name_the_agreed_one():
    async with serving(answer_result) as server, connected(server.url) as transport:
        await transport.exchange(initialize())
        transport.agreed(SESSIONS)
        await transport.exchange(call(revision=SESSIONS, subject="x"))
    first, second = server.asked[0].headers, server.asked[1].headers
    assert "mcp-protocol-version" not in first
    assert second["mcp-protocol-version"] == "2025-11-25"
    assert not {"mcp-method", "mcp-name"} & (set(first) | set(second))


async def test_headers_of_the_caller_go_along_and_user_information_becomes_credentials():
    async with serving(answer_result) as server:
        url = server.url.replace("://", "://us%40er:p%3Aw@") + "?token=tok%20en"
        async with connected(url, headers={"X-Tenant": " acme ", "User-Agent": "mine/1"}) as transport:
            await transport.exchange(call())
        async with connected(url, headers={"authorization": "Bearer b"}) as transport:
            await transport.exchange(call())
    first, second = server.asked
    assert first.target == "/mcp?token=tok%20en"
    assert first.headers["x-tenant"] == "acme"
    assert first.headers["user-agent"] == "mine/1"
    assert first.headers["authorization"] == "Basic dXNAZXI6cDp3"  # us@er:p:w
    assert second.headers["authorization"] == "Bearer b"
    assert second.headers["user-agent"].startswith("dragoman/")


@pytest.mark.parametrize(
    ("headers", "complaint"),
    [
        ({"X Bad": "v"}, "X Bad"),
        ({"": "v"}, "''"),
        ({"Content-Length": "3"}, "Content-Length"),
        ({"mcp-session-id": "3"}, "mcp-session-id"),
        ({"X-Key": "sec\r\nret"}, "X-Key"),
        ({"X-Key": "sec\0ret"}, "X-Key"),
        ({"X-Key": "sec서ret"}, "X-Key"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_value(headers, complaint):
    with pytest.raises(UsageError, match=complaint) as caught:
        HttpTransport("http://localhost/mcp", headers=headers)
    assert "ret" not in str(caught.value)


async def test_a_mirrored_value_cannot_end_its_header():
    async with serving(answer_result) as server, connected(server.url) as transport:
        with pytest.raises(UsageError, match="Mcp-Param-A"):
            await transport.exchange(call(mirrored={"Mcp-Param-A": "x\r\nEvil: 1"}))
        await transport.exchange(call())  # and nothing is left behind
    assert len(server.asked) == 1


# Answers in JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8", None])
async def test_json_with_and_without_a_content_type(kind):
    async def answer(asked):
        await asked.reply(200, encode_result(asked.id, {"text": "서울"}), kind=kind)

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == {"text": "서울"}


async def test_json_behind_a_byte_order_mark_and_one_byte_at_a_time():
    async def answer(asked):
        body = b"\xef\xbb\xbf" + encode_result(asked.id, {"text": "서울"})
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        await asked.trickle(head.encode() + body)

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == {"text": "서울"}


async def test_a_body_that_ends_with_the_connection():
    async def answer(asked):
        await asked.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        await asked.raw(encode_result(asked.id, 1))
        asked.hang_up()

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == 1
        assert read(await transport.exchange(call())) == 1
    assert server.connections == 2


async def test_interim_responses_are_passed_over():
    async def answer(asked):
        await asked.raw(
            b"HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
        )
        await asked.result(1)

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == 1


async def test_a_large_answer_arrives_whole():
    text = "x" * (9 << 20)

    async def answer(asked):
        await asked.result(text)

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == text


async def test_a_large_request_arrives_whole():
    outgoing = call()
    outgoing.frame = encode_result(1, "y" * (3 << 20))
    async with serving(answer_result) as server, connected(server.url) as transport:
        await transport.exchange(outgoing)
    assert server.asked[0].body == outgoing.frame


async def test_a_batch_that_holds_the_answer():
    async def answer(asked):
        await asked.reply(200, b"[" + progress(1) + b"," + encode_result(asked.id, 7) + b"]")

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == 7


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (encode_result(2, 1), "for the id 2, expected 1"),
        (encode_result("1", 1), "for the id '1', expected 1"),
        (encode_result(1.0, 1), "for the id 1.0, expected 1"),
        (progress(1), "the message 'notifications/progress', expected a response"),
        (b'{"jsonrpc":"1.0","id":1,"result":1}', '"jsonrpc": expected "2.0"'),
        (b'{"jsonrpc":"2.0","id":1', "ends too early"),
        (b'{"jsonrpc":"2.0","id":1,"result":"\xff"}', "not UTF-8"),
    ],
)
async def test_json_that_is_not_the_answer_is_a_fault_of_the_server(body, complaint):
    async def answer(asked):
        await asked.reply(200, body)

    async with serving(answer) as server, connected(server.url, name="orders") as transport:
        with pytest.raises(PeerFault) as caught:
            await transport.exchange(call())
    assert complaint in str(caught.value)
    assert "'orders'" in str(caught.value)
    assert "tools/call" in str(caught.value)


async def test_an_answer_beyond_the_limit():
    async def answer(asked):
        await asked.result("x" * 200)

    async with serving(answer) as server, connected(server.url, max_body=100) as transport:
        with pytest.raises(PeerFault, match="longer than 100 bytes"):
            await transport.exchange(call())


async def test_a_content_coding_that_was_not_asked_for():
    async def answer(asked):
        await asked.reply(200, b"\x1f\x8b", extra="Content-Encoding: gzip\r\n")

    async with serving(answer) as server, connected(server.url) as transport:
        with pytest.raises(PeerFault, match="gzip"):
            await transport.exchange(call())
    assert server.asked[0].headers["accept-encoding"] == "identity"


# Answers in events ---------------------------------------------------------------------------------

RESULT = encode_result(1, {"text": "서울\u2028"})
STREAMS = {
    "plain": encode_event(RESULT),
    "BOM": b"\xef\xbb\xbf" + encode_event(RESULT),
    "CRLF": b"event: message\r\ndata: " + RESULT + b"\r\n\r\n",
    "CR": b"data: " + RESULT + b"\r\r",
    "comments": b":\r\n: keep-alive\n\n:\n\n" + encode_event(RESULT),
    "priming": b"id: 1\ndata: \n\n" + encode_event(RESULT, id="2"),
    "several data lines": b"data: " + RESULT.replace(b',"result":', b',\ndata: "result":\ndata:') + b"\n\n",
    "other event types": encode_event(encode_result(1, "wrong"), event="ping") + encode_event(RESULT),
    "an answer to somebody else": encode_event(encode_result(99, "wrong")) + encode_event(RESULT),
    "what is no message": encode_event(b"junk") + encode_event(b'{"a":1}') + encode_event(RESULT),
}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("pieces", ["whole", "bytes", "chunked bytes"])
async def test_a_stream_in_every_form(name, pieces):
    stream = STREAMS[name]

    async def answer(asked):
        await asked.stream()
        if pieces == "whole":
            await asked.send(stream)
        elif pieces == "bytes":
            await asked.trickle(b"%x\r\n%s\r\n" % (len(stream), stream))
        else:
            for i in range(len(stream)):
                await asked.send(stream[i : i + 1])
        await asked.end()

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call())) == {"text": "서울\u2028"}


async def test_notifications_go_to_the_request_that_they_belong_to():
    async def answer(asked):
        await asked.stream()
        for value in range(3):
            await asked.event(progress(value))
        await asked.event(encode_result(asked.id, 1))
        await asked.end()

    everyone, own = Ears(), Ears()
    async with serving(answer) as server, connected(server.url, everyone) as transport:
        await transport.exchange(call(), own.hear)
        assert (len(own.heard), len(everyone.heard)) == (3, 0)
        await transport.exchange(call())
        assert (len(own.heard), len(everyone.heard)) == (3, 3)


async def test_a_handler_that_fails_does_not_take_the_request_with_it(caplog):
    async def answer(asked):
        await asked.stream()
        await asked.event(progress(1))
        await asked.event(encode_result(asked.id, 1))
        await asked.end()

    def fail(notification):
        raise ZeroDivisionError

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call(), fail)) == 1
    assert "the handler of notifications/progress failed" in caplog.text


async def test_each_event_is_handed_on_when_it_comes():
    go_on = asyncio.Event()

    async def answer(asked):
        await asked.stream()
        await asked.event(progress(1))
        await go_on.wait()  # set by the handler: the event came through before the stream went on
        await asked.event(encode_result(asked.id, 1))
        await asked.end()

    async with serving(answer) as server, connected(server.url) as transport:
        assert read(await transport.exchange(call(), lambda _: go_on.set())) == 1


async def test_an_error_in_a_stream_is_an_answer_and_so_is_one_for_id_null():
    errors = [
        encode_error(1, -32602, "no"),
        encode_error(None, -32700, "no"),
        b'{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}',
    ]

    async def answer(asked):
        await asked.stream()
        await asked.event(errors[len(server.asked) - 1])
        await asked.end()

    async with serving(answer) as server, connected(server.url) as transport:
        codes = [(await transport.exchange(call())).error.code for _ in errors]
    assert codes == [-32602, -32700, -1]


async def test_a_stream_that_ends_without_the_answer_is_told_at_once():
    async def answer(asked):
        await asked.stream()
        await asked.event(progress(1), "id: 5\nretry: 1\n")
        await asked.end()

    async with serving(answer) as server, connected(server.url) as transport:
        with pytest.raises(ClosedError, match="ended without the answer to tools/call"):
            await transport.exchange(call())  # and no resumption: the revision has none
    assert len(server.asked) == 1


async def test_a_broken_answer_in_a_stream():
    async def answer(asked):
        await asked.stream()
        await asked.event(b'{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":"x"}}')
        await asked.gone()

    async with serving(answer) as server, connected(server.url) as transport:
        with pytest.raises(PeerFault, match="exactly one of them"):
            await transport.exchange(call())


async def test_an_event_beyond_the_limit_ends_the_request_only_when_it_may_be_its_answer():
    async def answer(asked):
        await asked.stream()
        await asked.event(encode_result(99, "x" * 200))
        if asked.id == 1:
            await asked.event(encode_result(1, 1))
        else:
            await asked.event(encode_result(asked.id, "x" * 200))
        await asked.end()

    async with serving(answer) as server, connected(server.url, max_body=150) as transport:
        assert read(await transport.exchange(call())) == 1
        with pytest.raises(PeerFault, match="longer than 150 bytes"):
            await transport.exchange(call(2))


# Connections that fail -----------------------------------------------------------------------------


async def test_a_connection_that_breaks():
    async def answer(asked):
        if asked.id == 1:
            asked.reset()
        elif asked.id == 2:
            asked.hang_up()
        elif asked.id == 3:
            await asked.raw(
                b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"js'
            )
            asked.hang_up()
        else:
            await asked.stream()
            await asked.event(progress(1))
            asked.drop()

    async with serving(answer) as server, connected(server.url, name="orders") as transport:
        for id_, when in ((1, "before"), (2, "before"), (3, "within"), (4, "within")):
            with pytest.raises(ClosedError, match=when) as caught:
                await transport.exchange(call(id_))
            assert caught.value.server == "orders"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "another protocol"),
        (b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 70_000, "the head of the reply is longer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "not HTTP"),
    ],
)
async def test_what_is_not_http(data, complaint):
    async def answer(asked):
        await asked.raw(data)
        await asked.gone()

    async with serving(answer) as server, connected(server.url) as transport:
        with pytest.raises(PeerFault, match=complaint):
            await transport.exchange(call())


async def test_nobody_listens(unused_port):
    async with connected(
        f"http://user:word-of-pass@localhost:{unused_port}/mcp?key=word-of-key"
    ) as transport:
        with pytest.raises(ConnectError, match="connection refused") as caught:
            await transport.exchange(call())
    assert "word-of" not in str(caught.value)


async def test_a_name_that_does_not_exist():
    async with connected("http://nowhere.invalid/mcp") as transport:
        with pytest.raises(ConnectError, match=r"nowhere\.invalid:80: the name was not found"):
            await transport.exchange(call())


async def test_connecting_has_its_own_time_limit():
    async def never(asked):
        await asked.gone()

    async with serving(never) as server:  # speaks no TLS, and waits for a request that never comes
        url = server.url.replace("http:", "https:")
        async with connected(url, connect_timeout=0.05) as transport:
            with pytest.raises(ConnectError, match=r"within 0\.05 s"):
                await transport.exchange(call())


# Order of use --------------------------------------------------------------------------------------


async def test_use_before_open_and_after_close():
    transport = HttpTransport("http://localhost:1/mcp")
    with pytest.raises(UsageError, match="not been opened"):
        await transport.exchange(call())
    ears = Ears()
    await transport.open(ears.hear, ears.answer)
    with pytest.raises(UsageError, match="opened before"):
        await transport.open(ears.hear, ears.answer)
    await transport.close()
    with pytest.raises(ClosedError):
        await transport.exchange(call())
    with pytest.raises(ClosedError):
        await transport.notify(b"{}", STATELESS)


async def test_closing_ends_what_is_open_from_any_task_and_twice():
    async def answer(asked):
        if asked.id == 1:
            await asked.stream()
            await asked.event(progress(1))
        await asked.gone()

    async with serving(answer) as server, connected(server.url, max_connections=2) as transport:
        calls = [asyncio.create_task(transport.exchange(call(id_))) for id_ in (1, 2, 3)]
        await server.arrived(2)  # the third waits for a connection
        closings = [asyncio.create_task(transport.close()) for _ in range(2)]
        for task in calls:
            with pytest.raises(ClosedError):
                await task
        await asyncio.gather(*closings)
        await transport.close()


async def test_closing_while_connecting():
    reached = asyncio.Event()

    async def silent(reader, writer):  # lets the client in, and never says a word of TLS
        reached.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with connected(f"https://127.0.0.1:{port}/mcp") as transport:
            task = asyncio.create_task(transport.exchange(call()))
            await reached.wait()
            await transport.close()
            with pytest.raises(ClosedError):
                await task


async def test_close_without_open():
    await HttpTransport("http://localhost/mcp").close()


async def test_a_notification_is_accepted_or_refused():
    async def answer(asked):
        if asked.message["method"] == "notifications/no":
            await asked.reply(400, b"nope", kind="text/plain")
        else:
            await asked.reply((202, 200, 204)[len(server.asked) - 1], kind=None)

    async with serving(answer) as server, connected(server.url) as transport:
        for _ in range(3):
            await transport.notify(b'{"jsonrpc":"2.0","method":"notifications/yes"}', STATELESS)
        with pytest.raises(HttpError, match=r"400.*nope"):
            await transport.notify(b'{"jsonrpc":"2.0","method":"notifications/no"}', STATELESS)
