"""Looking at one server as a host would come to it: start, speak, list, and what the network says besides.

What is made of it is for `doctor`; nothing is called and nothing is changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from dragoman.client import Client
from dragoman.client.options import ClientKeywords
from dragoman.client.target import TargetLike
from dragoman.errors import DragomanError, HttpError, LocalError, exit_text
from dragoman.host import doctor
from dragoman.host.doctor import Step
from dragoman.host.models.base import Shown
from dragoman.host.naming import HostNames
from dragoman.model import Tool
from dragoman.schema.shapes import is_array, is_object
from dragoman.transports.http_base import HttpOptions, HttpRequest, parse_address, shown_url
from dragoman.transports.http_fault import JSON
from dragoman.transports.http_pool import Pool

_PATIENCE: Final = 5.0  # seconds for what is asked beside the protocol
_SOON: Final = 14  # days that a certificate should still be good for
_LARGEST: Final = 256 * 1024  # bytes of metadata
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one server. `tools` are empty where it did not list them."""

    steps: tuple[Step, ...]
    tools: tuple[Tool, ...] = ()


async def look(
    target: TargetLike, options: ClientKeywords, *, name: str, home: Path, path: str, host: str = ""
) -> Seen:
    """Look at one server. Raises nothing: what goes wrong is a step.

    `target` and `options` are a client's; `host` is the one whose file names it, "" for none; `path` is
    the PATH that a program is looked for on.
    """
    steps: list[Step] = []
    if (command := _command(target)) is not None:
        steps.append(doctor.program(command, path=path, home=home, host=host))
        if steps[0].mark == "fail":
            return Seen(tuple(steps))
    url = _url(target)
    keywords: ClientKeywords = {"retry_for": 0.0, **options, "name": name}
    try:
        client = Client(target, **keywords)
    except DragomanError as exc:  # an address or a header that cannot be
        return Seen((*steps, await _failed(exc, url, http=keywords.get("http"))))
    if url is not None and url.startswith("https:"):
        steps.append(await asyncio.to_thread(certificate, url))
    began = time.monotonic()
    try:
        async with client:
            tools = await client.list_tools()
            steps += _spoken(client, time.monotonic() - began)
    except DragomanError as exc:
        noise = [step for step in _noise(client) if step.mark != "ok"]
        steps += [*noise, await _failed(exc, url, http=keywords.get("http"))]
        return Seen(tuple(steps))
    steps += _listed(name, tools, host=host)
    return Seen(tuple(steps), tuple(tools))


def _spoken(client: Client, seconds: float) -> list[Step]:
    revision = client.revision
    how = "by a handshake" if revision.handshake else "without a handshake"
    return [
        doctor.start(seconds),
        Step("protocol", "ok", f"{revision.version}, {how}"),
        *_noise(client),
    ]


def _noise(client: Client) -> list[Step]:
    step = doctor.output(client.facts())
    return [] if step is None else [step]


def _listed(name: str, tools: Sequence[Tool], *, host: str) -> list[Step]:
    table = HostNames(host or "claude-code", [(name, tool.name) for tool in tools])
    by_tool = {tool.name: tool for tool in tools}
    shown = [Shown(item.model, by_tool[item.tool], group=name) for item in table]
    steps = [doctor.listing(tools)]
    if not tools:
        return steps
    steps.append(doctor.names(host or "claude-code", [(name, tool.name) for tool in tools]))
    return [*steps, *doctor.schemas(shown), doctor.words(name, tools), doctor.price(shown)]


async def _failed(error: DragomanError, url: str | None, *, http: HttpOptions | None) -> Step:
    if not isinstance(error, LocalError):
        return Step("start", "fail", str(error))
    text = error.message
    if error.exit_status is not None:
        text += f" ({exit_text(error.exit_status)})"
    if error.stderr_tail:
        text += f"; its last words: {error.stderr_tail[-1]!r}"
    if isinstance(error, HttpError) and error.status == 401 and url is not None:
        return await sign_in(url, text, http=http or HttpOptions())
    return Step(error.stage or "start", "fail", text, error.hint or "")


# The network ----------------------------------------------------------------------------------------------


def certificate(url: str) -> Step:
    """Whether a server's certificate is good for its name, and for how long."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    context = ssl.create_default_context()
    try:
        with contextlib.ExitStack() as stack:
            raw = stack.enter_context(socket.create_connection((host, port), timeout=_PATIENCE))
            wrapped = stack.enter_context(context.wrap_socket(raw, server_hostname=host))
            found = wrapped.getpeercert() or {}
    except ssl.SSLCertVerificationError as exc:
        fix = "a certificate of a known authority for this name, or SSL_CERT_FILE for one of your own"
        return Step("tls", "fail", f"{host}: {exc.verify_message}", fix)
    except (OSError, ValueError) as exc:  # a name that no name of a machine can be is the latter
        said = exc.strerror if isinstance(exc, OSError) else None
        return Step("tls", "fail", f"{host}:{port}: {said or exc}", "check the address")
    until = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(found["notAfter"])), UTC)
    days = (until - datetime.now(UTC)).days
    text = f"the certificate is good until {until:%Y-%m-%d}, {days} days"
    return Step("tls", "ok", text) if days >= _SOON else Step("tls", "warn", text, "have it renewed")


async def sign_in(url: str, text: str, *, http: HttpOptions) -> Step:
    """What a server that wants to know who calls says of how to sign in (RFC 9728).

    `text` is what to say where it says nothing; `http` is how the server itself is reached.
    """
    parts = urlsplit(url)
    origin = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    pool = Pool(http)
    try:
        for path in dict.fromkeys((parts.path.rstrip("/"), "")):
            place = f"{origin}{_WELL_KNOWN}{path}"
            body = await _fetched(place, pool)
            if body is not None:
                return Step("sign-in", *_metadata(body, place, url=url))
    finally:
        await pool.close()
    fix = "give the entry a header with a token: the server does not say how to sign in"
    return Step("sign-in", "fail", text, fix)


def _metadata(body: Mapping[str, Any], place: str, *, url: str) -> tuple[Any, str, str]:
    servers = body.get("authorization_servers")
    if body.get("resource") not in (url, url.rstrip("/")) and not url.startswith(str(body.get("resource"))):
        text = f"{shown_url(place)}: `resource` is {body.get('resource')!r}, not {shown_url(url)!r}"
        return "fail", text, "mend the metadata"
    if not is_array(servers) or not servers:
        return "fail", f"{shown_url(place)}: `authorization_servers` names none", "mend the metadata"
    return "warn", f"the server wants a sign-in, by {servers[0]}", "sign in by the host, or give it a token"


async def _fetched(place: str, pool: Pool) -> Mapping[str, Any] | None:
    """The JSON object at a place; None where there is none. Redirects are not followed."""
    headers = (("accept", JSON), ("accept-encoding", "identity"))
    try:
        request = HttpRequest("GET", parse_address(place), headers, repeatable=True)
        async with asyncio.timeout(_PATIENCE):
            reply = await pool.send(request)
            data = await reply.read(_LARGEST)
        body = msgspec.json.decode(data)
    except (LocalError, TimeoutError, msgspec.DecodeError, RecursionError):
        return None
    return body if reply.status == 200 and is_object(body) else None


def _command(target: TargetLike) -> str | None:
    if is_object(target):
        command = target.get("command")
        return command if isinstance(command, str) else None
    return None


def _url(target: TargetLike) -> str | None:
    if isinstance(target, str):
        return target if target.startswith(("http://", "https://")) else None
    url = target.get("url") if is_object(target) else None
    return url if isinstance(url, str) else None
