"""Validation by JSON Schema: dialects, references, limits, and what the faults are called."""

import time
from typing import Any

import pytest

from dragoman.schema.bounds import MAX_DEPTH, MAX_SUBSCHEMAS
from dragoman.schema.errors import InvalidSchema, UnresolvedReference, UnsupportedDialect
from dragoman.schema.validate import (
    MAX_FAULTS,
    MAX_VALUE_DEPTH,
    Validator,
    check_schema,
    shape_fault,
)

DRAFT_07 = "http://json-schema.org/draft-07/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = {"a": value}
    return value


def test_a_value_fits_or_its_faults_are_listed():
    validator = Validator({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]})
    assert validator.is_valid({"a": 1, "b": 2})
    assert validator.errors({"a": 1, "b": 2}) == ()
    assert not validator.is_valid({"a": "x"})
    assert {(fault.field, fault.rule) for fault in validator.errors({"a": "x"})} == {
        ("a", "/properties/a/type"),
        ("b", "/required"),
    }


@pytest.mark.parametrize("schema", [True, {}, False])
def test_boolean_and_empty_schemas(schema):
    assert Validator(schema).is_valid({"anything": 1}) is (schema is not False)
    assert bool(Validator(schema).errors(1)) is (schema is False)


@pytest.mark.parametrize("named", [None, DRAFT_2020, DRAFT_2020 + "#", DRAFT_2020.replace("https", "http")])
def test_2020_12_is_spoken_and_the_default(named):
    schema = {"prefixItems": [{"type": "integer"}]} | ({"$schema": named} if named else {})
    assert Validator(schema).is_valid([1])
    assert not Validator(schema).is_valid(["x"])


@pytest.mark.parametrize("named", [DRAFT_07, DRAFT_07.rstrip("#"), "https://json-schema.org/draft-07/schema"])
def test_draft_07_is_spoken(named):
    schema = {"$schema": named, "items": [{"type": "integer"}], "definitions": {"a": {"type": "string"}}}
    assert not Validator(schema).is_valid(["x"])
    # In draft-07 whatever stands beside $ref is ignored.
    schema = {
        "$schema": named,
        "definitions": {"a": {}},
        "properties": {"x": {"$ref": "#/definitions/a", "type": "string"}},
    }
    assert Validator(schema).is_valid({"x": 1})


@pytest.mark.parametrize(
    "named",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://example.com/own",
        "",
    ],
)
def test_another_dialect_is_refused_by_name(named):
    with pytest.raises(UnsupportedDialect) as caught:
        check_schema({"$schema": named})
    assert caught.value.dialect == named
    assert caught.value.place == "/$schema"


@pytest.mark.parametrize(
    ("schema", "reference"),
    [
        ({"$ref": "http://127.0.0.1:9/never"}, "http://127.0.0.1:9/never"),
        (
            {"properties": {"a": {"anyOf": [{}, {"$ref": "https://example.com/x.json#/a"}]}}},
            "https://example.com/x.json#/a",
        ),
        ({"$defs": {"unused": {"$ref": "file:///etc/passwd"}}}, "file:///etc/passwd"),
        ({"$ref": "#/$defs/nowhere"}, "#/$defs/nowhere"),
        ({"$ref": "other.json"}, "other.json"),
    ],
)
def test_a_reference_out_of_the_schema_is_refused_by_name_and_never_fetched(schema, reference):
    with pytest.raises(UnresolvedReference) as caught:
        check_schema(schema)
    assert caught.value.reference == reference
    assert caught.value.place.endswith("/$ref")


def test_local_references_anchors_and_embedded_resources():
    assert not Validator({"$defs": {"a": {"type": "integer"}}, "items": {"$ref": "#/$defs/a"}}).is_valid(
        ["x"]
    )
    assert not Validator({"$defs": {"a": {"$anchor": "here", "type": "integer"}}, "$ref": "#here"}).is_valid(
        "x"
    )
    embedded = {
        "$id": "https://example.com/a",
        "$defs": {"i": {"$id": "item", "type": "integer"}},
        "$ref": "item",
    }
    assert not Validator(embedded).is_valid("x")
    assert Validator({"properties": {"$ref": {"type": "string"}}}).is_valid({"$ref": "a name like any other"})


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "strin"}, "/type"),
        ({"properties": {"a": {"minimum": "x"}}}, "/properties/a/minimum"),
        ({"properties": {"a/b": {"required": "x"}}}, "/properties/a~1b/required"),
        ({"pattern": "("}, "/pattern"),
        ({"properties": {"a": {"pattern": "["}}}, "/properties/a/pattern"),
        ({"$schema": 5}, "/$schema"),
    ],
)
def test_a_bad_schema_is_refused_with_the_place(schema, place):
    with pytest.raises(InvalidSchema) as caught:
        check_schema(schema)
    assert caught.value.place == place


@pytest.mark.parametrize("schema", [None, [], "x", 5])
def test_what_is_no_schema_at_all(schema):
    with pytest.raises(InvalidSchema, match="an object or a boolean"):
        check_schema(schema)


def test_schemas_are_limited_in_depth_and_number():
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH):
        deep = {"properties": {"a": deep}}
    with pytest.raises(InvalidSchema, match="nested"):
        check_schema(deep)
    check_schema(deep["properties"]["a"])
    with pytest.raises(InvalidSchema, match="parts"):
        check_schema({"properties": {f"p{number}": {} for number in range(MAX_SUBSCHEMAS)}})
    check_schema({"properties": {f"p{number}": {} for number in range(MAX_SUBSCHEMAS - 1)}})
    very_deep: dict[str, Any] = {}
    for _ in range(100_000):
        very_deep = {"not": very_deep}
    with pytest.raises(InvalidSchema):
        check_schema(very_deep)


