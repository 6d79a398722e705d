"""One server of a group: how it fares, what it lists, and a task that brings it back when it is lost.

It knows nothing of the others and of the names under which its tools are shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from msgspec import UNSET

from dragoman.client.changes import Change
from dragoman.client.client import Client
from dragoman.client.loop import loop_over
from dragoman.client.options import ClientKeywords
from dragoman.client.servers import Unusable
from dragoman.client.target import TargetLike
from dragoman.errors import ClosedError, ConnectError, DeadlineError, LocalError, RemoteError, UsageError
from dragoman.model import Tool
from dragoman.transports.backoff import backoff

log = logging.getLogger("dragoman.client")

State: TypeAlias = Literal["new", "starting", "connected", "waiting", "failed", "closed"]

_LOOK: Final = 1.0  # seconds between looks at whether a program still runs
_PING: Final = 5.0  # seconds in which a server under suspicion has to show that it lives
_STEADY: Final = 30.0  # seconds of connection after which earlier failures are forgotten


@dataclass(frozen=True, slots=True)
class Retry:
    """When a lost server is tried again: after `first` seconds, then twice as long each time up to `most`.

    Each wait is cut by a random part of up to a half, so that many clients do not come back at once.
    """

    first: float = 0.5
    most: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.most:
            raise UsageError(
                f"Retry: expected 0 < first <= most; received first={self.first!r}, most={self.most!r}"
            )

    def delay(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row."""
        return backoff(failures - 1, first=self.first, most=self.most)


