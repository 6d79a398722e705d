"""Which proxy a request goes through, by the variables that other programs go by too.

Pure functions over a mapping: nothing here opens a connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network

from dragoman.errors import ConnectError, UsageError
from dragoman.transports.http_base import Address, HttpOptions, parse_address


def choose_proxy(target: Address, options: HttpOptions, *, environ: Mapping[str, str]) -> Address | None:
    """The proxy for `target`, or None for a direct connection.

    `options.proxy` counts before the environment. The environment's proxy is never used for a
    loopback address, nor for a host that `no_proxy` names.

    Raises:
        UsageError: the proxy is given as something that is no http or https URL.
    """
    if options.proxy is not None:
        return _proxy(options.proxy, "proxy")
    if not options.trust_env or target.loopback:
        return None
    for variable in (f"{target.scheme}_proxy", "all_proxy"):
        value = _variable(environ, variable)
        if value:
            return None if excluded(target, _variable(environ, "no_proxy")) else _proxy(value, variable)
    return None


def place(target: Address, via: Address | None) -> str:
    """What a connection goes to, for errors."""
    through = "" if via is None else f" through the proxy {via.host}:{via.port}"
    return f"{target.host}:{target.port}{through}"


def connect_request(target: Address, via: Address) -> bytes:
    """What a proxy is asked to pass bytes on with (RFC 9110, 9.3.6)."""
    host = _authority(target)
    lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}"]
    if via.credentials:
        lines.append(f"Proxy-Authorization: {via.credentials}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def refused(target: Address, via: Address, *, status: int) -> ConnectError:
    """The error for a proxy that does not pass bytes on."""
    hint = "user and password in the proxy's URL" if status == 407 else None
    text = f"the proxy {via.shown} refused to connect to {_authority(target)}: HTTP {status}"
    return ConnectError(text, stage="connect", hint=hint)


def _authority(target: Address) -> str:
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{host}:{target.port}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    """A variable in lower case, else in upper case.

    Not `HTTP_PROXY` where a web server runs us as a CGI program: there it is a header of the request.
    """
    value = environ.get(name)
    if value is None and not (name == "http_proxy" and "REQUEST_METHOD" in environ):
        value = environ.get(name.upper())
    return (value or "").strip()


def _proxy(value: str, source: str) -> Address:
    url = value if "://" in value else f"http://{value}"
    scheme = url.partition("://")[0].lower()
    if scheme not in ("http", "https"):
        raise UsageError(f"{source}: expected the URL of an HTTP proxy, received one of scheme {scheme!r}")
    try:
        return parse_address(url)
    except UsageError as exc:
        raise UsageError(f"{source}: {exc.message}") from None


def excluded(target: Address, no_proxy: str) -> bool:
    """Whether `no_proxy` names the host.

    An entry is `*`, a name (which stands for all names below it too), an address or a network; a name or
    an address may carry a port.
    """
    return any(_matches(target, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(target: Address, entry: str) -> bool:
    if entry == "*":
        return True
    host = target.host.lower()
    if _network(host, entry):
        return True
    name, colon, port = entry.rpartition(":")
    if colon and port.isdigit() and not name.endswith(":") and (":" not in name or name.endswith("]")):
        if int(port) != target.port:
            return False
        entry = name
    entry = entry.removeprefix("[").removesuffix("]").removeprefix("*").removeprefix(".")
    return host == entry or host.endswith("." + entry)


def _network(host: str, entry: str) -> bool:
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False
