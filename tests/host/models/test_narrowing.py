"""Schemas on their way to an API: what is kept, what is told, and that no valid call becomes impossible."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.host.models import APIS, gemini_schemas, strictness
from dragoman.host.models.base import Definitions, ToolUse
from dragoman.host.models.schemas import UnfitError, flat, without_nulls

from .samples import SCHEMAS, tool

EITHER = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def obj(properties, required=(), **more):
    return {"type": "object", "properties": properties, "required": [*required], **more}


def prop(schema, *, convert=strictness.openai):
    """What becomes of the schema of one required property."""
    return convert(obj({"p": schema}, ["p"]))[0]["properties"]["p"]


# --- OpenAI, strict -------------------------------------------------------------------------------------


def test_every_property_is_required_and_an_optional_one_takes_null():
    schema, lost = strictness.openai(obj({"a": {"type": "string"}, "b": {"type": "integer"}}, ["a"]))
    assert schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert lost == []


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": "a"}, {"anyOf": [{"const": "a", "type": "string"}, {"type": "null"}]}),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        (
            {"$ref": "#/$defs/A", "description": "It."},
            {"description": "It.", "anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]},
        ),
    ],
)
def test_ways_to_take_null(schema, becomes):
    found = strictness.openai(obj({"p": schema}, **{"$defs": {"A": {"type": "string"}}}))[0]
    assert found["properties"]["p"] == becomes


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"allOf": [{"type": "string"}, {"pattern": "^a"}]}, {"type": "string", "pattern": "^a"}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        (
            {"type": "string", "minLength": 2, "description": "A name."},
            {"type": "string", "description": "A name.\n\nminLength: 2"},
        ),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": 'format: "uri"'}),
        ({"type": "integer", "minimum": 1, "x-own": 1}, {"type": "integer", "minimum": 1}),
        ({"type": "string", "pattern": "(?=a)"}, {"type": "string", "description": 'pattern: "(?=a)"'}),
        (
            {"$ref": "#/properties/p/anyOf/0", "title": "T"},
            None,
        ),
    ],
)
def test_what_strict_has_no_word_for_stands_in_the_description(schema, becomes):
    if becomes is None:
        with pytest.raises(UnfitError):
            prop(schema)
    else:
        assert prop(schema) == becomes


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (SCHEMAS["map"], "the object at /properties/m has free keys"),
        (obj({"m": {"type": "object"}}), "the object at /properties/m has free keys"),
        ({"type": "object", "additionalProperties": True}, "the object at the root has free keys"),
        (SCHEMAS["any value"], "/properties/v/anyOf/0 takes any value"),
        (SCHEMAS["tuple"], "prefixItems at /properties/t has no equivalent"),
        (SCHEMAS["conditions"], "patternProperties at the root has no equivalent"),
        (SCHEMAS["array without items"], "the array at /properties/l needs items"),
        (SCHEMAS["elsewhere"], "leads out of the schema: 'https://example.com/a.json'"),
        (obj({f"p{n}": {"type": "null"} for n in range(5_001)}), "5,001 properties; at most 5,000"),
        (obj({"e": {"enum": [*range(1_001)]}}, ["e"]), "1,001 values in enums; at most 1,000"),
        (obj({"e": {"enum": ["x" * 60 + str(n) for n in range(300)]}}, ["e"]), "15,000 characters"),
        (obj({"x" * 120_001: {"type": "null"}}), "120,001 characters"),
    ],
)
def test_what_cannot_be_strict_says_why(schema, says):
    with pytest.raises(UnfitError, match=says):
        strictness.openai(schema)
    for name in ("openai-chat", "openai-responses"):
        found = APIS[name].definitions([tool(schema=schema)], strict=True)
        (dropped,) = [item for item in found.dropped if item.keyword == "strict"]
        assert says in dropped.why
        function = found.blocks[0].get("function", found.blocks[0])
        assert not function.get("strict")
        assert found.nulled == {}


def nested(levels):
    schema: dict = {"type": "string"}
    for _ in range(levels):
        schema = obj({"a": schema}, ["a"])
    return schema


def test_ten_levels_are_strict_and_eleven_are_not():
    strictness.openai(nested(10))
    with pytest.raises(UnfitError, match="11 levels of objects and arrays; at most 10"):
        strictness.openai(nested(11))


def test_a_schema_that_refers_to_itself_can_be_strict():
    schema, _ = strictness.openai(SCHEMAS["recursive"])
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "object", "anyOf": [], "additionalProperties": False}, "anyOf at the root"),
        (
            obj({"a": {"type": "string"}}, additionalProperties=False),
            "required at the root has to name every property: a",
        ),
        (obj({}, ["b"], additionalProperties=False), "required at the root names no property: b"),
        (obj({}), "additionalProperties at the root has to be false"),
        (
            obj({"a": {"$ref": "#", "title": "x"}}, ["a"], additionalProperties=False),
            "$ref with other keywords beside it at /properties/a",
        ),
        (obj({"a": {"not": {}, "type": "null"}}, ["a"], additionalProperties=False), "not at /properties/a"),
        (
            obj({"a": {}}, ["a"], additionalProperties=False),
            "/properties/a takes any value: a type is needed",
        ),
        ({"type": "string"}, "the root has to be of type 'object'"),
    ],
)
def test_the_check_of_strict_schemas_names_place_and_rule(schema, says):
    assert says in [*strictness.openai_faults(schema)]


# --- Anthropic, strict ----------------------------------------------------------------------------------


def test_anthropic_holds_to_optional_properties_as_they_are():
    schema, _ = strictness.anthropic(obj({"a": {"type": "string"}, "b": {"type": "integer"}}, ["a"]))
    assert schema["required"] == ["a"]
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"type": "integer", "minimum": 1}, {"type": "integer", "description": "minimum: 1"}),
        (
            {"type": "array", "items": {"type": "null"}, "minItems": 2},
            {"type": "array", "items": {"type": "null"}, "description": "minItems: 2"},
        ),
        (
            {"type": "array", "items": {"type": "null"}, "minItems": 1},
            {"type": "array", "items": {"type": "null"}, "minItems": 1},
        ),
        ({"type": "string", "format": "uri"}, {"type": "string", "format": "uri"}),
    ],
)
def test_what_anthropic_has_no_grammar_for_stands_in_the_description(schema, becomes):
    assert prop(schema, convert=strictness.anthropic) == becomes


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (obj({}), "additionalProperties at the root has to be false"),
        (
            obj({"a": {"type": "string", "minLength": 1}}, additionalProperties=False),
            "minLength at /properties/a",
        ),
        (obj({"a": {}}, additionalProperties=False), "/properties/a takes any value"),
        (obj({"a": {"$ref": "#"}}, additionalProperties=False), "refers to what it is in: '#'"),
        (obj({"a": {"type": "string"}}, additionalProperties=False), None),
    ],
)
def test_the_check_of_anthropics_strict_schemas(schema, says):
    assert says in "".join(strictness.anthropic_faults(schema)) if says else True
    assert bool([*strictness.anthropic_faults(schema)]) is (says is not None)


def test_anthropic_has_no_grammar_for_a_schema_that_refers_to_itself():
    with pytest.raises(UnfitError, match="refers to what it is in"):
        strictness.anthropic(SCHEMAS["recursive"])


# --- Gemini ---------------------------------------------------------------------------------------------


def test_gemini_keeps_what_its_reference_lists():
    schema, lost = gemini_schemas.json_schema(SCHEMAS["bounds"])
    assert schema["properties"]["n"] == {
        "type": "integer",
        "minimum": 1,
        "description": "exclusiveMaximum: 10; default: 5",
    }
    assert {item.keyword for item in lost} == {
        *("exclusiveMaximum", "default", "minLength", "pattern", "examples", "uniqueItems"),
    }


def test_gemini_takes_no_required_property_that_leads_back():
    schema, lost = gemini_schemas.json_schema(SCHEMAS["recursive"])
    assert schema["$defs"]["Node"]["required"] == ["name"]
    assert schema["required"] == ["tree"] or "tree" in str(lost)
    assert ("/$defs/Node", "required") in [(item.path, item.keyword) for item in lost]


@pytest.mark.parametrize(
    ("schema", "becomes"),
    [
        ({"type": "string"}, {"type": "STRING"}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}),
        ({"const": "x"}, {"type": "STRING", "enum": ["x"]}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "INTEGER", "description": "enum: [1, 2]"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "STRING", "nullable": True}),
        ({"$ref": "#/$defs/A"}, {"type": "NUMBER"}),
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": "string", "format": "uri"}, {"type": "STRING", "description": 'format: "uri"'}),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            {"type": "ARRAY", "items": {"type": "STRING"}, "minItems": 1},
        ),
    ],
)
def test_openapi_says_it_in_its_own_words(schema, becomes, published):
    whole = obj({"p": schema}, ["p"], **{"$defs": {"A": {"type": "number"}}})
    found, _ = gemini_schemas.openapi(whole)
    assert found["properties"]["p"] == becomes
    assert published.openapi(found) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_openapi_is_of_the_published_type(name, published):
    found, _ = gemini_schemas.openapi(flat(SCHEMAS[name])[0])
    assert "$" not in json.dumps(found).replace("$schema", "")
    assert published.openapi(found) == []


def test_openapi_writes_what_refers_to_itself_out_once():
    found, lost = gemini_schemas.openapi(SCHEMAS["recursive"])
    child = found["properties"]["tree"]["properties"]["children"]["items"]
    assert child == {"type": "OBJECT"}
    assert "$ref" in [item.keyword for item in lost]


def test_openapi_refuses_names_of_properties():
    with pytest.raises(UnfitError, match="property 'a-b' at the root: expected a letter"):
        gemini_schemas.openapi(obj({"a-b": {"type": "string"}}))


# --- the root -------------------------------------------------------------------------------------------


def test_alternatives_at_the_root_lend_their_properties_and_are_told():
    schema, note, lost = flat(SCHEMAS["root alternatives"])
    assert "oneOf" not in schema
    assert [*schema["properties"]] == ["c", "a", "b"]
    assert note == "Exactly one of these sets of arguments is required: a; or b."
    assert [(item.path, item.keyword) for item in lost] == [("", "oneOf")]


def test_what_alternatives_say_of_one_property_is_a_union():
    kinds = [{"properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in ("a", "b")]
    schema = flat({"type": "object", "oneOf": kinds})[0]
    assert schema["properties"] == {"kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}}
    assert flat({"type": "object", "allOf": [*kinds[:1], *kinds[:1]]})[0]["properties"] == {
        "kind": {"const": "a"}
    }
    both = flat({"type": "object", "properties": {"kind": {"type": "string"}}, "allOf": kinds[:1]})[0]
    assert both["properties"] == {"kind": {"allOf": [{"type": "string"}, {"const": "a"}]}}


def test_alternatives_at_the_root_may_be_references():
    schema = {
        "type": "object",
        "anyOf": [{"$ref": "#/$defs/A"}],
        "$defs": {"A": {"properties": {"a": {}}, "required": ["a"]}},
    }
    assert flat(schema)[0]["properties"] == {"a": {}}


def test_a_root_that_is_a_reference_is_what_it_refers_to():
    assert flat(SCHEMAS["root reference"])[0]["required"] == ["name", "children"]
    endless = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert "type" not in flat(endless)[0]


# --- properties -----------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d-e", "f.g", "한"])
LEAVES = st.sampled_from(
    [
        ({"type": "string", "minLength": 1}, ["x", "서울"]),
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, [1, 8]),
        ({"type": ["string", "null"]}, ["x", None]),
        ({"type": "boolean"}, [True, False]),
        ({"enum": ["a", "b"]}, ["a", "b"]),
        ({"const": 5}, [5]),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ["x", 1]),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, [1.5, None]),
        ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, ["xyz"]),
        ({"$ref": "#/$defs/D", "description": "It."}, ["2026-01-01"]),
        ({"$ref": "#/definitions/E"}, [{"e": "x"}, {}]),
        ({"type": "string", "format": "uri", "default": "x:y"}, ["a:b"]),
    ]
)
DEFINED = {
    "$defs": {"D": {"type": "string", "format": "date"}},
    "definitions": {"E": {"type": "object", "properties": {"e": {"type": "string"}}}},
}


@st.composite
def pairs(draw, depth=3):
    """A schema, and a value that fits it."""
    kind = draw(st.sampled_from(["leaf", "list", "object"])) if depth else "leaf"
    if kind == "leaf":
        schema, values = draw(LEAVES)
        return schema, draw(st.sampled_from(values))
    if kind == "list":
        schema, value = draw(pairs(depth - 1))
        return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 2))
    return draw(objects(depth))


@st.composite
def objects(draw, depth=3):
    named = {name: draw(pairs(depth - 1)) for name in draw(st.lists(NAMES, unique=True, min_size=1))}
    needed = [name for name in named if draw(st.booleans())]
    value = {n: v for n, (_, v) in named.items() if n in needed or draw(st.booleans())}
    schema = {"type": "object", "properties": {n: s for n, (s, _) in named.items()}}
    return (schema | {"required": needed} if needed else schema), value


def filled(value, schema, root):
    """The value with null for each property that the strict schema wants and that is not there."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for way in schema.get("anyOf", []):
        if isinstance(value, dict) and way != {"type": "null"}:
            return filled(value, way, root)
    if isinstance(value, list):
        return [filled(item, schema["items"], root) for item in value]
    if isinstance(value, dict):
        known = schema["properties"]
        return {name: filled(value[name], known[name], root) if name in value else None for name in known}
    return value


