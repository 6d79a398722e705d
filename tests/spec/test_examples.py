"""The official examples: each is read by the right type, written back as the same JSON, and valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import model
from tests.spec.naming import model_for, params_for
from tests.spec.oracle import DATA, definitions, validate

REVISION = "2026-07-28"
EXAMPLES = sorted((DATA / REVISION / "examples").glob("*/*.json"))

# The engine's, not the model's: an error object and the frames that carry one.
ERROR_DATA: dict[str, Any] = {
    "UnsupportedProtocolVersionError": model.UnsupportedProtocolVersionData,
    "MissingRequiredClientCapabilityError": model.MissingRequiredClientCapabilityData,
    "HeaderMismatchError": None,
    "InternalError": None,
    "InvalidParamsError": None,
    "MethodNotFoundError": None,
    "ParseError": None,
}

# Members of an example that its own schema does not have, and that a reader therefore ignores: requests
# inside an `InputRequiredResult` have no id.
STRAY = {"ListRootsRequest/list-roots-request": {"id"}}


class Envelope(msgspec.Struct, omit_defaults=True):
    """A frame, taken apart as the engine does it: bodies stay raw."""

    jsonrpc: str | msgspec.UnsetType = msgspec.UNSET
    id: int | str | msgspec.UnsetType = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: unlike Python, 1 is not 1.0 and not true. The order of members is free."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def through(data: bytes | msgspec.Raw | msgspec.UnsetType, kind: Any) -> msgspec.Raw:
    """Reads as that type and writes again."""
    assert data is not msgspec.UNSET
    return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(data, type=kind)))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def example(data: bytes, definition: str) -> bytes:
    """The example after it has been through the model."""
    if definition in ERROR_DATA:
        document = json.loads(data)
        data_type = ERROR_DATA[definition]
        if data_type is not None:
            error = document["error"]
            error["data"] = json.loads(bytes(through(msgspec.json.encode(error["data"]), data_type)))
        return json.dumps(document).encode()
    whole = model_for(definition)
    if definition == "InputResponses":
        return inputs(data)
    if whole is not None:
        return bytes(through(data, whole))
    frame = msgspec.json.decode(data, type=Envelope)
    if definition.endswith("ResultResponse"):
        frame.result = through(frame.result, model_for(definition.removesuffix("Response")))
    elif frame.params is not msgspec.UNSET:
        frame.params = through(frame.params, params_for(definition))
    return msgspec.json.encode(frame)


def inputs(data: bytes) -> bytes:
    """Answers have no tag: the request under the same key, in the example beside it, says what each is."""
    (asked,) = (DATA / REVISION / "examples" / "InputRequests").glob("*.json")
    requests = json.loads(asked.read_bytes())
    answers = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    types = {key: model.INPUT_RESPONSES[requests[key]["method"]] for key in answers}
    return msgspec.json.encode({key: through(answers[key], types[key]) for key in answers})


def test_every_folder_is_there() -> None:
    assert len({path.parent.name for path in EXAMPLES}) == 88


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_example_is_read_and_written_unchanged(path: Path) -> None:
    data = path.read_bytes()
    written = json.loads(example(data, path.parent.name))
    expected = json.loads(data)
    for member in STRAY.get(name_of(path), ()):
        del expected[member]
    assert same(written, expected)
    validate(REVISION, path.parent.name, written, exact=True)


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_typed_meta_of_example_loses_nothing(path: Path) -> None:
    document = json.loads(path.read_bytes())
    body = document.get("params", document.get("result", document))
    meta = body.get("_meta", {}) if isinstance(body, dict) else {}
    kind = (
        model.RequestMeta if "params" in document or path.parent.name.endswith("Params") else model.ResultMeta
    )
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    typed = json.loads(msgspec.json.encode(msgspec.convert(meta, kind)))
    assert same(typed, {key: value for key, value in meta.items() if key in known})
    assert all(not key.startswith("io.modelcontextprotocol/") for key in meta.keys() - known)


def test_examples_are_of_definitions() -> None:
    assert {path.parent.name for path in EXAMPLES} <= definitions(REVISION).keys()
