"""What a tool returns becomes structured content: its schema, its JSON, and what is refused."""

import asyncio
import dataclasses
import datetime as dt
import enum
import json
import pathlib
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union

import jsonschema_rs
import msgspec
import pytest

from dragoman.model import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)
from dragoman.schema.errors import OutputError
from dragoman.schema.output import Output, builtins, encode_value, read_output


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass
class Node:
    value: int
    children: list["Node"] = dataclasses.field(default_factory=list)


class Movie(TypedDict):
    title: str
    when: dt.date


class Order(msgspec.Struct, rename="camel"):
    order_id: str
    lines: list[Point] = []


class Pair(NamedTuple):
    a: int
    b: str


class Media:
    """What a server takes for content, although the model does not know it."""


class Opaque:
    pass


def output(annotation: Any) -> Output:
    found = read_output(annotation)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("annotation", "inner", "value", "plain"),
    [
        (str, {"type": "string"}, "15.0", "15.0"),
        (int, {"type": "integer"}, 3, 3),
        (float, {"type": "number"}, 1.5, 1.5),
        (bool, {"type": "boolean"}, True, True),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1, 2], [1, 2]),
        (
            list[Point],
            {"type": "array", "items": {"$ref": "#/$defs/Point"}},
            [Point(1.0)],
            [{"x": 1.0, "y": 0.0}],
        ),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),
        (Optional[Point], {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}, None, None),
        (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x", "x"),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "a", "a"),
        (Colour, {"$ref": "#/$defs/Colour"}, Colour.RED, "red"),
        (dt.datetime, {"type": "string"}, dt.datetime(2026, 1, 2), "2026-01-02T00:00:00"),  # noqa: DTZ001  # naive ones
        (dt.date, {"type": "string", "format": "date"}, dt.date(2026, 1, 2), "2026-01-02"),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}, (1, 2), [1, 2]),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, {1}, [1]),
        (Pair, {"$ref": "#/$defs/Pair"}, Pair(1, "x"), [1, "x"]),
        (Annotated[str, "words"], {"type": "string", "description": "words"}, "x", "x"),
        (Awaitable[str], {"type": "string"}, "x", "x"),
        (Coroutine[Any, Any, str], {"type": "string"}, "x", "x"),
    ],
    ids=str,
)
def test_what_is_no_object_is_wrapped(annotation, inner, value, plain):
    out = output(annotation)
    assert out.wraps
    schema = {key: part for key, part in out.schema.items() if key != "$defs"}
    assert schema == {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    assert out.structured(value) == {"result": plain}
    assert jsonschema_rs.Draft202012Validator(out.schema).is_valid(out.structured(value))


@pytest.mark.parametrize(
    ("annotation", "value", "plain"),
    [
        (Point, Point(1.5), {"x": 1.5, "y": 0.0}),
        (Node, Node(1, [Node(2)]), {"value": 1, "children": [{"value": 2, "children": []}]}),
        (Movie, {"title": "M", "when": dt.date(2026, 1, 2)}, {"title": "M", "when": "2026-01-02"}),
        (Order, Order("A-1", [Point(1.0)]), {"orderId": "A-1", "lines": [{"x": 1.0, "y": 0.0}]}),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict[str, Any], {"a": [None]}, {"a": [None]}),
        (dict, {"a": 1}, {"a": 1}),
        (Annotated[Point, "words"], Point(1.5), {"x": 1.5, "y": 0.0}),
    ],
    ids=str,
)
def test_an_object_is_its_own_schema(annotation, value, plain):
    out = output(annotation)
    assert not out.wraps
    assert out.schema["type"] == "object"
    assert "$ref" not in out.schema
    assert out.structured(value) == plain
    assert json.loads(out.encode(value)) == plain
    assert jsonschema_rs.Draft202012Validator(out.schema).is_valid(plain)


def test_a_root_that_nothing_refers_to_leaves_no_definition_behind():
    assert output(Point).schema == {
        "title": "Point",
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
        "required": ["x"],
    }
    assert set(output(Node).schema["$defs"]) == {"Node"}
    assert set(output(Order).schema["$defs"]) == {"Point"}


@pytest.mark.parametrize(
    "annotation",
    [
        None,
        type(None),
        Any,
        object,
        bytes,
        bytearray,
        pathlib.Path,
        TextContent,
        ImageContent,
        AudioContent,
        ResourceLink,
        EmbeddedResource,
        CallToolResult,
        InputRequiredResult,
        TextContent | InputRequiredResult,
        ContentBlock,
        list[ContentBlock],
        list[TextContent],
        list[str | ImageContent],
        tuple[TextContent, ImageContent],
        Optional[TextContent],
        str | ImageContent,
        Annotated[TextContent, "words"],
        bytes | None,
        Iterator[str],
        AsyncIterator[int],
        Opaque,
        list[Opaque],
        Media,
    ],
    ids=str,
)
def test_results_that_are_not_structured(annotation):
    assert read_output(annotation) is None


