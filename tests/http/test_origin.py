"""By which names a server may be reached, and from which pages: DNS rebinding and its exceptions."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import Refusal
from dragoman.protocol.origin import HostRules
from tests.http.things import things
from tests.http.wire import BASE, Request, post, routed, stateless

LOCAL = ("127.0.0.1", 8000)
LAN = ("192.168.1.5", 8000)
LIST = stateless("tools/list")


def verdict(
    rules: HostRules, host: str, origin: str | None = None, server: Any = LOCAL, peer: Any = None, **more: str
) -> int:
    fields = {
        b"host": host.encode("latin-1"),
        **{k.replace("_", "-").encode(): v.encode() for k, v in more.items()},
    }
    if origin is not None:
        fields[b"origin"] = origin.encode("latin-1")
    denied = rules.check(fields, server=server, peer=peer)
    return 200 if denied is None else denied.status


@pytest.mark.parametrize(
    ("host", "server", "status"),
    [
        ("localhost", LOCAL, 200),
        ("localhost:8000", LOCAL, 200),
        ("LOCALHOST:1", LOCAL, 200),
        ("localhost.", LOCAL, 200),
        ("127.0.0.1:8000", LOCAL, 200),
        ("127.1.2.3", LOCAL, 200),
        ("[::1]:8000", ("::1", 8000), 200),
        ("192.168.1.5:8000", LAN, 200),  # the address itself cannot be rebound
        ("localhost:8000", LAN, 200),
        ("192.168.1.6:8000", LAN, 421),
        ("evil.example.com", LOCAL, 421),
        ("evil.example.com", LAN, 421),
        ("127.0.0.1.evil.example.com", LOCAL, 421),
        ("localhost.evil.example.com", LOCAL, 421),
        ("localhost@evil.example.com", LOCAL, 421),
        ("localhost:8000:9", LOCAL, 421),
        ("localhost, evil.example.com", LOCAL, 421),
        ("", LOCAL, 421),
        ("evil.example.com", ("/run/mcp.sock", None), 421),
        ("localhost", ("/run/mcp.sock", None), 200),
        ("localhost", None, 200),
    ],
)
def test_hosts_by_default(host: str, server: Any, status: int) -> None:
    assert verdict(HostRules(), host, server=server) == status


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ("mcp.example.com", "mcp.example.com", 200),
        ("mcp.example.com", "MCP.example.com:8443", 200),
        ("mcp.example.com", "mcp.example.com.", 200),
        ("mcp.example.com", "localhost", 421),
        ("mcp.example.com", "evil-mcp.example.com", 421),
        ("mcp.example.com:8443", "mcp.example.com:8443", 200),
        ("mcp.example.com:8443", "mcp.example.com", 421),
        ("mcp.example.com:*", "mcp.example.com:9", 200),
        ("*.example.com", "a.b.example.com", 200),
        ("*.example.com", "example.com", 421),
        ("*.example.com", "evilexample.com", 421),
        ("[::1]:8000", "[::1]:8000", 200),
        ("*", "anything.example", 200),
    ],
)
def test_allowed_hosts(allowed: str, host: str, status: int) -> None:
    assert verdict(HostRules([allowed]), host) == status


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8000", "http://localhost:8000", 200),
        ("localhost:8000", "http://localhost:6274", 200),  # a local page, such as an inspector's
        ("127.0.0.1:8000", "https://localhost", 200),
        ("localhost:8000", "http://evil.example.com", 403),
        ("localhost:8000", "http://localhost.evil.example.com", 403),
        ("localhost:8000", "null", 403),
        ("localhost:8000", "file://", 403),
        ("localhost:8000", "chrome-extension://abc", 403),
        ("localhost:8000", "", 403),
        ("192.168.1.5:8000", "http://192.168.1.5:8000", 200),
        ("192.168.1.5:8000", "http://localhost:8000", 403),  # a page of another machine
        ("192.168.1.5:8000", "http://192.168.1.5:9000", 403),
    ],
)
def test_origins_by_default(host: str, origin: str, status: int) -> None:
    assert verdict(HostRules(), host, origin, LAN) == status


@pytest.mark.parametrize(
    ("allowed", "origin", "status"),
    [
        (["https://app.example.com"], "https://app.example.com", 200),
        (["https://app.example.com/"], "https://app.example.com:443", 200),
        (["https://app.example.com"], "http://app.example.com", 403),
        (["https://app.example.com"], "https://app.example.com:8443", 403),
        (["https://app.example.com"], "http://localhost:3000", 403),  # a list is the whole list
        (["https://app.example.com"], "http://localhost:8000", 200),  # but for the server's own pages
        (["https://*.example.com"], "https://a.example.com", 200),
        (["http://localhost:*"], "http://localhost:3000", 200),
        (["*"], "https://anything.example", 200),
        (["*"], "null", 200),
        ([], "https://app.example.com", 403),
    ],
)
def test_allowed_origins(allowed: list[str], origin: str, status: int) -> None:
    assert verdict(HostRules(None, allowed), "localhost:8000", origin) == status


def test_own_origin_behind_a_proxy_that_ends_tls() -> None:
    assert verdict(HostRules(["mcp.example.com"]), "mcp.example.com", "https://mcp.example.com") == 200


@pytest.mark.parametrize(
    ("peer", "forwarded", "status"),
    [
        ("10.1.2.3", "mcp.example.com", 200),
        ("10.1.2.3", "evil.example.com, mcp.example.com", 200),  # the last is the nearest proxy's own
        ("10.1.2.3", "mcp.example.com, evil.example.com", 421),
        ("11.1.2.3", "mcp.example.com", 421),  # nobody's proxy
    ],
)
def test_forwarded_host_counts_from_trusted_proxies_alone(peer: str, forwarded: str, status: int) -> None:
    rules = HostRules(["mcp.example.com"], proxies=["10.0.0.0/8"])
    assert verdict(rules, "localhost:8000", peer=(peer, 1), x_forwarded_host=forwarded) == status


def test_client_behind_proxies() -> None:
    rules = HostRules(proxies=["10.0.0.0/8"])
    fields = {b"x-forwarded-for": b"6.6.6.6, 7.7.7.7, 10.0.0.9"}
    assert rules.client(fields, ("10.0.0.1", 5)) == ("7.7.7.7", None)
    assert rules.client(fields, ("8.8.8.8", 5)) == ("8.8.8.8", 5)
    assert rules.client({}, ("10.0.0.1", 5)) == ("10.0.0.1", 5)


@pytest.mark.parametrize("entry", ["http://a.example", "a/b", "", "a b"])
def test_host_entries_that_are_none(entry: str) -> None:
    with pytest.raises(ValueError, match="allowed host"):
        HostRules([entry])


@pytest.mark.parametrize("entry", ["a.example", "ftp://a.example", "https://", ""])
def test_origin_entries_that_are_none(entry: str) -> None:
    with pytest.raises(ValueError, match="allowed origin"):
        HostRules(None, [entry])


async def test_rules_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_ALLOWED_HOSTS", "mcp.example.com, other.example.com")
    monkeypatch.setenv("DRAGOMAN_ALLOWED_ORIGINS", "https://app.example.com")
    app = things().server.asgi()
    assert (await post(app, LIST, routed(LIST, host="other.example.com"))).status == 200
    assert (await post(app, LIST, routed(LIST))).status == 421
    here = {"host": "mcp.example.com", "origin": "https://app.example.com"}
    assert (await post(app, LIST, routed(LIST, **here))).status == 200
    given = things().server.asgi(allowed_hosts=["*"])
    assert (await post(given, LIST, routed(LIST))).status == 200


async def test_denied_again_after_one_that_was_let_in() -> None:
    app = things().server.asgi()
    for host, status in [
        ("localhost", 200),
        ("evil.example.com", 421),
        ("localhost", 200),
        ("evil.example.com", 421),
    ]:
        assert (await post(app, LIST, routed(LIST, host=host))).status == status


async def test_a_page_may_read_answers_and_headers() -> None:
    answer = await post(things().server.asgi(), LIST, routed(LIST, origin="http://localhost:6274"))
    assert answer.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "origin"


async def test_no_page_no_cors() -> None:
    answer = await post(things().server.asgi(), LIST)
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_preflight() -> None:
    asked = {
        "host": BASE["host"],
        "origin": "http://localhost:6274",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,mcp-method,mcp-param-region",
        "access-control-request-private-network": "true",
    }
    answer = await Request(things().server.asgi(), "OPTIONS", asked).answer()
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == asked["origin"]
    assert answer.headers["access-control-allow-headers"] == asked["access-control-request-headers"]
    assert "DELETE" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-private-network"] == "true"


async def test_preflight_of_a_foreign_page() -> None:
    asked = {
        "host": BASE["host"],
        "origin": "https://evil.example.com",
        "access-control-request-method": "POST",
    }
    answer = await Request(things().server.asgi(), "OPTIONS", asked).answer()
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


async def test_preflight_is_answered_before_anybody_is_asked_who_they_are() -> None:
    asked: list[Any] = []

    def authenticate(headers: Any) -> str:
        asked.append(headers)
        raise Refusal(-32600, "a token is needed")

    app = things().server.asgi(allowed_origins=["https://app.example.com"], authenticate=authenticate)
    page = {"host": BASE["host"], "origin": "https://app.example.com"}
    answer = await Request(app, "OPTIONS", {**page, "access-control-request-method": "POST"}).answer()
    assert answer.status == 204
    assert not asked
    allowed = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert {
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-protocol-version",
        "mcp-session-id",
    } <= allowed
    refused = await post(app, LIST, routed(LIST, origin="https://app.example.com"))
    assert refused.status == 401
    assert refused.headers["access-control-allow-origin"] == "https://app.example.com", (
        "the page may read why"
    )
    assert "WWW-Authenticate" in refused.headers["access-control-expose-headers"]
