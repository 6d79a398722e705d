"""What a parameter's type publishes, and what a call then accepts: one line a type, written by hand."""

import dataclasses
import datetime as dt
import enum
import ipaddress
import json
import pathlib
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

import annotated_types
import jsonschema_rs
import msgspec
import pytest
from msgspec import Meta

from dragoman.errors import UsageError
from dragoman.schema.errors import ArgumentError
from dragoman.schema.signature import Signature, reflect

T = TypeVar("T")


class Arch(enum.Enum):
    ARM = "arm64"
    INTEL = "x86_64"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Box(Generic[T]):
    content: T


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    first_name: str


class Cat(msgspec.Struct, tag_field="kind", tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag_field="kind", tag="dog"):
    name: str


class Row(msgspec.Struct, array_like=True):
    a: int
    b: str


class Tree(msgspec.Struct):
    value: int
    children: list["Tree"] = []


UserId = NewType("UserId", int)


def taking(annotation: Any) -> Signature:
    def tool(value):
        return None

    tool.__annotations__ = {"value": annotation}
    return reflect(tool)


def text(value: Any) -> bytes:
    return json.dumps({"value": value}).encode()


NULL = {"type": "null"}
INTEGER = {"type": "integer"}
STRING = {"type": "string"}

# annotation, published schema, {sent: received}, refused
CASES: list[tuple[Any, Any, list[tuple[Any, Any]], list[Any]]] = [
    (Any, {}, [(1, 1), (None, None), ({"a": [1]}, {"a": [1]})], []),
    (object, {}, [(1, 1), (None, None)], []),
    (bool, {"type": "boolean"}, [(True, True)], [1, 0, "true", None]),
    (int, INTEGER, [(5, 5), (5.0, 5), (-1, -1), (10**30, 10**30)], ["5", 5.5, True, None, [5], {}]),
    (float, {"type": "number"}, [(5, 5.0), (0.5, 0.5)], ["5", True, None]),
    (str, STRING, [("5", "5"), ('{"a": 1}', '{"a": 1}'), ("null", "null"), ("", "")], [5, None, ["a"], {}]),
    (bytes, {"type": "string", "contentEncoding": "base64"}, [("aGk=", b"hi")], ["hi!", 5]),
    (None, NULL, [(None, None)], ["null", 0]),
    (UserId, INTEGER, [(7, 7)], ["7"]),
    (
        dt.datetime,
        {"type": "string", "format": "date-time"},
        [
            ("2026-07-28T10:00:00Z", dt.datetime(2026, 7, 28, 10, tzinfo=dt.UTC)),
            ("2026-07-28T10:00:00", dt.datetime(2026, 7, 28, 10)),  # noqa: DTZ001  # a naive one is the point
        ],
        ["yesterday", 5],
    ),
    (
        dt.date,
        {"type": "string", "format": "date"},
        [("2026-07-28", dt.date(2026, 7, 28))],
        ["x"],
    ),
    (dt.time, STRING, [("10:30:00", dt.time(10, 30))], ["x"]),
    (
        dt.timedelta,
        {"type": "string", "format": "duration"},
        [("P1D", dt.timedelta(1))],
        ["a day"],
    ),
    (uuid.UUID, {"type": "string", "format": "uuid"}, [(str(uuid.UUID(int=5)), uuid.UUID(int=5))], ["5"]),
    (
        pathlib.Path,
        {"type": "string", "format": "path"},
        [("a/b", pathlib.Path("a/b"))],
        [5, None],
    ),
    (
        ipaddress.IPv4Address,
        {"type": "string", "format": "ipv4"},
        [("10.0.0.1", ipaddress.IPv4Address("10.0.0.1"))],
        ["10.0.0", 5],
    ),
    (Arch, {"$ref": "#/$defs/Arch"}, [("arm64", Arch.ARM)], ["ARM", "INTEL", 0]),
    (Level, {"$ref": "#/$defs/Level"}, [(1, Level.LOW), (2.0, Level.HIGH)], [3, "LOW"]),
    (
        Literal["low", "high", "mid"],
        {"type": "string", "enum": ["low", "high", "mid"]},
        [("mid", "mid")],
        ["LOW", None],
    ),
    (Literal[1, "a", None], {"enum": [1, "a", None]}, [(1, 1), ("a", "a"), (None, None), (1.0, 1)], [2, "1"]),
    (Optional[int], {"anyOf": [INTEGER, NULL]}, [(None, None), (3, 3)], ["null", "3"]),
    (None | str, {"anyOf": [STRING, NULL]}, [(None, None), ("null", "null")], [0]),
    (Union[int, str], {"anyOf": [INTEGER, STRING]}, [(3, 3), ("3", "3")], [None, 3.5, []]),
    (int | float, {"anyOf": [INTEGER, {"type": "number"}]}, [(3, 3), (3.5, 3.5)], ["3"]),
    (list, {"type": "array"}, [([1, "a"], [1, "a"])], ["[1]", {}]),
    (list[int], {"type": "array", "items": INTEGER}, [([], []), ([1, 2.0], [1, 2])], ["[1]", ["1"], [None]]),
    (Sequence[str], {"type": "array", "items": STRING}, [(["a"], ["a"])], ["a"]),
    (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}, [([1, 2], {1, 2})], [["1"]]),
    (tuple[int, ...], {"type": "array", "items": INTEGER}, [([1, 2], (1, 2))], [["a"]]),
    (
        tuple[int, str],
        {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INTEGER, STRING], "items": False},
        [([1, "a"], (1, "a"))],
        [[1], [1, "a", 2], ["a", 1]],
    ),
    (dict, {"type": "object"}, [({"a": 1}, {"a": 1})], [[], "{}"]),
    (
        dict[str, int],
        {"type": "object", "additionalProperties": INTEGER},
        [({"a": 1}, {"a": 1})],
        [{"a": "1"}],
    ),
    (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}, [({}, {})], [[]]),
    (
        dict[Literal["a", "b"], int],
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INTEGER},
        [({"a": 1}, {"a": 1})],
        [{"c": 1}],
    ),
    (
        Point,
        {"$ref": "#/$defs/Point"},
        [({"x": 1}, Point(1)), ({"x": 1, "y": 2}, Point(1, 2))],
        [{}, {"x": "1"}],
    ),
    (Box[int], {"$ref": "#/$defs/Box_int"}, [({"content": 1}, Box(1))], [{"content": "1"}]),
    (Movie, {"$ref": "#/$defs/Movie"}, [({"title": "M"}, {"title": "M"})], [{}, {"title": "M", "year": "x"}]),
    (Pair, {"$ref": "#/$defs/Pair"}, [([1], Pair(1)), ([1, "x"], Pair(1, "x"))], [[], [1, 2], [1, "x", 3]]),
    (Row, {"$ref": "#/$defs/Row"}, [([1, "x"], Row(1, "x")), ([1, "x", 0], Row(1, "x"))], [[1], ["x", 1]]),
    (Strict, {"$ref": "#/$defs/Strict"}, [({"firstName": "A"}, Strict("A"))], [{"first_name": "A"}]),
    (
        Cat | Dog,
        {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        [({"kind": "cat", "lives": 9}, Cat(9)), ({"kind": "dog", "name": "R"}, Dog("R"))],
        [{"kind": "cow"}, {"lives": 9}, {"kind": "cat", "name": "R"}],
    ),
    (
        Tree,
        {"$ref": "#/$defs/Tree"},
        [({"value": 1, "children": [{"value": 2}]}, Tree(1, [Tree(2)]))],
        [{"value": 1, "children": [{"value": "2"}]}],
    ),
    (Annotated[int, Meta(ge=1, le=3)], {**INTEGER, "minimum": 1, "maximum": 3}, [(1, 1), (3.0, 3)], [0, 4]),
    (
        Annotated[float, Meta(gt=0, lt=1)],
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        [(0.5, 0.5)],
        [0, 1],
    ),
    (Annotated[int, Meta(multiple_of=5)], {**INTEGER, "multipleOf": 5}, [(10, 10)], [11]),
    (
        Annotated[str, Meta(min_length=2, max_length=3)],
        {**STRING, "minLength": 2, "maxLength": 3},
        [("ab", "ab"), ("한국어", "한국어")],
        ["a", "abcd"],
    ),
    (
        Annotated[str, Meta(pattern=r"^[A-Z]-\d{4}$")],
        {**STRING, "pattern": r"^[A-Z]-\d{4}$"},
        [("A-1042", "A-1042")],
        ["A-1042\n", "xA-1042", "A-104", "A-\u0661\u0662\u0663\u0664"],
    ),
    (
        Annotated[list[int], Meta(min_length=1, max_length=2)],
        {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2},
        [([1], [1])],
        [[], [1, 2, 3]],
    ),
    (
        Annotated[
            str, Meta(title="T", description="D", examples=["e"], extra_json_schema={"x-mcp-header": "R"})
        ],
        {**STRING, "title": "T", "description": "D", "examples": ["e"], "x-mcp-header": "R"},
        [("a", "a")],
        [],
    ),
    (Annotated[str, "said in words"], {**STRING, "description": "said in words"}, [("a", "a")], [1]),
    (
        Annotated[int, annotated_types.Ge(1), annotated_types.Lt(4)],
        {**INTEGER, "minimum": 1, "exclusiveMaximum": 4},
        [(3, 3)],
        [0, 4],
    ),
    (
        Annotated[int, annotated_types.Interval(ge=1, le=3)],
        {**INTEGER, "minimum": 1, "maximum": 3},
        [(3, 3)],
        [0, 4],
    ),
    (
        Annotated[list[Annotated[str, annotated_types.MinLen(1)]], annotated_types.Len(1, 2)],
        {"type": "array", "items": {**STRING, "minLength": 1}, "minItems": 1, "maxItems": 2},
        [(["a"], ["a"])],
        [[], [""], ["a", "b", "c"]],
    ),
]