def test_references_that_multiply_are_refused():
    definitions: dict[str, Any] = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2, "unevaluatedProperties": False}
        for at in range(30)
    }
    definitions["d30"] = {"type": "integer"}
    with pytest.raises(InvalidSchema, match="references"):
        check_schema({"$defs": definitions, "$ref": "#/$defs/d0"})


def test_a_reference_cycle_ends():
    for schema in (
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ):
        Validator(schema).errors({"a": 1})


def test_a_recursive_union_does_not_multiply_on_the_way_down():
    member = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    validator = Validator({"anyOf": [member, member]})
    started = time.process_time()
    assert not validator.is_valid(nested(1, 60))
    (fault,) = validator.errors(nested(1, 60))
    assert time.process_time() - started < 2  # 2 to the 60th otherwise
    assert fault.expected == "a value that the schema accepts"
    assert validator.errors(nested({}, 60)) == ()


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_long_chains_of_references_deep_in_a_value_do_not_exhaust_the_stack(keyword):
    definitions: dict[str, Any] = {f"d{at}": {keyword: [{"$ref": f"#/$defs/d{at + 1}"}]} for at in range(100)}
    definitions["d100"] = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}}
    validator = Validator({"$defs": definitions, "$ref": "#/$defs/d0"})
    assert validator.errors(nested({}, MAX_VALUE_DEPTH - 1)) == ()
    assert len(validator.errors(nested(1, MAX_VALUE_DEPTH - 1))) == 1


def test_recursive_schemas_of_ordinary_kind_list_their_faults():
    tree = {
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "left": {"$ref": "#/$defs/tree"},
                    "right": {"$ref": "#/$defs/tree"},
                    "value": {"type": "integer"},
                },
            }
        },
        "$ref": "#/$defs/tree",
    }
    value: Any = {"value": "x"}
    for _ in range(40):
        value = {"left": value, "value": 1}
    (fault,) = Validator(tree).errors(value)
    assert fault.expected == "an integer"
    assert fault.field.endswith(".left.value")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a+)+\\1$", "^(?=a)(a+)+$"])
def test_no_pattern_blows_up(pattern):
    validator = Validator({"pattern": pattern})
    started = time.process_time()
    assert not validator.is_valid("a" * 50 + "b")
    assert validator.errors("a" * 50 + "b")
    assert time.process_time() - started < 2


def test_look_around_works():
    validator = Validator({"pattern": "^(?=.*[0-9])(?!.*x).+$"})
    assert validator.is_valid("a1")
    assert not validator.is_valid("a")
    assert not validator.is_valid("1x")


def test_patterns_end_where_the_text_ends():
    assert not Validator({"pattern": "^a$"}).is_valid("a\n")


def test_formats_are_annotations_unless_asked_for():
    validator = Validator({"format": "uuid"})
    assert validator.errors("x") == ()
    assert validator.errors("x", formats=True)[0].expected == "a string in the format uuid"


def test_a_value_too_deep_is_a_fault_and_no_crash():
    validator = Validator({"type": "object"})
    (fault,) = validator.errors(nested(1, MAX_VALUE_DEPTH + 1))
    assert "nested" in fault.expected
    assert validator.errors(nested(1, MAX_VALUE_DEPTH)) == ()
    assert not Validator({"properties": {"a": {"$ref": "#"}}, "type": "object"}).is_valid(nested(1, 100_000))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, "\ud800", b"x"])
def test_what_is_no_json_value_is_a_fault(value):
    validator = Validator({"type": ["object", "number", "string"]})
    assert not validator.is_valid({"a": value}) or validator.errors({"a": value}) == ()
    assert validator.errors(value)


def test_many_faults_are_cut():
    validator = Validator({"items": {"type": "string"}})
    assert len(validator.errors(list(range(1000)))) == MAX_FAULTS
    assert len(validator.errors(list(range(100_000)))) == 1


def test_nothing_is_compiled_before_it_is_needed():
    validator = Validator({"type": "strin"})
    with pytest.raises(InvalidSchema):
        validator.is_valid(1)


def test_integers_are_numbers_of_integral_value():
    validator = Validator({"type": "integer"})
    assert validator.is_valid(5.0)
    assert not validator.is_valid(5.5)
    assert not validator.is_valid(True)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"not": {"type": "string"}}, "x", None),
        ({"oneOf": [{"type": "integer"}, {"minimum": 0}]}, 5, None),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, None),
        ({"contains": {"type": "integer"}}, ["x"], None),
        ({"uniqueItems": True}, [1, 1], "an array whose items all differ"),
        ({"minProperties": 1}, {}, "an object of at least 1 member"),
        ({"maxProperties": 0}, {"a": 1}, "an object of at most 0 members"),
        ({"maxItems": 0}, [1], "an array of at most 0 items"),
        ({"properties": {"a": False}}, {"a": 1}, "nothing in this place"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, None),
        ({"unevaluatedProperties": False}, {"a": 1}, "no member of this name"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "an integer or null"),
        ({"const": {"a": 1}}, 1, '{"a":1}'),
    ],
)
def test_every_keyword_has_a_fault_in_words(schema, value, expected):
    faults = Validator(schema).errors(value)
    assert faults
    if expected is not None:
        assert faults[0].expected == expected
    assert all(fault.expected and fault.received and fault.rule for fault in faults)


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, None),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}, None),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "at /properties/a/type"),
        ({"type": "object", "required": "a"}, "at /required"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema#", "required": "a"}, "at /required"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "required": "a"}, None),
        ({"$schema": "urn:one-of-my-own", "required": "a"}, None),
        (True, None),
    ],
)
def test_a_schema_is_held_to_the_rules_for_schemas(schema, says):
    fault = shape_fault(schema)
    assert fault is None if says is None else says in fault
