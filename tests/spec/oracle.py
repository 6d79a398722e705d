"""The oracle: is this value, or this frame, valid under the official schema of that revision?

It reads the published `schema.json` files and nothing of the package under test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs

DATA = Path(__file__).parent / "data"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")

Direction = Literal["to_server", "to_client"]
Schema = dict[str, Any]

# `schema.json` is generated from `schema.ts`, and the generator turns `number` into `integer` and
# drops `null` where a type is a list. `schema.ts` is the source of truth (basic/index, "Schema").
_LOSSY = ["string", "integer", "boolean"]
_MENDED = ["string", "number", "boolean"]

# Members that are in order on every revision though not every schema lists them: the envelope's, the
# `_meta` that all params may have, and the capability with which peers of any revision may negotiate
# extensions (docs/extensions/overview).
_EVERYWHERE = {"jsonrpc", "id", "_meta", "extensions"}
# What is inside these is a JSON Schema, open by nature.
_OPEN = {"inputSchema", "outputSchema", "requestedSchema"}


class SpecViolation(AssertionError):
    """A value is not what the revision's schema says; the message names the place and the rule."""


def validate(revision: str, definition: str, value: Any, *, exact: bool = False) -> None:
    """Checks a value against one definition of a revision's schema.

    `exact` also refuses members that other revisions define for the same type and this one does
    not: schemas are open, so without it a `resultType` sent to an old client would pass.
    Raises `SpecViolation`, or `KeyError` when the revision has no such definition.
    """
    found = [
        f"{_place(error.instance_path)}: {error.message[:300]}"
        for error in _validator(revision, definition, exact).iter_errors(value)
    ]
    if found:
        raise SpecViolation(f"{revision} {definition}: " + "; ".join(found))


def validate_frame(
    revision: str,
    frame: Mapping[str, Any] | list[Any] | bytes | str,
    method: str | Mapping[Any, str] | None,
    direction: Direction,
    *,
    exact: bool = False,
    others: bool = False,
) -> None:
    """Checks one JSON-RPC frame, whatever its kind.

    `method` is the method that a result answers (for a batch: by id); requests and notifications
    name their own. `direction` is the way this frame goes. `others` lets methods and result types
    pass that the revision does not define (extensions, methods that are unknown on purpose): of
    those only the envelope is checked. `exact` as for `validate`.
    Raises `SpecViolation`; `ValueError` when a result comes without the method it answers.
    """
    value = _parse(frame)
    if isinstance(value, list):
        kind = "JSONRPCBatchRequest" if any("method" in item for item in value) else "JSONRPCBatchResponse"
        if kind not in definitions(revision):
            raise SpecViolation(f"{revision} has no batches")
        if not value:
            raise SpecViolation(f"{revision}: an empty batch")
        for item in value:
            _Frame(revision, direction, exact, others).check(item, method)
        return
    _Frame(revision, direction, exact, others).check(value, method)


@lru_cache
def definitions(revision: str) -> Mapping[str, Schema]:
    """The revision's definitions by name, with the generator's losses mended."""
    document = _document(revision)
    found: Mapping[str, Schema] = document[_key(document)]
    return found


@lru_cache
def methods(
    revision: str, kind: Literal["Request", "Notification"], direction: Direction
) -> Mapping[str, str]:
    """Method to definition name, for what may be sent in that direction."""
    defs = definitions(revision)
    union = ("Client" if direction == "to_server" else "Server") + kind
    if union not in defs:
        return {}
    return {
        member["properties"]["method"]["const"]: name
        for name in _members(revision, union)
        for member in [defs[name]]
    }


def resolve(revision: str, schema: Schema) -> Schema:
    """Follows a `$ref` to the definition it names; any other schema is itself."""
    while "$ref" in schema:
        schema = definitions(revision)[schema["$ref"].rsplit("/", 1)[1]]
    return schema


