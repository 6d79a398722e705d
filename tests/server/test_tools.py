"""What a tool's author writes, and what a client then sees of it."""

from __future__ import annotations

import asyncio
import enum
import threading
import traceback
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

from dragoman import (
    Audio,
    Context,
    File,
    Icon,
    Image,
    Meta,
    Refusal,
    ResourceLink,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
    UsageError,
)
from dragoman.model import CallToolResult
from tests.drivers.stdio import initialize
from tests.server.pair import Pair, text

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
ALL = [*HANDSHAKES, "2026-07-28"]
STRUCTURED = ["2025-06-18", "2025-11-25", "2026-07-28"]


@dataclass
class Item:
    sku: str
    count: int = 1


@dataclass
class Order:
    id: str
    items: list[Item] = field(default_factory=list)
    parent: Order | None = None


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(TypedDict):
    x: float
    y: float


@pytest.mark.parametrize("revision", ALL)
async def test_a_function_becomes_a_tool_on_every_revision(revision: str) -> None:
    server = Server("s", version="1")

    @server.tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers.

        Args:
            a: the first one
        """
        return a + b

    async with Pair(server, revision) as pair:
        (tool,) = (await pair.ask("tools/list"))["result"]["tools"]
        assert tool["name"] == "add"
        assert tool["description"] == "Add two numbers."
        assert tool["inputSchema"]["properties"]["a"] == {"type": "integer", "description": "the first one"}
        assert tool["inputSchema"]["properties"]["b"]["default"] == 2
        assert tool["inputSchema"]["required"] == ["a"]
        result = await pair.call("add", a=1)
        assert text(result) == "3"
        assert ("structuredContent" in result) == (revision in STRUCTURED)
        assert ("outputSchema" in tool) == (revision in STRUCTURED)


async def test_the_function_itself_stays_as_it_is() -> None:
    server = Server("s")

    @server.tool
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8


@pytest.mark.parametrize(
    ("value", "annotation", "structured", "shown"),
    [
        (7, int, {"result": 7}, "7"),
        (15.0, float, {"result": 15.0}, "15.0"),
        ("plain", str, {"result": "plain"}, "plain"),
        ('{"a":1}', str, {"result": '{"a":1}'}, '{"a":1}'),
        (True, bool, {"result": True}, "true"),
        ([1, 2], list[int], {"result": [1, 2]}, "[1,2]"),
        (None, Optional[int], {"result": None}, "null"),
        ({"k": 1}, dict[str, int], {"k": 1}, '{"k":1}'),
        ({"x": 1.0, "y": 2.0}, Point, {"x": 1.0, "y": 2.0}, '{"x":1.0,"y":2.0}'),
        (Item("a"), Item, {"sku": "a", "count": 1}, '{"sku":"a","count":1}'),
        (Colour.RED, Colour, {"result": "red"}, "red"),
    ],
)
async def test_a_return_annotation_is_a_promise_of_structure(
    value: Any, annotation: Any, structured: Any, shown: str
) -> None:
    server = Server("s")

    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    server.add_tool(give)
    async with Pair(server) as pair:
        result = await pair.call("give")
        assert result["structuredContent"] == structured
        assert text(result) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [("words", "words"), ({"a": [1]}, '{"a":[1]}'), (5, "5"), (["a", "b"], '["a","b"]'), ([], "[]")],
)
async def test_without_an_annotation_there_is_text_alone(value: Any, shown: str) -> None:
    server = Server("s")

    @server.tool
    def give():  # the missing annotation is the case
        return value

    async with Pair(server) as pair:
        (tool,) = (await pair.ask("tools/list"))["result"]["tools"]
        assert "outputSchema" not in tool
        result = await pair.call("give")
        assert "structuredContent" not in result
        assert text(result) == shown


async def test_a_tool_that_returns_nothing_has_no_content() -> None:
    server = Server("s")

    @server.tool
    def quiet() -> None: ...

    async with Pair(server) as pair:
        assert (await pair.call("quiet"))["content"] == []


@pytest.mark.parametrize("revision", ALL)
async def test_all_kinds_of_content(revision: str) -> None:
    server = Server("s")

    @server.tool
    def everything() -> list[Any]:
        link = ResourceLink(uri="file:///a.txt", name="a")
        return ["words", Image(b"\x89PNG"), Audio(b"RIFF"), File(b"%PDF", format="pdf"), link]

    async with Pair(server, revision) as pair:
        result = await pair.call("everything")
        kinds = [block["type"] for block in result["content"]]
        audio = "text" if revision == "2024-11-05" else "audio"
        link = "resource_link" if revision in STRUCTURED else "text"
        assert kinds == ["text", "image", audio, "resource", link]
        assert result["content"][1] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
        assert result["content"][3]["resource"]["mimeType"] == "application/pdf"


async def test_a_whole_result_passes_through() -> None:
    server = Server("s")

    @server.tool
    def whole() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="x")], structured_content=[1, 2], meta={"k": "v"})

    async with Pair(server) as pair:
        result = await pair.call("whole")
        assert result["structuredContent"] == [1, 2]
        assert result["_meta"]["k"] == "v"
    async with Pair(server, "2025-11-25") as pair:  # where structured content is an object
        assert "structuredContent" not in await pair.call("whole")


async def test_what_a_list_shows_of_a_tool() -> None:
    server = Server("s")
    server.add_tool(
        lambda: None,
        name="shown",
        title="Shown",
        description="As told.",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon(src="https://example.com/i.png")],
        meta={"com.example/k": 1},
    )
    server.add_tool(lambda: None, name="hinted", annotations={"destructiveHint": False})
    async with Pair(server) as pair:
        shown, hinted = (await pair.ask("tools/list"))["result"]["tools"]
        assert shown == {
            "name": "shown",
            "title": "Shown",
            "description": "As told.",
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
            "annotations": {"readOnlyHint": True},
            "icons": [{"src": "https://example.com/i.png"}],
            "_meta": {"com.example/k": 1},
        }
        assert hinted["annotations"] == {"destructiveHint": False}


# Errors ------------------------------------------------------------------------------------------


async def test_an_unknown_tool_is_a_protocol_error() -> None:
    async with Pair(Server("s")) as pair:
        error = (await pair.ask("tools/call", {"name": "nope"}))["error"]
        assert (error["code"], error["message"]) == (-32602, "Unknown tool: nope")


@pytest.mark.parametrize("revision", ALL)
async def test_arguments_that_do_not_fit_are_a_result_to_act_on(revision: str) -> None:
    server = Server("s")

    @server.tool("build-app")
    def build_app(arch: Literal["arm64", "x86_64"]) -> str:
        return arch

    async with Pair(server, revision) as pair:
        result = await pair.call("build-app", arch="ARM")
        assert result["isError"] is True
        for word in ("arch", "arm64", "x86_64", '"ARM"'):
            assert word in text(result)


async def test_arguments_that_do_not_fit_as_a_protocol_error_when_asked_for() -> None:
    server = Server("s", argument_errors="protocol")

    @server.tool
    def f(n: int) -> int:
        return n

    async with Pair(server) as pair:
        error = (await pair.ask("tools/call", {"name": "f", "arguments": {"n": "x"}}))["error"]
        assert error["code"] == -32602
        assert error["data"] == {"field": "n", "expected": "an integer", "received": '"x"'}


@pytest.mark.parametrize(
    ("exception", "shown"),
    [
        (ToolError("no such order: A-1"), "no such order: A-1"),
        (ValueError("bad amount"), "bad amount"),
        (RuntimeError(), "RuntimeError"),
        (KeyError("k"), "KeyError: 'k'"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_what_a_tool_raises_is_its_answer(exception: Exception, shown: str, kind: str) -> None:
    server = Server("s")

    def plain() -> str:
        raise exception

    async def deferred() -> str:
        raise exception

    server.add_tool(plain if kind == "plain" else deferred, name="f")
    async with Pair(server) as pair:
        result = await pair.call("f")
        assert result["isError"] is True
        assert text(result) == shown


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_the_log_shows_the_authors_part_of_a_traceback(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("s")

    def plain() -> str:
        raise ValueError("bad amount")

    async def deferred() -> str:
        return plain()

    server.add_tool(plain if kind == "plain" else deferred, name="f")
    async with Pair(server) as pair:
        await pair.call("f")
    (record,) = caplog.records
    assert record.message == "tool f raised"
    assert record.exc_info is not None
    names = [frame.name for frame in traceback.extract_tb(record.exc_info[2])]
    assert names == (["plain"] if kind == "plain" else ["deferred", "plain"])


async def test_where_the_author_has_no_part_the_log_shows_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("s")

    @server.tool
    def picture() -> Image:
        return Image(path="no-such-file.png")

    async with Pair(server) as pair:
        assert "no-such-file.png" in text(await pair.call("picture"))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[2] is not None


async def test_a_refusal_is_a_protocol_error() -> None:
    server = Server("s")

    @server.tool
    async def needs(ctx: Context) -> str:
        ctx.require("sampling")
        return "has it"

    @server.tool
    def refuses() -> str:
        raise Refusal(1, "mine", {"k": 1})

    async with Pair(server) as pair:
        error = (await pair.ask("tools/call", {"name": "needs"}))["error"]
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": {"sampling": {}}}
        assert (await pair.ask("tools/call", {"name": "refuses"}))["error"] == {
            "code": 1,
            "message": "mine",
            "data": {"k": 1},
        }


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (float("nan"), float),
        ({"deep": [float("inf")]}, dict[str, Any]),
        (object(), Any),
        ("words", int),
        ({"x": 1.0}, Point),
    ],
)
async def test_what_cannot_be_sent_is_an_error_that_says_so(value: Any, annotation: Any) -> None:
    server = Server("s")

    def give() -> Any:
        return value

    give.__annotations__["return"] = annotation
    server.add_tool(give)
    async with Pair(server) as pair:
        result = await pair.call("give")
        assert result["isError"] is True
        assert "structuredContent" not in result


async def test_a_value_inside_itself_is_an_error_that_says_so() -> None:
    server = Server("s")

    @server.tool
    def loop() -> list[Any]:
        items: list[Any] = []
        items.append(items)
        return items

    async with Pair(server) as pair:
        assert (await pair.call("loop"))["isError"] is True


async def test_a_time_limit_ends_the_call_and_stops_the_work() -> None:
    server = Server("s")
    stopped = asyncio.Event()

    @server.tool(timeout=0.01)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    @server.tool(timeout=5)
    async def own() -> str:
        raise TimeoutError("the database did not answer")

    async with Pair(server) as pair:
        assert text(await pair.call("slow")) == "slow did not finish within 0.01 s"
        assert stopped.is_set()
        assert text(await pair.call("own")) == "the database did not answer"


@pytest.mark.parametrize(
    "misuse",
    [
        lambda s: s.add_tool(lambda *args: None, name="x"),
        lambda s: s.add_tool(lambda: None),
        lambda s: [s.add_tool(lambda: None, name="x"), s.add_tool(lambda: None, name="x")],
        lambda s: s.remove_tool("x"),
        lambda s: s.add_tool(lambda: None, name="x", annotations={"readOnlyHint": "yes"}),
        lambda s: Server(""),
        lambda s: Server("s", page_size=0),
        lambda s: Server("s", ttl_ms=-1),
        lambda s: Server("s", argument_errors="loud"),
        lambda s: s.run("carrier pigeon"),
    ],
)
def test_misuse_is_told_when_it_happens(misuse: Any) -> None:
    with pytest.raises(UsageError):
        misuse(Server("s"))


@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (lambda s: Server("s", verison="2"), r"Server\(\) has no option 'verison': did you mean 'version'"),
        (lambda s: Server("s", zzz=1), r"has no option 'zzz'; it has argument_errors, "),
        (lambda s: s.tool(nmae="x")(lambda: None), "a tool has no option 'nmae': did you mean 'name'"),
        (lambda s: s.prompt(titel="x")(lambda: ""), "a prompt has no option 'titel': did you mean 'title'"),
        (
            lambda s: s.resource("a:b", sise=1)(lambda: ""),
            "a resource has no option 'sise': did you mean 'size'",
        ),
        (lambda s: s.resource("a:{b}", nmae="x")(lambda b: b), "a resource has no option 'nmae'"),
        (
            lambda s: s.tool(name="x", annotations={"readonlyHint": True})(lambda: None),
            "annotations has no hint 'readonlyHint': did you mean 'readOnlyHint'",
        ),
        (
            lambda s: s.asgi(allowed_host=["a"]),
            "HTTP has no option 'allowed_host': did you mean 'allowed_hosts'",
        ),
        (lambda s: s.run("http", max_bdoy=1), "HTTP has no option 'max_bdoy': did you mean 'max_body'"),
        (lambda s: Image("chart.png"), r"data: expected bytes, received str\n  try: Image\(path=...\)"),
        (
            lambda s: s.tool(Thing.method),
            r"method\(\) is a method of a class.*\n.*server.add_tool\(thing.method\)",
        ),
        (lambda s: s.tool(yielding), r"yielding\(\) yields: a tool has one result"),
        (lambda s: s.tool(yielding_later), r"yielding_later\(\) yields: a tool has one result"),
    ],
)
def test_a_slip_is_told_when_it_happens_and_not_passed_over(misuse: Any, told: str) -> None:
    server = Server("s")
    with pytest.raises(UsageError, match=told):
        misuse(server)
    assert server.tools == ()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("get weather", "' ' in it"),
        ("wetter/österreich", "'/ö' in it"),
        ("x" * 129, "is 129 characters long"),
        ("admin.tools.list", None),
        ("DATA-EXPORT_v2", None),
        ("x" * 128, None),
    ],
)
def test_a_name_that_clients_may_refuse_is_warned_of(
    name: str, told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    Server("s").add_tool(lambda: None, name=name)
    messages = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    if told is None:
        assert messages == []
    else:
        assert len(messages) == 1
        assert told in messages[0]
        assert "1 to 128 of A-Z a-z 0-9 _ - . (server/tools, Tool Names)" in messages[0]


def test_a_name_that_a_prefix_makes_is_looked_at_too(caplog: pytest.LogCaptureFixture) -> None:
    outer, inner = Server("outer"), Server("inner")
    inner.add_tool(lambda: None, name="fine")
    outer.mount(inner, prefix="in side ")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'in side fine'" in caplog.text


class Thing:
    def method(self, a: int) -> int:
        return a


def yielding() -> Any:
    yield 1


async def yielding_later() -> Any:
    yield 1


async def test_the_method_of_an_object_is_a_tool() -> None:
    server = Server("s")
    server.add_tool(Thing().method)
    async with Pair(server) as pair:
        assert text(await pair.call("method", a=3)) == "3"


# Arguments ---------------------------------------------------------------------------------------


async def test_types_that_a_signature_may_have() -> None:
    server = Server("s")

    @server.tool
    def take(
        order: Order,
        colour: Colour,
        ident: Annotated[str, Meta(pattern=r"^[A-Z]-\d{4}$")],
        note: str | None = None,
        tags: frozenset[str] = frozenset(),
    ) -> str:
        assert isinstance(order, Order)
        assert isinstance(order.parent, Order)
        assert order.items[0] == Item("a", 1)
        return f"{colour.name} {ident} {note} {sorted(tags)}"

    nested = {"id": "1", "items": [{"sku": "a"}], "parent": {"id": "0"}}
    async with Pair(server) as pair:
        result = await pair.call("take", order=nested, colour="red", ident="A-1042", tags=["b", "a"])
        assert text(result) == "RED A-1042 None ['a', 'b']"
        refused = await pair.call("take", order={"id": 1}, colour="green", ident="a-1")
        assert refused["isError"] is True
        for word in ("order.id", "colour", "ident"):
            assert word in text(refused)


async def test_text_that_looks_like_json_stays_text() -> None:
    server = Server("s")

    @server.tool
    def kind(value: str) -> str:
        return f"{type(value).__name__} {value}"

    async with Pair(server) as pair:
        for value in ("123", "null", "[1]", '{"a":1}', "true", ""):
            assert text(await pair.call("kind", value=value)) == f"str {value}"


async def test_a_context_is_found_by_its_type_wherever_it_stands() -> None:
    server = Server("s")

    @server.tool
    def first(context: Context, a: int) -> str:
        return f"{context.request_id} {a}"

    @server.tool
    def optional(a: int, c: Context | None = None) -> str:
        assert c is not None
        return f"{c.revision} {c.client_info.name if c.client_info else ''} {a}"

    async with Pair(server) as pair:
        for tool in (await pair.ask("tools/list"))["result"]["tools"]:
            assert list(tool["inputSchema"]["properties"]) == ["a"]
        assert text(await pair.call("first", a=5)) == "2 5"
        assert text(await pair.call("optional", a=6)) == "2026-07-28 test 6"


async def test_a_context_knows_the_request() -> None:
    server = Server("s")
    seen: list[Any] = []

    @server.tool
    def look(ctx: Context) -> None:
        seen.append((ctx.meta, ctx.client_capabilities.sampling, ctx.principal, dict(ctx.headers)))

    async with Pair(server) as pair:
        await pair.ask("tools/call", {"name": "look"}, traceparent="00-1", **{"com.example/x": [1]})
    ((meta, sampling, principal, headers),) = seen
    assert meta["traceparent"] == "00-1"
    assert meta["com.example/x"] == [1]
    assert not sampling
    assert principal is None
    assert headers == {}


async def test_a_schema_written_by_hand_is_published_and_checked() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"$anchor": "n", "type": "integer", "minimum": 3}},
        "required": ["a"],
    }
    server = Server("s")

    @server.tool(input_schema=schema)
    def f(**arguments: Any) -> str:
        return str(arguments)

    async with Pair(server) as pair:
        (tool,) = (await pair.ask("tools/list"))["result"]["tools"]
        assert tool["inputSchema"] == schema
        assert text(await pair.call("f", a=4)) == "{'a': 4}"
        refused = await pair.call("f", a=1)
        assert refused["isError"] is True
        assert "a:" in text(refused)


# Lists -------------------------------------------------------------------------------------------


async def test_pages_and_their_order() -> None:
    server = Server("s", page_size=2, ttl_ms=500, cache_scope="private")
    for name in "edcba":
        server.add_tool(lambda: None, name=name)
    names: list[str] = []
    params: dict[str, Any] = {}
    async with Pair(server) as pair:
        for page in range(3):
            result = (await pair.ask("tools/list", params))["result"]
            assert (result["ttlMs"], result["cacheScope"]) == (500, "private")
            names += [tool["name"] for tool in result["tools"]]
            assert ("nextCursor" in result) == (page < 2)
            params = {"cursor": result.get("nextCursor")}
        assert "".join(names) == "edcba"
        for bad in ("", "x", "YWZ0ZXI6enp6", "é"):
            assert (await pair.ask("tools/list", {"cursor": bad}))["error"]["code"] == -32602


async def test_a_changed_list_is_told_to_those_who_listen_and_to_nobody_else() -> None:
    server = Server("s")
    server.add_tool(lambda: None, name="a")
    async with Pair(server) as listener, Pair(server) as deaf, Pair(server, "2025-11-25") as session:
        wish = {"toolsListChanged": True, "promptsListChanged": True}
        id_ = listener.send("subscriptions/listen", {"notifications": wish})
        await listener.said(1)
        other = deaf.send("subscriptions/listen", {"notifications": {}})
        await deaf.said(1)
        tag = {"io.modelcontextprotocol/subscriptionId": id_}
        assert listener.frames[0]["params"] == {"_meta": tag, "notifications": {"toolsListChanged": True}}
        count = len(session.frames)
        server.add_tool(lambda: None, name="b")
        await listener.said(2)
        await session.said(count + 1)
        assert listener.frames[1] == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": tag},
        }
        assert session.frames[-1]["method"] == "notifications/tools/list_changed"
        assert [t["name"] for t in (await deaf.ask("tools/list"))["result"]["tools"]] == ["a", "b"]
        listener.tell("notifications/cancelled", {"requestId": id_})
        deaf.tell("notifications/cancelled", {"requestId": other})
        assert len(deaf.frames) == 2
        server.remove_tool("b")
        assert len((await listener.ask("tools/list"))["result"]["tools"]) == 1
        assert len(listener.frames) == 3


async def test_those_who_listen_are_told_and_ended_in_the_order_in_which_they_came() -> None:
    server = Server("s")
    async with Pair(server) as pair:
        ids = [
            pair.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            for _ in range(20)
        ]
        await pair.said(20)
        server.add_tool(lambda: None, name="a")
        await pair.said(40)
        key = "io.modelcontextprotocol/subscriptionId"
        assert [frame["params"]["_meta"][key] for frame in pair.frames[20:]] == ids
        await pair.connection.drain(1.0)
        assert [frame["id"] for frame in pair.frames[40:]] == ids


# Middleware --------------------------------------------------------------------------------------


async def test_middleware_stands_around_every_call_in_order() -> None:
    server = Server("s")
    seen: list[str] = []

    @server.tool
    def f() -> str:
        seen.append("tool")
        return "x"

    @server.middleware
    async def outer(call: Any, proceed: Any) -> Any:
        seen.append(f"outer {call.method.name}")
        result = await proceed(call)
        seen.append("outer done")
        return result

    @server.middleware("tools/call")
    async def inner(call: Any, proceed: Any) -> Any:
        seen.append("inner")
        if call.params.name == "blocked":
            raise Refusal(-32603, "not today")
        return await proceed(call)

    async with Pair(server) as pair:
        await pair.ask("tools/list")
        await pair.call("f")
        assert (await pair.ask("tools/call", {"name": "blocked"}))["error"]["message"] == "not today"
    assert seen == [
        "outer tools/list",
        "outer done",
        "outer tools/call",
        "inner",
        "tool",
        "outer done",
        "outer tools/call",
        "inner",
    ]


async def test_middleware_may_change_a_list_for_one_caller() -> None:
    server = Server("s")
    server.add_tool(lambda: None, name="public")
    server.add_tool(lambda: None, name="secret")

    @server.middleware("tools/list")
    async def hide(call: Any, proceed: Any) -> Any:
        result = await proceed(call)
        if call.revision.handshake:
            return type(result)(tools=[t for t in result.tools if t.name != "secret"])
        return result

    async with Pair(server) as pair, Pair(server, "2025-11-25") as old:
        assert len((await pair.ask("tools/list"))["result"]["tools"]) == 2
        assert len((await old.ask("tools/list"))["result"]["tools"]) == 1
        assert len((await pair.ask("tools/list"))["result"]["tools"]) == 2


# Where it runs -----------------------------------------------------------------------------------


async def test_a_plain_function_runs_in_a_thread_unless_it_is_inline() -> None:
    server = Server("s")
    main = threading.get_ident()

    @server.tool
    def threaded(ctx: Context) -> bool:
        ctx.report_progress(1)
        return threading.get_ident() == main

    @server.tool(inline=True)
    def inline() -> bool:
        return threading.get_ident() == main

    async with Pair(server) as pair:
        answer = await pair.ask("tools/call", {"name": "threaded"}, progressToken="t")
        assert answer["result"]["structuredContent"] == {"result": False}
        assert [f["params"]["progress"] for f in pair.frames if "method" in f] == [1]
        assert (await pair.call("inline"))["structuredContent"] == {"result": True}


async def test_progress_only_rises_and_stops_with_the_answer() -> None:
    server = Server("s")
    kept: list[Context] = []

    @server.tool
    async def work(ctx: Context) -> str:
        kept.append(ctx)
        for step in (1, 1, 0.5, 2):
            await ctx.report_progress(step)
        return "done"

    async with Pair(server) as pair:
        await pair.ask("tools/call", {"name": "work"}, progressToken="t")
        kept[0].report_progress(3)
        await pair.ask("tools/list")
        assert [f["params"]["progress"] for f in pair.frames if "method" in f] == [1, 2]


async def test_a_handshake_in_one_burst_is_complete() -> None:
    server = Server("s")
    pair = Pair(server, "2025-11-25")
    opened = pair.send("initialize", initialize()["params"])
    pair.tell("notifications/initialized")
    listed = pair.send("tools/list")
    await pair.answer(opened)
    await pair.answer(listed)
    server.add_tool(lambda: None, name="late")
    await pair.said(3)
    assert pair.frames[-1]["method"] == "notifications/tools/list_changed"
    await pair.connection.cancel()
