"""The server of the contract: every feature once, each handler written once for all revisions.

    python -m tests.contract.server          # stdio
    python -m tests.contract.server http     # a free port of 127.0.0.1, named on stderr

What a call leaves behind goes by a `key` that its test makes up, so that tests do not meet.
"""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from dragoman import (
    Annotations,
    Audio,
    CallToolResult,
    Context,
    Depends,
    EmbeddedResource,
    File,
    Icon,
    Image,
    InputRequiredResult,
    Message,
    Refusal,
    ResourceLink,
    ResourceNotFound,
    Server,
    Tasks,
    TextContent,
    ToolError,
)
from dragoman.model import (
    ElicitFormParams,
    ElicitRequest,
    SamplingMessage,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from dragoman.protocol.call import Call
from dragoman.stores import MemoryStore

USERS = {"Bearer ada": "ada", "Bearer bob": "bob"}
ICON = Icon(src="https://example.com/icon.png", mime_type="image/png", sizes=["48x48"])
SAID = Annotations(audience=["user"], priority=0.5, last_modified="2026-07-28T12:00:00Z")
PNG = b"\x89PNG\r\n\x1a\n"


@asynccontextmanager
async def life(server: Server) -> AsyncIterator[dict[str, str]]:
    yield {"of": server.name}


def visible(entry: Any, principal: str | None, tags: frozenset[str]) -> bool:
    return "admin" not in tags or principal == "ada"


server = Server(
    "contract",
    version="2.1.0",
    title="The contract",
    description="Every feature once",
    website_url="https://example.com/contract",
    icons=[ICON],
    instructions="Ask before you book.",
    page_size=7,
    ttl_ms=60_000,
    caching={"prompts/list": {"ttl_ms": 5_000}},
    secret="the secret of the contract suite",
    extensions=[Tasks(MemoryStore(), poll=0.02)],
    lifespan=life,
    visible=visible,
    progress_rate=10_000,
)


class Notes:
    """What handlers did, by key."""

    def __init__(self) -> None:
        self.of: dict[str, list[str]] = defaultdict(list)
        self._more = asyncio.Event()

    def add(self, key: str, note: str) -> None:
        self.of[key].append(note)
        self._more.set()

    async def at_least(self, key: str, count: int) -> list[str]:
        while len(self.of[key]) < count:
            self._more.clear()
            await self._more.wait()
        return self.of[key]


notes = Notes()


@server.tool
async def noted(key: str, count: int = 0) -> list[str]:
    """What was noted under a key, once it is `count` notes."""
    return await notes.at_least(key, count)


@server.middleware("tools/call")
async def around(call: Call, proceed: Any) -> Any:
    result = await proceed(call)
    if call.params.name == "through":
        result.content.append(TextContent(text="and back"))
    return result


# Tools: what comes in, what goes out -----------------------------------------------------------------


@dataclass
class Order:
    order_id: str
    amount: float
    note: str | None = None


@server.tool(
    title="Look an order up",
    annotations=ToolAnnotations(title="Look up", read_only_hint=True),
    icons=[ICON],
    meta={"example.com/team": "orders"},
)
async def lookup(order_id: Annotated[str, Meta(pattern=r"^[A-Z]-\d{4}$")], amount: float = 1.5) -> Order:
    """Find an order."""
    return Order(order_id, amount)


@server.tool
async def add(a: int, b: int) -> int:
    return a + b


@server.tool
def add_in_thread(a: int, b: int) -> int:
    return a + b


@server.tool(inline=True)
def add_inline(a: int, b: int) -> int:
    return a + b


@server.tool
async def say(text: str) -> str:
    return text


@server.tool
async def nothing() -> None:
    return None


@server.tool
async def data():
    return {"a": [1, None, True]}


@server.tool
async def listed() -> CallToolResult:
    """A whole result, whose structured content is no object."""
    return CallToolResult(content=[TextContent(text="[1,2]")], structured_content=[1, 2])


@server.tool
async def whole() -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text="done")], structured_content={"done": True}, meta={"example.com/a": 1}
    )


