"""The servers of one host at one moment: whom the files let in, their sessions, and the names of their tools.

Changed files change only the servers that they change. Knows no call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace as changed

from dragoman.errors import ConnectError, LocalError
from dragoman.host.config import claude
from dragoman.host.config.limits import description_limit
from dragoman.host.config.record import Origin, ServerConfig, Standing
from dragoman.host.deferral import always_loaded
from dragoman.host.files import HostFiles
from dragoman.host.models.base import LeftOut, Shown
from dragoman.host.naming import HostNames
from dragoman.host.ruling import hides
from dragoman.host.session import Session, Setting
from dragoman.model import Tool
from dragoman.protocol.naming import Name

_NOWHERE: Final = Origin("")
_DRAIN: Final = 5.0  # seconds in which calls of a server that is to go may come to their end


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of the servers when files were read again, by name.

    With `why`, nothing did: a file can no longer be read, and what it said before still holds.
    """

    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    why: str = ""


class Roster:
    """Who is there. `files` are those that hold, `sessions` the servers that they let in, by name."""

    def __init__(self, files: HostFiles, setting: Setting) -> None:
        self.files = files
        self._setting = setting
        self.sessions = {name: self._session(name, item) for name, item in _active(files).items()}
        self.names = HostNames(files.host, ())

    def _session(self, name: str, item: Standing) -> Session:
        return Session(item.config, self._setting, name=name)

    # Life --------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Start or reach every server, all at the same time.

        Raises:
            ConnectError: one that the host cannot do without did not come.
        """
        await self._connect(list(self.sessions.values()))

    async def _connect(self, sessions: list[Session]) -> None:
        await asyncio.gather(*(session.connect() for session in sessions))
        self.name_all()
        for session in sessions:
            if session.config.required and session.state != "connected":
                why = session.why or "it is not connected"
                raise ConnectError(
                    f"a required server is not there: {why}", server=session.name, stage="connect"
                )

    async def close(self) -> None:
        """End every connection."""
        await asyncio.gather(*(session.close() for session in self.sessions.values()))

    async def change(self, files: HostFiles) -> Reloaded:
        """Let other files hold from now on. A server whose entry comes to the same is not touched.

        Raises:
            ConnectError: as `connect`, of those that were started.
        """
        before, wanted = self.sessions, _active(files)
        kept = [
            name
            for name in before
            if name in wanted and same_server(before[name].config, wanted[name].config)
        ]
        gone = [before[name] for name in before if name not in kept]
        fresh = [name for name in wanted if name not in kept]
        for name in kept:
            before[name].config = wanted[name].config
        # All at once: a call that comes now is decided by the new files, and by them alone.
        self.files = files
        self.sessions = {
            name: before[name] if name in kept else self._session(name, item) for name, item in wanted.items()
        }
        self.name_all()
        coming = [self.sessions[name] for name in fresh]
        done = await asyncio.gather(
            self._connect(coming), *(session.close(within=_DRAIN) for session in gone), return_exceptions=True
        )
        for fault in done:
            if isinstance(fault, BaseException):
                raise fault
        ended = [session.name for session in gone]
        return Reloaded(
            tuple(name for name in fresh if name not in ended),
            tuple(name for name in ended if name not in fresh),
            tuple(name for name in fresh if name in ended),
            tuple(kept),
        )

    async def refresh(self) -> None:
        """Read lists of tools that are no longer fresh."""
        await asyncio.gather(*(session.refresh() for session in self.sessions.values()))
        self.name_all()

    # Tools -------------------------------------------------------------------------------------------

    def name_all(self) -> None:
        """Give names to all tools that are known now."""
        pairs = [(server, tool) for server, session in self.sessions.items() for tool in session.tools]
        self.names = HostNames(self.files.host, pairs, servers=list(self.sessions), keep=self.names)

    def find(self, model: str) -> tuple[Name, Tool] | None:
        """The tool that a model means, if it is there."""
        name = self.names.find(model) or self.names.ever(model)
        session = None if name is None else self.sessions.get(name.server)
        tool = None if session is None or name is None else session.tools.get(name.tool)
        return None if name is None or tool is None else (name, tool)

    async def arrive(self, model: str) -> None:
        """Wait for the tool that a model means, where its server is being started again."""
        name = self.names.ever(model)
        session = None if name is None else self.sessions.get(name.server)
        if session is not None and session.state in ("new", "starting") and self.find(model) is None:
            await session.arrived()
            self.name_all()

    def visible(self) -> list[tuple[Name, Tool]]:
        """The tools that the model may see, by server and tool."""
        found = [(name, self.sessions[name.server].tools.get(name.tool)) for name in self.names]
        return [
            (name, tool)
            for name, tool in found
            if tool is not None and not hides(self.files, name, tool=tool)
        ]

    def instructions(self) -> dict[str, str]:
        """What each connected server says to the model about itself, cut as Claude Code cuts it."""
        most = description_limit(self._setting.env)
        said = {name: _instructions(session).strip()[:most] for name, session in self.sessions.items()}
        return {name: text for name, text in said.items() if text}

    def shown(self, *, defer: bool) -> list[Shown]:
        """The same, as the host shows them; with `defer`, deferred but for those that are always there."""
        env = self.files.machine.env
        return [
            Shown(
                name.model,
                _described(tool, env) if self.files.host == claude.HOST else tool,
                deferred=defer and not self._always(name, tool),
                group=name.server,
            )
            for name, tool in self.visible()
        ]

    def left_out(self) -> list[LeftOut]:
        """The tools that the host itself does not show to any model."""
        return [LeftOut(f"{server}:{tool}", why) for (server, tool), why in self.names.left_out.items()]

    def _always(self, name: Name, tool: Tool) -> bool:
        entry = self.sessions[name.server].config.raw
        return always_loaded(entry, {} if tool.meta is UNSET else tool.meta)


def _active(files: HostFiles) -> dict[str, Standing]:
    return {name: item for name, item in files.servers.items() if item.state == "active"}


def same_server(one: ServerConfig, other: ServerConfig) -> bool:
    """Whether two entries come to the same server, reached in the same way, wherever they stand."""
    return _bare(one) == _bare(other)


def _bare(config: ServerConfig) -> ServerConfig:
    return replace(config, origin=_NOWHERE, rules=(), warnings=(), scope="project")


def _instructions(session: Session) -> str:
    """What a server says to the model about itself; nothing where it is not connected."""
    client = session.client
    if client is None or session.state != "connected":
        return ""
    try:
        return client.instructions or ""
    except LocalError:  # it has just gone
        return ""


def _described(tool: Tool, env: Mapping[str, str]) -> Tool:
    """The tool with as much of its description as the host shows."""
    most = description_limit(env)
    if tool.description is UNSET or len(tool.description) <= most:
        return tool
    return changed(tool, description=tool.description[:most])
