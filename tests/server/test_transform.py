"""Tools in another shape, servers inside servers, and who sees what."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from dragoman import Client, Context, Depends, Icon, Meta, Refusal, Server, ToolError, UsageError
from tests.server.pair import Pair, text
from tests.server.test_asking import Asked, accept

REVISIONS = ["2025-11-25", "2026-07-28"]


class Unit(enum.Enum):
    C = "C"
    F = "F"


@dataclass
class Place:
    city: str
    country: str = "NO"


def weather(server: Server) -> None:
    @server.tool(tags=["public"], annotations={"readOnlyHint": True})
    def forecast(
        place: Place, unit: Unit, days: Annotated[int, Meta(ge=1, le=7)] = 1, detail: str | None = None
    ) -> str:
        """The weather.

        Args:
            days: how many
        """
        return f"{place.city},{place.country} {unit.value} {days} {detail}"


@pytest.fixture
def server() -> Server:
    server = Server("weather")
    weather(server)
    return server


async def listed(pair: Pair) -> dict[str, Any]:
    return {tool["name"]: tool for tool in (await pair.ask("tools/list"))["result"]["tools"]}


# Another shape -----------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_schema_and_call_agree_on_what_was_fixed_and_renamed(server: Server, revision: str) -> None:
    server.transform(
        "forecast",
        name="celsius",
        title="Celsius",
        description="In degrees.",
        fixed={"unit": "C", "detail": None},
        renamed={"place": "where"},
        described={"place": "The place."},
    )
    async with Pair(server, revision) as pair:
        tools = await listed(pair)
        assert list(tools) == ["celsius"]
        shown = tools["celsius"]
        assert (shown["title"], shown["description"]) == ("Celsius", "In degrees.")
        assert list(shown["inputSchema"]["properties"]) == ["where", "days"]
        assert shown["inputSchema"]["properties"]["where"]["description"] == "The place."
        assert shown["inputSchema"]["required"] == ["where"]
        assert shown["annotations"] == {"readOnlyHint": True}
        assert text(await pair.call("celsius", where={"city": "Oslo"}, days=3)) == "Oslo,NO C 3 None"
        assert (await pair.ask("tools/call", {"name": "forecast"}))["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("arguments", "fields"),
    [
        ({"where": {"city": "Oslo"}, "unit": "F"}, ['unknown argument "unit"']),
        ({"where": {"city": "Oslo"}, "place": {"city": "Rome"}}, ['unknown argument "place"']),
        ({"where": {"city": 5}}, ["where.city"]),
        ({"where": {"city": "Oslo"}, "days": 9}, ["days"]),
        ({}, ["where"]),
        ({"where": {"city": "Oslo"}, "when": 1}, ['unknown argument "when"']),
    ],
)
async def test_what_does_not_fit_is_told_in_the_words_of_the_new_shape(
    server: Server, arguments: dict[str, Any], fields: list[str]
) -> None:
    server.transform("forecast", name="celsius", fixed={"unit": "C"}, renamed={"place": "where"})
    async with Pair(server) as pair:
        result = await pair.call("celsius", **arguments)
        assert result["isError"] is True
        head, *faults = text(result).splitlines()
        assert head == "Invalid arguments for celsius:"
        assert [fault.removeprefix("- ").split(":")[0] for fault in faults] == fields


async def test_as_a_protocol_error_where_the_server_wants_that() -> None:
    server = Server("weather", argument_errors="protocol")
    weather(server)
    server.transform("forecast", fixed={"unit": "C"}, renamed={"place": "where"})
    async with Pair(server) as pair:
        error = (await pair.ask("tools/call", {"name": "forecast", "arguments": {"where": 5}}))["error"]
        assert (error["code"], error["data"]["field"]) == (-32602, "where")


async def test_arguments_may_change_places(server: Server) -> None:
    @server.tool
    def minus(a: int, b: int) -> int:
        return a - b

    server.transform("minus", renamed={"a": "b", "b": "a"})
    async with Pair(server) as pair:
        assert text(await pair.call("minus", a=1, b=10)) == "9"


async def test_everything_that_a_list_shows_can_be_replaced(server: Server) -> None:
    icon = Icon(src="https://example.com/i.png")
    server.transform(
        "forecast", annotations={"idempotentHint": True}, meta={"com.example/k": 1}, icons=[icon], tags=["x"]
    )
    async with Pair(server) as pair:
        shown = (await listed(pair))["forecast"]
    assert shown["annotations"] == {"idempotentHint": True}
    assert shown["_meta"] == {"com.example/k": 1}
    assert shown["icons"] == [{"src": "https://example.com/i.png"}]
    assert server.tools[0].tags == {"x"}


async def test_the_new_shape_may_stand_beside_the_old_one_and_be_changed_again(server: Server) -> None:
    server.transform("forecast", name="here", fixed={"place": {"city": "Oslo"}}, keep=True)
    server.transform("here", name="here_celsius", fixed={"unit": "C"})
    async with Pair(server) as pair:
        assert list(await listed(pair)) == ["forecast", "here_celsius"]
        assert text(await pair.call("here_celsius")) == "Oslo,NO C 1 None"
        assert text(await pair.call("forecast", place={"city": "Rome"}, unit="F")) == "Rome,NO F 1 None"


async def test_a_hidden_tool_is_neither_listed_nor_called(server: Server) -> None:
    server.transform("forecast", hidden=True)
    async with Pair(server) as pair:
        assert await listed(pair) == {}
        assert (await pair.ask("tools/call", {"name": "forecast"}))["error"]["code"] == -32602


async def test_the_place_in_the_list_stays(server: Server) -> None:
    server.add_tool(lambda: 1, name="last")
    server.transform("forecast", name="first")
    assert [tool.name for tool in server.tools] == ["first", "last"]


async def test_context_and_dependencies_reach_a_tool_in_another_shape() -> None:
    server = Server("s")

    @server.tool
    def f(n: int, ctx: Context, word: str = Depends(lambda: "supplied")) -> str:
        return f"{n} {word} {ctx.request_id}"

    server.transform("f", renamed={"n": "number"})
    async with Pair(server) as pair:
        assert text(await pair.call("f", number=4)) == "4 supplied 1"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_tool_in_another_shape_may_ask(revision: str) -> None:
    server = Server("s", secret="a secret of at least sixteen bytes")

    @server.tool
    async def f(n: int, ctx: Context) -> str:
        answer = await ctx.elicit("Name?", str)
        return f"{n} {answer.data}"

    server.transform("f", name="g", renamed={"n": "number"})
    async with Asked(server, revision, accept(value="ada")) as pair:
        assert text(await pair.run("g", number=4)) == "4 ada"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fixed": {"units": "C"}}, r"there is no argument 'units' \(there is: place, unit, days, detail\)"),
        ({"fixed": {"unit": "K"}}, r"fixed\['unit'\]: expected"),
        ({"fixed": {"place": {"country": "NO"}}}, r"fixed\['place'\]: expected"),
        ({"renamed": {"unit": "days"}}, "two arguments would be named 'days'"),
        ({"fixed": {"unit": "C"}, "renamed": {"unit": "u"}}, "unit is fixed, so nobody sees it"),
        ({"name": ""}, "needs a name"),
        ({"keep": True}, "keep=True needs another name="),
        ({"annotations": {"readOnlyHint": "yes"}}, "annotations: "),
    ],
)
def test_what_cannot_be_is_refused_at_once(server: Server, options: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        server.transform("forecast", **options)
    assert [tool.name for tool in server.tools] == ["forecast"]


def test_an_unknown_tool_and_a_taken_name_are_refused(server: Server) -> None:
    server.add_tool(lambda: 1, name="other")
    with pytest.raises(UsageError, match=r"there is no tool 'forcast' \(there is: forecast, other\)"):
        server.transform("forcast", name="x")
    with pytest.raises(UsageError, match="there is a tool 'other' already"):
        server.transform("forecast", name="other")


def test_a_schema_that_speaks_of_arguments_elsewhere_is_left_alone() -> None:
    server = Server("s")
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["b"]}}
    server.add_tool(lambda **_: 1, name="f", input_schema=schema)
    with pytest.raises(UsageError, match="dependentRequired"):
        server.transform("f", renamed={"a": "c"})
    server.transform("f", description="That can be.")


# A server inside a server ------------------------------------------------------------------------


def inner_server(told: list[str] | None = None) -> Server:
    inner = Server("inner", middleware=[] if told is None else [teller(told)])

    @inner.tool
    def add(a: int, b: int) -> int:
        return a + b

    @inner.prompt
    def greet(who: str) -> str:
        return f"Greet {who}."

    @inner.completion("greet", "who")
    def names(typed: str) -> list[str]:
        return [name for name in ("ada", "alan", "grace") if name.startswith(typed)]

    @inner.resource("notes://today")
    def today() -> str:
        return "a note"

    @inner.resource("notes://{day}/{number}")
    def note(day: str, number: int) -> str:
        return f"{day} {number}"

    return inner


def teller(told: list[str]) -> Any:
    async def layer(call: Any, proceed: Any) -> Any:
        subject = getattr(call.params, "name", None) or getattr(call.params, "uri", None)
        told.append(f"{call.method.name} {subject}")
        return await proceed(call)

    return layer


@pytest.mark.parametrize("revision", REVISIONS)
async def test_everything_of_a_mounted_server_is_there(revision: str) -> None:
    told: list[str] = []
    outer = Server("outer")
    outer.add_tool(lambda: "own", name="own")
    outer.mount(inner_server(told), prefix="in_")
    async with Pair(outer, revision) as pair:
        assert list(await listed(pair)) == ["own", "in_add"]
        assert text(await pair.call("in_add", a=1, b=2)) == "3"
        (prompt,) = (await pair.ask("prompts/list"))["result"]["prompts"]
        assert prompt["name"] == "in_greet"
        got = await pair.ask("prompts/get", {"name": "in_greet", "arguments": {"who": "ada"}})
        assert got["result"]["messages"][0]["content"]["text"] == "Greet ada."
        (resource,) = (await pair.ask("resources/list"))["result"]["resources"]
        assert resource["uri"] == "notes://today"
        templates = (await pair.ask("resources/templates/list"))["result"]["resourceTemplates"]
        assert [template["uriTemplate"] for template in templates] == ["notes://{day}/{number}"]
        for uri, content in (("notes://today", "a note"), ("notes://monday/4", "monday 4")):
            read = (await pair.ask("resources/read", {"uri": uri}))["result"]
            assert read["contents"][0]["text"] == content
        completion = {
            "ref": {"type": "ref/prompt", "name": "in_greet"},
            "argument": {"name": "who", "value": "a"},
        }
        found = (await pair.ask("completion/complete", completion))["result"]["completion"]
        assert found["values"] == ["ada", "alan"]
    # Its own middleware sees its own names.
    assert told == [
        "tools/call add",
        "prompts/get greet",
        "resources/read notes://today",
        "resources/read notes://monday/4",
    ]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_it_is_a_live_view(revision: str) -> None:
    inner, outer = inner_server(), Server("outer")
    outer.mount(inner, prefix="in_")
    async with Pair(outer, revision) as pair:
        await listed(pair)
        before = len(pair.frames)
        inner.add_tool(lambda: 2, name="later")
        assert list(await listed(pair)) == ["in_add", "in_later"]
        inner.remove_tool("add")
        assert list(await listed(pair)) == ["in_later"]
        inner.remove_prompt("greet")
        assert (await pair.ask("prompts/list"))["result"]["prompts"] == []
        if revision != "2026-07-28":
            told = [frame.get("method") for frame in pair.frames[before:]]
            assert told.count("notifications/tools/list_changed") == 2
            assert told.count("notifications/prompts/list_changed") == 1


async def test_updates_of_a_mounted_resource_reach_who_watches_outside() -> None:
    inner, outer = inner_server(), Server("outer")
    outer.mount(inner)
    async with Pair(outer, "2025-11-25") as pair:
        await pair.ask("resources/subscribe", {"uri": "notes://today"})
        inner.notify_resource_updated("notes://today")
        await pair.ask("ping")
        updated = [f for f in pair.frames if f.get("method") == "notifications/resources/updated"]
        assert [frame["params"] for frame in updated] == [{"uri": "notes://today"}]


async def test_mounts_of_mounts_and_of_the_same_server_twice() -> None:
    inner, middle, outer = inner_server(), Server("middle"), Server("outer")
    outer.mount(middle, prefix="m_")
    middle.mount(inner, prefix="a_")
    inner_two = Server("two")
    inner_two.add_tool(lambda: "two", name="f")
    outer.mount(inner_two, prefix="x_")
    outer.mount(inner_two, prefix="y_")
    async with Pair(outer) as pair:
        assert sorted(await listed(pair)) == ["m_a_add", "x_f", "y_f"]
        assert text(await pair.call("m_a_add", a=1, b=2)) == "3"
        inner_two.remove_tool("f")
        assert list(await listed(pair)) == ["m_a_add"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_its_tools_run_at_home(revision: str) -> None:
    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[str]:
        yield f"life of {server.name}"

    def supplied() -> str:
        return "real"

    inner = Server("inner", lifespan=life)
    outer = Server("outer", lifespan=life)

    @inner.resource("notes://own")
    def own() -> str:
        return "inner note"

    @inner.tool
    async def where(ctx: Context, value: str = Depends(supplied)) -> str:
        (contents,) = await ctx.read_resource("notes://own")
        return f"{ctx.lifespan}, {value}, {contents.text}"

    @outer.tool
    def here(ctx: Context) -> str:
        return ctx.lifespan

    inner.overrides[supplied] = lambda: "fake"
    outer.mount(inner, prefix="in_")
    async with Pair(outer, revision) as pair:
        assert text(await pair.call("in_where")) == "life of inner, fake, inner note"
        assert text(await pair.call("here")) == "life of outer"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_mounted_tool_may_ask(revision: str) -> None:
    told: list[str] = []
    inner = Server("inner", secret="another secret of sixteen bytes", middleware=[teller(told)])
    outer = Server("outer", secret="a secret of at least sixteen bytes")

    @inner.tool
    async def f(ctx: Context) -> str:
        first = await ctx.elicit("Name?", str)
        second = await ctx.elicit("Name?", str)
        return f"{first.data} {second.data}"

    outer.mount(inner, prefix="in_")
    async with Asked(outer, revision, accept(value="ada")) as pair:
        assert text(await pair.run("in_f")) == "ada ada"
    assert set(told) == {"tools/call f"}


async def test_errors_of_a_mounted_tool_are_its_answers() -> None:
    inner, outer = Server("inner"), Server("outer")

    @inner.tool
    def f(n: int) -> int:
        if n:
            raise ToolError("no")
        raise Refusal(7, "never")

    outer.mount(inner, prefix="in_")
    async with Pair(outer) as pair:
        assert text(await pair.call("in_f", n=1)) == "no"
        assert (await pair.call("in_f", n="x"))["isError"] is True
        assert (await pair.ask("tools/call", {"name": "in_f", "arguments": {"n": 0}}))["error"]["code"] == 7


async def test_a_mounted_tool_can_be_transformed_and_stays_so() -> None:
    inner, outer = inner_server(), Server("outer")
    outer.mount(inner, prefix="in_")
    outer.transform("in_add", name="increment", fixed={"b": 1})
    async with Pair(outer) as pair:
        assert list(await listed(pair)) == ["increment"]
        assert text(await pair.call("increment", a=4)) == "5"
        inner.remove_tool("add")
        assert await listed(pair) == {}
        inner.add_tool(lambda a, b: a * b, name="add", description="Now it multiplies.")
        assert list(await listed(pair)) == ["increment"]
        assert text(await pair.call("increment", a=4)) == "4"
        outer.transform("increment", hidden=True)
        inner.remove_tool("add")
        inner.add_tool(lambda a, b: a * b, name="add")
        assert await listed(pair) == {}


def test_names_that_are_taken_are_refused_and_nothing_is_mounted() -> None:
    inner, outer = inner_server(), Server("outer")
    outer.add_tool(lambda: 1, name="add")
    outer.add_tool(lambda: 1, name="in_later")
    with pytest.raises(UsageError, match="'add' would be 'add', and there is one of that name already"):
        outer.mount(inner)
    assert [tool.name for tool in outer.tools] == ["add", "in_later"]
    assert outer.prompts == ()
    outer.mount(inner, prefix="in_")
    with pytest.raises(UsageError, match="'later' would be 'in_later'"):
        inner.add_tool(lambda: 1, name="later")
    assert [tool.name for tool in inner.tools] == ["add"]


def test_servers_inside_each_other_are_refused() -> None:
    first, second = Server("first"), Server("second")
    first.mount(second)
    for outer, inner in ((second, first), (first, first)):
        with pytest.raises(UsageError, match="inside already"):
            outer.mount(inner)
    with pytest.raises(UsageError, match="mount: expected a Server, received Kernel"):
        first.mount(second.kernel)  # type: ignore[arg-type]  # the mistake is the case


async def test_a_thousand_mounted_tools_cost_a_call_no_search() -> None:
    inner, outer = Server("inner"), Server("outer")
    for number in range(1000):
        inner.add_tool(lambda: 1, name=f"t{number}")
    outer.mount(inner, prefix="in_")
    async with Client(outer) as client:
        assert len(await client.list_tools()) == 1000
        assert (await client.call_tool("in_t999")).text == "1"


# Who sees what -----------------------------------------------------------------------------------


def visible(entry: Any, principal: str | None, tags: frozenset[str]) -> bool:
    return "admin" not in tags or principal == "root"


def guarded() -> Server:
    server = Server("s", visible=visible, page_size=2)
    for name in ("a", "b", "c", "d"):
        server.add_tool(lambda: "done", name=name, tags=["admin"] if name in "bc" else [])
    server.add_prompt(lambda: "secret", name="p", tags=["admin"])
    server.add_resource("notes://open", "open")
    server.add_resource("notes://closed", "closed", tags=["admin"])
    return server


def principal(pair: Pair, name: str | None) -> None:
    pair.connection.link.principal = name


@pytest.mark.parametrize("revision", REVISIONS)
async def test_lists_and_calls_are_filtered_by_principal_and_tags(revision: str) -> None:
    async with Pair(guarded(), revision) as pair:
        result = (await pair.ask("tools/list"))["result"]
        assert [tool["name"] for tool in result["tools"]] == ["a", "d"]
        assert "nextCursor" not in result
        assert result.get("cacheScope", "private") == "private"
        assert text(await pair.call("d")) == "done"
        unknown = (await pair.ask("tools/call", {"name": "nope"}))["error"]
        hidden = (await pair.ask("tools/call", {"name": "b"}))["error"]
        assert (hidden["code"], hidden["message"]) == (unknown["code"], "Unknown tool: b")
        assert (await pair.ask("prompts/list"))["result"]["prompts"] == []
        assert (await pair.ask("prompts/get", {"name": "p"}))["error"]["code"] == -32602
        resources = (await pair.ask("resources/list"))["result"]["resources"]
        assert [resource["uri"] for resource in resources] == ["notes://open"]
        assert "error" in await pair.ask("resources/read", {"uri": "notes://closed"})
        principal(pair, "root")
        first = (await pair.ask("tools/list"))["result"]
        second = (await pair.ask("tools/list", {"cursor": first["nextCursor"]}))["result"]
        assert [tool["name"] for tool in (*first["tools"], *second["tools"])] == ["a", "b", "c", "d"]
        assert text(await pair.call("b")) == "done"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_mounted_server_keeps_its_own_rules(revision: str) -> None:
    outer = Server("outer")
    outer.mount(guarded(), prefix="in_")
    outer.transform("in_b", name="in_renamed")
    async with Pair(outer, revision) as pair:
        assert list(await listed(pair)) == ["in_a", "in_d"]
        assert "error" in await pair.ask("tools/call", {"name": "in_renamed"})
        assert "error" in await pair.ask("resources/read", {"uri": "notes://closed"})
        principal(pair, "root")
        assert list(await listed(pair)) == ["in_a", "in_renamed", "in_c", "in_d"]
        assert text(await pair.call("in_renamed")) == "done"


async def test_the_outer_server_has_its_say_over_what_is_mounted() -> None:
    def nothing_mounted(entry: Any, principal: str | None, tags: frozenset[str]) -> bool:
        return not getattr(entry, "name", "").startswith("in_")

    outer = Server("outer", visible=nothing_mounted)
    outer.mount(inner_server(), prefix="in_")
    async with Pair(outer) as pair:
        assert await listed(pair) == {}


async def test_where_everybody_sees_all_a_list_is_built_once() -> None:
    inner, outer = inner_server(), Server("outer")
    outer.mount(inner, prefix="in_")
    async with Pair(outer) as pair:
        await listed(pair)
        assert outer.kernel.tools.page(None) is outer.kernel.tools.page(None)
        assert outer.kernel.sight.of(None) is None
