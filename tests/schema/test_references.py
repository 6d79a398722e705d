"""Following local references, and writing them out for readers that do not follow them."""

import jsonschema_rs
import pytest

from dragoman.schema.errors import InvalidSchema, UnresolvedReference
from dragoman.schema.references import inline, resolve

ROOT = {"$defs": {"a b": {"type": "integer"}, "c/d": {"x": [1, {"y": 2}]}, "e~f": True}}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", ROOT),
        ("#/$defs/a%20b", {"type": "integer"}),
        ("#/$defs/c~1d/x/1/y", 2),
        ("#/$defs/e~0f", True),
        ("#/$defs/none", None),
        ("#/$defs/c~1d/x/9", None),
        ("#/$defs/c~1d/x/-", None),
        ("other.json", None),
        (5, None),
    ],
)
def test_resolve(reference, found):
    assert resolve(ROOT, reference) == found


def test_references_are_written_out_with_what_stands_beside_them():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "description": "this one"}, "b": {"$ref": "#/$defs/A"}},
        "$defs": {
            "A": {"type": "object", "title": "A", "properties": {"x": {"$ref": "#/$defs/X"}}},
            "X": {"type": "integer"},
        },
    }
    a = {"type": "object", "title": "A", "properties": {"x": {"type": "integer"}}}
    assert inline(schema) == {"type": "object", "properties": {"a": {**a, "description": "this one"}, "b": a}}


def test_constraints_beside_a_reference_still_hold():
    schema = {"$defs": {"A": {"minimum": 1}}, "properties": {"a": {"$ref": "#/$defs/A", "minimum": 5}}}
    written = inline(schema)
    assert not jsonschema_rs.is_valid(written, {"a": 3})
    assert jsonschema_rs.is_valid(written, {"a": 5})


def test_a_recursive_definition_keeps_the_reference_at_which_it_enters_itself():
    tree = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Tree"}, "value": {"$ref": "#/$defs/V"}},
    }
    schema = {
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {"Tree": tree, "V": {"type": "integer"}},
    }
    written = inline(schema)
    assert written["properties"]["tree"]["type"] == "object"
    assert written["properties"]["tree"]["properties"]["next"] == {"$ref": "#/$defs/Tree"}
    for value, fits in (
        ({"tree": {"next": {"value": 1}}}, True),
        ({"tree": {"next": {"next": {"value": "x"}}}}, False),
    ):
        assert jsonschema_rs.is_valid(schema, value) is fits
        assert jsonschema_rs.is_valid(written, value) is fits


def test_a_schema_that_refers_to_its_own_root_stays_as_it_is():
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    assert inline(schema) == schema


def test_a_schema_without_references_is_not_changed():
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": ["$ref"]}}}
    assert inline(schema) == schema


def test_a_reference_that_leads_nowhere_is_named():
    with pytest.raises(UnresolvedReference, match="#/\\$defs/B"):
        inline({"properties": {"a": {"$ref": "#/$defs/B"}}})


def test_a_schema_that_would_explode_is_refused():
    definitions = {
        f"d{at}": {"properties": {side: {"$ref": f"#/$defs/d{at + 1}"} for side in "ab"}} for at in range(40)
    }
    definitions["d40"] = {}
    with pytest.raises(InvalidSchema, match="parts"):
        inline({"$ref": "#/$defs/d0", "$defs": definitions})
