"""The `x-mcp-header` annotations of an input schema, by the constraints of revision 2026-07-28."""

from typing import Annotated, Any

import pytest
from msgspec import Meta

from dragoman.schema.errors import HeaderAnnotationError
from dragoman.schema.parameters import HeaderParameter, header_parameters
from dragoman.schema.signature import reflect


def at_root(part: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}}


def test_the_example_of_the_specification():
    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "The region", "x-mcp-header": "Region"},
            "query": {"type": "string"},
        },
        "required": ["region", "query"],
    }
    (parameter,) = header_parameters(schema)
    assert parameter == HeaderParameter(("region",), "Region", "string")
    assert parameter.value({"region": "us-west1", "query": "SELECT 1"}) == "us-west1"


def test_a_python_author_says_it_in_the_annotation():
    def tool(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})], n: int = 0): ...

    assert header_parameters(reflect(tool).input_schema) == (
        HeaderParameter(("region",), "Region", "string"),
    )


@pytest.mark.parametrize("kind", ["string", "integer", "boolean"])
def test_primitive_types_are_allowed(kind):
    assert header_parameters(at_root({"type": kind, "x-mcp-header": "A"}))[0].type == kind


def test_nested_objects_are_reached_through_properties():
    inner = {"type": "object", "properties": {"b": {"type": "integer", "x-mcp-header": "B"}}}
    (parameter,) = header_parameters(at_root(inner))
    assert parameter.path == ("a", "b")
    assert parameter.value({"a": {"b": 0}}) == 0
    assert parameter.value({"a": {}}) is None
    assert parameter.value({}) is None
    assert parameter.value({"a": [1]}) is None
    assert parameter.value({"a": {"b": None}}) is None


@pytest.mark.parametrize("kind", ["number", "object", "array", "null", ["string", "null"], None])
def test_other_types_are_refused(kind):
    part: dict[str, Any] = {"x-mcp-header": "A"} | ({"type": kind} if kind is not None else {})
    with pytest.raises(HeaderAnnotationError, match="string, integer and boolean are allowed") as caught:
        header_parameters(at_root(part))
    assert caught.value.place == "/properties/a"


@pytest.mark.parametrize("header", ["", None, 5, ["A"], True])
def test_the_annotation_is_a_name(header):
    with pytest.raises(HeaderAnnotationError, match="must be a name"):
        header_parameters(at_root({"type": "string", "x-mcp-header": header}))


@pytest.mark.parametrize("header", ["a b", "a:b", "a\r\nb", "a\n", "é", "a/b", "(a)", "\x00", "a,b", '"a"'])
def test_a_name_is_an_http_token(header):
    with pytest.raises(HeaderAnnotationError, match="no HTTP field name"):
        header_parameters(at_root({"type": "string", "x-mcp-header": header}))


@pytest.mark.parametrize("header", ["Region", "x_y", "!#$%&'*+-.^_`|~0Az"])
def test_every_token_character_is_allowed(header):
    assert header_parameters(at_root({"type": "string", "x-mcp-header": header}))[0].header == header


def test_names_are_unique_whatever_their_case():
    schema = {
        "properties": {
            "a": {"type": "string", "x-mcp-header": "Region"},
            "b": {"properties": {"c": {"type": "string", "x-mcp-header": "REGION"}}},
        }
    }
    with pytest.raises(HeaderAnnotationError, match="twice") as caught:
        header_parameters(schema)
    assert caught.value.place == "/properties/b/properties/c"


MARKED = {"type": "string", "x-mcp-header": "A"}


@pytest.mark.parametrize(
    "schema",
    [
        MARKED,
        at_root({"type": "array", "items": MARKED}),
        at_root({"type": "array", "prefixItems": [MARKED]}),
        at_root({"contains": MARKED}),
        at_root({"anyOf": [MARKED, {"type": "null"}]}),
        at_root({"oneOf": [MARKED]}),
        at_root({"allOf": [MARKED]}),
        at_root({"not": MARKED}),
        at_root({"if": MARKED, "then": {}}),
        at_root({"then": {"properties": {"x": MARKED}}}),
        {"$defs": {"A": MARKED}, "properties": {"a": {"$ref": "#/$defs/A"}}},
        {"definitions": {"A": {"properties": {"x": MARKED}}}},
        {"allOf": [{"properties": {"a": MARKED}}]},
        {"patternProperties": {"^a": MARKED}},
        {"additionalProperties": MARKED},
        {"dependentSchemas": {"a": {"properties": {"b": MARKED}}}},
        {"properties": {"a": {"items": {"properties": {"b": MARKED}}}}},
    ],
    ids=str,
)
def test_an_annotation_that_properties_alone_do_not_reach_is_refused(schema):
    with pytest.raises(HeaderAnnotationError, match="not reachable"):
        header_parameters(schema)


def test_the_name_of_a_property_or_a_value_is_no_annotation():
    schema = {
        "properties": {
            "x-mcp-header": {"type": "string"},
            "b": {"default": {"x-mcp-header": "A"}, "enum": [MARKED]},
        },
        "required": ["x-mcp-header"],
    }
    assert header_parameters(schema) == ()


@pytest.mark.parametrize("schema", [True, {}, {"type": "object"}])
def test_schemas_without_annotations(schema):
    assert header_parameters(schema) == ()
