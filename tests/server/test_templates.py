"""Resource templates: which URI belongs to which function, and what its parameters get."""

from __future__ import annotations

import asyncio
import enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from dragoman import Context, Meta, Server, UsageError
from tests.server.pair import Pair
from tests.server.test_asking import Asked, accept
from tests.server.test_resources import LATEST, ON_ALL, ON_BOTH, hints, read, refused


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@ON_ALL
async def test_a_list_shows_the_templates_and_not_what_is_made_of_them(revision: str) -> None:
    server = Server("s")

    @server.resource(
        "orders://{order_id}",
        title="Orders",
        mime_type="application/json",
        annotations={"audience": ["assistant"]},
        last_modified="2025-01-12T15:00:58Z",
    )
    def order(order_id: str) -> dict[str, str]:
        """One order."""
        return {"id": order_id}

    expected: dict[str, Any] = {
        "uriTemplate": "orders://{order_id}",
        "name": "order",
        "description": "One order.",
        "mimeType": "application/json",
        "annotations": {"audience": ["assistant"]},
    }
    if revision >= "2025-06-18":
        expected["title"] = "Orders"
        expected["annotations"]["lastModified"] = "2025-01-12T15:00:58Z"
    async with Pair(server, revision) as pair:
        result = (await pair.ask("resources/templates/list"))["result"]
        assert result["resourceTemplates"] == [expected]
        assert (await pair.ask("resources/list"))["result"]["resources"] == []
        assert await read(pair, "orders://A-1") == {
            "uri": "orders://A-1",
            "mimeType": "application/json",
            "text": '{"id":"A-1"}',
        }
    assert [template.name for template in server.resource_templates] == ["orders://{order_id}"]


@ON_BOTH
async def test_variables_are_read_as_the_types_of_the_parameters(revision: str) -> None:
    server = Server("s")

    @server.resource("test://{number}/{colour}/{flag}{?size,tag}")
    def typed(
        number: int, colour: Colour, flag: bool, size: Literal["s", "l"] = "s", tag: str | None = None
    ) -> str:
        return repr((number, colour, flag, size, tag))

    async with Pair(server, revision) as pair:
        for uri, found in {
            "test://5/red/true": (5, Colour.RED, True, "s", None),
            "test://-5/blue/0?size=l": (-5, Colour.BLUE, False, "l", None),
            "test://5/red/1?tag=a%26b&size=s": (5, Colour.RED, True, "s", "a&b"),
        }.items():
            assert (await read(pair, uri))["text"] == repr(found)


@ON_ALL
async def test_a_value_that_does_not_fit_is_told_as_nothing_there(revision: str) -> None:
    server = Server("s")

    @server.resource("test://{number}/{colour}")
    def typed(number: Annotated[int, Meta(ge=1)], colour: Colour) -> str:
        return f"{number} {colour}"

    async with Pair(server, revision) as pair:
        error = await refused(pair, "test://0/green")
        assert error["code"] == (-32602 if revision == LATEST else -32002)
        assert error["data"] == {"uri": "test://0/green"}
        assert error["message"].splitlines() == [
            "Resource not found: test://0/green",
            "- number: expected a number of at least 1; received 0",
            '- colour: expected one of "red", "blue"; received "green"',
        ]


async def test_an_exact_uri_goes_first_then_the_templates_in_their_order() -> None:
    server = Server("s")

    @server.resource("test://{number}")
    def number(number: int) -> str:
        return "a number"

    @server.resource("test://{name}")
    def name(name: str) -> str:
        return "a name"

    @server.resource("test://{+path}")
    def path(path: str) -> str:
        return "a path"

    server.add_resource("test://latest", "the latest")
    server.add_resource("test://5", "five itself")
    async with Pair(server) as pair:
        found = {
            uri: (await read(pair, f"test://{uri}"))["text"] for uri in ("latest", "5", "6", "six", "a/b")
        }
    assert found == {
        "latest": "the latest",
        "5": "five itself",
        "6": "a number",
        "six": "a name",  # what does not fit the first one's type, the next one may take
        "a/b": "a path",
    }