@server.tool
async def picture() -> Image:
    return Image(PNG, annotations=SAID)


@server.tool
async def sound() -> Audio:
    return Audio(b"RIFF")


@server.tool
async def file() -> File:
    return File(b"\x00\x01", format="application/x-thing")


@server.tool
async def link() -> ResourceLink:
    return ResourceLink(
        uri="notes://text", name="text", title="Text", mime_type="text/plain", size=5, icons=[ICON]
    )


@server.tool
async def embedded() -> EmbeddedResource:
    contents = TextResourceContents(uri="notes://text", text="hello", meta={"example.com/a": 1})
    return EmbeddedResource(resource=contents, annotations=SAID, meta={"example.com/b": 2})


@server.tool
async def mixed() -> list[TextContent | Image]:
    return [TextContent(text="look:", annotations=SAID, meta={"example.com/a": 1}), Image(PNG)]


@server.tool
async def through() -> list[TextContent]:
    return [TextContent(text="there")]


@server.tool
async def fail(text: str) -> str:
    raise ToolError(text)


@server.tool
async def crash() -> str:
    raise ValueError("the shelf is empty")


@server.tool
async def refuse() -> str:
    raise Refusal(4001, "not on Sundays", {"day": "Sunday"})


@server.tool(timeout=0.02)
async def slow() -> str:
    await asyncio.Event().wait()
    return "never"


@server.tool
async def broken() -> Order:
    """Does not return what it promises."""
    return {"order_id": 7}  # type: ignore[return-value]  # on purpose


# The call itself -------------------------------------------------------------------------------------


@server.tool
async def facts(ctx: Context):
    """What a handler knows of its call."""
    return {
        "request_id": ctx.request_id,
        "revision": ctx.revision,
        "client": None if ctx.client_info is None else ctx.client_info.name,
        "elicitation": ctx.client_capabilities.elicitation or {},
        "principal": ctx.principal,
        "lifespan": ctx.lifespan,
        "meta": ctx.meta.get("example.com/trace"),
        "by_http": "host" in ctx.headers,
    }


@server.tool
async def steps(ctx: Context, count: int = 3) -> str:
    for step in range(1, count + 1):
        await ctx.report_progress(step, count, f"step {step}")
        await ctx.report_progress(step, count, "does not rise")
    return "done"


@server.tool
def steps_in_thread(ctx: Context) -> str:
    for step in range(3):
        ctx.report_progress(step / 2)
    return "done"


@server.tool
async def logs(ctx: Context) -> str:
    await ctx.debug("a detail")
    await ctx.info({"rows": 3}, logger="shop")
    ctx.warning("low stock")
    await ctx.error("gone")
    return "logged"


@server.tool
async def wait(key: str, ctx: Context) -> str:
    """Reports that it began, and ends only when it is cancelled."""
    await ctx.report_progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        notes.add(key, "cancelled")
        raise
    return "never"


# Asking ----------------------------------------------------------------------------------------------


@dataclass
class Trip:
    day: Literal["saturday", "sunday"]
    seats: Annotated[int, Meta(ge=1, le=8, description="How many")] = 2
    window: bool = False
    comment: Annotated[str, Meta(max_length=20)] | None = None


@server.tool
async def confirm(question: str, ctx: Context) -> str:
    answer = await ctx.elicit(question, bool, key="sure")
    return f"{answer.action} {answer.data}"


@server.tool
async def trip(ctx: Context) -> str:
    answer = await ctx.elicit("When?", Trip)
    if not answer:
        return answer.action
    return f"{answer.data.day} {answer.data.seats} {answer.data.window}"


CHOICE = {
    "type": "object",
    "properties": {
        "size": {
            "type": "string",
            "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}],
            "default": "s",
        },
        "extras": {"type": "array", "items": {"type": "string", "enum": ["lamp", "bulb"]}},
    },
    "required": ["size"],
}


@server.tool
async def choose(ctx: Context):
    """A form written by hand, with titled choices and several at once."""
    return (await ctx.elicit("Which?", CHOICE)).data


