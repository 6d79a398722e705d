"""One server of one host: its entry, how it fares, what it lists, and calls of its tools.

What may be called is decided elsewhere; a server that fails here says why and hurts no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from dragoman.client import Client, ToolResult
from dragoman.client.options import ClientKeywords
from dragoman.errors import DragomanError, LocalError
from dragoman.host.config.record import ServerConfig
from dragoman.host.masking import held, without
from dragoman.host.reaching import plan
from dragoman.host.supervisor import Running, Supervisor, entry_of_call
from dragoman.host.supervisor import State as RunningState
from dragoman.host.trace import Entry
from dragoman.model import Tool
from dragoman.schema.errors import Fault
from dragoman.schema.validate import Validator

log = logging.getLogger("dragoman.host")

State: TypeAlias = RunningState | Literal["skipped"]
Direction: TypeAlias = Literal["in", "out"]


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
    """What every server of a host has in common: environment, folder, revision to speak, who looks on, who
    runs it, and further options of its client.
    """

    env: Mapping[str, str]
    folder: Path | None
    protocol: str
    tap: ServerTap | None
    supervisor: Supervisor
    client: ClientKeywords


class Session:
    """One server. `state` says how it fares, `why` the reason where it is not connected.

    A server is `skipped` where something that its entry needs is not there: a variable without a value.
    """

    def __init__(self, config: ServerConfig, setting: Setting, *, name: str | None = None) -> None:
        self.name = name or config.name
        self.config = config
        self._setting = setting
        self._skipped = ""
        self._closed = False
        self._calls = 0
        self._free = asyncio.Event()  # no call is on its way
        self._free.set()
        self._arrived = asyncio.Event()  # its start is over, however it ended
        self._running: Running | None = None
        self._checked: Mapping[str, Tool] = {}  # the tools that the validators are for
        self._validators: dict[str, Validator] = {}

    def __repr__(self) -> str:
        return f"<Session {self.name!r}, {self.state}>"

    # Facts -------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """How the server fares."""
        if self._skipped:
            return "skipped"
        if self._closed:
            return "closed"
        return "new" if self._running is None else self._running.state

    @property
    def why(self) -> str:
        """Why it is not connected, without the secrets that its program was given, and may have repeated."""
        why = self._skipped or ("" if self._running is None else self._running.why)
        return without(why, held(self.config, self._setting.env)) if why else ""

    @property
    def running(self) -> Running | None:
        """What runs for it, maybe for other hosts too."""
        return self._running

    @property
    def client(self) -> Client | None:
        """The client, while it is connected."""
        return None if self._running is None else self._running.client

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools that it listed last."""
        return {} if self._running is None else self._running.tools

    # Life --------------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Start or reach the server and list its tools. Raises nothing: see `state` and `why`."""
        try:
            await self._connect()
        except DragomanError:
            raise
        except Exception as exc:  # of an entry that nobody thought of: it hurts no other server
            log.exception("server %r (%s) could not be started", self.name, self.config.origin)
            self._skipped = f"it could not be started: {type(exc).__name__}"
        finally:
            self._arrived.set()

    async def arrived(self) -> None:
        """Return when the start that is under way is over, however it ended."""
        await self._arrived.wait()

    async def _connect(self) -> None:
        config, setting = self.config, self._setting
        made = plan(config, self.name, env=setting.env, folder=setting.folder, protocol=setting.protocol)
        if isinstance(made, str):
            self._skipped = made
            log.warning("server %r (%s) is not started: %s", self.name, config.origin, made)
            return
        if setting.client or setting.tap is not None:
            # What the entry and its host say comes first.
            options: ClientKeywords = {**setting.client, **made.options}
            tap = None if setting.tap is None else self._tap
            made = replace(made, options=options, tap=tap, alone=True)
        self._running = running = await setting.supervisor.take(made, self)
        if self._closed:  # meanwhile
            await setting.supervisor.leave(running, self)

    async def close(self, *, within: float = 0.0) -> None:
        """End the connection, and the process if there is one that nobody else uses.

        Calls that are on their way may come to their end `within` so many seconds.
        """
        self._closed = True
        self._arrived.set()
        if self._calls and within:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._free.wait(), within)
        if self._running is not None:
            await self._setting.supervisor.leave(self._running, self)

    def _tap(self, direction: Direction, frame: bytes) -> None:
        if self._setting.tap is not None:
            self._setting.tap(Frame(self.name, direction, frame))

    # Tools -------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """List the tools again, if the server's word that the last list is fresh has run out."""
        if self._running is not None:
            await self._running.refresh()

    def faults(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Fault, ...]:
        """What the tool's input schema refuses of the arguments.

        Raises:
            SchemaError: the schema itself cannot be used, so that nothing can be checked by it.
        """
        tools = self.tools
        if tools is not self._checked:
            self._checked, self._validators = tools, {}
        validator = self._validators.get(tool)
        if validator is None:
            validator = self._validators[tool] = Validator(tools[tool].input_schema)
        return validator.errors(dict(arguments))

    async def call(self, tool: Tool, arguments: Mapping[str, Any], *, entry: Entry | None) -> ToolResult:
        """Call a tool; the request is written to `entry` as it is sent.

        Raises:
            LocalError: the server had to be started again, and the tool is not what it was; nothing was sent.

        For the rest as `Client.call_tool`.
        """
        if self._running is None:
            raise LocalError(self.why or "it is not connected", server=self.name, stage="call")
        self._calls += 1
        self._free.clear()
        try:
            async with self._running.used() as client:
                if self.tools.get(tool.name) != tool:
                    text = f"{tool.name!r} is not the tool that it was when the call was looked at"
                    raise LocalError(text, server=self.name, stage="call")
                token = entry_of_call.set(entry)
                try:
                    return await client.call_tool(tool.name, arguments)
                finally:
                    entry_of_call.reset(token)
        finally:
            self._calls -= 1
            if not self._calls:
                self._free.set()
