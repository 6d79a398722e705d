"""Forms: the flat schemas by which a server asks a person, and the answers read back as Python values.

A form is one object with fields of the few kinds that client/elicitation allows. It refuses to
know how the question travels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from dragoman.errors import UsageError
from dragoman.model import primitive_schema
from dragoman.schema.annotations import normalise
from dragoman.schema.errors import Fault
from dragoman.schema.foreign import Adapter, adapter_for, decode_hook, schema_hook
from dragoman.schema.render import Rendering
from dragoman.schema.shapes import is_array, is_object
from dragoman.schema.validate import Validator

T = TypeVar("T")

VALUE: Final = "value"
"""The only field of a form for a single value."""

_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})
_KEPT: Final = frozenset(
    "type title description default enum enumNames oneOf items minItems maxItems "
    "minLength maxLength minimum maximum format".split()
)


class Form(Generic[T]):
    """A question's form.

    `kind` is a class with fields of simple types (dataclass, `TypedDict`, struct, pydantic model),
    one simple type alone (`str`, `bool`, an enum, ...), or a schema written by hand.

    Raises:
        UsageError: the form is not flat, or has a field of a kind that forms do not have, named.
    """

    __slots__ = ("_adapter", "_kind", "_single", "_validator", "schema")

    def __init__(self, kind: type[T] | Mapping[str, Any]) -> None:
        self._kind: Any = None
        self._adapter: Adapter | None = None
        self._single = False
        if isinstance(kind, Mapping):
            schema = dict(kind)
        else:
            self._kind = normalise(kind)
            self._adapter = adapter_for(kind, "a form")
            schema = self._schema_of(kind)
        self.schema: dict[str, Any] = _checked(schema)
        self._validator = Validator(self.schema)

    def _schema_of(self, kind: Any) -> dict[str, Any]:
        try:
            if self._adapter is not None:
                rendering = Rendering([], mode="input", hook=schema_hook("input"))
                part = rendering.adopt(self._adapter.schema("input"))
            else:
                rendering = Rendering([self._kind], mode="input", hook=schema_hook("input"))
                part = rendering.schemas[0]
        except TypeError as exc:
            raise UsageError(f"a form cannot be made of {kind!r}: {exc}") from None
        part = _resolved(part, rendering.definitions)
        if part.get("type") == "object":
            return part
        self._single = True
        return {"type": "object", "properties": {VALUE: part}, "required": [VALUE]}

    def faults(self, content: Any) -> tuple[Fault, ...]:
        """What is wrong with an answer; empty when it fits."""
        return self._validator.errors(content)

    def read(self, content: Mapping[str, Any]) -> T:
        """The answer as the form's kind; a dict for a form written by hand. Call `faults` first."""
        if self._kind is None:
            return cast("T", dict(content))
        value: Any = content[VALUE] if self._single else dict(content)
        if self._adapter is not None:
            return cast("T", self._adapter.decode(msgspec.json.encode(value)))
        return cast("T", msgspec.convert(value, self._kind, dec_hook=decode_hook))


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Without references: a form has room for none."""
    if not is_object(schema):
        raise UsageError(f"a form needs a schema that is an object, not {schema!r}")
    name = schema.get("$ref")
    if isinstance(name, str):
        target = definitions.get(name.rpartition("/")[2], {})
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _resolved({**target, **rest}, definitions)
    properties = schema.get("properties")
    if is_object(properties):
        fields = {key: _field(value, definitions) for key, value in properties.items()}
        required = schema.get("required")
        whole: dict[str, Any] = {"type": "object", "properties": fields}
        if is_array(required) and required:
            whole["required"] = required
        return whole
    return _field(schema, definitions)


def _field(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    if not is_object(schema):
        return {}
    choices = schema.get("anyOf")
    if is_array(choices):  # Optional: a field that may be left out says so by not being required
        kept = [choice for choice in choices if choice != {"type": "null"}]
        if len(kept) == 1 and is_object(kept[0]):
            rest = {key: value for key, value in schema.items() if key != "anyOf"}
            return _field({**kept[0], **rest}, definitions)
    name = schema.get("$ref")
    if isinstance(name, str):
        target = definitions.get(name.rpartition("/")[2], {})
        return _field({**target, **{k: v for k, v in schema.items() if k != "$ref"}}, definitions)
    field = {key: value for key, value in schema.items() if key in _KEPT}
    if field.get("default", "") is None:
        del field["default"]
    if field.get("type") == ["string", "null"]:
        field["type"] = "string"
    if "enum" in field and "type" not in field and all(isinstance(item, str) for item in field["enum"]):
        field["type"] = "string"
    if field.get("format") not in _FORMATS:
        field.pop("format", None)
    if is_object(field.get("items")):
        field["items"] = _field(field["items"], definitions)
    return field


def _checked(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not is_object(properties):
        raise UsageError('a form needs a schema of type "object" with properties')
    for name, field in properties.items():
        try:
            primitive_schema(field)
        except (msgspec.ValidationError, AttributeError) as exc:
            raise UsageError(
                f"form field {name!r}: expected text, a number, yes or no, or a choice of texts; "
                f"received {field!r} ({exc})"
            ) from None
    return schema
