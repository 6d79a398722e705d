"""Words of a command line become arguments by the tool's schema, and never by a guess where it speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.cli.arguments import assemble, read_object, words
from dragoman.errors import UsageError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "mixed": {"type": ["integer", "string"]},
        "colour": {"enum": ["red", "green"]},
        "level": {"enum": [1, 2, 3]},
        "either": {"enum": [1, "one"]},
        "fixed": {"const": True},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "filter": {"$ref": "#/$defs/Filter"},
        "any": {},
        "dotted.name": {"type": "string"},
        "tree": {"$ref": "#/$defs/Tree"},
    },
    "$defs": {
        "Filter": {
            "type": "object",
            "properties": {"owner": {"type": "string"}, "open": {"type": "boolean"}},
            "additionalProperties": {"type": "string"},
        },
        "Tree": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "child": {"$ref": "#/$defs/Tree"}},
        },
        "Ring": {"$ref": "#/$defs/Ring"},
    },
}


def read(*texts: str, schema: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    return assemble(words(texts), schema)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A string stays what it is, whatever it looks like.
        ("text=123", {"text": "123"}),
        ("text=true", {"text": "true"}),
        ("text=null", {"text": "null"}),
        ('text={"a": 1}', {"text": '{"a": 1}'}),
        ("text=", {"text": ""}),
        ("text=a=b", {"text": "a=b"}),
        ("text=서울", {"text": "서울"}),
        ("text=http://x/?q:=1", {"text": "http://x/?q:=1"}),
        ("maybe=null", {"maybe": "null"}),
        ("mixed=5", {"mixed": "5"}),
        # Everything else is JSON.
        ("count=-5", {"count": -5}),
        ("ratio=1.5e3", {"ratio": 1500.0}),
        ("flag=true", {"flag": True}),
        ("limit=null", {"limit": None}),
        ("limit=7", {"limit": 7}),
        ("fixed=true", {"fixed": True}),
        ("count=123456789012345678901234567890", {"count": 123456789012345678901234567890}),
        # What is neither is passed on, for the server to say what it expects.
        ("count=many", {"count": "many"}),
        ("flag=yes", {"flag": "yes"}),
        # Enumerations say it with their values.
        ("colour=red", {"colour": "red"}),
        ("level=2", {"level": 2}),
        ("either=1", {"either": 1}),
        ("either=one", {"either": "one"}),
        # Arrays: as JSON, or item by item.
        ('tags=["a", "b"]', {"tags": ["a", "b"]}),
        ("tags=a", {"tags": ["a"]}),
        ("tags=1", {"tags": ["1"]}),
        ("numbers=1", {"numbers": [1]}),
        # Where the schema says nothing: JSON if it is JSON.
        ("any=5", {"any": 5}),
        ("any=five", {"any": "five"}),
        ("other=5", {"other": 5}),
        ("other=five", {"other": "five"}),
        # Members of objects.
        ("filter.owner=5", {"filter": {"owner": "5"}}),
        ("filter.open=true", {"filter": {"open": True}}),
        ("filter.label=7", {"filter": {"label": "7"}}),
        ('filter={"owner": "me"}', {"filter": {"owner": "me"}}),
        ("dotted.name=1", {"dotted.name": "1"}),
        ("tree.child.child.name=1", {"tree": {"child": {"child": {"name": "1"}}}}),
        ("unknown.inner=1", {"unknown": {"inner": 1}}),
        # Forced.
        ("text:=5", {"text": 5}),
        ('count:="5"', {"count": "5"}),
        ("maybe:=null", {"maybe": None}),
        ("filter.owner:=null", {"filter": {"owner": None}}),
    ],
)
def test_a_word(text: str, expected: dict[str, Any]) -> None:
    found = read(text)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("tags=a", "tags=b"), {"tags": ["a", "b"]}),
        (("tags=a", 'tags=["b", "c"]'), {"tags": ["a", "b", "c"]}),
        (("numbers=1", "numbers=2"), {"numbers": [1, 2]}),
        (("any=1", "any=x"), {"any": [1, "x"]}),
        (("filter.owner=me", "filter.open=false"), {"filter": {"owner": "me", "open": False}}),
        (("text=a", "count=1"), {"text": "a", "count": 1}),
    ],
)
def test_words_together(texts: tuple[str, ...], expected: dict[str, Any]) -> None:
    assert read(*texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("text=a", "text=b"), "'text' is given twice"),
        (("text:=", "count=1"), "'text': expected JSON after `:=`, received ''"),
        (("text:=five",), "'text': expected JSON"),
        (("any=1", "any.inner=2"), "'any' is given too, and is no object"),
        (("text",), "'text': expected key=value"),
        (("=5",), "'=5': expected key=value"),
        ((":=5",), "':=5': expected key=value"),
    ],
)
def test_words_that_contradict_themselves(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(*texts)


def test_words_go_into_the_object_that_args_gave_and_leave_it_as_it_was() -> None:
    base = {"filter": {"owner": "me"}, "text": "old"}
    assert assemble(words(["filter.open=true", "text=new"]), SCHEMA, base=base) == {
        "filter": {"owner": "me", "open": True},
        "text": "new",
    }
    assert base == {"filter": {"owner": "me"}, "text": "old"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, 5),
        ({"properties": {"q": True}}, 5),
        ({"properties": {"q": {"$ref": "#/$defs/Ring"}}, "$defs": {"Ring": {"$ref": "#/$defs/Ring"}}}, 5),
        ({"$ref": "#/$defs/Ring", "$defs": {"Ring": {"anyOf": [{"$ref": "#/$defs/Ring"}] * 2}}}, 5),
        ({"properties": {"q": {"$ref": "#/$defs/R"}}, "$defs": {"R": {"oneOf": [{"$ref": "#/$defs/R"}]}}}, 5),
        ({"properties": {"q": {"$ref": "https://example.com/s.json"}}}, 5),
        ({"properties": {"q": {"allOf": [{"type": "string"}, {"minLength": 1}]}}}, "5"),
        ({"properties": {"q": {"allOf": [{"type": ["string", "integer"]}, {"type": "integer"}]}}}, 5),
        ({"properties": {"q": {"oneOf": [{"type": "integer"}, {"type": "boolean"}]}}}, 5),
        ({"properties": {"q": {"oneOf": [{"type": "integer"}, {}]}}}, 5),
        ({"additionalProperties": {"type": "string"}}, "5"),
        ({"additionalProperties": False}, 5),
        ({"allOf": [{"properties": {"q": {"type": "string"}}}]}, "5"),
        ({"anyOf": [{"properties": {"p": {}}}, {"properties": {"q": {"type": "string"}}}]}, "5"),
        ({"properties": {"q": {"type": "array", "anyOf": [{"items": {"type": "string"}}]}}}, ["5"]),
        ({"properties": "nonsense", "allOf": "nonsense"}, 5),
        ({"properties": {"q": {"type": 5, "enum": "x", "items": 3}}}, 5),
    ],
)
def test_schemas_of_every_kind(schema: dict[str, Any], expected: Any) -> None:
    assert read("q=5", schema=schema) == {"q": expected}


@pytest.mark.parametrize("text", ["", "5", "[1]", '"x"', "null", "{", "{'a': 1}"])
def test_args_is_a_json_object(text: str) -> None:
    with pytest.raises(UsageError, match="--args: expected a JSON object"):
        read_object(text)


def test_nesting_beyond_reason_is_an_error_and_no_crash() -> None:
    with pytest.raises(UsageError):
        read_object("[" * 100_000)
    assert read("any=" + "[" * 100_000) == {"any": "[" * 100_000}
    assert read(".".join("a" * 50) + "=1")
    with pytest.raises(UsageError, match="more than 100 members"):
        read(".".join("a" * 5000) + "=1")


def test_a_schema_made_to_take_for_ever_does_not() -> None:
    """Each definition names the next one twenty times: read one by one that would be 20^30 places."""
    definitions: dict[str, Any] = {
        f"L{level}": {"anyOf": [{"$ref": f"#/$defs/L{level + 1}"}] * 20} for level in range(30)
    }
    definitions["L30"] = {"type": "string"}
    schema = {
        "properties": {"q": {"$ref": "#/$defs/L0"}},
        "anyOf": [{"$ref": "#/$defs/L0"}],
        "$defs": definitions,
    }
    assert read("q=5", "r=5", schema=schema) == {"q": "5", "r": 5}
