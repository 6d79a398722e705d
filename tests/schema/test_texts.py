"""Arguments that arrive as texts are read as the types that the signature names."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from dragoman.schema.errors import ArgumentError
from dragoman.schema.signature import reflect
from dragoman.schema.texts import Texts


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int


def read(annotation: Any, text: str) -> Any:
    def function(value): ...

    function.__annotations__ = {"value": annotation}
    return Texts(reflect(function)).read({"value": text})["value"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "5", "5"),
        (str, "", ""),
        (str, '{"a":1}', '{"a":1}'),
        (Any, "5", "5"),
        (int, "5", 5),
        (int, "-5", -5),
        (float, "2.5", 2.5),
        (float, "2", 2.0),
        (bool, "true", True),
        (bool, "False", False),
        (bool, "1", True),
        (Colour, "blue", Colour.BLUE),
        (Level, "2", Level.HIGH),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (int | None, "5", 5),
        (int | None, "null", None),
        (str | None, "null", "null"),
        (str | int, "5", "5"),
        (Decimal, "1.10", Decimal("1.10")),
        (dt.date, "2026-07-28", dt.date(2026, 7, 28)),
        (uuid.UUID, "00000000-0000-0000-0000-000000000001", uuid.UUID(int=1)),
        (Path, "a/b", Path("a/b")),
        (list[int], "[1, 2]", [1, 2]),
        (list[str], ' ["a"]', ["a"]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (list[Point], '[{"x": 1, "y": 2}]', [Point(1, 2)]),
        (Annotated[int, Meta(ge=1)], "1", 1),
    ],
)
def test_a_text_is_read_as_its_type(annotation: Any, text: str, value: Any) -> None:
    found = read(annotation, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (int, "five", "an integer"),
        (int, "5.5", "an integer"),
        (int, "", "an integer"),
        (int, " 5", "an integer"),
        (int, "0x5", "an integer"),
        (bool, "yes", "true or false"),
        (Colour, "green", 'one of "red", "blue"'),
        (Literal[1, 2], "3", "one of 1, 2"),
        (Annotated[int, Meta(ge=1)], "0", "a number of at least 1"),
        (Annotated[str, Meta(pattern="^a$")], "a\n", "a string that matches ^a$"),
        (list[int], "1,2", "an array"),
        (list[int], '["a"]', "an integer"),
        (Point, '{"x": 1}', "an integer"),
        (Point, '{"x": 1', "an object"),
        (dt.date, "soon", "a string in the format date"),
    ],
)
def test_a_text_that_does_not_fit_is_told_with_what_was_expected(
    annotation: Any, text: str, expected: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        read(annotation, text)
    (fault,) = refused.value.faults
    assert fault.field in ("value", "value[0]", "value.y")
    assert fault.expected == expected


def both(first: str, second: int = 3, third: Colour | None = None) -> None: ...


def test_what_is_absent_has_its_default() -> None:
    texts = Texts(reflect(both))
    assert texts.read({"first": "a"}) == {"first": "a", "second": 3, "third": None}


def test_an_empty_text_stands_for_nothing_where_the_type_holds_none() -> None:
    # Forms send one for each field that was left alone.
    texts = Texts(reflect(both))
    assert texts.read({"first": "", "second": "", "third": ""}) == {
        "first": "",
        "second": 3,
        "third": None,
    }


def test_every_fault_is_told() -> None:
    with pytest.raises(ArgumentError) as refused:
        Texts(reflect(both)).read({"second": "x", "thrd": "red"})
    assert {(fault.field, fault.received) for fault in refused.value.faults} == {
        ("first", "nothing"),
        ("second", '"x"'),
        ("thrd", '"red"'),
    }
    assert 'did you mean "third"?' in str(refused.value)


def test_a_factory_makes_a_new_default_each_time() -> None:
    pydantic = pytest.importorskip("pydantic")

    Names = Annotated[list[str], pydantic.Field(default_factory=list)]

    def function(names: Names) -> None: ...

    texts = Texts(reflect(function))
    first = texts.read({})["names"]
    assert first == []
    assert texts.read({})["names"] is not first


def test_keywords_take_what_has_no_parameter_as_text() -> None:
    def function(a: int, **others: str) -> None: ...

    texts = Texts(reflect(function))
    assert texts.read({"a": "1", "b": "2"}) == {"a": 1, "b": "2"}


def test_pydantic_reads_what_only_it_can() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Person(pydantic.BaseModel):
        name: str
        age: int

    assert read(Person, '{"name": "Ada", "age": 36}') == Person(name="Ada", age=36)
    assert read(Annotated[int, pydantic.AfterValidator(lambda value: value + 1)], "5") == 6
    with pytest.raises(ArgumentError):
        read(Person, "Ada")