@pytest.mark.parametrize(
    ("annotation", "schema", "accepted", "refused"), CASES, ids=lambda item: str(item)[:40]
)
def test_a_type_publishes_its_schema_and_decodes_by_it(annotation, schema, accepted, refused):
    signature = taking(annotation)
    assert signature.input_schema["properties"]["value"] == schema
    validator = jsonschema_rs.Draft202012Validator(signature.input_schema)
    for sent, received in accepted:
        decoded = signature.decode(text(sent))["value"]
        assert decoded == received
        assert type(decoded) is type(received)
        assert validator.is_valid({"value": sent})
    for sent in refused:
        with pytest.raises(ArgumentError) as caught:
            signature.decode(text(sent))
        assert caught.value.faults
        assert all(fault.field.startswith("value") for fault in caught.value.faults)


def test_a_decimal_is_a_number_or_its_text():
    signature = taking(Decimal)
    options = signature.input_schema["properties"]["value"]["anyOf"]
    assert [option["type"] for option in options] == ["number", "string"]
    assert signature.decode(b'{"value": 1.10}')["value"].as_tuple() == Decimal("1.10").as_tuple()
    assert signature.decode(b'{"value": "1.10"}')["value"].as_tuple() == Decimal("1.10").as_tuple()
    with pytest.raises(ArgumentError):
        signature.decode(b'{"value": "one"}')


