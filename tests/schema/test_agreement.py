"""For generated types and values: the published schema accepts a value exactly when a call does."""

import dataclasses
import enum
import json
import random
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union

import jsonschema_rs
import msgspec
import pydantic
import pytest
from msgspec import Meta

from dragoman.schema.errors import ArgumentError
from dragoman.schema.signature import reflect
from dragoman.schema.validate import Validator


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


@dataclasses.dataclass
class Plain:
    a: int
    b: Optional[str] = None


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    a: bool
    b: list[int] = []


class Tree(msgspec.Struct):
    a: Union[int, str]
    b: list["Tree"] = []


class Loose(TypedDict):
    a: float
    b: NotRequired[Literal["a", 1]]


class Pair(NamedTuple):
    a: int
    b: str = ""


class Model(pydantic.BaseModel):
    a: int = pydantic.Field(ge=0)
    b: Optional[list[str]] = None


LEAVES: list[Any] = [
    int,
    float,
    str,
    bool,
    None,
    Any,
    Colour,
    Number,
    Plain,
    Closed,
    Tree,
    Loose,
    Pair,
    Model,
    Literal["a", "b"],
    Literal[1, 2],
    Annotated[int, Meta(ge=0, le=5)],
    Annotated[float, Meta(gt=0)],
    Annotated[str, Meta(min_length=1, max_length=2)],
    Annotated[str, Meta(pattern=r"^[ab]\d*$")],
]


def some_type(chance: random.Random, depth: int = 2) -> Any:
    if depth == 0 or chance.random() < 0.4:
        return chance.choice(LEAVES)
    inner = some_type(chance, depth - 1)
    kind = chance.randrange(6)
    if kind == 0:
        return list[inner]
    if kind == 1:
        return dict[str, inner]
    if kind == 2:
        return tuple[inner, some_type(chance, depth - 1)]
    if kind == 3:
        return Optional[inner]
    if kind == 4:
        # msgspec tells the members of a union apart by their JSON type alone, so each has one of its own.
        return Union[chance.choice([list[inner], dict[str, inner]]), chance.choice([int, str, bool, float])]
    return Annotated[list[inner], Meta(min_length=1, max_length=2)]


def some_value(chance: random.Random, depth: int = 3) -> Any:
    kind = chance.randrange(10 if depth else 7)
    if kind == 0:
        return chance.choice([0, 1, 2, 5, 6, -1, 10**20])
    if kind == 1:
        return chance.choice([0.0, 1.0, 2.0, 0.5, -3.25, 1e20])
    if kind in (2, 3):
        return chance.choice(["", "a", "b", "a1", "abc", "red", "null", "1", "[1]", "a\n", "\u0661"])
    if kind == 4:
        return chance.random() < 0.5
    if kind == 5:
        return None
    if kind in (6, 7):
        return [some_value(chance, depth - 1) for _ in range(chance.randrange(3))] if depth else []
    return {name: some_value(chance, depth - 1) for name in "abc" if chance.random() < 0.6}


def near_value(chance: random.Random, schema: Any, root: Any, depth: int = 4) -> Any:
    """A value that a schema of ours is likely to accept, so that both verdicts are seen."""
    if depth == 0 or schema is True or chance.random() < 0.05:
        return some_value(chance, 1)
    if "$ref" in schema:
        return near_value(chance, root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth)
    if "anyOf" in schema:
        return near_value(chance, chance.choice(schema["anyOf"]), root, depth)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind == "object":
        found = {
            name: near_value(chance, part, root, depth - 1)
            for name, part in schema.get("properties", {}).items()
            if name in schema.get("required", ()) or chance.random() < 0.5
        }
        if isinstance(schema.get("additionalProperties"), dict):
            found["x"] = near_value(chance, schema["additionalProperties"], root, depth - 1)
        return found
    if kind == "array":
        if "prefixItems" in schema:
            return [near_value(chance, part, root, depth - 1) for part in schema["prefixItems"]]
        return [
            near_value(chance, schema.get("items", True), root, depth - 1) for _ in range(chance.randrange(3))
        ]
    plain = {
        "integer": [0, 3, 4.0],
        "number": [1, 0.5],
        "string": ["a", "b1"],
        "boolean": [True],
        "null": [None],
    }
    return chance.choice(plain[kind]) if kind in plain else some_value(chance, 2)


def is_odd(annotation: Any) -> bool:
    """pydantic takes true for the literal 1 (they are equal in Python); JSON Schema does not."""
    return "Model" in str(annotation) and "Literal[1" in str(annotation)


def accepts(signature: Any, value: Any) -> bool:
    faults: Any = None
    try:
        signature.decode(json.dumps({"value": value}).encode())
    except ArgumentError as error:
        faults = error.faults
    assert faults is None or len(faults) > 0
    return faults is None


@pytest.mark.parametrize("seed", range(150))
def test_the_schema_accepts_what_the_call_accepts(seed):
    chance = random.Random(seed)
    for _ in range(20):
        annotation = some_type(chance)
        if is_odd(annotation):
            continue

        def tool(value): ...

        tool.__annotations__ = {"value": annotation}
        signature = reflect(tool)
        validator = jsonschema_rs.Draft202012Validator(signature.input_schema)
        ours = Validator(signature.input_schema)
        for _ in range(15):
            part = signature.input_schema["properties"]["value"]
            value = (
                near_value(chance, part, signature.input_schema)
                if chance.random() < 0.7
                else some_value(chance)
            )
            expected = validator.is_valid({"value": value})
            assert accepts(signature, value) is expected, (annotation, value, signature.input_schema)
            assert bool(ours.errors({"value": value})) is not expected