async def test_a_query_may_be_absent_only_where_its_parameter_has_a_default() -> None:
    server = Server("s")

    @server.resource("search://notes{?q,page}")
    def search(q: str, page: int = 1) -> str:
        return f"{q} {page}"

    async with Pair(server) as pair:
        assert (await read(pair, "search://notes?q=a%20b"))["text"] == "a b 1"
        assert (await read(pair, "search://notes?page=2&q="))["text"] == " 2"
        message = (await refused(pair, "search://notes?page=2"))["message"]
        assert "q: expected a string; received nothing" in message
        assert "page" in (await refused(pair, "search://notes?q=a&page=two"))["message"]
        for uri in ("search://notes?q=a&z=1", "search://notes?q=a&q=b", "search://note?q=a"):
            assert (await refused(pair, uri))["message"] == f"Resource not found: {uri}"


async def test_nobody_reads_what_lies_outside_of_a_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "inner" / "b.txt").write_text("b")
    (tmp_path / "secret.txt").write_text("secret")
    server = Server("s")

    @server.resource("one://{name}")
    def one(name: str) -> Path:
        return root / name

    @server.resource("all://{+path}")
    def all_(path: str) -> Path:
        return root / path

    async with Pair(server) as pair:
        assert (await read(pair, "one://a.txt"))["text"] == "a"
        assert (await read(pair, "all://inner/b.txt"))["text"] == "b"
        assert (await read(pair, "all://inner%2Fb.txt"))["text"] == "b"
        for scheme in ("one", "all"):
            for way in (
                "../secret.txt",
                "..%2fsecret.txt",
                "%2e%2e/secret.txt",
                "%2e%2e%2fsecret.txt",
                "inner/../../secret.txt",
                "inner%2f..%2f..%2fsecret.txt",
                "..%5csecret.txt",
                "%252e%252e%252fsecret.txt",
                f"{tmp_path}/secret.txt",
                f"%2f{str(tmp_path)[1:]}/secret.txt",
                "a.txt%00",
                "..",
                ".",
            ):
                error = await refused(pair, f"{scheme}://{way}")
                assert error["code"] == -32602, way
                assert "secret" not in error["message"].replace(way, "")


@ON_BOTH
async def test_what_a_template_has_nothing_for_is_not_there(revision: str) -> None:
    server = Server("s")

    @server.resource("orders://{order_id}")
    async def order(order_id: str) -> str | None:
        return "open" if order_id == "A-1" else None

    async with Pair(server, revision) as pair:
        assert (await read(pair, "orders://A-1"))["text"] == "open"
        assert (await refused(pair, "orders://A-2"))["data"] == {"uri": "orders://A-2"}


async def test_hints_and_types_are_those_of_the_template() -> None:
    server = Server("s")

    @server.resource("test://{x}", ttl_ms=7, cache_scope="public", mime_type="text/csv")
    def csv(x: str) -> str:
        return x

    async with Pair(server) as pair:
        result = (await pair.ask("resources/read", {"uri": "test://a,b"}))["result"]
        assert hints(result) == (7, "public")
        assert result["contents"] == [{"uri": "test://a,b", "mimeType": "text/csv", "text": "a,b"}]


@ON_BOTH
async def test_a_template_may_ask_before_it_answers(revision: str) -> None:
    server = Server("s")

    @server.resource("test://{door}")
    async def door(ctx: Context, door: str) -> str:
        answer = await ctx.elicit(f"The key of {door}?", str)
        return f"{door} opened with {answer.data}"

    async with Asked(server, revision, accept(value="a hairpin")) as client:
        answer = await client.go("resources/read", {"uri": "test://cellar"})
        assert answer["result"]["contents"][0]["text"] == "cellar opened with a hairpin"
        ((_, asked),) = client.questions
        assert asked["message"] == "The key of cellar?"


