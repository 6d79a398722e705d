"""What is on the wire is what providers publish: answers of our servers, our requests, their own clients."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from dragoman.host import Model
from tests.host.loop.servers import name, shop
from tests.host.loop.wire import EVENTS, PROVIDERS, Provider, Reply, Use, model_server, sse
from tests.needs import ROOT, peer_python

each = pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.api)
CLIENTS = [provider for provider in PROVIDERS if provider.api != "gemini"]
through_clients = pytest.mark.parametrize("provider", CLIENTS, ids=lambda provider: provider.api)

PRICE = Use("c1", "price", {"item": "apple"})
SCRIPT = Path(__file__).parent / "peers" / "clients.py"


def events_of(data: bytes) -> list[dict]:
    """The events of a stream, read as plainly as can be."""
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


@each
@pytest.mark.parametrize("uses", [(), (PRICE,), (PRICE, Use("c2", "buy", {}))])
@pytest.mark.parametrize("text", ["", "some text"])
def test_what_our_servers_say_is_of_the_published_types(published, provider: Provider, uses, text):
    assert published.message(provider.api, provider.whole(text, uses)) == []
    for event in events_of(provider.events(text, uses)):
        if event.get("type") != "ping":
            assert published.event(provider.api, event) == [], event


@each
@pytest.mark.parametrize("stream", [True, False])
async def test_what_a_run_asks_is_of_the_published_types(tmp_path, published, provider, stream):
    uses = [
        Use("c1", name("price"), {"item": "apple"}),
        Use("c2", name("broken"), {}),
        Use("c3", name("nothing"), {}),
    ]
    replies = [provider.stream("x", uses), provider.stream("y")]
    if not stream:
        replies = [provider.plain("x", uses), provider.plain("y")]
    async with model_server(*replies) as server, shop(tmp_path) as host:
        model = Model(api=provider.api, model="m-1", url=server.url, stream=stream, limit=100)
        await host.run("how much?", model=model, system="Be brief.")
    for request in server.requests:
        assert published.request(provider.api, request.body) == []


# --- through the providers' own clients -----------------------------------------------------------------


async def talk(provider: Provider, url: str, kind: str) -> dict:
    interpreter = Path(peer_python("providers"))
    packages = next((interpreter.parent.parent / "lib").glob("python*/site-packages"))
    path = os.pathsep.join([str(ROOT / "src"), str(packages)])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        provider.api,
        url,
        kind,
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@through_clients
@pytest.mark.parametrize("kind", ["streamed", "whole"])
async def test_a_run_through_a_providers_own_client(provider, kind):
    reply = provider.stream if kind == "streamed" else provider.plain
    async with model_server(reply("One moment.", [PRICE]), reply("It costs 3.")) as server:
        told = await talk(provider, server.url, kind)
    assert told["text"] == "It costs 3."
    assert "".join(told["texts"]) == "One moment.It costs 3."
    assert (told["stop"], told["calls"]) == ("end", [["price", {"item": "apple"}]])
    assert told["usage"] == [60, 14, 20]
    assert provider.results(server.requests[1].body) == [("c1", "3")]
    assert server.requests[0].body["extra_member"] == 1
    assert "sk-secret" not in told["repr"]


@through_clients
async def test_what_a_providers_own_client_raises(provider):
    async with model_server(provider.refused(401)) as server:
        told = await talk(provider, server.url, "streamed")
    assert (told["error"], told["status"]) == ("ModelError", 401)
    assert provider.error["error"]["message"] in told["text"]
    assert "sk-secret" not in told["text"]


@through_clients
async def test_an_error_within_the_stream_of_a_providers_own_client(provider):
    async with model_server(
        Reply([sse(provider.broken, names="type" in provider.broken)], headers=EVENTS)
    ) as server:
        told = await talk(provider, server.url, "streamed")
    assert told["error"] == "ModelError"
    assert "verloaded" in told["text"]


async def test_a_client_that_is_not_asynchronous_is_refused():
    provider = CLIENTS[0]
    async with model_server(provider.stream("x")) as server:
        told = await talk(provider, server.url, "sync")
    assert told["error"] == "UsageError"
    assert "expected an asynchronous one" in told["text"]