def without_null(value):
    """Where the tool's own schema takes null, null and nothing are not told apart."""
    if isinstance(value, dict):
        return {name: without_null(item) for name, item in value.items() if item is not None}
    return [without_null(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=120, deadline=None)
@given(pair=objects())
def test_each_valid_call_can_be_said_strictly_and_comes_back_as_it_was(pair):
    schema, value = {**pair[0], **DEFINED}, pair[1]
    assert jsonschema_rs.is_valid(schema, value)
    found = APIS["openai-responses"].definitions([tool("t", schema)], strict=True)
    (block,) = found.blocks
    assert [*strictness.openai_faults(block["parameters"])] == [] if block["strict"] else found.dropped
    if block["strict"]:
        said = filled(value, block["parameters"], block["parameters"])
        jsonschema_rs.validate(block["parameters"], said)
        meant = found.meant(ToolUse("1", "t", said)).arguments
        assert without_null(meant) == without_null(value)
        assert jsonschema_rs.is_valid(schema, meant)


@settings(max_examples=50, deadline=None)
@given(pair=objects())
@pytest.mark.parametrize("name", APIS)
@pytest.mark.parametrize("strict", [False, True], ids=["loose", "strict"])
def test_no_valid_call_becomes_impossible(pair, name, strict):
    schema, value = {**pair[0], **DEFINED}, pair[1]
    found = APIS[name].definitions([tool("t", schema)], strict=strict)
    if found.left_out:
        assert (name, "한" in found.left_out[0].why) == ("anthropic-messages", True)
        return
    function = found.blocks[0].get("function", found.blocks[0])
    shown = next(function[m] for m in ("input_schema", "parameters", "parametersJsonSchema") if m in function)
    said = filled(value, shown, shown) if found.nulled else value
    jsonschema_rs.validate(shown, said)


KEYWORDS = """
    type properties required items anyOf oneOf allOf $ref $defs definitions enum const format not
    additionalProperties prefixItems minItems pattern description default a
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS.split()) | st.text(max_size=2),
            inner | st.sampled_from(["object", "array", "#", "#/$defs/a", "#/properties/a", {"$ref": "#"}]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=120, deadline=None)
@given(JSON.filter(lambda value: isinstance(value, dict)))
def test_no_schema_makes_a_conversion_raise(schema):
    """A server is a stranger: a tool that cannot be shown is left out, and the others are still there."""
    whole = {"type": "object", **schema}
    for api in (*APIS.values(), type(APIS["gemini"])(openapi=True)):
        for strict in (False, True):
            for given_ in (schema, whole):
                found = api.definitions([tool("t", given_), tool("u")], strict=strict)
                names = [block.get("function", block)["name"] for block in found.blocks]
                assert "u" in names
                assert ("t" in names) is not bool(found.left_out)


LIST = {"type": "array", "items": obj({"a": {"type": "string"}})}


# --- nulls ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "said", "meant"),
    [
        (obj({"a": {"type": "string"}}), {"a": None}, {}),
        (obj({"a": {"type": "string"}}, ["a"]), {"a": None}, {"a": None}),
        (obj({"a": {"type": ["string", "null"]}}), {"a": None}, {"a": None}),
        (obj({"a": {}}), {"a": None}, {"a": None}),
        (obj({"a": True}), {"a": None}, {"a": None}),
        (obj({"a": {"enum": ["x", None]}}), {"a": None}, {"a": None}),
        (obj({"a": {"const": "x"}}), {"a": None}, {}),
        (obj({}), {"b": None}, {"b": None}),
        (obj({"l": LIST | {"items": obj({"a": {"type": "null"}})}}), {"l": [{"a": None}]}, None),
        (obj({"l": LIST}), {"l": [{"a": None}]}, {"l": [{}]}),
        (
            obj({"o": {"$ref": "#/$defs/O"}}, **{"$defs": {"O": obj({"a": {"type": "string"}})}}),
            {"o": {"a": None}},
            {"o": {}},
        ),
    ],
)
def test_null_for_an_optional_property_means_that_it_is_not_there(schema, said, meant):
    assert without_nulls(said, schema, root=schema) == (said if meant is None else meant)


def test_only_strict_tools_have_nulls_taken_out():
    found = Definitions()
    assert found.meant(ToolUse("1", "t", {"a": None})).arguments == {"a": None}
