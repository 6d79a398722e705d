"""A run of the loop through a provider's own client. Runs with the peer `providers` on its path.

Takes the API and the URL of a server; prints what came of it, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

import anthropic
import openai

from dragoman.client import ToolResult
from dragoman.errors import DragomanError
from dragoman.host import Model, Outcome, Shown
from dragoman.host.loop.run import started
from dragoman.host.models.base import TextDelta
from dragoman.model import TextContent, Tool

PRICE = Tool(
    name="price",
    description="What an item costs.",
    input_schema={"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
)


class Shop:
    trace = None
    instructions = {}

    def __init__(self):
        self.calls = []

    async def shown(self, *, defer=False):
        return [Shown("price", PRICE)]

    async def answer(self, use, *, sending=None):
        self.calls.append([use.name, dict(use.arguments)])
        return Outcome(use, "server", result=ToolResult(content=[TextContent(text="3")]))


def client(api, url, kind):
    if api == "anthropic-messages":
        made = anthropic.Anthropic if kind == "sync" else anthropic.AsyncAnthropic
        return made(base_url=url, api_key="sk-secret-0123456789", max_retries=0)
    made = openai.OpenAI if kind == "sync" else openai.AsyncOpenAI
    return made(base_url=f"{url}/v1", api_key="sk-secret-0123456789", max_retries=0)


async def main(api, url, kind):
    shop = Shop()
    more = {} if kind == "sync" else {"extra_member": 1}
    model = Model(api=api, model="m-1", client=client(api, url, kind), stream=kind != "whole", more=more)
    texts = []
    try:
        run = started(shop, "how much?", model=model, options={"system": "Be brief."})
        async for event in run:
            if isinstance(event, TextDelta):
                texts.append(event.text)  # noqa: PERF401 - those before an error count too
        result = await run
    except DragomanError as exc:
        return {"error": type(exc).__name__, "text": str(exc), "status": getattr(exc, "status", None)}
    usage = result.usage
    return {
        "text": result.text,
        "texts": texts,
        "stop": result.stop,
        "calls": shop.calls,
        "usage": [usage.input, usage.output, usage.cached],
        "repr": repr(model),
    }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
