"""Who calls over HTTP, as a server's own function says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman import Context, Refusal, Server
from tests.http.wire import BASE, initialize, post, routed, rpc, stateless

USERS = {"Bearer one": "ada", "Bearer two": "alan"}


def authenticate(headers: Mapping[str, str]) -> str | None:
    given = headers.get("authorization")
    if given is not None and given not in USERS:
        raise Refusal(0, "unknown token")
    return USERS.get(given or "")


async def later(headers: Mapping[str, str]) -> str | None:
    return authenticate(headers)


def broken(headers: Mapping[str, str]) -> str | None:
    raise KeyError("the secret of ada")


def app(by: Any = authenticate) -> Any:
    server = Server("s")

    @server.tool
    def whoami(ctx: Context) -> str:
        return str(ctx.principal)

    return server.asgi(authenticate=by)


CALL = {"name": "whoami", "arguments": {}}


async def asked(app: Any, token: str | None) -> Any:
    message = stateless("tools/call", CALL)
    return await post(app, message, routed(message, authorization=token))


@pytest.mark.parametrize("by", [authenticate, later])
@pytest.mark.parametrize(("token", "who"), [(None, "None"), ("Bearer one", "ada"), ("Bearer two", "alan")])
async def test_a_handler_knows_who_calls(by: Any, token: str | None, who: str) -> None:
    answer = await asked(app(by), token)
    assert answer.json["result"]["content"][0]["text"] == who


async def test_a_refusal_is_a_401_and_no_call() -> None:
    answer = await asked(app(), "Bearer three")
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "unknown token" in answer.json["error"]["message"]


async def test_a_function_that_fails_lets_nobody_in_and_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await asked(app(broken), "Bearer one")
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert "authenticate failed" in caplog.text


async def test_a_session_answers_to_who_opened_it_alone() -> None:
    served = app()
    opened = await post(served, initialize("2025-11-25"), {**BASE, "authorization": "Bearer one"})
    headers = {
        **BASE,
        "mcp-session-id": opened.headers["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    message = rpc("tools/call", CALL, 2)
    own = await post(served, message, {**headers, "authorization": "Bearer one"})
    assert own.json["result"]["content"][0]["text"] == "ada"
    for other in ({"authorization": "Bearer two"}, {}):
        assert (await post(served, message, {**headers, **other})).status == 404