def test_a_decimal_keeps_its_digits_when_another_argument_has_to_be_read_twice():
    def tool(count: int, price: Decimal): ...

    decoded = reflect(tool).decode(b'{"count": 5.0, "price": 0.1234567890123456789012345}')
    assert decoded == {"count": 5, "price": Decimal("0.1234567890123456789012345")}


def test_a_number_with_a_monstrous_exponent_is_refused_and_costs_nothing():
    with pytest.raises(ArgumentError):
        taking(int).decode(b'{"value": 1e999999999}')


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        (r"^a$", ["a"], ["a\n", "ab"]),
        (r"a\$", ["a$"], ["a"]),
        (r"^[$]$", ["$"], ["$\n", "a"]),
        (r"^\w+$", ["ab_1"], ["한국어"]),
        (r"^\d+$", ["12"], ["\u0661"]),
        (r"^\s$", [" ", "\u3000"], ["a"]),
        (r"^[\sx]$", ["\u3000", "x"], ["a"]),
        (r"^\S$", ["a"], ["\u3000"]),
        (r"^.$", ["a", "한"], ["\n", "\r", "\u2028"]),
        (r"^[.]$", ["."], ["a"]),
        (r"b", ["abc"], ["ac"]),
        (r"^(?=a)a+(?!x)$", ["aa"], ["ax"]),
        (r"\\$", ["a\\"], ["a"]),
    ],
)
def test_patterns_mean_what_they_mean_in_json_schema(pattern, accepted, refused):
    signature = taking(Annotated[str, Meta(pattern=pattern)])
    assert signature.input_schema["properties"]["value"]["pattern"] == pattern
    for sent in accepted:
        assert signature.decode(text(sent)) == {"value": sent}
    for sent in refused:
        with pytest.raises(ArgumentError):
            signature.decode(text(sent))


