"""What of a tool is different, and whether calls that were right still are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.host.change import changes, worst
from dragoman.schema.validate import Validator


def tool(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", **schema}, **more}


def said(was: dict[str, Any], now: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change.kind, change.place.removeprefix("inputSchema.")) for change in changes(was, now)]


ID = {"properties": {"id": {"type": "string"}}, "required": ["id"]}
CASES: list[tuple[str, dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    ("the same", ID, ID, []),
    (
        "an argument that has to be there",
        ID,
        {"properties": {"id": {"type": "string"}, "cc": {}}, "required": ["id", "cc"]},
        [("breaking", "required"), ("compatible", "properties.cc")],
    ),
    (
        "an argument that may be there",
        ID,
        {**ID, "properties": {"id": {"type": "string"}, "cc": {}}},
        [("compatible", "properties.cc")],
    ),
    ("an argument less", ID, {}, [("compatible", "required"), ("breaking", "properties.id")]),
    (
        "another type",
        {"properties": {"n": {"type": "integer"}}},
        {"properties": {"n": {"type": "string"}}},
        [("breaking", "properties.n.type"), ("compatible", "properties.n.type")],
    ),
    (
        "a wider type: every integer is a number",
        {"properties": {"n": {"type": "integer"}}},
        {"properties": {"n": {"type": "number"}}},
        [("compatible", "properties.n.type")],
    ),
    (
        "fewer values",
        {"properties": {"n": {"enum": ["a", "b"]}}},
        {"properties": {"n": {"enum": ["a"]}}},
        [("breaking", "properties.n.enum")],
    ),
    (
        "more values",
        {"properties": {"n": {"enum": ["a"]}}},
        {"properties": {"n": {"enum": ["a", "b"]}}},
        [("compatible", "properties.n.enum")],
    ),
    (
        "a closer bound",
        {"properties": {"n": {"maximum": 5}}},
        {"properties": {"n": {"maximum": 4}}},
        [("breaking", "properties.n.maximum")],
    ),
    (
        "no bound any more",
        {"properties": {"n": {"minLength": 5}}},
        {"properties": {"n": {}}},
        [("compatible", "properties.n.minLength")],
    ),
    (
        "another default: the same call does something else",
        {"properties": {"n": {"default": "/tmp"}}},
        {"properties": {"n": {"default": "/"}}},
        [("breaking", "properties.n.default")],
    ),
    (
        "nothing beside what is named",
        {},
        {"additionalProperties": False},
        [("breaking", "additionalProperties")],
    ),
    (
        "words",
        {"properties": {"n": {"description": "a"}}},
        {"properties": {"n": {"description": "b"}}},
        [("text", "properties.n.description")],
    ),
    (
        "words in an alternative",
        {"properties": {"n": {"anyOf": [{"type": "string", "title": "a"}, {"type": "null"}]}}},
        {"properties": {"n": {"anyOf": [{"type": "string", "title": "b"}, {"type": "null"}]}}},
        [("text", "properties.n.anyOf[0].title")],
    ),
    (
        "one alternative less",
        {"properties": {"n": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"properties": {"n": {"anyOf": [{"type": "string"}]}}},
        [("breaking", "properties.n.anyOf")],
    ),
    (
        "behind a reference that reads the same",
        {"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}},
        {"properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "string"}}},
        [("breaking", "properties.n.type"), ("compatible", "properties.n.type")],
    ),
    (
        "a definition that enters itself",
        {
            "$ref": "#/$defs/N",
            "$defs": {
                "N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "v": {"maximum": 2}}}
            },
        },
        {
            "$ref": "#/$defs/N",
            "$defs": {
                "N": {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "v": {"maximum": 1}}}
            },
        },
        [("breaking", "properties.v.maximum")],
    ),
    (
        "beside a reference",
        {"properties": {"n": {"$ref": "#/$defs/N", "maxLength": 9}}, "$defs": {"N": {"type": "string"}}},
        {"properties": {"n": {"$ref": "#/$defs/N", "maxLength": 8}}, "$defs": {"N": {"type": "string"}}},
        [("breaking", "properties.n.maxLength")],
    ),
    (
        "a pattern, of which nobody can tell",
        {"properties": {"n": {"pattern": "^a"}}},
        {"properties": {"n": {"pattern": "^a|b"}}},
        [("breaking", "properties.n.pattern")],
    ),
]


@pytest.mark.parametrize(
    ("was", "now", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_of_what_is_accepted(
    was: dict[str, Any], now: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert sorted(said(tool(was), tool(now))) == sorted(expected)


def test_of_what_is_answered_less_promised_is_what_breaks() -> None:
    def gives(**schema: Any) -> dict[str, Any]:
        return tool({}, outputSchema={"type": "object", **schema})

    has = gives(properties={"n": {"type": "integer"}}, required=["n"])
    may = gives(properties={"n": {"type": "integer"}})
    wider = gives(properties={"n": {"type": ["integer", "null"]}}, required=["n"])
    assert worst(changes(has, may)) == "breaking"
    assert worst(changes(may, has)) == "compatible"
    assert worst(changes(has, wider)) == "breaking"
    assert worst(changes(wider, has)) == "compatible"
    assert worst(changes(has, tool({}))) == "breaking"
    assert worst(changes(tool({}), has)) == "compatible"


@pytest.mark.parametrize(
    ("was", "now", "kind"),
    [
        ({"readOnlyHint": True}, {}, "breaking"),
        ({}, {"readOnlyHint": True}, "compatible"),
        ({"destructiveHint": False}, {"destructiveHint": True}, "breaking"),
        ({"destructiveHint": False}, {}, "breaking"),  # what is not said is destructive
        ({}, {"destructiveHint": True}, None),
        ({"openWorldHint": False}, {}, "breaking"),
        ({"idempotentHint": True}, {"idempotentHint": False}, "breaking"),
        ({"title": "A"}, {"title": "B"}, "text"),
    ],
)
def test_hints(was: dict[str, Any], now: dict[str, Any], kind: str | None) -> None:
    assert worst(changes(tool({}, annotations=was), tool({}, annotations=now))) == kind


def test_definitions_that_would_fill_the_world_come_to_an_end() -> None:
    def wide(last: str) -> dict[str, Any]:
        parts = {
            f"N{i}": {"properties": {"a": {"$ref": f"#/$defs/N{i + 1}"}, "b": {"$ref": f"#/$defs/N{i + 1}"}}}
            for i in range(40)
        }
        return tool({"$ref": "#/$defs/N0", "$defs": {**parts, "N40": {"type": last}}})

    assert changes(wide("string"), wide("string")) == []
    assert len(changes(wide("string"), wide("integer"))) <= 10_000


PLAIN: list[Any] = [{}, True, {"enum": [1, "a"]}, {"enum": [1]}, {"type": ["string", "null"]}]
LEAVES: st.SearchStrategy[Any] = st.sampled_from(
    [
        *PLAIN,
        *({"type": kind} for kind in ("string", "integer", "number")),
        *({"type": "integer", "minimum": least} for least in (1, 2)),
    ]
)


def table(members: dict[str, Any], needed: set[str], *, closed: bool) -> dict[str, Any]:
    # Nobody is held to have passed an argument that was not named, though an open object took it.
    members = members if closed else {"a": True, "b": True, **members}
    schema: dict[str, Any] = {"type": "object", "properties": members}
    if needed & members.keys():
        schema["required"] = sorted(needed & members.keys())
    if closed:
        schema["additionalProperties"] = False
    return schema


def items(inner: Any) -> dict[str, Any]:
    return {"type": "array", "items": inner}


def either(one: Any, two: Any) -> dict[str, Any]:
    return {"anyOf": [one, two]}


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            table,
            st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            st.sets(st.sampled_from("ab")),
            closed=st.booleans(),
        ),
        st.builds(items, inner),
        st.builds(either, inner, inner),
    ),
    max_leaves=6,
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, 1, 2, 0, 1.5, "a", "b"]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)


@given(SCHEMAS, SCHEMAS, st.lists(VALUES, max_size=30))
def test_what_is_not_called_breaking_breaks_no_call(was: Any, now: Any, values: list[Any]) -> None:
    found = changes({"inputSchema": was}, {"inputSchema": now})
    if worst(found) == "breaking":
        return
    before, after = Validator(was), Validator(now)
    for value in values:
        assert not before.is_valid(value) or after.is_valid(value), found


@given(SCHEMAS)
def test_the_same_is_the_same(schema: Any) -> None:
    assert changes({"inputSchema": schema}, {"inputSchema": schema}) == []