def test_a_server_may_name_more_content_types():
    assert read_output(list[Media] | None, (Media,)) is None
    assert read_output(str | Media, (Media,)) is None


def test_a_tool_may_build_its_result_and_still_promise_a_schema():
    out = output(Annotated[CallToolResult, Point])
    assert out.direct
    assert out.schema == output(Point).schema
    out.check({"x": 1.5})
    with pytest.raises(OutputError, match="x: the result does not fit"):
        out.check({"x": "one"})


@pytest.mark.parametrize(
    "annotation", [Point | InputRequiredResult, Awaitable[Point | InputRequiredResult]], ids=str
)
def test_a_tool_that_may_ask_first_promises_what_it_gives_in_the_end(annotation):
    assert output(annotation).schema == output(Point).schema
    assert output(int | None | InputRequiredResult).schema == output(int | None).schema


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused_with_their_path(value):
    with pytest.raises(OutputError) as caught:
        output(dict[str, list[float]]).encode({"a": [1.0], "b": [0.5, value]})
    assert caught.value.path == "b[1]"
    with pytest.raises(OutputError) as caught:
        output(float).encode(value)
    assert caught.value.path == "result"
    with pytest.raises(OutputError) as caught:
        output(Point).encode(Point(0.0, value))
    assert caught.value.path == "y"


def test_null_in_a_result_is_no_reason_for_suspicion():
    assert output(dict[str, Any]).structured({"a": None, "b": "null"}) == {"a": None, "b": "null"}


def test_what_cannot_be_written_is_refused_with_its_path():
    with pytest.raises(OutputError, match=r"^a\[1\].b: .*Opaque"):
        encode_value({"a": [1, {"b": Opaque()}]})
    with pytest.raises(OutputError, match=r"^lines\[0\].x: .*Opaque"):
        encode_value(Order("A", [Point(Opaque())]))  # type: ignore[arg-type]  # the point
    with pytest.raises(OutputError, match="surrogate"):
        encode_value({"a": "\ud800"})


def test_a_value_that_contains_itself_is_refused_with_its_path():
    value: dict[str, Any] = {"a": []}
    value["a"].append(value)
    with pytest.raises(OutputError, match=r"^a\[0\]: the value contains itself"):
        encode_value(value)
    node = Node(1)
    node.children.append(node)
    with pytest.raises(OutputError, match=r"^children\[0\]: the value contains itself"):
        output(Node).encode(node)


def test_the_same_object_twice_is_no_recursion():
    part = {"x": 1}
    assert builtins([part, part]) == [{"x": 1}, {"x": 1}]


def test_a_coroutine_that_nobody_awaited_is_refused():
    async def work() -> int:
        return 1

    coroutine = work()
    with pytest.raises(OutputError, match="coroutine"):
        encode_value(coroutine)
    asyncio.run(coroutine)


@pytest.mark.parametrize(
    ("annotation", "value", "path", "words"),
    [
        (int, "5", "result", 'expected an integer, returned "5"'),
        (int, 5.5, "result", "expected an integer"),
        (str, 5, "result", "expected a string"),
        (str, None, "result", "expected a string, returned null"),
        (list[int], [1, "x"], "result[1]", "expected an integer"),
        (Point, {"y": 1.0}, "x", "expected a number, returned nothing"),
        (Point, Point("1"), "x", "expected a number"),  # type: ignore[arg-type]  # the point
        (Movie, {"title": "M"}, "when", "returned nothing"),
        (dict[str, int], {"a": "x"}, "a", "expected an integer"),
        (dict[str, int], [1], "", "expected an object"),
        (Literal["a"], "b", "result", 'expected "a"'),
    ],
    ids=str,
)
def test_a_result_that_breaks_the_promise_is_refused(annotation, value, path, words):
    with pytest.raises(OutputError, match="does not fit the output schema") as caught:
        output(annotation).encode(value)
    assert caught.value.path == path
    assert words in caught.value.message


@pytest.mark.parametrize(("annotation", "value", "plain"), [(int, 5.0, 5), (int, True, None), (float, 5, 5)])
def test_the_schema_has_the_last_word(annotation, value, plain):
    # An integer of integral value is an integer in JSON Schema whatever Python calls it; true is none.
    if plain is None:
        with pytest.raises(OutputError):
            output(annotation).encode(value)
    else:
        assert output(annotation).structured(value) == {"result": plain}


def test_paths_decimals_and_the_like_are_text():
    assert builtins({"p": pathlib.PurePosixPath("a/b"), "d": Decimal("1.10"), "c": Colour.RED}) == {
        "p": "a/b",
        "d": "1.10",
        "c": "red",
    }
    assert output(dict[str, Decimal]).structured({"d": Decimal("1.10")}) == {"d": "1.10"}


def test_integers_of_any_size_keep_their_digits():
    assert encode_value({"n": 2**80}) == b'{"n":1208925819614629174706176}'


def test_a_result_nested_too_deep_is_refused():
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(OutputError):
        encode_value(value)
