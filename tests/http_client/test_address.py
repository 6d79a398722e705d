"""URLs, and which proxy they go through."""

from __future__ import annotations

import pytest

from dragoman.errors import UsageError
from dragoman.transports.http_base import HttpOptions, parse_address, shown_url
from dragoman.transports.http_client import HttpTransport
from dragoman.transports.http_proxy import choose_proxy, excluded


@pytest.mark.parametrize(
    ("url", "origin", "authority", "target", "shown"),
    [
        ("http://H.example", ("http", "h.example", 80), "h.example", "/", "http://h.example/"),
        ("https://h/mcp/", ("https", "h", 443), "h", "/mcp/", "https://h/mcp/"),
        ("http://h:80/a", ("http", "h", 80), "h", "/a", "http://h/a"),
        ("https://h:8443/a?b=c#d", ("https", "h", 8443), "h:8443", "/a?b=c", "https://h:8443/a?b=..."),
        ("http://[::1]:8/a", ("http", "::1", 8), "[::1]:8", "/a", "http://[::1]:8/a"),
        ("http://u:p@h/a%20b c", ("http", "h", 80), "h", "/a%20b%20c", "http://h/a%20b%20c"),
        ("http://h/서울?q=날", ("http", "h", 80), "h", "/%EC%84%9C%EC%9A%B8?q=%EB%82%A0", None),
        (
            "http://münchen.example/",
            ("http", "xn--mnchen-3ya.example", 80),
            "xn--mnchen-3ya.example",
            "/",
            None,
        ),
    ],
)
def test_parts(url, origin, authority, target, shown):
    address = parse_address(url)
    assert address.origin == origin
    assert (address.authority, address.target) == (authority, target)
    assert shown in (None, address.shown)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://h/", "expected http or https, received the scheme 'ftp'"),
        ("h/mcp", "expected http or https"),
        ("http:///mcp", "expected a host"),
        ("http://h:99999/", "(?i)port"),
        ("http://h:x/", "(?i)port"),
        ("http://[::1/", "URL"),
        ("http://a b/", "a character that no host name has"),
    ],
)
def test_what_is_no_url_of_a_server(url, complaint):
    with pytest.raises(UsageError, match=complaint):
        HttpTransport(url)


def test_a_bad_url_is_refused_without_its_password():
    with pytest.raises(UsageError) as caught:
        HttpTransport("http://me:hunter2@h:port/")
    assert "hunter2" not in str(caught.value)


PROXIES = {"http_proxy": "http://proxy:3128", "https_proxy": "secure:3129", "no_proxy": "internal.example"}


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("http://far.example/", PROXIES, ("http", "proxy", 3128)),
        ("https://far.example/", PROXIES, ("http", "secure", 3129)),
        ("http://a.internal.example/", PROXIES, None),
        ("http://far.example/", {}, None),
        ("http://far.example/", {"HTTP_PROXY": "http://upper:1"}, ("http", "upper", 1)),
        ("http://far.example/", {"HTTP_PROXY": "http://upper:1", "REQUEST_METHOD": "GET"}, None),
        ("http://far.example/", {"http_proxy": "", "HTTP_PROXY": "http://upper:1"}, None),
        ("https://far.example/", {"ALL_PROXY": "https://all:1"}, ("https", "all", 1)),
        ("http://localhost:8000/", PROXIES, None),
        ("http://api.localhost/", PROXIES, None),
        ("http://127.0.0.1:8000/", PROXIES, None),
        ("http://127.8.8.8:8000/", PROXIES, None),
        ("http://[::1]/", PROXIES, None),
    ],
)
def test_the_proxy_of_the_environment(url, environ, proxy):
    chosen = choose_proxy(parse_address(url), HttpOptions(), environ=environ)
    assert (None if chosen is None else chosen.origin) == proxy
    assert choose_proxy(parse_address(url), HttpOptions(trust_env=False), environ=environ) is None


def test_a_proxy_that_is_asked_for_counts_before_the_environment_and_for_every_address():
    options = HttpOptions(proxy="http://mine:1")
    for url in ("http://far.example/", "http://localhost/", "http://a.internal.example/"):
        chosen = choose_proxy(parse_address(url), options, environ=PROXIES)
        assert chosen is not None
        assert chosen.host == "mine"


def test_proxies_of_other_kinds_are_refused():
    with pytest.raises(UsageError, match=r"all_proxy.*'socks5'"):
        choose_proxy(parse_address("http://a/"), HttpOptions(), environ={"all_proxy": "socks5://h:1"})
    with pytest.raises(UsageError, match="proxy: URL") as caught:
        choose_proxy(parse_address("http://a/"), HttpOptions(proxy="http://u:hunter2@h:x"), environ={})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "no_proxy", "out"),
    [
        ("http://a.example/", "*", True),
        ("http://a.example/", "example", True),
        ("http://a.example/", ".example", True),
        ("http://a.example/", "*.example", True),
        ("http://aexample/", "example", False),
        ("http://a.example/", "x, A.Example ,y", True),
        ("http://a.example:81/", "a.example:81", True),
        ("http://a.example:82/", "a.example:81", False),
        ("http://10.1.2.3/", "10.0.0.0/8", True),
        ("http://11.1.2.3/", "10.0.0.0/8", False),
        ("http://10.1.2.3/", "10.1.2.3", True),
        ("http://[fd00::1]/", "fd00::/8", True),
        ("http://[fd00::1]/", "[fd00::1]", True),
        ("http://[fd00::1]:8/", "[fd00::1]:8", True),
        ("http://[fd00::1]:8/", "[fd00::1]:9", False),
        ("http://a.example/", "", False),
        ("http://a.example/", " , ", False),
    ],
)
def test_hosts_that_no_proxy_names(url, no_proxy, out):
    assert excluded(parse_address(url), no_proxy) is out


def test_a_token_in_the_path_is_a_secret() -> None:
    address = parse_address("https://example.com/api/s/Zm9vYmFy0123456789/mcp")
    assert address.shown == "https://example.com/api/s/.../mcp"
    assert address.target == "/api/s/Zm9vYmFy0123456789/mcp"
    assert "Zm9vYmFy0123456789" in address.secrets
    assert shown_url("https://example.com/Zm9vYmFy0123456789") == "https://example.com/..."
    plain = "https://example.com/organisations/streamable-http/v2/2025-11-25/mcp"
    assert parse_address(plain).shown == plain


@pytest.mark.parametrize("url", ["https://user:pass/word@example.com/", "https://user:password@ho\u2100st/"])
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(url)
    assert "pass" not in str(caught.value)
