"""What the HTTP transport asks of whatever speaks HTTP for it: an address, a request, a reply.

The seam behind which the HTTP library can be exchanged. It knows no MCP, and it never shows what may
be a secret: user information and the values of a query stay out of every text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from ssl import SSLContext
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

import msgspec

from dragoman.errors import UsageError

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LABEL: Final = 63  # characters of one part of a host name
_LOOPBACK_NAMES: Final = ("localhost", "::1")
# What may stand in a request target as it is (RFC 3986); everything else is percent-encoded.
_TARGET_SAFE: Final = "!#$%&'()*+,/:;=?@[]~"


_TOKEN_MIN: Final = 16
_TOKEN_DIGITS: Final = 2


class Address(msgspec.Struct, frozen=True):
    """One URL, taken apart once. `shown` is the URL as errors and logs may show it."""

    scheme: str
    host: str  # without brackets
    port: int
    authority: str  # the value of `Host`
    target: str  # path and query
    shown: str
    credentials: str | None = None  # `Basic ...`, of user information in the URL
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Address {self.shown}>"

    @property
    def origin(self) -> tuple[str, str, int]:
        """What connections are kept by."""
        return self.scheme, self.host, self.port

    @property
    def loopback(self) -> bool:
        """Whether the host is this machine by its very name."""
        host = self.host
        return host in _LOOPBACK_NAMES or host.endswith(".localhost") or host.startswith("127.")


def parse_address(url: str) -> Address:
    """Take a URL apart.

    Raises:
        UsageError: it is no http or https URL with a host; the message does not repeat secrets.
    """
    # What was received is not repeated: with a password that has a slash in it, it is taken for the port.
    fault = "the host cannot be read"
    try:
        parts = urlsplit(url)
        fault = "the port is no number from 0 to 65535"
        port = parts.port
    except ValueError:
        raise UsageError(f"URL: {fault}", hint="a URL such as https://example.com/mcp") from None
    scheme = parts.scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise UsageError(f"URL: expected http or https, received the scheme {scheme!r}")
    host = _host(parts.hostname or "", scheme)
    authority = f"[{host}]" if ":" in host else host
    if port is not None and port != DEFAULT_PORTS[scheme]:
        authority += f":{port}"
    path = quote(parts.path or "/", safe=_TARGET_SAFE)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Address(
        scheme,
        host,
        port or DEFAULT_PORTS[scheme],
        authority,
        f"{path}?{quote(parts.query, safe=_TARGET_SAFE)}" if parts.query else path,
        f"{scheme}://{authority}{_shown_path(path)}{_shown_query(parts.query)}",
        basic(user, password) if "@" in parts.netloc else None,
        (*_values(parts.query), *filter(_is_token, path.split("/")), *([password] if password else [])),
    )


def _host(host: str, scheme: str) -> str:
    if not host:
        raise UsageError(f"URL: expected a host after {scheme}://")
    if any(char <= " " or char in '<>"\\^`{|}' for char in host):
        raise UsageError("URL: the host holds a character that no host name has")
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    # Where a part is longer or empty, the resolver raises what is no OSError (RFC 1035, 2.3.4).
    if ":" not in name and not all(0 < len(part) <= _LABEL for part in name.removesuffix(".").split(".")):
        raise UsageError("URL: the host is no name that DNS can carry")
    return name


def basic(user: str, password: str) -> str:
    """A value for `Authorization` or `Proxy-Authorization` (RFC 7617, in UTF-8)."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")