class Member:
    """One server of a group, and how it fares.

    `state`: `"new"`; `"starting"`; `"connected"`; `"waiting"` (it failed, and is tried again at the loop
    time `retry_at`); `"failed"` (it is not tried again); `"closed"`. `why` says in a line what is wrong,
    `error` is the exception behind it. `failures` counts those in a row. `client` is there while it is
    connected.
    """

    def __init__(
        self,
        name: str,
        *,
        target: TargetLike | Unusable,
        options: ClientKeywords,
        retry: Retry | None,
        on_change: Callable[[Change], None],
    ) -> None:
        self.name = name
        self.state: State = "new"
        self.why = ""
        self.error: LocalError | RemoteError | None = None
        self.failures = 0
        self.retry_at: float | None = None
        self.client: Client | None = None
        self.tools: dict[str, Tool] = {}
        self.settled = asyncio.Event()  # no attempt is under way
        self.heard = asyncio.Event()  # it is listened to, as far as it tells
        self._target = target
        # A server that is not there is waited for by this, where it can be seen, and not by the client.
        self._options: ClientKeywords = {"name": name, "retry_for": 0.0, **options}
        self._retry = retry
        self._on_change = on_change
        self._running: asyncio.Task[None] | None = None
        self._listens = False
        self._hearing: asyncio.Task[None] | None = None
        self._suspected = asyncio.Event()
        self._silent = False  # what it is suspected of
        self._again = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Member {self.name!r}, {self.state}{f': {self.why}' if self.why else ''}>"

    # Life --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect, and keep it connected from now on."""
        if self._running is None and self.state != "closed":
            self.state = "starting"
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """End the connection, and the process if there is one, for good. Any number of times."""
        running = self._running
        if running is not None and not loop_over(running.get_loop(), server=self.name):
            running.cancel()
            await asyncio.wait([running])
        self._running = None
        await self._unheard()
        client, self.client = self.client, None
        if client is not None:
            await client.close()
        if self.state != "closed":
            self._become("closed", "it was closed")

    def hurry(self) -> None:
        """Try again now, if it waits for its next attempt."""
        self._again.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._again.clear()
            self._become("starting", self.why)
            await self._attempt()
            if self.client is not None:
                since = loop.time()
                if self._listens:
                    self.listen()
                await self._until_lost(self.client)
                if loop.time() - since > _STEADY:
                    self.failures = 0
            self.failures += 1
            if self._retry is None or isinstance(self.error, UsageError):
                self._become("failed", self.why)
                return
            delay = self._retry.delay(self.failures)
            self.retry_at = loop.time() + delay
            self._become("waiting", self.why)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._again.wait()
            self.retry_at = None

    async def _attempt(self) -> None:
        if isinstance(self._target, Unusable):
            self._blame(UsageError(self._target.why, server=self.name, stage="connect"))
            return
        client: Client | None = None
        try:
            client = Client(self._target, **self._options)
            await client.connect()
            self.client = client
            await self._list(client)
        except (LocalError, RemoteError) as exc:
            self.client = None
            self._blame(exc)
            if client is not None:
                await client.close()
        except BaseException as exc:
            self.client = None
            if client is not None:
                await client.close()
            if not isinstance(exc, Exception):
                raise
            log.exception("connecting to server %r broke", self.name)
            self._blame(LocalError(f"{type(exc).__name__}: {exc}", server=self.name, stage="connect"))
        else:
            self.error = None
            self._become("connected", "")

    def _blame(self, exc: LocalError | RemoteError) -> None:
        said = exc.message if isinstance(exc, LocalError) else str(exc)
        if exc is not self.error and said != self.why:
            log.warning("server %r is not available: %s", self.name, exc)
        self.error, self.why = exc, said

    def _become(self, state: State, why: str) -> None:
        changed = state != self.state
        self.state, self.why = state, why
        if state == "starting":
            self.settled.clear()
        else:
            self.settled.set()
        if changed and state != "starting":
            self._on_change(Change(self.name, "state"))

    async def _until_lost(self, client: Client) -> None:
        """Return when the connection is gone, with the client closed."""
        while True:
            self._suspected.clear()
            try:
                # Not `wait_for`: up to Python 3.11 it loses a cancellation that comes with the event.
                async with asyncio.timeout(_LOOK):
                    await self._suspected.wait()
            except TimeoutError:
                # A look at what is known here anyway: nothing is sent.
                if client.facts().get("running", True):
                    continue
            error = await self._lifeless(client)
            if error is not None:
                self._blame(error)
                self.client = None
                await self._unheard()
                await client.close()
                return

    async def _lifeless(self, client: Client) -> LocalError | None:
        """Why the server must be taken for dead; None if it answers, as one may that was brought back."""
        # Of one that a call broke with, an answer is due at once. One that was silent may be at work on
        # something: it gets as long once more as the options let any server be silent.
        limit = asyncio.timeout(None if self._silent else _PING)
        try:
            async with limit:
                await client.ping()
        except LocalError as exc:
            return exc
        except TimeoutError:
            return ClosedError(f"no sign of life within {_PING:g} s", server=self.name, stage="call")
        except RemoteError:
            return None  # an answer is a sign of life
        return None

    def suspect(self, fault: LocalError | RemoteError | None = None) -> None:
        """See whether the server is still there, where what a call ended with may mean that it is not."""
        silent = isinstance(fault, DeadlineError) and fault.stage == "idle"
        if fault is None or silent or isinstance(fault, ClosedError | ConnectError):
            self._silent = silent
            self._suspected.set()

    # What it says ------------------------------------------------------------------------------------

    def listen(self) -> None:
        """Hear of changes from now on, over this connection and all later ones. Any number of times."""
        self._listens = True
        if self.client is not None and self._hearing is None:
            self._hearing = asyncio.get_running_loop().create_task(self._hear(self.client))

    async def _hear(self, client: Client) -> None:
        offered = client.capabilities
        tools, prompts, resources = (
            kind is not UNSET for kind in (offered.tools, offered.prompts, offered.resources)
        )
        if not (tools or prompts or resources):
            self.heard.set()
            return
        try:
            async with client.listen(tools=tools, prompts=prompts, resource_list=resources) as listening:
                self.heard.set()
                async for change in listening:
                    if change.kind == "tools":
                        await self.refresh(anew=True)
                    if change.kind != "resource":
                        self._on_change(Change(self.name, change.kind, change.missed))
        except (UsageError, RemoteError) as exc:
            log.info("server %r does not tell of changes: %s", self.name, exc)
        except LocalError:
            self.suspect()
        finally:
            self.heard.set()  # nothing more is to be waited for

    async def _unheard(self) -> None:
        hearing, self._hearing = self._hearing, None
        if hearing is not None and not loop_over(hearing.get_loop(), server=self.name):
            hearing.cancel()
            await asyncio.wait([hearing])
        self.heard.clear()

    # Tools -------------------------------------------------------------------------------------------

    async def refresh(self, *, anew: bool = False) -> None:
        """List the tools again where the server's word that the list is fresh has run out; never raises."""
        client = self.client
        if client is None:
            return
        try:
            await self._list(client, anew=anew)
        except (LocalError, RemoteError) as exc:
            # The tools it had stay known: a call of one then says what is the matter.
            log.warning("the tools of server %r could not be read again: %s", self.name, exc)
            self.suspect(exc)

    async def _list(self, client: Client, *, anew: bool = False) -> None:
        if client.capabilities.tools is UNSET:
            tools: dict[str, Tool] = {}
        else:
            tools = {tool.name: tool for tool in await client.list_tools(refresh=anew)}
        if tools != self.tools:
            self.tools = tools
            self._on_change(Change(self.name, "tools"))

    async def ready(self) -> Client:
        """The client, after an attempt that is under way.

        Raises:
            ConnectError: it is not connected; says why, and when it is tried again.
            ClosedError: it was closed.
        """
        if self.state == "starting":
            await self.settled.wait()
        if self.client is not None:
            return self.client
        if self.state in ("closed", "new"):
            raise ClosedError(self.why or "it was not connected", server=self.name, stage="call")
        hint = None
        if self.retry_at is not None:
            left = max(0.0, self.retry_at - asyncio.get_running_loop().time())
            hint = f"it is tried again in {left:.1f} s"
        raise ConnectError(f"not connected: {self.why}", server=self.name, stage="call", hint=hint)
