"""The tools of several servers for one command: of targets that are named, or of a host's files."""

from __future__ import annotations

import asyncio
import contextlib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.cli.quiet import quiet
from dragoman.cli.session import target
from dragoman.client import Client
from dragoman.errors import ConnectError, DragomanError, UsageError
from dragoman.host.files import Reading
from dragoman.host.host import Host
from dragoman.host.reading import installed, this_machine
from dragoman.host.remedies import NO_FILES, remedy
from dragoman.model import Tool


@dataclass(frozen=True, slots=True)
class Reached:
    """One server: its tools, or why there are none."""

    server: str
    tools: tuple[Tool, ...] = ()
    why: str = ""

    @property
    def ok(self) -> bool:
        """Whether it listed its tools."""
        return not self.why


async def reach(options: Namespace) -> list[Reached]:
    """All servers that the words name, at the same time. What fails says why.

    Raises:
        UsageError: no server is named, or two by one name.
    """
    quiet()
    check_servers(options)
    if options.target:
        return await _targets(options.target, timeout=options.timeout)
    return await _configured(options)


def check_servers(options: Namespace) -> None:
    """Raise UsageError where servers are named in two ways."""
    if options.target and options.host:
        raise UsageError("TARGET and --host are two ways to name servers: expected one of them")


async def _targets(texts: Sequence[str], *, timeout: float) -> list[Reached]:
    found = await asyncio.gather(*(_target(text, timeout=timeout) for text in texts))
    names = [item.server for item in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"two servers are called {twice[0]!r}: name them apart in a host's file")
    return list(found)


async def _target(text: str, *, timeout: float) -> Reached:
    client = Client(target(text), retry_for=0.0, connect_timeout=timeout, idle_timeout=timeout)
    try:
        async with client:
            return Reached(client.name, tuple(await client.list_tools()))
    except UsageError:
        raise
    except DragomanError as exc:
        return Reached(client.name, why=str(exc))


async def _configured(options: Namespace) -> list[Reached]:
    trusted = options.trusted or None
    host = options.host or first_host(options.folder, trusted=trusted)
    servers = Host.from_files(options.folder, host=host, trusted=trusted)
    try:
        with contextlib.suppress(ConnectError):  # a required one that did not come is told as all others are
            await servers.connect()
        found = [
            Reached(name, tuple(session.tools.values()), "" if session.state == "connected" else session.why)
            for name, session in servers.sessions.items()
        ]
    finally:
        await servers.close()
    if not found:
        raise unused(host, options.folder, trusted=trusted)
    return found


def first_host(folder: str, *, trusted: bool | None) -> str:
    """The first host whose files have a server that may be started here.

    Raises:
        UsageError: there is none; the error says what stands in the way of the first that names one.
    """
    machine = this_machine(folder)
    named: list[str] = []
    for host in installed(machine):
        files = Reading(host=host, machine=machine, trusted=trusted)()
        if files.setup.active:
            return host
        if files.servers:
            named.append(host)
    if named:
        raise unused(named[0], folder, trusted=trusted)
    raise UsageError(f"no host has servers for {machine.folder}", hint=f"name a TARGET, or {NO_FILES}")


def unused(host: str, folder: str, *, trusted: bool | None) -> UsageError:
    """That a host has no server in use, and why."""
    machine = this_machine(folder)
    files = Reading(host=host, machine=machine, trusted=trusted)()
    if not files.servers:
        hint = "name a TARGET; `dragoman config` shows the servers of all hosts"
        return UsageError(f"{host} has no servers for {machine.folder}", hint=hint)
    (name, item), *others = files.servers.items()
    more = f" (and {len(others)} more)" if others else ""
    text = f"{host} has no servers in use for {machine.folder}: {name} is {item.state}: {item.why}{more}"
    hint = remedy(item, host=host, folder=str(machine.folder))
    if item.state in ("pending", "untrusted"):
        hint = (
            f"{hint + '; ' if hint else ''}with --trusted, servers of the folder's own files are started now"
        )
    return UsageError(text, hint=hint or None)
