"""HTTP answers without a JSON-RPC answer in them: what the error says, and what it never shows."""

from __future__ import annotations

import pytest

from dragoman.errors import HttpError
from dragoman.jsonrpc.message import encode_error, encode_result
from dragoman.transports.http_base import HttpOptions, shown_url

from .server import SESSIONS, call, connected, initialize, serving

PAGE = b"\n<!DOCTYPE html>\n<html><head><title>Not here</title></head></html>"


async def refused(server, **options) -> HttpError:
    async with connected(server.url, **options) as transport:
        with pytest.raises(HttpError) as caught:
            await transport.exchange(call())
    return caught.value


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "Authorization"),
        (403, "other credentials"),
        (404, "the path of the URL"),
        (405, "takes no POST"),
        (406, "Accept"),
        (413, "smaller"),
        (415, "Content-Type"),
        (421, "host name"),
        (429, "too many"),
        (500, "the server's own log"),
        (502, "behind this address"),
        (503, "not ready"),
        (599, "the server's own log"),
        (202, "neither JSON nor an event stream"),
        (204, "neither JSON nor an event stream"),
    ],
)
async def test_each_status_says_what_to_try(status, hint):
    async def answer(asked):
        await asked.reply(status, b"" if status == 204 else b"some\n text", kind="text/plain")

    async with serving(answer) as server:
        error = await refused(server, name="orders")
    assert (error.status, error.reason, error.content_type) == (status, "Status", "text/plain")
    assert error.server == "orders"
    assert hint in error.hint
    expected = f"HTTP {status} Status from {server.url} (text/plain)" + (
        "" if status == 204 else ": some text"
    )
    assert error.message == expected
    assert error.session_ended is False


async def test_a_web_page_is_called_one():
    async def answer(asked):
        await asked.reply(200 if len(server.asked) == 1 else 404, PAGE, kind="text/html; charset=utf-8")

    async with serving(answer) as server:
        for status in (200, 404):
            error = await refused(server)
            assert error.status == status
            assert "this is a web page, not an MCP endpoint" in error.hint
            assert "<!DOCTYPE html> <html>" in error.message


async def test_a_page_without_a_content_type():
    async def answer(asked):
        await asked.reply(200, PAGE, kind=None)

    async with serving(answer) as server:
        error = await refused(server)
    assert "no content type" in error.message
    assert "web page" in error.hint


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_reported_and_not_followed(status):
    async def answer(asked):
        where = f"http://u:pw@127.0.0.1:{server.port}/other?token=abcdef#x"
        await asked.reply(status, b"", kind=None, extra=f"Location: {where}\r\n")

    async with serving(answer) as server:
        error = await refused(server, headers={"Authorization": "Bearer t0ken"})
    assert error.location == f"http://127.0.0.1:{server.port}/other?token=..."
    assert error.location in error.hint
    assert len(server.asked) == 1


async def test_the_challenge_is_kept_for_whoever_can_answer_it():
    challenge = 'Bearer resource_metadata="https://a.example/.well-known/x", scope="mcp:basic"'

    async def answer(asked):
        await asked.reply(401, b"", kind=None, extra=f"WWW-Authenticate: {challenge}\r\n")

    async with serving(answer) as server:
        assert (await refused(server)).challenge == challenge


async def test_no_secret_of_the_request_is_shown_even_when_the_server_echoes_it():
    secrets = ["S3cretToken", "c00kieValue", "qu3ryValue", "passw0rd", "apikey-123456"]

    async def answer(asked):
        echo = f"{asked.target} {asked.headers}".encode()
        await asked.reply(500, echo, kind="text/plain", extra=f"Location: {asked.target}\r\n")

    async with serving(answer) as server:
        url = server.url.replace("://", "://me:passw0rd@") + "?key=qu3ryValue&flag"
        headers = {
            "Authorization": "Bearer S3cretToken",
            "Cookie": "a=c00kieValue",
            "X-Api-Key": "apikey-123456",
        }
        async with connected(url, headers=headers) as transport:
            with pytest.raises(HttpError) as caught:
                await transport.exchange(call())
            shown = [str(caught.value), repr(transport), str(transport.facts()), caught.value.body]
            shown.append(str(caught.value.location))
            request = transport._requests.call(call(), None)
            shown += [repr(request), repr(request.address), repr(transport._place())]
            shown.append(repr(HttpOptions(proxy="http://me:passw0rd@proxy:1/?key=qu3ryValue")))
    assert "'authorization': '[...]'" in caught.value.body
    for secret in secrets:
        assert not [text for text in shown if secret in text], secret