@server.tool
async def page(ctx: Context) -> str:
    return (await ctx.elicit_url("Sign in", "https://example.com/sign-in")).action


@server.tool
async def think(ctx: Context) -> str:
    said = await ctx.sample(
        [SamplingMessage(role="user", content=TextContent(text="Hello", annotations=SAID))],
        system_prompt="Be brief",
        max_tokens=10,
        temperature=0.5,
    )
    return f"{said.model}: {said.content.text}"


@server.tool
async def think_with_tools(ctx: Context) -> str:
    tools = [Tool(name="look", input_schema={"type": "object"})]
    return (await ctx.sample("Hello", tools=tools)).model


@server.tool
async def where(ctx: Context) -> list[str]:
    return [root.uri for root in await ctx.list_roots()]


@server.tool
async def at_once(ctx: Context) -> str:
    """Three questions at once."""
    sure, said, roots = await ctx.gather(
        ctx.elicit("Sure?", bool, key="sure"), ctx.sample("Hello", key="said"), ctx.list_roots(key="roots")
    )
    return f"{sure.data} {said.model} {len(roots)}"


@server.tool
async def book(key: str, ctx: Context) -> str:
    """Two questions, one after the other, with an effect before each that must not be repeated."""
    charge = await ctx.step("charge", note, key, "charged")
    first = await ctx.elicit("First?", bool)
    await ctx.step("ship", note, key, "shipped")
    second = await ctx.elicit("Second?", bool)
    return f"{charge} {first.data} {second.data}"


async def note(key: str, what: str) -> int:
    notes.add(key, what)
    return len(notes.of[key])


@server.tool
async def raw(ctx: Context) -> str | InputRequiredResult:
    """The form that 2026-07-28 has on the wire, written by hand."""
    if ctx.request_state is None:
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        asked = ElicitRequest(params=ElicitFormParams(message="Who?", requested_schema=form))
        return InputRequiredResult(input_requests={"who": asked}, request_state="one")
    return f"{ctx.request_state}: {ctx.input_responses['who']['content']['name']}"


# Resources -------------------------------------------------------------------------------------------


@server.resource(
    "notes://text",
    title="A text",
    mime_type="text/plain",
    annotations=SAID,
    icons=[ICON],
    size=5,
    meta={"example.com/a": 1},
    ttl_ms=1_000,
    cache_scope="public",
)
async def text() -> str:
    """Text."""
    return "hello"


server.add_resource("notes://bytes", b"\x00\x01", mime_type="application/x-thing")
server.add_resource("notes://source", Path(__file__), mime_type="text/x-python")
for number in range(8):
    server.add_resource(f"notes://page/{number}", str(number))


@server.resource("notes://json")
def as_json() -> dict[str, int]:
    return {"rows": 3}


@server.resource("notes://several")
async def several() -> list[TextResourceContents]:
    return [
        TextResourceContents(uri="notes://several/a", text="a"),
        TextResourceContents(uri="notes://several/b", text="b", meta={"example.com/a": 1}),
    ]


@server.resource("notes://broken")
async def broken_resource() -> str:
    raise ValueError("the shelf is empty")


@server.resource("notes://asked")
async def asked_resource(ctx: Context) -> str:
    return f"for {(await ctx.elicit('Who?', str)).data}"


@server.resource("notes://admin", tags=["admin"])
async def admin_resource() -> str:
    return "for ada"


@server.resource(
    "orders://{order_id}{?fields}", title="An order", icons=[ICON], complete={"order_id": ["A-1", "A-2"]}
)
async def order(order_id: str, fields: Literal["all", "few"] = "all") -> dict[str, str]:
    if order_id == "A-0":
        raise ResourceNotFound(f"there is no order {order_id}")
    return {"order_id": order_id, "fields": fields}


@server.tool
async def read(uri: str, ctx: Context) -> str:
    return str((await ctx.read_resource(uri))[0].text)


# Prompts and completion ------------------------------------------------------------------------------