def test_definitions_say_what_the_class_says():
    definitions = taking(Point | None).input_schema["$defs"]
    assert definitions == {
        "Point": {
            "title": "Point",
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
            "required": ["x"],
        }
    }
    assert taking(Arch).input_schema["$defs"]["Arch"] == {
        "title": "Arch",
        "type": "string",
        "enum": ["arm64", "x86_64"],
    }
    assert taking(Strict).input_schema["$defs"]["Strict"]["additionalProperties"] is False
    assert taking(Cat | Dog).input_schema["$defs"]["Cat"]["properties"]["kind"] == {"const": "cat"}


def test_typed_dict_members_keep_the_order_in_which_they_were_written():
    class Form(TypedDict):
        zip: str
        city: str

    assert list(taking(Form).input_schema["$defs"]["Form"]["properties"]) == ["zip", "city"]


def test_two_classes_of_one_name_get_two_definitions():
    def make(kind: type) -> type:
        @dataclasses.dataclass
        class Item:
            value: int

        Item.__annotations__["value"] = kind
        return Item

    def tool(a, b): ...

    tool.__annotations__ = {"a": make(int), "b": make(str)}
    schema = reflect(tool).input_schema
    assert schema["properties"] == {"a": {"$ref": "#/$defs/Item"}, "b": {"$ref": "#/$defs/Item_2"}}
    assert schema["$defs"]["Item"]["properties"]["value"] == {"type": "integer"}
    assert schema["$defs"]["Item_2"]["properties"]["value"] == {"type": "string"}


def test_every_published_schema_is_a_valid_schema():
    for annotation, *_ in CASES:
        jsonschema_rs.Draft202012Validator(taking(annotation).input_schema)


class Opaque:
    pass


@pytest.mark.parametrize(
    "annotation", [Opaque, complex, list[Opaque], str | bytes, Point | Movie, dict[str, Opaque]]
)
def test_a_type_that_json_cannot_give_is_refused_at_registration(annotation):
    with pytest.raises(UsageError, match=r"tool.*value"):
        taking(annotation)


def test_deeply_nested_arguments_are_an_argument_error():
    nested = b'{"value":' + b'{"value":1,"children":[' * 5000 + b"]}" * 5000 + b"}"
    with pytest.raises(ArgumentError):
        taking(Tree).decode(nested)
    with pytest.raises(ArgumentError):
        taking(Any).decode(b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