async def test_what_would_steer_a_terminal_is_taken_out_and_the_body_is_cut():
    async def answer(asked):
        await asked.reply(500, b"\x1b[2J\x07" + "가".encode() * 400 + b"\xff", kind="text/plain")

    async with serving(answer) as server:
        error = await refused(server)
    assert error.body == " [2J " + "가" * 295
    assert "\x1b" not in str(error)


async def test_a_body_that_never_ends_does_not_hold_the_error_back(monkeypatch):
    monkeypatch.setattr("dragoman.transports.http_answer._PATIENCE", 0.01)

    async def answer(asked):
        await asked.raw(b"HTTP/1.1 500 No\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nhalf")
        await asked.gone()

    async with serving(answer) as server:
        error = await refused(server)
    assert error.body == "half"


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
@pytest.mark.parametrize("id_", ["1", "null", None])
async def test_a_json_rpc_error_is_an_answer_whatever_the_status(status, id_):
    member = "" if id_ is None else f'"id":{id_},'
    body = f'{{"jsonrpc":"2.0",{member}"error":{{"code":-32022,"message":"no","data":{{"supported":[]}}}}}}'

    async def answer(asked):
        await asked.reply(status, body.encode())

    async with serving(answer) as server, connected(server.url) as transport:
        response = await transport.exchange(call())
    assert (response.error.code, bytes(response.error.data)) == (-32022, b'{"supported":[]}')


async def test_a_long_json_rpc_error_is_read_whole():
    async def answer(asked):
        await asked.reply(400, encode_error(asked.id, -32602, "x" * 100_000))

    async with serving(answer) as server, connected(server.url) as transport:
        assert len((await transport.exchange(call())).error.message) == 100_000


@pytest.mark.parametrize(
    "body",
    [
        encode_error("server-error", -32600, "Bad Request: Missing session ID"),  # for nobody's id
        encode_result(1, "a result cannot come with this status"),
        b'{"error": "invalid_token"}',
        b'{"detail": "Not Found"}',
        b"{",
        b"[]",
    ],
)
async def test_json_that_is_no_answer_is_an_http_error(body):
    async def answer(asked):
        await asked.reply(400, body)

    async with serving(answer) as server:
        error = await refused(server)
    assert error.status == 400
    assert error.body == body.decode()


async def test_a_404_in_a_session_says_that_the_session_is_over():
    async def answer(asked):
        if asked.method == "DELETE":
            await asked.reply(404, kind=None)
        elif asked.message["method"] == "initialize":
            await asked.result({}, extra="Mcp-Session-Id: s1\r\n")
        else:
            await asked.reply(404, b"gone s1 gone", kind="text/plain")

    async with serving(answer) as server, connected(server.url) as transport:
        await transport.exchange(initialize())
        transport.agreed(SESSIONS)
        with pytest.raises(HttpError, match="has ended this session") as caught:
            await transport.exchange(call(revision=SESSIONS))
    assert caught.value.session_ended is True


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@h.example:8/a/b?x=1&y=2&z#f", "https://h.example:8/a/b?x=...&y=..."),
        ("/relative?secret", "/relative?..."),
        ("https://[bad/", "a URL that cannot be read"),
        ("", ""),
    ],
)
def test_urls_of_others_are_shown_without_secrets(url, shown):
    assert shown_url(url) == shown
