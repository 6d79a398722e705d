"""The soak itself: starts the servers, calls them at a steady rate, and sees what is left in the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from dragoman import ClientGroup
from dragoman.client.member import Retry
from dragoman.client.options import ClientKeywords
from dragoman.errors import DragomanError

from .faults import HTTP
from .fleet import ROOT, Keeper, Place, places
from .tally import Call, Tally
from .watch import Held, Memory

IDLE: Final = 2.0  # seconds without an answer after which a call is given up
OVERALL: Final = 6.0
BOUND: Final = 30.0  # seconds in which every call has to have ended, whatever it met
_TURN: Final = 1.0


@dataclass(frozen=True)
class Plan:
    """What is run: `calls` in all at `rate` a second, `share` of them with a fault."""

    calls: int
    rate: float
    servers: int = 8
    share: float = 0.05
    seed: int = 1


@dataclass
class Outcome:
    """What came of a run."""

    plan: Plan
    places: list[Place]
    tally: Tally
    memory: Memory
    states: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])  # server, new state
    changes: Counter[str] = field(default_factory=Counter[str])  # of lists of tools, by server
    left: list[str] = field(default_factory=list[str])
    logged: Counter[str] = field(default_factory=Counter[str])  # what the loop or a logger calls an error
    seconds: float = 0.0


class _Errors(logging.Handler):
    """Counts what is logged as an error: a fault of the package's own, since peers' are warnings."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__(logging.ERROR)
        self._counts = counts

    def emit(self, record: logging.LogRecord) -> None:
        """Count it."""
        trouble = record.exc_info[1] if record.exc_info else None
        self._counts[f"{record.getMessage()} {trouble or ''}".strip()] += 1


Progress = Callable[[Outcome], None]


class Soak:
    """One run."""

    def __init__(self, plan: Plan, folder: Path, on_turn: Progress) -> None:
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._on_turn = on_turn
        self.outcome = Outcome(plan, places(plan.servers, folder), Tally(plan.calls), Memory())
        self._open: set[asyncio.Task[None]] = set()

    async def run(self) -> Outcome:
        """Do it all; raises only what is wrong with the soak itself."""
        loop = asyncio.get_running_loop()
        outcome = self.outcome
        loop.set_exception_handler(self._unhandled)
        errors = _Errors(outcome.logged)
        logging.getLogger("dragoman").addHandler(errors)
        logging.getLogger("dragoman").propagate = False
        logging.getLogger("asyncio").addHandler(errors)
        before = Held.now()
        start = loop.time()
        try:
            await self._with_servers()
        finally:
            logging.getLogger("dragoman").removeHandler(errors)
            logging.getLogger("asyncio").removeHandler(errors)
            logging.getLogger("dragoman").propagate = True
        outcome.seconds = loop.time() - start
        await asyncio.sleep(0)
        gc.collect()
        outcome.left = before.left()
        outcome.tally.close()
        for place in outcome.places:
            worked = place.ledger.read_text().split() if place.ledger.exists() else []
            outcome.tally.compare(place, map(int, worked))
        return outcome

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        del loop
        self.outcome.logged[f"{context.get('message')}: {context.get('exception')!r}"] += 1

    async def _with_servers(self) -> None:
        keepers = {
            place.name: Keeper(place, random.Random(f"{self._plan.seed} {place.name}"))
            for place in self.outcome.places
            if place.transport == HTTP
        }
        try:
            urls = {name: await keeper.start() for name, keeper in keepers.items()}
            targets = {place.name: urls.get(place.name) or place.command() for place in self.outcome.places}
            group = ClientGroup(
                targets,
                each=self._own,
                retry=Retry(first=0.2, most=2.0),
                idle_timeout=IDLE,
                timeout=OVERALL,
                connect_timeout=10.0,
            )
            async with group:
                await self._call_all(group)
        finally:
            await asyncio.gather(*(keeper.stop() for keeper in keepers.values()))

    def _own(self, name: str) -> ClientKeywords:
        """Half of those over HTTP are waited for by their client, the others by the group."""
        if not name.startswith(HTTP):
            return {"cwd": ROOT}
        return {"retry_for": 2.0} if name.endswith("1") else {}

    # Calls ---------------------------------------------------------------------------------------

    async def _call_all(self, group: ClientGroup) -> None:
        watching = asyncio.create_task(self._watch(group))
        turning = asyncio.create_task(self._turn())
        try:
            loop = asyncio.get_running_loop()
            start = loop.time()
            for number in range(self._plan.calls):
                await asyncio.sleep(max(0.0, start + number / self._plan.rate - loop.time()))
                task = loop.create_task(self._call(group, self._next(number)))
                self._open.add(task)
                task.add_done_callback(self._open.discard)
            if self._open:
                await asyncio.wait(self._open, timeout=BOUND)
        finally:
            for task in (watching, turning, *self._open):
                task.cancel()
            await asyncio.wait({watching, turning, *self._open})

    def _next(self, number: int) -> Call:
        rng = self._rng
        place = rng.choice(self.outcome.places)
        safe = rng.random() < 0.4
        fault = place.draw.one(rng) if rng.random() < self._plan.share else None
        return Call(number, place, safe, fault)

    async def _call(self, group: ClientGroup, call: Call) -> None:
        tally, loop = self.outcome.tally, asyncio.get_running_loop()
        tally.begin(call)
        start = loop.time()
        arguments = {"number": call.number, "fault": call.fault_name}
        try:
            name = f"mcp__{call.place.name}__{'look' if call.safe else 'do'}"
            result = await group.call_tool(name, arguments)
        except DragomanError as exc:
            tally.failed(call, exc)
        except Exception as exc:  # noqa: BLE001  # whatever else there is, is to be found
            tally.failed(call, exc)
        else:
            tally.answered(call, result.text, failed=result.is_error)
        tally.longest = max(tally.longest, loop.time() - start)

    async def _watch(self, group: ClientGroup) -> None:
        async for change in group.changes():
            if change.kind == "tools":
                self.outcome.changes[change.server] += 1
            if change.kind == "state":
                self.outcome.states[change.server, cast("str", group.servers[change.server].state)] += 1

    async def _turn(self) -> None:
        while True:
            self.outcome.memory.sample()
            self._on_turn(self.outcome)
            await asyncio.sleep(_TURN)
