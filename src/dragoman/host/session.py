"""One configured server of a host: how it is reached, how it fares, what it lists, and calls of its tools.

What may be called is decided elsewhere; a server that fails here says why and hurts no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman.client import Client, ToolResult
from dragoman.errors import LocalError, RemoteError
from dragoman.host.config.expand import expand
from dragoman.host.config.record import ServerConfig
from dragoman.host.trace import Entry
from dragoman.model import Tool
from dragoman.schema.errors import Fault
from dragoman.schema.validate import Validator

log = logging.getLogger("dragoman.host")

State: TypeAlias = Literal["new", "connected", "failed", "skipped", "closed"]
Direction: TypeAlias = Literal["in", "out"]

_SPOKEN: Final = frozenset({"stdio", "http"})
_CALL: Final = "tools/call"

# The entry of the call whose request is on its way, for the tap at the frame: it runs in the same task.
_entry: Final[ContextVar[Entry | None]] = ContextVar("entry", default=None)


class _Method(msgspec.Struct):
    method: str = ""


_read_method: Final = msgspec.json.Decoder(_Method).decode


@dataclass(frozen=True, slots=True)
class Frame:
    """A message as it crossed the wire, to or from a server."""

    server: str
    direction: Direction
    data: bytes


ServerTap: TypeAlias = Callable[[Frame], None]
"""Called with every frame of every server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every server of a host has in common: environment, folder, revision to speak, tap."""

    env: Mapping[str, str]
    folder: Path | None
    protocol: str
    tap: ServerTap | None


class Session:
    """One server. `state` says how it fares, `why` the reason where it is not connected."""

    def __init__(self, config: ServerConfig, setting: Setting) -> None:
        self.config = config
        self.state: State = "new"
        self.why = ""
        self.client: Client | None = None
        self.tools: dict[str, Tool] = {}
        self._setting = setting
        self._validators: dict[str, Validator] = {}

    def __repr__(self) -> str:
        return f"<Session {self.config.name!r}, {self.state}>"

    async def connect(self) -> None:
        """Start or reach the server and list its tools. Raises nothing: see `state` and `why`."""
        config = self.config
        if config.transport not in _SPOKEN:
            self._skip(f"transport {config.transport!r} is not spoken here")
            return
        full, missing = expand(config, self._setting.env)
        if missing:
            self._skip(f"no value for the environment variable {', '.join(missing)}")
            return
        try:
            self.client = self._client(full)
            await self.client.connect()
            await self._list(self.client)
        except (LocalError, RemoteError) as exc:
            self.state, self.why = "failed", str(exc)
            log.warning("server %r (%s) is not available: %s", config.name, config.origin, exc)
            if self.client is not None:
                await self.client.close()

    async def close(self) -> None:
        """End the connection, and the process if there is one."""
        if self.state == "connected":
            self.state = "closed"
        if self.client is not None:
            await self.client.close()

    def _skip(self, why: str) -> None:
        self.state, self.why = "skipped", why
        log.warning("server %r (%s) is not started: %s", self.config.name, self.config.origin, why)

    def _client(self, config: ServerConfig) -> Client:
        setting = self._setting
        if config.transport == "http":
            entry: dict[str, Any] = {"type": "http", "url": config.url, "headers": dict(config.headers)}
            return Client(entry, name=config.name, protocol=setting.protocol, tap=self._tap)
        env = dict(config.env)
        if setting.folder is not None:
            env.setdefault("CLAUDE_PROJECT_DIR", str(setting.folder))
        entry = {"command": config.command, "args": list(config.args), "env": env}
        cwd = config.cwd or setting.folder
        return Client(entry, name=config.name, cwd=cwd, protocol=setting.protocol, tap=self._tap)

    # What is on the wire -----------------------------------------------------------------------------

    def _tap(self, direction: Direction, frame: bytes) -> None:
        if self._setting.tap is not None:
            self._setting.tap(Frame(self.config.name, direction, frame))
        entry = _entry.get()
        if direction == "out" and entry is not None and _read_method(frame).method == _CALL:
            revision = None if self.client is None else self.client.revision.version
            entry.sent(frame, server=self.config.name, revision=revision, transport=self.config.transport)

    # Tools -------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """List the tools again, if the server's word that the last list is fresh has run out."""
        if self.client is None or self.state != "connected":
            return
        try:
            await self._list(self.client)
        except (LocalError, RemoteError) as exc:
            # The tools it had stay known: a call of one then says what is the matter.
            self.why = str(exc)
            log.warning("the tools of server %r could not be read again: %s", self.config.name, exc)

    async def _list(self, client: Client) -> None:
        tools = {tool.name: tool for tool in await client.list_tools()}
        if tools != self.tools:
            self.tools, self._validators = tools, {}
        self.state, self.why = "connected", ""

    def faults(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Fault, ...]:
        """What the tool's input schema refuses of the arguments.

        Raises:
            SchemaError: the schema itself cannot be used, so that nothing can be checked by it.
        """
        validator = self._validators.get(tool)
        if validator is None:
            validator = self._validators[tool] = Validator(self.tools[tool].input_schema)
        return validator.errors(dict(arguments))

    async def call(self, tool: str, arguments: Mapping[str, Any], *, entry: Entry | None) -> ToolResult:
        """Call a tool; the request is written to `entry` as it is sent. Raises as `Client.call_tool`."""
        if self.client is None:
            raise LocalError(self.why or "it is not connected", server=self.config.name, stage="call")
        token = _entry.set(entry)
        try:
            return await self.client.call_tool(tool, arguments, timeout=self.config.timeout)
        finally:
            _entry.reset(token)
