"""The servers that run, for one host or several: started within a budget, brought back, stopped when idle.

It knows neither files nor rules: it is handed plans, and hands out what runs by them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Hashable
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias

import msgspec

from dragoman.client import Client
from dragoman.client.changes import Change
from dragoman.client.member import Member, Retry
from dragoman.errors import ClosedError, LocalError, UsageError
from dragoman.host.reaching import Plan
from dragoman.host.trace import Entry
from dragoman.model import Tool

log = logging.getLogger("dragoman.host")

State: TypeAlias = Literal["new", "starting", "connected", "failed", "idle", "closed"]
"""How a server fares. A `failed` one is tried again as long as somebody uses it; an `idle` one was stopped,
and is started again by the next call."""

RETRY: Final = Retry()
AT_ONCE: Final = 8
HEALTH: Final = 60.0
_CALL: Final = "tools/call"
_STATES: Final[dict[str, State]] = {
    "new": "new",
    "starting": "starting",
    "connected": "connected",
    "waiting": "failed",
    "failed": "failed",
    "closed": "closed",
}

# The entry of the call whose request is on its way, for the tap at the frame: it runs in the same task.
entry_of_call: Final[ContextVar[Entry | None]] = ContextVar("entry", default=None)


class _Method(msgspec.Struct):
    method: str = ""


_read_method: Final = msgspec.json.Decoder(_Method).decode


class Running:
    """One server by one plan, for those that use it.

    `tools` are those that it listed last, kept while it is stopped. `users` are whoever took it.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        retry: Retry | None,
        starts: asyncio.Semaphore,
        idle_stop: float | None,
        health: float | None,
    ) -> None:
        self.plan = plan
        self.tools: dict[str, Tool] = {}
        self.users: set[Hashable] = set()
        self._retry = retry
        self._starts = starts
        self._idle_stop = idle_stop
        self._health = health
        self._pulse: asyncio.TimerHandle | None = None
        self._member: Member | None = None
        self._calls = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._idle = False
        self._late = ""
        self._closed = False

    def __repr__(self) -> str:
        return f"<Running {self.plan.name!r}, {self.state}>"

    # Facts -------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """How it fares."""
        if self._closed:
            return "closed"
        if self._member is None:
            return "idle" if self._idle else "new"
        return _STATES[self._member.state]

    @property
    def why(self) -> str:
        """What is wrong where it is not connected, with the last words of a program that ended."""
        member = self._member
        if member is None or member.state == "connected":
            return ""
        error = member.error
        return (str(error) if error is not None else member.why) or self._late

    @property
    def retry_at(self) -> float | None:
        """The time of the event loop at which it is tried again; None while it is not to be."""
        return None if self._member is None else self._member.retry_at

    @property
    def client(self) -> Client | None:
        """The client, while it is connected."""
        return None if self._member is None else self._member.client

    @property
    def shareable(self) -> bool:
        """Whether several hosts may use it: nothing is kept between requests, and nobody looks on."""
        client = self.client
        return not self.plan.alone and client is not None and not client.revision.handshake

    @property
    def busy(self) -> bool:
        """Whether a call is on its way."""
        return self._calls > 0

    # Life --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start or reach it; returns when its tools are listed, it failed, or its time for that ran out.

        Raises nothing: see `state` and `why`.
        """
        if self._closed:
            return
        if self._stopping is not None:
            await asyncio.wait([self._stopping])
        if self._member is not None:
            await self._settled(self._member)
            return
        member = self._member = self._new()
        self._idle = False
        if self.plan.program:
            async with self._starts:
                await self._begin(member)
        else:
            await self._begin(member)
        self._rest()
        self._look_later()

    async def _begin(self, member: Member) -> None:
        if self._member is member:  # it was not closed meanwhile
            member.start()
            await self._settled(member)

    async def _settled(self, member: Member) -> None:
        try:
            await asyncio.wait_for(member.settled.wait(), self.plan.startup)
        except TimeoutError:
            self._late = f"it was not ready within {self.plan.startup:g} s"

    def _new(self) -> Member:
        return Member(
            self.plan.name,
            target=self.plan.entry,
            options={**self.plan.options, "tap": self._tap},
            retry=self._retry,
            on_change=self._changed,
        )

    def _changed(self, change: Change) -> None:
        if change.kind == "tools" and self._member is not None:
            self.tools = self._member.tools

    def _tap(self, direction: Literal["in", "out"], frame: bytes) -> None:
        if self.plan.tap is not None:
            self.plan.tap(direction, frame)
        entry = entry_of_call.get()
        if direction == "out" and entry is not None and _read_method(frame).method == _CALL:
            kind, client = self.plan.entry.get("type", "stdio"), self.client
            revision = None if client is None else client.revision.version
            entry.sent(frame, server=self.plan.name, revision=revision, transport=kind)

    async def close(self) -> None:
        """End it for good, with its process."""
        self._closed = True
        for timer in (self._timer, self._pulse):
            if timer is not None:
                timer.cancel()
        if self._stopping is not None:
            await asyncio.wait([self._stopping])
        member, self._member = self._member, None
        if member is not None:
            await member.close()

    # Use ---------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def used(self) -> AsyncGenerator[Client, None]:
        """Its client, for one call; it is not stopped meanwhile, and is started again if it was.

        Raises:
            ConnectError: it is not connected; says why, and when it is tried again.
            ClosedError: it was closed.
        """
        self._calls += 1
        if self._timer is not None:
            self._timer.cancel()
        try:
            if self.state in ("new", "idle"):
                await self.start()
            member = self._member
            if member is None:
                raise ClosedError("it was closed", server=self.plan.name, stage="call")
            client = await member.ready()
            try:
                yield client
            except LocalError as exc:
                member.suspect(exc)
                raise
        finally:
            self._calls -= 1
            self._rest()

    async def refresh(self) -> None:
        """List the tools again, if the server's word that the last list is fresh has run out.

        What a server that does not answer listed last stays known.
        """
        member = self._member
        if member is None or member.state != "connected":
            return
        try:
            await asyncio.wait_for(member.refresh(), self.plan.startup)
        except TimeoutError:
            log.warning("server %r did not list its tools within %g s", self.plan.name, self.plan.startup)

    def hurry(self) -> None:
        """Try again now, if it waits for its next attempt."""
        if self._member is not None and self._member.state == "waiting":
            self._member.settled.clear()
            self._member.hurry()

    def _look_later(self) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        if self._health is not None and not self._closed and self._member is not None:
            self._pulse = asyncio.get_running_loop().call_later(self._health, self._look)

    def _look(self) -> None:
        """Ask for a sign of life, unless a call is on its way, which the server may be busy with."""
        if self._member is not None and self.client is not None and not self.busy:
            self._member.suspect()
        self._look_later()

    def _rest(self) -> None:
        """Stop it when nothing is asked of it for a while."""
        if self._timer is not None:
            self._timer.cancel()
        if self._idle_stop is None or self._calls or self._closed or self._member is None:
            return
        self._timer = asyncio.get_running_loop().call_later(self._idle_stop, self._lie_down)

    def _lie_down(self) -> None:
        member = self._member
        if self._calls or self._closed or member is None or member.client is None:
            return
        self._idle, self._member = True, None
        self._stopping = asyncio.get_running_loop().create_task(self._stop(member))

    async def _stop(self, member: Member) -> None:
        try:
            await member.close()
        finally:
            self._stopping = None


class Supervisor:
    """Whoever keeps servers running::

        async with Supervisor(idle_stop=300) as supervisor:
            async with Host.from_files(".", supervisor=supervisor) as host: ...

    Hosts that are given the same one share a server where their entries come to the same and its revision
    keeps no state between requests. `retry` says when a lost server is tried again (never, with None);
    `at_once` how many programs are started at a time; `idle_stop` after how many seconds without a call a
    server is stopped, None for never: the next call starts it again. Every `health` seconds a server that
    nothing is asked of is asked for a sign of life, and replaced if there is none; None for never.
    """

    def __init__(
        self,
        *,
        retry: Retry | None = RETRY,
        at_once: int = AT_ONCE,
        idle_stop: float | None = None,
        health: float | None = HEALTH,
    ) -> None:
        if at_once < 1:
            raise UsageError(f"at_once: expected a number from 1 up; received {at_once!r}")
        for name, value in (("idle_stop", idle_stop), ("health", health)):
            if value is not None and not value > 0:
                raise UsageError(f"{name}: expected seconds above 0, or None; received {value!r}")
        self._retry = retry
        self._starts = asyncio.Semaphore(at_once)
        self._idle_stop = idle_stop
        self._health = health
        self._running: list[Running] = []
        self._shared: dict[bytes, Running] = {}
        self._locks: dict[bytes, asyncio.Lock] = {}
        self._closed = False

    @property
    def running(self) -> tuple[Running, ...]:
        """What was taken and not yet left."""
        return tuple(self._running)

    async def take(self, plan: Plan, user: Hashable) -> Running:
        """A server by this plan, started; one that runs already where it may be shared.

        Raises:
            ClosedError: this was closed.
        """
        if plan.alone:
            return await self._begin(plan, user)
        key = plan.key
        async with self._locks.setdefault(key, asyncio.Lock()):
            shared = self._shared.get(key)
            if shared is not None and shared.state in ("connected", "idle"):
                shared.users.add(user)
                return shared
            running = await self._begin(plan, user)
            if running.shareable:
                self._shared[key] = running
            return running

    async def _begin(self, plan: Plan, user: Hashable) -> Running:
        if self._closed:
            raise ClosedError("this supervisor was closed", server=plan.name, stage="connect")
        running = Running(
            plan,
            retry=self._retry,
            starts=self._starts,
            idle_stop=self._idle_stop,
            health=self._health,
        )
        running.users.add(user)
        self._running.append(running)
        try:
            await running.start()
        except BaseException:
            await self.leave(running, user)
            raise
        return running

    async def leave(self, running: Running, user: Hashable) -> None:
        """Have done with it: it ends with the last of its users."""
        running.users.discard(user)
        if running.users or running not in self._running:
            return
        self._running.remove(running)
        if not running.plan.alone and self._shared.get(running.plan.key) is running:
            del self._shared[running.plan.key]
        await running.close()

    async def close(self) -> None:
        """End every server, whoever uses it. Any number of times."""
        self._closed = True
        running, self._running = self._running, []
        self._shared.clear()
        await asyncio.gather(*(one.close() for one in running))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
