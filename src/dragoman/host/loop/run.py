"""The loop between a model and a host: ask the model, answer its calls side by side, until it is done.

It knows the order of things, budgets, and how to stop and go on. What may be called is the host's to
decide, and what an API looks like that of its conversions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from time import perf_counter
from typing import Any, Final, Protocol

import msgspec
from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.host.loop.events import Asking, CallEnded, CallStarted, End, Ended, Event, Message, RunResult
from dragoman.host.loop.options import RunKeywords, RunOptions
from dragoman.host.loop.state import Call, RunState
from dragoman.host.loop.toolbox import Toolbox
from dragoman.host.models.base import Definitions, Shown, Stop, ToolUse, Usage
from dragoman.host.outcome import Outcome
from dragoman.host.provider.fault import ModelError
from dragoman.host.provider.model import model_of
from dragoman.host.provider.talk import AnyModel, ModelRequest, Speaker
from dragoman.host.tokens import estimate
from dragoman.host.trace import Trace

_CUT: Final = "the answer was cut at its limit of tokens, and this call with it"
_UNKNOWN: Final = (
    "The call was sent, and its answer never came: whether it took effect is not known. Find out first."
)
_LEFT: Final = "Not called: the person said something else first."
_ENDS: Final[Mapping[str, tuple[End, str]]] = {
    "end": ("end", ""),
    "length": ("length", "the answer reached its limit of tokens"),
    "refused": ("refused", "the model, or its provider, would not answer"),
    "tools": ("other", "the model stopped for a call, and named none"),
    "other": ("other", "the model stopped, and did not say why"),
}


class Caller(Protocol):
    """What the loop asks of a host."""

    @property
    def trace(self) -> Trace | None:
        """Where the turns of the model are written, beside its calls."""
        ...

    @property
    def instructions(self) -> Mapping[str, str]:
        """What servers have to say to the model about themselves, by server."""
        ...

    async def shown(self, *, defer: bool = False) -> list[Shown]:
        """The tools that the model may see, as they are now; with `defer`, most have to be searched for."""
        ...

    async def answer(self, use: ToolUse, *, sending: Callable[[], None] | None = None) -> Outcome:
        """Answer a call; `sending` is called right before it goes out to a server, if it does."""
        ...


class Run:
    """One run of the loop. Go through its events, or await it for its result alone; once::

        run = host.run("Which orders are late?", model="anthropic:claude-opus-4-5")
        async for event in run:
            ...
        result = await run

    `state` is where it stands, at any time.
    """

    def __init__(self, caller: Caller, prompt: str | None, *, model: AnyModel, options: RunOptions) -> None:
        self._caller = caller
        self._model = model
        self._api = model.speaks
        self._options = options
        self.state = _state(options, model)
        self._prompt = prompt
        self._check()
        self._toolbox = Toolbox(self._api, self.state.found, strict=options.strict)
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._result: RunResult | None = None
        self._text = ""
        self._rounds = 0
        self._usage = self._last = Usage()
        self._outcomes: list[Outcome] = []

    def _check(self) -> None:
        state, limits = self.state, self._options.limits
        if limits.cost is not None and self._model.prices is None:
            raise UsageError(
                "limits: a limit of cost needs the model's prices", hint="Model(..., prices=Prices(...))"
            )
        if state.api != self._api.name:
            raise UsageError(f"state: it is of the API {state.api}; the model speaks {self._api.name}")
        if self._prompt is None and (state.ended or not state.history):
            raise UsageError("prompt: expected a text: there is nothing to go on with")

    # From outside -----------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events()

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self.result().__await__()

    async def result(self) -> RunResult:
        """What it came to. Raises whatever ended it; `state` then goes on from there."""
        if self._task is None:
            async for _ in self:
                pass
        elif self._task.cancelled():
            raise UsageError("the run was left before its end", hint="another one, from its state")
        elif self._result is None:
            await asyncio.shield(self._task)
        assert self._result is not None
        return self._result

    def stop(self) -> None:
        """End it at once, in order: what is under way is given up, and the result says `stopped`."""
        if not self._stopping and self._task is not None:
            self._task.cancel()
        self._stopping = True

    async def _events(self) -> AsyncIterator[Event]:
        if self._task is not None:
            raise UsageError("a run is gone through once; for another one, host.run(..., state=run.state)")
        task = self._task = asyncio.create_task(self._work())
        task.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    task.exception()  # looked at, so that nobody is told that nobody did

    # The loop ---------------------------------------------------------------------------------------

    async def _work(self) -> None:
        stop: End = "stopped"
        why = "it was stopped"
        try:
            if self._prompt is not None:
                self._say(self._prompt)
            if not self._stopping:
                async with self._model.open() as speaker:
                    stop, why = await self._converse(speaker)
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        prices = self._model.prices
        self._result = RunResult(
            text=self._text,
            stop=stop,
            why=why,
            rounds=self._rounds,
            usage=self._usage,
            cost=None if prices is None else prices.cost(self._usage),
            outcomes=tuple(self._outcomes),
            state=self.state,
        )
        self._tell(Ended(self._result))

    async def _converse(self, speaker: Speaker) -> tuple[End, str]:
        state = self.state
        while True:
            if state.calls:
                await self._tools()
                await self._settle()
            if (spent := self._spent()) is not None:
                return spent
            stop = await self._turn(speaker)
            with self._recorded(stop):
                if state.calls:
                    if (spent := self._spent()) is not None:
                        return spent
                    await self._settle()
                elif stop != "paused":
                    state.ended = True
                    self._changed()
                    return _ENDS[stop]

    def _recorded(self, stop: Stop) -> AbstractContextManager[None]:
        """The turn in the trace; the calls that are answered within belong to it."""
        trace, state = self._caller.trace, self.state
        if trace is None:
            return nullcontext()
        facts = {"model": state.model, "api": state.api, "stop": stop, "calls": len(state.calls)}
        return trace.turn(state.rounds, **facts, input=self._last.input, output=self._last.output)

    def _say(self, prompt: str) -> None:
        """Let the person speak; what the model waits for it will not get, and has to be told so."""
        state = self.state
        if state.calls:
            for call in state.calls:
                if call.block is None:
                    text = _UNKNOWN if call.state == "sent" else _LEFT
                    call.block = self._api.failure(call.use, text)
            self._answered()
        state.history = [*state.history, *self._api.user(prompt)]
        state.ended = False
        self._changed()

    async def _turn(self, speaker: Speaker) -> Stop:
        state, api = self.state, self._api
        state.rounds += 1
        self._rounds += 1
        self._tell(Asking(state.rounds))
        request = ModelRequest(
            history=state.history,
            tools=await self._tools(),
            system=self._system(),
            limit=self._limit(),
        )
        message = await speaker.answer(request, self._tell)
        self._count(message, request)
        stop = api.stop(message)
        uses = api.uses(message)
        self._answerable(message, uses, request=request)
        if stop == "length" and uses:
            uses[-1] = replace(uses[-1], fault=uses[-1].fault or _CUT)
        self._text = api.text(message)
        state.history = [*state.history, *api.said(message)]
        shown = self._toolbox.definitions.shown
        state.calls = [_call(use, shown(use.name)) for use in uses]
        self._changed()
        named = tuple(replace(use, name=shown(use.name)) for use in uses)
        self._tell(Message(state.rounds, self._text, named, api.usage(message), message))
        return stop

    def _answerable(
        self, message: Mapping[str, Any], uses: Sequence[ToolUse], *, request: ModelRequest
    ) -> None:
        """Before anything is called, and the message a part of what was said: two calls of one id.

        Raises:
            ModelError: the API takes no answers to them.
        """
        if len({use.id for use in uses}) == len(uses):
            return
        api, answers = self._api, [self._api.failure(use, "") for use in uses]
        history = [*request.history, *api.said(message), *api.answered(answers)]
        try:
            api.request(model=self.state.model, history=history, tools=request.tools)
        except UsageError:
            text = "two calls of the model's message have one id, so that they cannot be answered"
            raise ModelError(text, server=self._model.name, hint="to ask again: nothing was called") from None

    def _system(self) -> str | None:
        """The instructions to the model; those of servers are marked as theirs."""
        own = [self.state.system] if self.state.system else []
        said: Mapping[str, str] = self._caller.instructions if self._options.instructions else {}
        theirs = [f"The server {name!r} says of its tools:\n{said[name]}" for name in sorted(said)]
        return "\n\n".join([*own, *theirs]) or None

    async def _tools(self) -> Definitions:
        return self._toolbox.fill(await self._caller.shown(defer=self._options.defer))

    # Calls ------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Answer all calls of the last message, side by side; those that have an answer keep it."""
        tasks = [asyncio.create_task(self._call(call)) for call in self.state.calls if call.block is None]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            raise
        self._answered()

    def _answered(self) -> None:
        state = self.state
        blocks = [call.block for call in state.calls if call.block is not None]
        state.history = [*state.history, *self._api.answered(blocks)]
        state.calls = []
        self._changed()

    async def _call(self, call: Call) -> None:
        begun = perf_counter()
        use = replace(self._toolbox.definitions.meant(call.use), name=call.shown)
        self._tell(CallStarted(use))
        outcome = await self._outcome(call, use)
        told = outcome.result
        api = self._api
        call.block = api.failure(call.use, outcome.text) if told is None else api.result(call.use, told)
        call.state = "answered"
        self._outcomes.append(outcome)
        self._changed()
        self._tell(CallEnded(use, outcome, perf_counter() - begun))

    async def _outcome(self, call: Call, use: ToolUse) -> Outcome:
        if self._toolbox.finds(use.name):
            return self._toolbox.search(use)
        if call.state == "sent" and not self._repeatable(use.name):
            return Outcome(use, "host", _UNKNOWN)

        def sending() -> None:
            call.state = "sent"
            self._changed()

        call.state = "started"
        return await self._caller.answer(use, sending=sending)

    def _repeatable(self, name: str) -> bool:
        """Whether the tool says that it does no more when it is called twice."""
        tool = self._toolbox.tool(name)
        hints = UNSET if tool is None else tool.annotations
        if hints is UNSET:
            return False
        return hints.read_only_hint is True or hints.idempotent_hint is True

    # Budgets ----------------------------------------------------------------------------------------

    def _spent(self) -> tuple[End, str] | None:
        """Which limit has been reached."""
        limits, usage, prices = self._options.limits, self._usage, self._model.prices
        if limits.rounds is not None and self._rounds >= limits.rounds:
            return "rounds", f"the limit of {limits.rounds} requests to the model is reached"
        tokens = usage.input + usage.output
        if limits.tokens is not None and tokens >= limits.tokens:
            return "tokens", f"{tokens} tokens were used, of {limits.tokens}"
        if limits.cost is not None and prices is not None and (cost := prices.cost(usage)) >= limits.cost:
            return "cost", f"{cost:.4f} was spent, of {limits.cost:g}"
        return None

    def _limit(self) -> int | None:
        tokens, limit = self._options.limits.tokens, self._model.limit
        if tokens is None:
            return limit
        left = max(1, tokens - self._usage.input - self._usage.output)
        return left if limit is None else min(limit, left)

    def _count(self, message: Mapping[str, Any], request: ModelRequest) -> None:
        usage = self._api.usage(message)
        if not usage.input and not usage.output:  # many local servers do not count
            asked = msgspec.json.encode([request.history, request.tools.blocks, request.system or ""])
            said = msgspec.json.encode(self._api.said(message))
            usage = Usage(estimate(asked.decode()), estimate(said.decode()))
        self._last = usage
        self._usage = _sum(self._usage, usage)
        state = self.state
        total = _sum(state.usage, usage)
        state.input, state.output, state.cached = total.input, total.output, total.cached
        if self._model.prices is not None:
            state.cost += self._model.prices.cost(usage)

    # Telling ----------------------------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        self._queue.put_nowait(event)

    def _changed(self) -> None:
        if self._options.save is not None:
            self._options.save(self.state)


def _state(options: RunOptions, model: AnyModel) -> RunState:
    if options.state is None:
        return RunState(api=model.speaks.name, model=model.name, system=options.system)
    state = RunState.read(options.state.dump())  # a copy: the caller's stays as it is
    state.model = model.name
    if options.system is not None:
        state.system = options.system
    return state


def _call(use: ToolUse, shown: str) -> Call:
    return Call(
        id=use.id, name=use.name, arguments=dict(use.arguments), shown=shown, raw=use.raw, fault=use.fault
    )


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(one.input + other.input, one.output + other.output, one.cached + other.cached)


def started(caller: Caller, prompt: str | None, *, model: str | AnyModel, options: RunKeywords) -> Run:
    """A run as `Host.run` has it; nothing happens before somebody goes through it or awaits it."""
    return Run(caller, prompt, model=model_of(model), options=RunOptions.of(options))
