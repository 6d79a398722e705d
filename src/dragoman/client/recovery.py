"""What is done about a request that failed on its way: which is sent again, and what has to happen first.

A server that was not there is waited for, a session that was ended is opened anew, a program that ended is
started again; once for all that wait, and within limits. How any of it is done is passed in.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from dragoman.client.options import ClientOptions
from dragoman.errors import ClosedError, ConnectError, HttpError, LocalError
from dragoman.jsonrpc.message import Response
from dragoman.revisions import Revision
from dragoman.transports.backoff import backoff

log = logging.getLogger("dragoman.client")

_FIRST: Final = 0.1
_MOST: Final = 5.0
_WINDOW: Final = 60.0  # seconds for which a restart counts against the limit
_UNAVAILABLE: Final = 503
# What changes nothing at a server, or leaves it the same when it comes twice; a tool says it for itself.
_SAFE: Final = frozenset(
    {
        "ping",
        "completion/complete",
        "prompts/get",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
    }
)

Renew = Callable[[bool], Awaitable[None]]


def is_safe(method: str, revision: Revision | None) -> bool:
    """Whether a request of that method may come to the server twice."""
    known = None if revision is None else revision.methods.get(method)
    return method in _SAFE or (known is not None and known.cacheable)


def may_pass(fault: LocalError) -> bool:
    """Whether the server was not there, or not ready, and may be in a moment."""
    if isinstance(fault, ConnectError):
        return fault.passing
    return isinstance(fault, HttpError) and fault.status == _UNAVAILABLE


class Patience:
    """How long a server that is not there is waited for: `limit` seconds, from the first failure on."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._until: float | None = None
        self.failures = 0

    async def wait(self, fault: LocalError, name: str) -> None:
        """Return when it is time for another attempt; raises `fault` when there is none."""
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = now + self._limit
        asked = fault.retry_after if isinstance(fault, HttpError) else None
        delay = max(backoff(self.failures, first=_FIRST, most=_MOST), asked or 0.0)
        self.failures += 1
        if now + delay > self._until:
            raise fault
        if self.failures == 1:
            log.warning("%s: %s; trying again for up to %g s", name, fault.message, self._limit)
        await asyncio.sleep(delay)


@dataclass(slots=True)
class Course:
    """One request on its way: how it is sent, and what has been tried for it.

    `safe`: the server may get it twice. `generation` is the one in which it was sent.
    """

    send: Callable[[], Awaitable[Response]]
    safe: bool
    generation: int
    patience: Patience
    renewed: int = 0
    repeated: bool = False


class Recovery:
    """What brings one connection back. `renew(fresh)` agrees with the server once more, after a new start if
    `fresh`; `restarts` says whether there can be one.
    """

    def __init__(self, name: str, options: ClientOptions) -> None:
        self.generation = 0  # how often the server was spoken with anew
        self.renewal: asyncio.Task[None] | None = None  # under way: requests wait for it
        self.renew: Renew | None = None  # None until there was something to renew
        # Called when a server that has forgotten everything is spoken with anew: a new session or process.
        self.on_renewed: Callable[[], Awaitable[None]] | None = None
        self._name = name
        self._options = options
        self._restarts: deque[float] = deque()
        self._closed = False

    @property
    def limit(self) -> float:
        """Seconds for which a server that is not there is waited for."""
        return min(self._options.retry_for, self._options.connect_timeout or inf)

    def close(self) -> None:
        """Nothing is brought back any more."""
        self._closed = True
        if self.renewal is not None:
            self.renewal.cancel()

    async def ready(self) -> None:
        """Return when no renewal is under way. Raises as the renewal."""
        if self.renewal is not None:
            await self._join(self.renewal)

    async def again(self, fault: LocalError, course: Course, *, restarts: bool) -> Response:
        """The response to a request that failed with `fault`, if it may be sent again; else raises it.

        It is sent again once, if it did not arrive or is `safe`; and where the server was not there at
        all, for as long as it is waited for. `restarts`: what ended is a process that can be started again.
        """
        while True:
            await self._prepare(fault, course, restarts=restarts)
            await self.ready()
            course.generation = self.generation
            try:
                return await course.send()
            except LocalError as exc:
                fault = exc

    async def _prepare(self, fault: LocalError, course: Course, *, restarts: bool) -> None:
        """Do what has to be done before the request is sent again; raises `fault` where it is not."""
        if self._closed:
            raise fault
        if may_pass(fault):
            # A gateway says 503 too when the server behind it broke off in the middle; one that names a
            # time asks for the request to be made again (RFC 9110, 10.2.3).
            named = isinstance(fault, HttpError) and fault.retry_after is not None
            if not (course.safe or named or fault.undelivered):
                raise fault
            await course.patience.wait(fault, self._name)
        elif isinstance(fault, HttpError) and fault.session_ended:
            await self._renewed(fault, course, fresh=False)
        elif isinstance(fault, ClosedError):
            if not fault.undelivered:
                if not course.safe or course.repeated:
                    raise fault
                course.repeated = True
            elif not restarts:
                raise fault
            if restarts:
                await self._renewed(fault, course, fresh=True)
        else:
            raise fault

    # One renewal for all ------------------------------------------------------------------------------

    async def _renewed(self, fault: LocalError, course: Course, *, fresh: bool) -> None:
        if self.renew is None or course.renewed > 1 or (course.renewed and not fresh):
            raise fault
        course.renewed += 1
        if self.generation != course.generation:
            return  # somebody else's request came upon it first
        if self.renewal is None:
            work = self._run(self.renew, fault, fresh=fresh)
            self.renewal = asyncio.get_running_loop().create_task(work)
        await self._join(self.renewal)

    async def _join(self, renewal: asyncio.Task[None]) -> None:
        # Whoever gives up waiting leaves it to the others.
        try:
            await asyncio.shield(renewal)
        except asyncio.CancelledError:
            if not renewal.cancelled():
                raise
            raise ClosedError("the connection is closed", server=self._name, stage="call") from None

    async def _run(self, renew: Renew, fault: LocalError, *, fresh: bool) -> None:
        try:
            # Made here: a task that is cancelled before it began leaves nothing that is never awaited.
            await (self._restart(renew, fault) if fresh else renew(False))
            self.generation += 1
        finally:
            self.renewal = None
        if self.on_renewed is not None:
            await self.on_renewed()

    async def _restart(self, renew: Renew, fault: LocalError) -> None:
        """Start the program again, with pauses that grow with how often that was done of late."""
        loop = asyncio.get_running_loop()
        patience = Patience(self.limit)
        while True:
            now = loop.time()
            while self._restarts and self._restarts[0] < now - _WINDOW:
                self._restarts.popleft()
            if len(self._restarts) >= self._options.max_restarts:
                fault.hint = fault.hint or self._enough()
                raise fault
            if self._restarts:
                await asyncio.sleep(backoff(len(self._restarts), first=_FIRST, most=_MOST))
            self._restarts.append(loop.time())
            log.warning("%s: %s; starting it again", self._name, fault.message)
            try:
                await renew(True)
            except ClosedError as exc:
                fault = exc
            except ConnectError as exc:
                if not exc.passing:
                    raise
                self._restarts.pop()  # nothing was started
                await patience.wait(exc, self._name)
            else:
                return

    def _enough(self) -> str | None:
        most = self._options.max_restarts
        if not most:
            return None
        return f"its log; it was started again {most} times within {_WINDOW:g} s (max_restarts= allows more)"
