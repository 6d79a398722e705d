"""`dragoman discover TARGET`: what a server is, which revisions it speaks, what it offers."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.cli import output
from dragoman.cli.session import perform
from dragoman.client import Client
from dragoman.client.options import AUTO
from dragoman.model import Implementation
from dragoman.revisions import BY_VERSION, HANDSHAKE, LATEST, Revision
from dragoman.schema.shapes import is_object


def run(options: Namespace) -> int:
    """Show what the server says of itself; returns the exit status."""
    return perform(options, _discover, show=partial(_show, asked=options.protocol))


async def _discover(client: Client) -> dict[str, Any]:
    hello = await client.discover()
    info = client.server_info
    found: dict[str, Any] = {
        "protocolVersion": client.revision.version,
        "supportedVersions": hello.supported_versions,
        "serverInfo": info,
        "capabilities": msgspec.to_builtins(hello.capabilities),
        "instructions": client.instructions,
    }
    if hello.ttl_ms is not UNSET:
        found["ttlMs"] = hello.ttl_ms
    return {name: value for name, value in found.items() if value is not None}


def _show(found: dict[str, Any], *, asked: str) -> None:
    info: Implementation | None = found.get("serverInfo")
    rows = [
        ("server", "it does not say" if info is None else _name(info)),
        ("revision", found["protocolVersion"]),
        *_spoken(found, asked),
        ("capabilities", ", ".join(map(_capability, found["capabilities"].items())) or "none"),
    ]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        output.line(f"{name:{width}}  {output.flat(value)}")
    if found.get("instructions"):
        output.line("")
        output.text(found["instructions"])


def _spoken(found: dict[str, Any], asked: str) -> list[tuple[str, str]]:
    """Which revisions the server speaks, and of which it was not asked.

    `server/discover` lists what can be spoken without a handshake, and a handshake names one
    revision: neither says anything of the other way, which the same server may go as well.
    """
    told: list[str] = found["supportedVersions"]
    shaken = [version for version in told if version in BY_VERSION and BY_VERSION[version].handshake]
    plain = [version for version in told if version not in shaken]
    if BY_VERSION[found["protocolVersion"]].handshake:
        plain_told = ", ".join(plain) or ("none" if asked == AUTO else _unasked(LATEST))
        return [
            ("without handshake", plain_told),
            ("by handshake", f"{', '.join(shaken)}, and maybe others"),
        ]
    return [
        ("without handshake", ", ".join(plain)),
        ("by handshake", ", ".join(shaken) or _unasked(HANDSHAKE)),
    ]


def _unasked(revision: Revision) -> str:
    return f"not asked for; `--protocol {revision.version}` does"


def _name(info: Implementation) -> str:
    named = f"{info.name} {info.version}"
    return named if info.title is UNSET else f"{named} ({info.title})"


def _capability(item: tuple[str, Any]) -> str:
    name, value = item
    inner = [key for key, on in value.items() if on] if is_object(value) else []
    return f"{name} ({', '.join(inner)})" if inner else name
