"""What is kept of a server's answers: for how long, for whom, and what is served when the server is away.

Expected values are from 2026-07-28, Caching; time is given, so nothing waits for it.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from dragoman.client import Client
from dragoman.client.cache import AuthContext, Cache, Shelf
from dragoman.client.options import ClientOptions
from dragoman.client.target import resolve
from dragoman.errors import ClosedError, DeadlineError, HttpError, PeerFault, RemoteError, UsageError
from tests.client.scripted import Fail, Heard, Scripted, stateless, tool

HOUR = 3_600_000


def shelf(cache: Cache | None, server: str = "s", context: str = "me") -> Shelf:
    return Shelf(cache, server=server, context=context)


def keep(
    kept: Shelf, value: Any, *, ttl: Any = HOUR, scope: Any = UNSET, params: Any = None, now: float = 0
) -> None:
    kept.keep("m", params, value=value, hints=(ttl, scope), now=now, mark=kept.mark("m"))


@pytest.mark.parametrize(
    ("ttl", "after", "fresh"),
    [
        (1000, 0.0, True),
        (1000, 0.999, True),
        (1000, 1.0, False),  # fresh while now < received + ttl
        (0, 0.0, False),
        (-5, 0.0, False),
        (UNSET, 0.0, False),
        (10**30, 10**9, True),
    ],
)
def test_how_long_a_result_is_fresh(ttl: Any, after: float, fresh: bool) -> None:
    kept = shelf(Cache())
    keep(kept, "value", ttl=ttl, now=100.0)
    assert (kept.fresh("m", None, now=100.0 + after) == "value") is fresh


def test_a_result_is_for_its_method_and_its_parameters() -> None:
    kept = shelf(Cache())
    keep(kept, "value", params="a")
    assert kept.fresh("m", "b", now=0) is None
    assert kept.fresh("n", "a", now=0) is None
    assert kept.fresh("m", "a", now=0) == "value"


@pytest.mark.parametrize(
    ("scope", "seen"), [("public", True), ("private", False), (UNSET, False), ("odd", False)]
)
def test_only_what_is_public_is_seen_under_another_authorisation(scope: Any, seen: bool) -> None:
    cache = Cache()
    keep(shelf(cache, context="me"), "value", scope=scope)
    assert shelf(cache, context="me").fresh("m", None, now=0) == "value"
    assert (shelf(cache, context="you").fresh("m", None, now=0) == "value") is seen
    assert shelf(cache, server="other", context="me").fresh("m", None, now=0) is None


def test_a_result_that_became_private_is_no_longer_seen_by_others() -> None:
    cache = Cache()
    keep(shelf(cache), "old", scope="public")
    keep(shelf(cache), "new", scope="private")
    assert shelf(cache).fresh("m", None, now=0) == "new"
    assert shelf(cache, context="you").fresh("m", None, now=0) is None


def test_a_change_makes_stale_what_it_is_about() -> None:
    cache = Cache()
    kept = shelf(cache)
    for params in ("a", "b"):
        keep(kept, params, params=params, scope="public")
    kept.changed("m", "a")
    assert (kept.fresh("m", "a", now=0), kept.fresh("m", "b", now=0)) == (None, "b")
    shelf(cache, server="other").changed("m")
    assert kept.fresh("m", "b", now=0) == "b"
    kept.changed("m")
    assert kept.fresh("m", "b", now=0) is None


def test_what_was_asked_for_before_a_change_is_stale_from_the_beginning() -> None:
    kept = shelf(Cache())
    mark = kept.mark("m")
    kept.changed("m")
    kept.keep("m", None, value="old", hints=(HOUR, "public"), now=0, mark=mark)
    assert kept.fresh("m", None, now=0) is None


def test_what_was_not_asked_for_the_longest_goes_first() -> None:
    kept = shelf(Cache(limit=2))
    for params in ("a", "b"):
        keep(kept, params, params=params)
    kept.fresh("m", "a", now=0)
    keep(kept, "c", params="c")
    assert [kept.fresh("m", params, now=0) for params in ("a", "b", "c")] == ["a", None, "c"]


def http(status: int) -> HttpError:
    return HttpError("no", status=status)


@pytest.mark.parametrize(
    ("fault", "served"),
    [
        (ClosedError("gone"), True),
        (DeadlineError("late"), True),
        (http(503), True),
        (http(429), True),
        (RemoteError(-32603, "Internal error"), True),
        (http(401), False),
        (http(403), False),
        (http(404), False),
        (RemoteError(-32602, "Invalid params"), False),
        (PeerFault("odd"), False),
        (UsageError("odd"), False),
        (ValueError("odd"), False),
    ],
)
def test_which_faults_are_answered_with_what_is_stale(fault: Exception, served: bool) -> None:
    kept = shelf(Cache(stale_if_error=True))
    keep(kept, "value", ttl=0)
    assert (kept.stale("m", None, fault=fault) == "value") is served
    plain = shelf(Cache())
    keep(plain, "value", ttl=HOUR)
    assert plain.stale("m", None, fault=fault) is None


def test_without_a_cache_nothing_is_kept() -> None:
    kept = shelf(None)
    keep(kept, "value")
    kept.changed("m")
    assert kept.fresh("m", None, now=0) is None
    assert kept.stale("m", None, fault=ClosedError("gone")) is None


# In the client


def failing() -> tuple[Scripted, list[Exception | None]]:
    fault: list[Exception | None] = [None]

    async def calls(transport: Scripted, heard: Heard) -> Any:
        if fault[0] is not None:
            raise fault[0]
        if heard.method == "tools/list":
            return {"tools": [tool("t")], "ttlMs": 0}
        return {"contents": [{"uri": "a://1", "text": "one"}], "ttlMs": 0}

    return Scripted(stateless(calls)), fault


async def test_stale_results_are_served_where_the_server_fails_and_that_was_asked_for(caplog: Any) -> None:
    transport, fault = failing()
    async with Client(transport, cache="stale-if-error") as client:
        await client.list_tools()
        await client.read_resource("a://1")
        fault[0] = Fail(-32603, "Internal error")
        assert [found.name for found in await client.list_tools()] == ["t"]
        assert (await client.read_resource("a://1")).contents[0].text == "one"
        assert "the page read before is served" in caplog.text
        with pytest.raises(RemoteError):
            await client.read_resource("a://2")
        with pytest.raises(RemoteError):
            await client.list_tools(refresh=True)
        fault[0] = Fail(-32602, "Invalid params")
        with pytest.raises(RemoteError):
            await client.list_tools()


async def test_without_being_asked_for_they_are_not() -> None:
    transport, fault = failing()
    async with Client(transport) as client:
        await client.list_tools()
        fault[0] = Fail(-32603, "Internal error")
        with pytest.raises(RemoteError):
            await client.list_tools()


async def test_no_contents_are_kept_where_the_cache_is_off() -> None:
    async def calls(transport: Scripted, heard: Heard) -> Any:
        return {"contents": [{"uri": "a://1", "text": "one"}], "ttlMs": HOUR, "cacheScope": "public"}

    transport = Scripted(stateless(calls))
    async with Client(transport, cache=False) as client:
        await client.read_resource("a://1")
        await client.read_resource("a://1")
    assert len(transport.of("resources/read")) == 2


def test_an_unknown_way_to_keep_is_refused() -> None:
    with pytest.raises(UsageError, match="cache: expected True, False"):
        Client(Scripted(stateless()), cache="forever")  # type: ignore[arg-type]  # that is what is tested


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"headers": {"Authorization": "Bearer a"}}, {"headers": {"Authorization": "Bearer a"}}, True),
        ({"headers": {"Authorization": "Bearer a"}}, {"headers": {"Authorization": "Bearer b"}}, False),
        ({}, {"headers": {"Authorization": "Bearer b"}}, False),
    ],
)
def test_who_asks_is_known_by_what_is_sent(one: Any, other: Any, same: bool) -> None:
    contexts = [
        resolve("https://example.com/mcp", ClientOptions(**options)).context for options in (one, other)
    ]
    assert (contexts[0] == contexts[1]) is same
    assert "Bearer" not in repr(contexts)


def test_a_password_in_the_url_and_the_environment_of_a_program_count_too() -> None:
    urls = [resolve(url, ClientOptions()) for url in ("https://a:1@example.com/", "https://a:2@example.com/")]
    assert urls[0].key == urls[1].key
    assert urls[0].context != urls[1].context
    programs = [resolve(["cat"], ClientOptions(env={"TOKEN": value})) for value in "ab"]
    assert programs[0].context != programs[1].context
    assert AuthContext("x") == AuthContext("x")


async def test_clients_that_share_a_cache_share_what_is_public() -> None:
    transports: list[Scripted] = []
    cache = Cache()

    async def calls(transport: Scripted, heard: Heard) -> Any:
        return {"tools": [tool("t")], "ttlMs": HOUR, "cacheScope": "public"}

    for _ in range(2):  # each transport is another server, so nothing is found twice
        transports.append(Scripted(stateless(calls)))
        async with Client(transports[-1], cache=cache) as client:
            await client.list_tools()
            await client.list_tools()
    assert [len(transport.of("tools/list")) for transport in transports] == [1, 1]
    assert len(cache) == 2