def shown_url(url: str) -> str:
    """A URL that came from elsewhere, without user information, tokens in its path, values of its query,
    and fragment.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a URL that cannot be read"
    authority = parts.netloc.rpartition("@")[2]
    start = f"{parts.scheme}:" if parts.scheme else ""
    middle = f"//{authority}" if authority else ""
    return start + middle + _shown_path(parts.path) + _shown_query(parts.query)


def _shown_path(path: str) -> str:
    # Some services give each customer an address of their own, and whoever knows it is let in.
    return "/".join("..." if _is_token(segment) else segment for segment in path.split("/"))


def _is_token(segment: str) -> bool:
    """Whether a part of a path looks like nothing a person made up: long, with digits among letters."""
    letters = sum(char.isalpha() for char in segment)
    digits = sum(char.isdigit() for char in segment)
    return len(segment) >= _TOKEN_MIN and letters >= 1 and digits >= _TOKEN_DIGITS


def _shown_query(query: str) -> str:
    names = [pair.partition("=")[0] for pair in query.split("&") if "=" in pair]
    if not query:
        return ""
    return "?" + "&".join(f"{name}=..." for name in names) if names else "?..."


def _values(query: str) -> list[str]:
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    raw = [value if equals else name for name, equals, value in pairs]
    return [form for value in raw for form in {value, unquote(value)} if form]


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How connections are made.

    `verify`: True for the system's certificate authorities, a path to a file of others in PEM, an
    `ssl.SSLContext` of your own, or False to accept anyone (only for tests). `cert`: the client's
    certificate as the path of a PEM file with certificate and key, or as a pair of paths. `proxy`: the
    URL of an HTTP proxy for every request; when it is None and `trust_env` is true, the variables
    `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` decide, and loopback addresses never go
    through a proxy. Times are seconds. `keep_alive`: how long an unused connection is kept; a server
    that says how long it keeps one is believed. `max_body`: bytes of one JSON body or one event.
    """

    connect_timeout: float = 10.0
    verify: bool | str | SSLContext = True
    cert: str | tuple[str, str] | None = None
    proxy: str | None = None
    trust_env: bool = True
    max_connections: int = 100
    keep_alive: float = 4.0
    max_body: int = 64 * 1024 * 1024

    def __repr__(self) -> str:
        shown = {name: getattr(self, name) for name in self.__struct_fields__}
        if self.proxy is not None:
            shown["proxy"] = shown_url(self.proxy)
        return f"HttpOptions({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


class HttpRequest(msgspec.Struct):
    """One request. `repeatable`: it may be sent again when a kept connection turns out to be dead.

    `urgent` requests are not held back by `max_connections`: an answer that the server waits for must
    not queue behind the streams that it would end. `sent` becomes true when bytes may have left.
    """

    method: str
    address: Address
    headers: Sequence[tuple[str, str]]
    body: bytes = b""
    repeatable: bool = False
    urgent: bool = False
    sent: bool = False

    def __repr__(self) -> str:
        return f"<HttpRequest {self.method} {self.address.shown}>"


class Head(Protocol):
    """The head of a reply."""

    @property
    def status(self) -> int:
        """The status code."""
        ...

    @property
    def reason(self) -> str:
        """What the server says beside the code; often nothing."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case; several values of one name joined by ", "."""
        ...


class Reply(Head, Protocol):
    """The reply to one request; its head is there, its body comes as it comes."""

    async def chunk(self) -> bytes:
        """The next bytes of the body as they came; `b""` at its end.

        Raises:
            ClosedError: the connection ended before the body did.
        """
        ...

    async def read(self, limit: int) -> bytes:
        """The whole rest of the body.

        Raises:
            PeerFault: it is longer than `limit` bytes; the connection is closed.
            ClosedError: the connection ended before the body did.
        """
        ...

    def finish(self) -> None:
        """No more of the body is wanted: reuse the connection if the body ends soon, else close it."""
        ...

    def abort(self) -> None:
        """Close the connection at once, unless the body has ended. The server sees the end of it."""
        ...


class HttpClient(Protocol):
    """Sends requests over connections that it keeps."""

    async def send(self, request: HttpRequest) -> Reply:
        """Send, and await the head of the reply. Redirects are never followed.

        Cancelling closes the connection of this request at once, and nothing else.

        Raises:
            ConnectError: no connection came about; nothing was sent.
            ClosedError: the connection, or this client, was closed before the head came.
            PeerFault: what came back is not HTTP.
        """
        ...

    async def close(self) -> None:
        """Close every connection; what is under way ends with ClosedError."""
        ...

    def facts(self) -> Mapping[str, object]:
        """How many connections are open and how many of them are in use, for `doctor`."""
        ...
