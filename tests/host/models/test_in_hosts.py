"""Conversions in a host at work: names that an API does not take, and schemas to which it holds a model."""

from __future__ import annotations

from contextlib import nullcontext

from dragoman.host import ToolUse
from dragoman.host.models import CHAT
from tests.host.loop.servers import calls, name, shop
from tests.host.places import Place


class Speaks:
    """A model at Chat Completions that says these messages."""

    name, speaks, limit, prices = "m", CHAT, None, None

    def __init__(self, *messages):
        self.messages = [*messages]
        self.requests = []

    def open(self):
        return nullcontext(self)

    async def answer(self, request, hear):
        self.requests.append(request)
        message, reason = self.messages.pop(0)
        return {"id": "c", "choices": [{"index": 0, "finish_reason": reason, "message": message}]}


async def test_null_for_an_optional_argument_does_not_reach_the_server(tmp_path):
    arguments = '{"item": "apple", "count": null}'
    call = {"id": "call_1", "type": "function", "function": {"name": name("buy"), "arguments": arguments}}
    model = Speaks(
        ({"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"),
        ({"role": "assistant", "content": "Bought."}, "stop"),
    )
    async with shop(tmp_path) as host:
        result = await host.run("an apple", model=model, strict=True)
    assert (result.text, calls(tmp_path)) == ("Bought.", ["buy apple 1"])
    (buy,) = [
        block["function"]
        for block in model.requests[0].tools.blocks
        if block["function"]["name"] == name("buy")
    ]
    assert buy["strict"] is True
    assert buy["parameters"]["required"] == ["item", "count"]
    assert result.state.history[1]["tool_calls"] == [call]  # as the model wrote it


async def test_a_name_that_the_api_does_not_take_is_answered_under_the_one_it_was_given(tmp_path):
    place = Place(tmp_path)
    long = "a-server-with-a-name-that-is-itself-nearly-as-long-as-a-tool-s-name-may-be"
    place.write("home/.continue/mcpServers/one.json", {"mcpServers": {long: place.entry}})
    async with place.host("continue", trusted=True, ask=lambda question: True) as host:
        shown = [item.name for item in await host.shown()]
        blocks = await host.tools()
        uses = [{"type": "tool_use", "id": "1", "name": block["name"], "input": {}} for block in blocks]
        assert min(map(len, shown)) > 64 >= max(len(use["name"]) for use in uses)
        assert [host.judged(use).name.model for use in uses] == shown
        assert [host.judged(ToolUse("1", name, {})).name.model for name in shown] == shown
