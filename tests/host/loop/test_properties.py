"""Whenever a run is stopped, and however often: no call is made twice, and each has exactly one answer."""

from __future__ import annotations

import asyncio
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.client import ToolResult
from dragoman.host import Limits, Outcome, RunState, Says, ScriptedModel, Shown
from dragoman.host.loop.events import Ended
from dragoman.host.loop.run import started
from dragoman.model import TextContent, Tool

WORK = Tool(name="work", input_schema={"type": "object"})


class Workshop:
    """A host in memory: each call takes some turns of the loop before it goes out, and some after."""

    trace = None
    instructions = {}

    def __init__(self, delays: list[int]) -> None:
        self.delays = itertools.cycle(delays)
        self.sent: list[str] = []

    async def shown(self, *, defer=False):
        return [Shown("work", WORK)]

    async def answer(self, use, *, sending=None):
        for _ in range(next(self.delays)):
            await asyncio.sleep(0)
        sending()
        self.sent.append(use.id)
        for _ in range(next(self.delays)):
            await asyncio.sleep(0)
        return Outcome(use, "server", result=ToolResult(content=[TextContent(text=f"done {use.id}")]))


messages = st.lists(st.integers(0, 3), min_size=1, max_size=4)
delays = st.lists(st.integers(0, 4), min_size=1, max_size=7)
stops = st.lists(st.integers(0, 12), max_size=8)


@settings(max_examples=200, deadline=None)
@given(messages, delays, stops, st.integers(1, 3))
def test_stopped_anywhere_and_gone_on_with(messages, delays, stops, rounds):
    asyncio.run(check(messages, delays, stops, rounds))


async def check(messages, delays, stops, rounds):
    script = [Says(f"message {number}", [("work", {})] * calls) for number, calls in enumerate(messages)]
    # A message without calls is the last one that is said.
    ends = next((number for number, calls in enumerate(messages) if calls == 0), len(messages))
    model = ScriptedModel([*script[:ends], "the end"])
    shop = Workshop(delays)
    state, prompt = None, "go"
    for stop in [*stops, *[None] * 20]:
        run = started(shop, prompt, model=model, options={"state": state, "limits": Limits(rounds=rounds)})
        seen = 0
        async for event in run:
            seen += 1
            if seen == stop:
                run.stop()
            if isinstance(event, Ended):
                result = event.result
        state, prompt = RunState.read(run.state.dump()), None
        if result.done:
            break
    assert result.text == "the end"
    assert len(shop.sent) == len(set(shop.sent))
    assert sorted(shop.sent) == sorted(wanted(state))
    assert answered(state) == wanted(state)


def wanted(state: RunState) -> list[str]:
    return [
        block["id"]
        for item in state.history
        if item["role"] == "assistant"
        for block in item["content"]
        if block["type"] == "tool_use"
    ]


def answered(state: RunState) -> list[str]:
    """Ids of answers, which stand in the message right behind the one with the calls, in its order."""
    found = []
    for item, following in itertools.pairwise(state.history):
        uses = [block for block in item["content"] if isinstance(block, dict) and block["type"] == "tool_use"]
        if item["role"] == "assistant" and uses:
            found += [block["tool_use_id"] for block in following["content"]]
    return found
