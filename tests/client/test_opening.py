"""Coming to speak with a server: the negotiation over real waiting, processes that end, and late answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.client import Client, opening
from dragoman.client.target import Target
from dragoman.errors import ClosedError, HttpError, LocalError, NegotiationError, RemoteError
from dragoman.revisions import REVISIONS
from tests.client.scripted import (
    NEW,
    OLD,
    Fail,
    Heard,
    Script,
    Scripted,
    discover_result,
    handshake,
    initialize_result,
    stateless,
)


@pytest.fixture(autouse=True)
def no_verdicts() -> Iterator[None]:
    opening.forget(None)
    yield
    opening.forget(None)


def methods(transport: Scripted) -> list[str]:
    return [heard.method for heard in transport.heard]


class Several:
    """A target that starts a new scripted server each time, one script after the other."""

    def __init__(self, *scripts: Script, key: str | None = None, shared: bool = True) -> None:
        self.made: list[Scripted] = []
        self._scripts = list(scripts)
        self._key = key
        self._shared = shared

    def make(self) -> Scripted:
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        self.made.append(Scripted(script, shared=self._shared))
        return self.made[-1]

    def client(self, **options: Any) -> Client:
        client = Client(Scripted(self._scripts[0]), **options)
        client._target = Target("several", self.make, key=self._key, restarts=True)
        return client


async def dies(transport: Scripted, heard: Heard) -> Any:
    raise ClosedError("the server ended", server="several", exit_status=3)


def dies_at_the_probe(then: Script) -> Script:
    async def script(transport: Scripted, heard: Heard) -> Any:
        return await (dies if heard.method == "server/discover" else then)(transport, heard)

    return script


@pytest.mark.parametrize("shared", [True, False])
async def test_a_stateless_server_is_taken_at_its_word(shared: bool) -> None:
    transport = Scripted(stateless(), shared=shared)
    async with Client(transport) as client:
        assert client.revision.version == NEW
    assert methods(transport) == ["server/discover"]
    assert transport.notices == []
    assert transport.heard[0].outgoing.revision is client_revision(NEW)


def client_revision(version: str) -> Any:
    return next(revision for revision in REVISIONS if revision.version == version)


@pytest.mark.parametrize("version", [r.version for r in REVISIONS if r.handshake])
async def test_an_old_server_is_greeted(version: str) -> None:
    transport = Scripted(handshake(version=version))
    async with Client(transport) as client:
        assert client.revision.version == version
    assert methods(transport) == ["server/discover", "initialize"]
    assert transport.heard[1].outgoing.handshake
    assert transport.heard[1].outgoing.revision is None


async def test_a_silent_server_is_greeted_after_the_time_of_the_probe() -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "server/discover":
            await asyncio.Event().wait()
        return initialize_result()

    transport = Scripted(script)
    async with Client(transport, probe_timeout=0.02) as client:
        assert client.revision.version == OLD
        assert asyncio.all_tasks() == {asyncio.current_task()}
    assert transport.cancelled == [transport.heard[0].id]
    assert transport.notices == ["notifications/initialized"]


async def test_a_server_that_starts_slowly_is_not_taken_for_an_old_one() -> None:
    # It reads both requests late, answers the probe, and takes no handshake after that.
    greeted = asyncio.Event()

    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "initialize":
            greeted.set()
            await asyncio.sleep(0)
            raise Fail(-32022, "serving 2026-07-28", {"supported": [NEW], "requested": OLD})
        await greeted.wait()
        return discover_result()

    transport = Scripted(script)
    async with Client(transport, probe_timeout=0.02) as client:
        assert client.revision.version == NEW
        assert client.instructions == "be kind"
    assert methods(transport) in (
        ["server/discover", "initialize"],
        ["server/discover", "initialize", "server/discover"],
    )


async def test_a_process_that_ends_at_the_probe_is_started_again() -> None:
    several = Several(dies_at_the_probe(handshake()))
    async with several.client() as client:
        assert client.revision.version == OLD
    first, second = several.made
    assert methods(first) == ["server/discover"]
    assert first.closed
    assert methods(second) == ["initialize"]
    assert second.closed


async def test_a_process_that_always_ends_says_how() -> None:
    several = Several(dies)
    with pytest.raises(ClosedError, match="the server ended") as caught:
        await several.client().connect()
    assert caught.value.exit_status == 3
    assert len(several.made) == 2
    assert all(transport.closed for transport in several.made)


async def test_a_transport_that_was_handed_over_is_not_opened_twice() -> None:
    transport = Scripted(dies)
    with pytest.raises(ClosedError):
        await Client(transport).connect()
    assert transport.opened == 1


@pytest.mark.parametrize("status", [400, 404, 405, 406])
async def test_over_http_a_refused_probe_is_followed_by_a_greeting(status: int) -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "server/discover":
            raise HttpError("refused", status=status)
        return initialize_result()

    transport = Scripted(script, shared=False)
    async with Client(transport) as client:
        assert client.revision.version == OLD


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
async def test_over_http_the_way_being_barred_is_raised_as_it_is(status: int) -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        raise HttpError("refused", status=status)

    transport = Scripted(script, shared=False)
    with pytest.raises(HttpError) as caught:
        await Client(transport, retry_for=0).connect()
    assert caught.value.status == status
    assert methods(transport) == ["server/discover"]


@pytest.mark.parametrize("fault", [ClosedError("reset"), OSError("no route")])
async def test_over_http_a_lost_connection_is_raised_as_it_is(fault: Exception) -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        raise fault

    transport = Scripted(script, shared=False)
    with pytest.raises(type(fault)):
        await Client(transport).connect()
    assert len(transport.heard) == 1


async def test_over_http_a_slow_answer_is_waited_for() -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        await asyncio.sleep(0.05)
        return discover_result()

    transport = Scripted(script, shared=False)
    async with Client(transport, probe_timeout=0.01) as client:
        assert client.revision.version == NEW


async def test_unsupported_with_the_very_version_is_tried_once_more() -> None:
    # The official conformance suite answers the first request of all in this way.
    async def script(transport: Scripted, heard: Heard) -> Any:
        if len(transport.heard) == 1:
            raise Fail(-32022, "Unsupported", {"supported": [NEW], "requested": NEW})
        return discover_result()

    transport = Scripted(script, shared=False)
    async with Client(transport) as client:
        assert client.revision.version == NEW
    assert methods(transport) == ["server/discover"] * 2


async def test_nothing_in_common_names_both_sides_and_the_server() -> None:
    transport = Scripted(stateless(supportedVersions=["2031-01-01"]))
    with pytest.raises(NegotiationError, match="2031-01-01") as caught:
        await Client(transport, name="orders").connect()
    assert OLD in caught.value.message
    assert caught.value.server == "orders"
    assert transport.closed


async def test_a_refused_handshake_has_the_servers_own_error_as_its_cause() -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        raise Fail(-32603, "out of order")

    with pytest.raises(NegotiationError, match="out of order") as caught:
        await Client(Scripted(script)).connect()
    assert isinstance(caught.value.__cause__, RemoteError)


async def test_what_is_answered_differently_is_told_of_each() -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        raise Fail(-32603, f"no {heard.method}")

    with pytest.raises(NegotiationError) as caught:
        await Client(Scripted(script)).connect()
    assert caught.value.message.endswith(
        "(`server/discover`: no server/discover (-32603); `initialize`: no initialize (-32603))"
    )


@pytest.mark.parametrize(
    "endpoint", ["//evil.example/mcp", "https://evil.example", "/a b", "/" + "x" * 300, 7]
)
async def test_a_path_that_is_none_is_no_hint(endpoint: Any) -> None:
    async def script(transport: Scripted, heard: Heard) -> Any:
        raise Fail(-32600, "not here", {"endpoint": endpoint})

    transport: Any = Scripted(script)
    transport.facts = lambda: {"url": "http://h/x"}
    with pytest.raises(NegotiationError) as caught:
        await Client(transport).connect()
    assert caught.value.hint is None


@pytest.mark.parametrize("version", [r.version for r in REVISIONS])
async def test_a_pinned_revision_is_the_only_one_that_is_tried(version: str) -> None:
    revision = client_revision(version)
    transport = Scripted(handshake(version=version) if revision.handshake else stateless())
    async with Client(transport, protocol=version) as client:
        assert client.revision is revision
    assert methods(transport) == ["initialize" if revision.handshake else "server/discover"]


async def test_pinned_to_the_newest_an_old_server_is_refused() -> None:
    with pytest.raises(NegotiationError, match=r"does not speak 2026-07-28.*Method not found"):
        await Client(Scripted(handshake()), protocol=NEW).connect()


# The verdict is kept


async def test_a_known_old_server_is_not_probed_again() -> None:
    several = Several(handshake(), key="k")
    for _ in range(2):
        async with several.client():
            pass
    assert [methods(t) for t in several.made] == [["server/discover", "initialize"], ["initialize"]]


async def test_a_known_server_that_changed_is_found_out_about() -> None:
    several = Several(handshake(), stateless(), handshake(), key="k")
    found = []
    for _ in range(3):
        async with several.client() as client:
            found.append(client.revision.version)
    assert found == [OLD, NEW, OLD]


async def test_a_known_stateless_server_may_be_slow() -> None:
    async def slow(transport: Scripted, heard: Heard) -> Any:
        await asyncio.sleep(0.05)
        return discover_result()

    several = Several(stateless(), slow, key="k")
    for _ in range(2):
        async with several.client(probe_timeout=0.01) as client:
            assert client.revision.version == NEW


async def test_verdicts_are_kept_for_each_server_apart() -> None:
    old, new = Several(handshake(), key="old"), Several(stateless(), key="new")
    for several in (old, new, old, new):
        async with several.client():
            pass
    assert methods(new.made[1]) == ["server/discover"]


async def test_a_failed_connection_can_be_tried_again() -> None:
    several = Several(dies, dies, stateless(), key="k")
    client = several.client()
    with pytest.raises(LocalError):
        await client.connect()
    async with client:
        assert client.revision.version == NEW
