"""By which names an HTTP server may be reached, and from which web pages: the rules against DNS rebinding.

Pure decisions on header values and addresses. It opens no socket, resolves no name, and knows
nothing of what is served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
FIX_HOSTS: Final = (
    "reach the server by one of the allowed names, or allow this one: allowed_hosts=[...] in code, or the "
    "environment variable DRAGOMAN_ALLOWED_HOSTS; behind a proxy that rewrites Host, trusted_proxies=[...]"
)
FIX_ORIGINS: Final = (
    "allow this web page's origin if you trust it: allowed_origins=[...] in code, or the environment "
    "variable DRAGOMAN_ALLOWED_ORIGINS"
)

Address = tuple[str, int | None]
_Network = IPv4Network | IPv6Network

_LOCAL: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[::1\]")
_AUTHORITY: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)\.?(?::(\d{1,5}))?")
_ORIGIN: Final = re.compile(r"(https?)://(.+)")
_PORTS: Final = {"http": "80", "https": "443"}


class Denied(NamedTuple):
    """Why a request is not let in: an HTTP status, what was received, what would have been allowed."""

    status: int
    header: str
    received: str
    allowed: tuple[str, ...]
    fix: str


class HostRules:
    """Which `Host` and which `Origin` a server accepts.

    `hosts` are names with an optional port (`"mcp.example.com"`, `"*.example.com"`,
    `"localhost:8000"`; without one, any port), `"*"` for all. None stands for this machine's
    loopback names and the very address that the connection came in on. `origins` are such as
    `"https://app.example.com"`, `"http://localhost:*"` or `"*"`; None stands for loopback pages when
    the server itself is reached by a loopback name. A page that the server's own name serves is
    always let in. `proxies` are addresses or networks whose `X-Forwarded-*` headers are believed.

    Raises:
        ValueError: an entry is no name, no origin, or no network.
    """

    def __init__(
        self,
        hosts: Sequence[str] | None = None,
        origins: Sequence[str] | None = None,
        *,
        proxies: Iterable[str] = (),
    ) -> None:
        self.hosts = None if hosts is None else tuple(hosts)
        self.origins = None if origins is None else tuple(origins)
        self._hosts = None if hosts is None else [_host_pattern(entry) for entry in hosts]
        self._origins = None if origins is None else [_origin_pattern(entry) for entry in origins]
        self._proxies: list[_Network] = [ip_network(entry, strict=False) for entry in proxies]

    def check(
        self, fields: Mapping[bytes, bytes], *, server: Address | None = None, peer: Address | None = None
    ) -> Denied | None:
        """None when the request may come in. `server` is the address it came in on, `peer` its sender."""
        host, origin = fields.get(b"host"), fields.get(b"origin")
        if self._proxies and self._trusted(peer):
            host = _last(fields.get(b"x-forwarded-host")) or host
        if host is None:
            return Denied(400, "Host", "nothing", self.allowed(server), "send one Host header")
        name = host.decode("latin-1").lower()
        return self._check_host(name, server) or (
            None if origin is None else self._check_origin(origin.decode("latin-1").lower(), name)
        )

    @property
    def behind_proxies(self) -> bool:
        """Whether the answer depends on who is the peer, and on what a proxy adds."""
        return bool(self._proxies)

    def client(self, fields: Mapping[bytes, bytes], peer: Address | None) -> Address | None:
        """Who really sent the request: `peer`, or whom the trusted proxies in front say they had it from."""
        if not self._proxies or not self._trusted(peer):
            return peer
        for hop in reversed(fields.get(b"x-forwarded-for", b"").decode("latin-1").split(",")):
            address: Address = (hop.strip(), None)
            if address[0] and not self._trusted(address):
                return address
        return peer

    def allowed(self, server: Address | None) -> tuple[str, ...]:
        """The names that would have been accepted, for an error message."""
        if self.hosts is not None:
            return self.hosts
        bound = _literal(server)
        return LOOPBACK if bound is None or _LOCAL.fullmatch(bound) else (*LOOPBACK, bound)

    def _trusted(self, peer: Address | None) -> bool:
        if peer is None:
            return False
        try:
            address = ip_address(peer[0])
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    def _check_host(self, host: str, server: Address | None) -> Denied | None:
        match = _AUTHORITY.fullmatch(host)
        if match is not None:
            name, port = match.group(1), match.group(2) or ""
            if self._hosts is None:
                if _LOCAL.fullmatch(name) or name == _literal(server):
                    return None
            elif any(pattern.fullmatch(f"{name}:{port}") for pattern in self._hosts):
                return None
        return Denied(421, "Host", host, self.allowed(server), FIX_HOSTS)

    def _check_origin(self, origin: str, host: str) -> Denied | None:
        allowed = self.origins if self.origins is not None else (f"http://{host}", f"https://{host}")
        match = _ORIGIN.fullmatch(origin)
        page = None if match is None else _authority(match.group(2), match.group(1))
        if match is not None and page is not None:
            scheme = match.group(1)
            if page == _authority(host, scheme):
                return None
            if self._origins is None:
                own = _authority(host, scheme)
                if _LOCAL.fullmatch(page[0]) and own is not None and _LOCAL.fullmatch(own[0]):
                    return None
            elif any(p.fullmatch(f"{scheme}://{page[0]}:{page[1]}") for p in self._origins):
                return None
        elif self._origins is not None and any(p.pattern == ".*" for p in self._origins):
            return None
        return Denied(403, "Origin", origin, allowed, FIX_ORIGINS)


def _authority(text: str, scheme: str) -> tuple[str, str] | None:
    match = _AUTHORITY.fullmatch(text)
    return None if match is None else (match.group(1), match.group(2) or _PORTS[scheme])


def _literal(server: Address | None) -> str | None:
    """The bound address as a Host header spells it; None for a unix socket."""
    if server is None or server[1] is None:
        return None
    return f"[{server[0]}]" if ":" in server[0] else server[0].lower()


def _last(value: bytes | None) -> bytes | None:
    # Proxies append to the list: the last entry is the one that the nearest, trusted proxy wrote.
    return None if value is None else value.rpartition(b",")[2].strip()


def _host_pattern(entry: str) -> re.Pattern[str]:
    text = entry.lower()
    if text == "*":
        return re.compile(".*")
    match = _AUTHORITY.fullmatch(text.removeprefix("*.").removesuffix(":*"))
    if match is None:
        raise ValueError(
            f"allowed host {entry!r}: expected a name such as example.com, *.example.com or [::1]:8000"
        )
    name = (r"[a-z0-9._-]+\." if text.startswith("*.") else "") + re.escape(match.group(1))
    return re.compile(name + (r":\d*" if match.group(2) is None else f":{match.group(2)}"))


def _origin_pattern(entry: str) -> re.Pattern[str]:
    text = entry.lower().rstrip("/")
    if text == "*":
        return re.compile(".*")
    match = _ORIGIN.fullmatch(text)
    rest = (
        None if match is None else _AUTHORITY.fullmatch(match.group(2).removeprefix("*.").removesuffix(":*"))
    )
    if match is None or rest is None:
        raise ValueError(
            f"allowed origin {entry!r}: expected such as https://app.example.com or http://localhost:*"
        )
    scheme, name = match.group(1), re.escape(rest.group(1))
    if match.group(2).startswith("*."):
        name = r"[a-z0-9._-]+\." + name
    port = r"\d+" if text.endswith(":*") else rest.group(2) or _PORTS[scheme]
    return re.compile(f"{scheme}://{name}:{port}")