async def test_an_answer_for_one_uri_is_none_for_another() -> None:
    server = Server("s")

    @server.resource("test://{door}")
    async def door(ctx: Context, door: str) -> str:
        answer = await ctx.elicit("The key?", str)
        return f"{door} opened with {answer.data}"

    async with Pair(server) as pair:
        capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        asked = await pair.ask("resources/read", {"uri": "test://cellar"}, **capable)
        state = asked["result"]["requestState"]
        answers = {"q1": {"action": "accept", "content": {"value": "a hairpin"}}}
        retry = {"uri": "test://vault", "requestState": state, "inputResponses": answers}
        error = (await pair.ask("resources/read", retry, **capable))["error"]
        assert error["code"] == -32602
        assert "requestState" in error["message"]


@pytest.mark.parametrize("revision", ["2025-11-25"])
async def test_any_resource_of_a_family_can_be_watched(revision: str) -> None:
    server = Server("s")

    @server.resource("orders://{number}")
    def order(number: int) -> str:
        return str(number)

    async with Pair(server, revision) as pair:
        assert (await pair.ask("resources/subscribe", {"uri": "orders://5"}))["result"] == {}
        assert "error" in await pair.ask("resources/subscribe", {"uri": "orders://five"})
        before = len(pair.frames)
        server.notify_resource_updated("orders://6")
        server.notify_resource_updated("orders://5")
        await pair.said(before + 1)
        assert pair.frames[before]["params"] == {"uri": "orders://5"}


async def test_templates_come_in_pages_too() -> None:
    server = Server("s", page_size=2)

    def family(x: str) -> str:
        return x

    for number in range(3):
        server.add_resource(f"test://{number}/{{x}}", family)
    async with Pair(server) as pair:
        first = (await pair.ask("resources/templates/list"))["result"]
        second = (await pair.ask("resources/templates/list", {"cursor": first["nextCursor"]}))["result"]
        assert [len(page["resourceTemplates"]) for page in (first, second)] == [2, 1]
        server.remove_resource("test://0/{x}")
        assert "error" in await pair.ask("resources/read", {"uri": "test://0/a"})


async def test_the_thousandth_template_is_found_soon() -> None:
    server = Server("s")

    def family(x: str) -> str:
        return x

    for number in range(1000):
        server.add_resource(f"test://{number}/{{x}}", family)
    async with Pair(server) as pair:
        async with asyncio.timeout(10):
            for _ in range(100):
                assert (await read(pair, "test://999/a"))["text"] == "a"


def _named(x: str) -> str:
    return x


def _open(**values: str) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(values.items()))


async def test_keywords_take_all_variables() -> None:
    server = Server("s")
    server.add_resource("test://{a}/{b}{?c}", _open)
    async with Pair(server) as pair:
        assert (await read(pair, "test://1/2?c=3"))["text"] == "a=1,b=2,c=3"


@pytest.mark.parametrize(
    ("uri", "options", "says"),
    [
        ("test://{y}", {}, "has {y}, which _named"),
        ("test://{x}/{y}", {}, "has {y}, which _named"),
        ("test://all{?q}", {}, "has {q}, which _named"),
        ("test://{x*}", {}, "write {+x}"),
        ("{+x}", {}, "needs a scheme"),
        ("test://{x}", {"size": 5}, "size"),
        ("test://{x}", {"complete": {"y": ["a"]}}, "no argument y"),
        ("test://{x}", {"complete": {"x": "abc"}}, "sequence of strings"),
        ("test://taken/{x}", {}, "already"),
    ],
)
def test_what_cannot_be_is_told_when_it_is_added(uri: str, options: Any, says: str) -> None:
    server = Server("s")
    server.add_resource("test://taken/{x}", _named)
    with pytest.raises(UsageError) as told:
        server.add_resource(uri, _named, **options)
    assert says in str(told.value)


def test_a_parameter_without_a_variable_is_told() -> None:
    server = Server("s")
    with pytest.raises(UsageError, match=r"asks for y, which test://\{x\} has no variable for"):

        @server.resource("test://{x}")
        def both(x: str, y: str) -> str:
            return x + y
