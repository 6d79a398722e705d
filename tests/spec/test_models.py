"""The model covers every definition of every revision: names, what is required, and values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from dragoman import model
from tests.spec.naming import RENAMED, model_for, params_for
from tests.spec.oracle import REVISIONS, Schema, definitions, resolve, validate
from tests.spec.sampler import Sampler

# Definitions that are no type of their own in the model, and why.
NO_STRUCT = {
    "Cursor": "a string",
    "JSONArray": "any JSON",
    "JSONObject": "any JSON",
    "JSONValue": "any JSON",
    "MetaObject": "any JSON object",
    "LoggingLevel": "a Literal",
    "ProgressToken": "a union of int and str",
    "RequestId": "a union of int and str",
    "ResultType": "a string",
    "Role": "a Literal",
    "TaskStatus": "a Literal",
    "InputResponses": "untagged: see model.INPUT_RESPONSES",
    "InputResponse": "untagged: see model.INPUT_RESPONSES",
    "ElicitRequestParams": "a union read as model.ElicitParams",
    "PrimitiveSchemaDefinition": "untagged: see model.primitive_schema",
    "SingleSelectEnumSchema": "untagged: see model.primitive_schema",
    "MultiSelectEnumSchema": "untagged: see model.primitive_schema",
    "Request": "the engine's envelope",
    "Notification": "the engine's envelope",
    "JSONRPCBatchRequest": "the engine's envelope",
    "JSONRPCBatchResponse": "the engine's envelope",
    "JSONRPCError": "the engine's envelope",
    "JSONRPCErrorResponse": "the engine's envelope",
    "JSONRPCMessage": "the engine's envelope",
    "JSONRPCNotification": "the engine's envelope",
    "JSONRPCRequest": "the engine's envelope",
    "JSONRPCResponse": "the engine's envelope",
    "JSONRPCResultResponse": "the engine's envelope",
    "InternalError": "the engine's error object",
    "InvalidParamsError": "the engine's error object",
    "InvalidRequestError": "the engine's error object",
    "MethodNotFoundError": "the engine's error object",
    "ParseError": "the engine's error object",
    "HeaderMismatchError": "the engine's error object; no data",
    "MissingRequiredClientCapabilityError": "its data is model.MissingRequiredClientCapabilityData",
    "UnsupportedProtocolVersionError": "its data is model.UnsupportedProtocolVersionData",
    "URLElicitationRequiredError": "its data is model.URLElicitationRequiredData",
    "ClientNotification": "a list of methods",
    "ClientRequest": "a list of methods",
    "ClientResult": "a list of results",
    "ServerNotification": "a list of methods",
    "ServerRequest": "a list of methods",
    "ServerResult": "a list of results",
}

# Members that every revision requires and the model does not, and why.
NOT_REQUIRED = {
    "_meta": "raw params are checked by admission; a result's is filled in by the revision",
    "resultType": "only where the revision has it",
    "ttlMs": "only where the revision has it",
    "cacheScope": "only where the revision has it",
    "requestId": "one revision lets it be absent",
    "io.modelcontextprotocol/protocolVersion": "required by admission, so that it can say what is missing",
    "io.modelcontextprotocol/clientCapabilities": "required by admission, so that it can say what is missing",
    "io.modelcontextprotocol/subscriptionId": "one struct reads every result's _meta",
    "text": "one struct reads text and blob, and checks itself",
    "blob": "one struct reads text and blob, and checks itself",
    "mode": "has a value when it is not given",
    "url": "one struct reads both modes of elicitation, and checks itself",
    "requestedSchema": "one struct reads both modes of elicitation, and checks itself",
}

Pair = tuple[str, str, Schema, Any]


def reader(revision: str, name: str) -> Any:
    """The type that reads this definition in this revision, or None."""
    schema = definitions(revision)[name]
    envelope = "jsonrpc" in schema.get("properties", {})  # embedded in the newest revision only
    union = name == "EnumSchema" and "anyOf" in schema  # one struct in 2025-06-18 only
    return None if envelope or union or name in NO_STRUCT else model_for(name)


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def pairs() -> Iterator[Pair]:
    """Every object schema of every revision, with the struct that reads it."""
    for revision in REVISIONS:
        for name, schema in definitions(revision).items():
            kind = reader(revision, name)
            if is_struct(kind) and "properties" in schema:
                yield from _inside(revision, name, schema, kind)
            params = schema.get("properties", {}).get("params")
            if params is not None and name not in NO_STRUCT:
                yield from _params(revision, name, params)


def _params(revision: str, name: str, schema: Schema) -> Iterator[Pair]:
    schema = resolve(revision, schema)
    for choice in schema.get("anyOf", [schema]):
        target = resolve(revision, choice)
        if "properties" in target:
            yield from _inside(revision, f"{name}.params", target, params_for(name))


def _inside(revision: str, place: str, schema: Schema, kind: Any) -> Iterator[Pair]:
    yield revision, place, schema, kind
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    for member, child in schema["properties"].items():
        inner = child.get("items", child)
        for choice in inner.get("anyOf", [inner]):
            structs = [part for part in _parts(fields.get(member)) if is_struct(part)]
            if "properties" in choice and len(structs) == 1:
                yield from _inside(revision, f"{place}.{member}", choice, structs[0])


def _parts(kind: Any) -> Iterator[Any]:
    if get_args(kind):
        for part in get_args(kind):
            yield from _parts(part)
    else:
        yield kind


PAIRS = list(pairs())


def wire_names(kind: Any) -> set[str]:
    config = kind.__struct_config__
    tag: set[str] = {config.tag_field} if config.tag_field else set()
    return tag | {field.encode_name for field in msgspec.structs.fields(kind)}


def id_of(pair: Pair) -> str:
    return f"{pair[0]}-{pair[1]}"


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_definition_is_accounted_for(revision: str) -> None:
    missing = {
        name
        for name, schema in definitions(revision).items()
        if model_for(name) is None
        and name not in NO_STRUCT
        and name not in RENAMED
        and "method" not in schema.get("properties", {})
        and not name.endswith("ResultResponse")
    }
    assert missing == set()


def test_no_exception_is_stale() -> None:
    everything = {name for revision in REVISIONS for name in definitions(revision)}
    assert NO_STRUCT.keys() <= everything
    assert RENAMED.keys() <= everything


@pytest.mark.parametrize("pair", PAIRS, ids=id_of)
def test_struct_has_every_member_of_the_definition(pair: Pair) -> None:
    _, _, schema, kind = pair
    assert schema["properties"].keys() <= wire_names(kind)


@pytest.mark.parametrize("pair", PAIRS, ids=id_of)
def test_struct_requires_nothing_that_the_revision_lets_be_absent(pair: Pair) -> None:
    _, _, schema, kind = pair
    required = {field.encode_name for field in msgspec.structs.fields(kind) if field.required}
    assert required <= set(schema.get("required", ()))


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair[0] == REVISIONS[-1]], ids=id_of)
def test_struct_requires_what_the_newest_revision_requires(pair: Pair) -> None:
    _, _, schema, kind = pair
    tag = kind.__struct_config__.tag_field
    required = {field.encode_name for field in msgspec.structs.fields(kind) if field.required} | {tag}
    older = {
        name
        for revision, place, other, _ in PAIRS
        if place == pair[1] and revision != pair[0]
        for name in other["properties"].keys() - set(other.get("required", ()))
    }
    assert set(schema.get("required", ())) - NOT_REQUIRED.keys() - older <= required


def sampled() -> Iterator[tuple[str, str, Any]]:
    for revision in REVISIONS:
        for name in definitions(revision):
            kind = reader(revision, name)
            # The `_meta` types name what is known in it; a result struct of the base kind likewise.
            if kind is not None and "Meta" not in name and name not in ("Result", "GetTaskPayloadResult"):
                yield revision, name, kind


@pytest.mark.parametrize(("revision", "name", "kind"), list(sampled()))
@pytest.mark.parametrize("full", [False, True], ids=["some", "full"])
def test_any_valid_value_is_read_and_written_unchanged(
    revision: str, name: str, kind: Any, full: bool
) -> None:
    for seed in range(25):
        value = Sampler(revision, seed, full=full).draw({"$ref": f"#/{name}"})
        validate(revision, name, value)
        written = json.loads(msgspec.json.encode(msgspec.json.decode(json.dumps(value), type=kind)))
        assert json.dumps(written, sort_keys=True) == json.dumps(value, sort_keys=True), seed


@pytest.mark.parametrize(
    ("revision", "name"),
    [
        (revision, name)
        for revision in REVISIONS
        for name, schema in definitions(revision).items()
        if "params" in schema.get("properties", {})
        and name not in NO_STRUCT
        and reader(revision, name) is None
    ],
)
def test_params_of_any_valid_message_are_read_and_written_unchanged(revision: str, name: str) -> None:
    for seed in range(25):
        params = Sampler(revision, seed).draw({"$ref": f"#/{name}"}).get("params", {})
        written = json.loads(
            msgspec.json.encode(msgspec.json.decode(json.dumps(params), type=params_for(name)))
        )
        assert json.dumps(written, sort_keys=True) == json.dumps(params, sort_keys=True), seed


@pytest.mark.parametrize("revision", REVISIONS[2:])
def test_any_form_field_is_read_as_the_struct_of_its_shape(revision: str) -> None:
    for seed in range(100):
        field = Sampler(revision, seed).draw({"$ref": "#/PrimitiveSchemaDefinition"})
        written = msgspec.to_builtins(model.primitive_schema(field))
        assert json.dumps(written, sort_keys=True) == json.dumps(field, sort_keys=True)