class _Frame:
    """One frame under one revision: finds out its kind and which definitions it has to meet."""

    def __init__(self, revision: str, direction: Direction, exact: bool, others: bool) -> None:
        self.revision = revision
        self.direction = direction
        self.exact = exact
        self.others = others
        self.defs = definitions(revision)

    def check(self, frame: Any, method: str | Mapping[Any, str] | None) -> None:
        if not isinstance(frame, dict):
            raise SpecViolation(f"a frame is an object, not {frame!r}")
        kinds = [name for name in ("method", "result", "error") if name in frame]
        if len(kinds) != 1:
            raise SpecViolation(f"a frame has exactly one of method, result, error; this one has {kinds}")
        if kinds == ["method"]:
            self.call(frame)
        elif kinds == ["error"]:
            self.error(frame)
        else:
            self.result(frame, method if isinstance(method, str) or method is None else method[frame["id"]])

    def call(self, frame: Schema) -> None:
        kind: Literal["Request", "Notification"] = "Request" if "id" in frame else "Notification"
        self.against(f"JSONRPC{kind}", frame)
        name = methods(self.revision, kind, self.direction).get(frame["method"])
        if name is not None:
            self.against(name, frame)
        elif not self.others:
            way = self.direction.replace("_", " ")
            raise SpecViolation(f"{self.revision} has no {kind.lower()} {frame['method']!r} {way}")

    def error(self, frame: Schema) -> None:
        # JSON-RPC 2.0 (section 5) demands `id: null` where the request's id could not be read; the
        # MCP schemas have no null id, so such an answer is checked as if it had one.
        value = {**frame, "id": 0} if "id" in frame and frame["id"] is None else frame
        self.against("JSONRPCErrorResponse" if "JSONRPCErrorResponse" in self.defs else "JSONRPCError", value)
        name = _errors(self.revision).get(frame["error"]["code"])
        if name is not None:
            self.against(name, value)

    def result(self, frame: Schema, method: str | None) -> None:
        if method is None:
            raise ValueError("a result can only be checked with the method that it answers")
        envelope = "JSONRPCResultResponse" if "JSONRPCResultResponse" in self.defs else "JSONRPCResponse"
        self.against(envelope, frame)
        asked: Direction = "to_client" if self.direction == "to_server" else "to_server"
        request = methods(self.revision, "Request", asked).get(method)
        if request is None:
            if self.others:
                return
            raise SpecViolation(f"{self.revision} has no request {method!r} to answer")
        self.body(request.removesuffix("Request"), frame["result"])

    def body(self, stem: str, result: Schema) -> None:
        result_type = result.get("resultType")
        response = self.defs.get(f"{stem}ResultResponse")
        if response is not None and result_type == "input_required":
            if {"$ref": "#/$defs/InputRequiredResult"} not in response["properties"]["result"].get(
                "anyOf", []
            ):
                raise SpecViolation(f"{self.revision}: {stem} cannot be answered with input_required")
            self.against("InputRequiredResult", result)
            # Said in words only (basic/patterns/mrtr, "Server Requirements").
            if not {"inputRequests", "requestState"} & result.keys():
                raise SpecViolation(
                    f"{self.revision}: input_required with neither inputRequests nor requestState"
                )
        elif response is not None and result_type not in (None, "complete"):
            if not self.others:
                raise SpecViolation(f"{self.revision}: unknown resultType {result_type!r}")
        elif "task" in result and "CreateTaskResult" in self.defs:
            self.against("CreateTaskResult", result)
        else:
            self.against(f"{stem}Result" if f"{stem}Result" in self.defs else "EmptyResult", result)

    def against(self, definition: str, value: Any) -> None:
        validate(self.revision, definition, value, exact=self.exact)


def _parse(frame: Any) -> Any:
    if not isinstance(frame, bytes | bytearray | memoryview | str):
        return frame

    def refuse(word: str) -> None:
        raise SpecViolation(f"{word} is not JSON")

    text = frame if isinstance(frame, str) else bytes(frame).decode("utf-8")
    return json.loads(text, parse_constant=refuse)


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


@lru_cache
def _document(revision: str) -> Schema:
    document: Schema = json.loads((DATA / revision / "schema.json").read_text(encoding="utf-8"))
    _mend(document)
    values = document[_key(document)].get("JSONValue")
    if values is not None:
        values["anyOf"].append({"type": "null"})
    return document


def _mend(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("type") == _LOSSY:
            node["type"] = _MENDED
        for child in node.values():
            _mend(child)
    elif isinstance(node, list):
        for child in node:
            _mend(child)


def _key(document: Schema) -> str:
    return "$defs" if "$defs" in document else "definitions"


@lru_cache
def _validator(revision: str, definition: str, exact: bool) -> jsonschema_rs.Validator:
    document = _exact(revision) if exact else _document(revision)
    key = _key(document)
    if definition not in document[key]:
        raise KeyError(f"{revision} defines no {definition}")
    return jsonschema_rs.validator_for({**document, "$ref": f"#/{key}/{definition}"}, validate_formats=True)


@lru_cache
def _exact(revision: str) -> Schema:
    """The revision's schema, in which every member that only other revisions have is refused."""
    document: Schema = json.loads(json.dumps(_document(revision)))
    for name, schema in document[_key(document)].items():
        for path, properties in _objects(schema):
            everywhere = {member for other in REVISIONS for member in _known(other).get((name, *path), ())}
            for member in everywhere - properties.keys() - _EVERYWHERE:
                properties[member] = False
    return document


@lru_cache
def _known(revision: str) -> Mapping[tuple[str, ...], frozenset[str]]:
    """Members by definition and path. Params that a revision defines apart count as inline."""
    defs = definitions(revision)
    known: dict[tuple[str, ...], frozenset[str]] = {}
    for name, schema in defs.items():
        for path, properties in _objects(schema):
            known[(name, *path)] = frozenset(properties)
        params = defs.get(f"{name}Params")
        if params is not None and "properties" in params:
            known[(name, "params")] = frozenset(params["properties"])
    return known


def _objects(schema: Schema, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """The `properties` of a definition and of the objects written out inside it, by path."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    yield path, properties
    for name, child in list(properties.items()):
        if isinstance(child, dict) and name not in _OPEN:
            yield from _objects(child, (*path, name))


def _members(revision: str, union: str) -> Iterator[str]:
    schema = definitions(revision)[union]
    if "anyOf" not in schema:
        yield union
        return
    for member in schema["anyOf"]:
        yield member["$ref"].rsplit("/", 1)[1]


@lru_cache
def _errors(revision: str) -> Mapping[int, str]:
    """Error code to the definition of the frame that carries it."""
    found: dict[int, str] = {}
    for name, schema in definitions(revision).items():
        for part in schema.get("properties", {}).get("error", {}).get("allOf", []):
            code = part.get("properties", {}).get("code", {}).get("const")
            if code is not None:
                found[code] = name
    return found