@server.prompt(title="Review code", icons=[ICON], meta={"example.com/a": 1})
async def review(
    code: Annotated[str, Meta(title="The code")],
    language: Literal["python", "rust"] = "python",
    lines: int = 3,
) -> list[Message]:
    """Ask for a review."""
    return [Message(f"{language} {lines + 1}: {code}"), Message("Gladly.", role="assistant")]


@server.prompt
async def rich() -> list[Message]:
    return [
        Message(Image(PNG)),
        Message(Audio(b"RIFF")),
        Message(TextResourceContents(uri="notes://text", text="hello")),
        Message(ResourceLink(uri="notes://text", name="text", icons=[ICON])),
        Message(TextContent(text="noted", annotations=SAID, meta={"example.com/a": 1})),
    ]


@server.prompt
async def asked_prompt(ctx: Context) -> str:
    return f"for {(await ctx.elicit('Who?', str)).data}"


@server.prompt
async def broken_prompt() -> str:
    raise ValueError("the shelf is empty")


@server.prompt(tags=["admin"])
async def admin_prompt() -> str:
    return "for ada"


@server.completion("review", "code")
async def codes(typed: str, settled: Mapping[str, str], ctx: Context) -> list[str]:
    if typed == "many":
        return [str(number) for number in range(150)]
    return [f"{typed} in {settled.get('language', 'any')} on {ctx.revision}"]


# Change at run time ----------------------------------------------------------------------------------


@server.tool
async def change(kind: Literal["tools", "prompts", "resources"], name: str) -> str:
    """Add a tool, prompt or resource, and take it away again."""

    async def made() -> str:
        return name

    if kind == "tools":
        server.add_tool(made, name=name)
        server.remove_tool(name)
    elif kind == "prompts":
        server.add_prompt(made, name=name)
        server.remove_prompt(name)
    else:
        server.add_resource(f"made://{name}", made, name=name)
        server.remove_resource(f"made://{name}")
    return "changed"


@server.tool
async def update(uri: str) -> str:
    server.notify_resource_updated(uri)
    return "told"


# What surrounds a handler ----------------------------------------------------------------------------


async def opened(ctx: Context) -> AsyncIterator[str]:
    key = str(ctx.meta.get("example.com/key"))
    notes.add(key, "opened")
    try:
        yield key
    finally:
        notes.add(key, "closed")


Opened = Annotated[str, Depends(opened)]


def twice(key: Opened) -> str:
    return f"{key} {key}"


@server.tool
async def supplied(text: str, key: Opened, both: Annotated[str, Depends(twice)]) -> str:
    return f"{text}: {key}, {both}"


@server.tool(tags=["admin"])
async def admin_tool() -> str:
    return "for ada"


@asynccontextmanager
async def inner_life(server: Server) -> AsyncIterator[str]:
    yield "inner"


inner = Server("inner", lifespan=inner_life)


@inner.tool
async def status(ctx: Context) -> str:
    sure = await ctx.elicit("Sure?", bool)
    return f"{ctx.lifespan} {sure.data} {(await ctx.read_resource('inner://text'))[0].text}"


@inner.prompt
async def greet(name: str) -> str:
    return f"Greet {name}"


inner.add_resource("inner://text", "from inside")
server.mount(inner, prefix="inner_")
server.transform("inner_status", name="state", description="How it is inside")


# Tasks -----------------------------------------------------------------------------------------------


@server.tool(task=True)
async def report(key: str, ctx: Context) -> str:
    """Takes long, where the client can wait for it."""
    await ctx.step("collect", note, key, "collected")
    sure = await ctx.elicit("Print?", bool)
    return f"printed {sure.data}"


@server.tool(task="required")
async def only_task() -> str:
    return "in a task"


def authenticate(headers: Mapping[str, str]) -> str | None:
    return USERS.get(headers.get("authorization", ""))


if __name__ == "__main__":
    # The module is imported by its own name, so that there is one of it.
    from tests.contract.server import server as served

    if sys.argv[1:] == ["http"]:
        served.run("http", port=0, authenticate=authenticate)
    else:
        served.run()
