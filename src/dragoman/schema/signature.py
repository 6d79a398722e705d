"""From a Python function to the JSON Schema of its arguments, and from argument bytes to keywords.

One reflection when a tool is registered; afterwards one typed decode for each call. It refuses to
know what calls the function and what becomes of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import asdict

from dragoman.errors import UsageError
from dragoman.schema.annotations import Reading, is_instance_type, read_annotation
from dragoman.schema.callables import MISSING, Parameter, Shape, read_callable
from dragoman.schema.docstring import read_docstring
from dragoman.schema.errors import ArgumentError
from dragoman.schema.explain import faults_of

_MISSING = MISSING


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument: `name` in Python, `wire` on the wire."""

    name: str
    wire: str
    reading: Reading
    description: str | None


class Signature(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a tool takes and gives, ready for the hot path."""

    name: str
    function: Callable[..., Any]
    """What to call with the decoded keywords: the function itself, or an adapter for it when some
    of its parameters can only be given by position."""
    description: str
    """The docstring without the parts that describe parameters; may be empty."""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    wraps_result: bool
    context: str | None
    injected: tuple[str, ...]
    read: Callable[[Any], dict[str, Any]]

    def decode(self, arguments: bytes | msgspec.Raw) -> dict[str, Any]:
        """Keyword arguments for `function`, without the context and the injected ones.

        `arguments` is the JSON text of one object. Raises `ArgumentError` with every fault.
        """
        try:
            return self.read(arguments)
        except (msgspec.DecodeError, RecursionError) as error:
            return self._second_look(arguments, error)

    def _second_look(self, arguments: bytes | msgspec.Raw, error: Exception) -> dict[str, Any]:
        raise ArgumentError(faults_of(self.input_schema, arguments, error), self.name) from None


def reflect(
    function: Callable[..., Any],
    *,
    context_types: tuple[type, ...] = (),
    injected: Callable[[Any], bool] | None = None,
    name: str | None = None,
) -> Signature:
    """Read `function` once: schemas, decoder, and the parameter that takes a context object.

    A parameter is the context if its annotation names one of `context_types`, also inside
    `Optional` and `Annotated`. `injected` is asked with each annotation and each default; a
    parameter it claims is no argument. `name` is used in error texts instead of the function's.

    Raises `UsageError` for a signature that cannot be called with a JSON object.
    """
    shape = read_callable(function, {cls.__name__: cls for cls in context_types})
    name = name or shape.name
    context: str | None = None
    given: list[str] = []
    parameters: list[Parameter] = []
    for parameter in shape.parameters:
        if is_instance_type(parameter.annotation, context_types):
            if context is not None:
                raise UsageError(f"{name}() takes two contexts: {context} and {parameter.name}")
            context = parameter.name
        elif injected is not None and (injected(parameter.annotation) or injected(parameter.default)):
            given.append(parameter.name)
        else:
            parameters.append(parameter)
    text, described = read_docstring(shape.doc)
    arguments = [_argument(parameter, described) for parameter in parameters]
    return Signature(
        name=name,
        function=_callable(function, shape),
        description=text,
        input_schema=_input_schema(arguments, shape),
        output_schema=None,
        wraps_result=False,
        context=context,
        injected=tuple(given),
        read=_reader(name, arguments),
    )


def _argument(parameter: Parameter, described: dict[str, str]) -> Argument:
    reading = read_annotation(parameter.annotation, parameter.default)
    return Argument(
        name=parameter.name,
        wire=reading.alias or parameter.name,
        reading=reading,
        description=described.get(parameter.name),
    )


def _callable(function: Callable[..., Any], shape: Shape) -> Callable[..., Any]:
    names = tuple(parameter.name for parameter in shape.parameters if parameter.by_position)
    if not names:
        return function

    def by_position(**keywords: Any) -> Any:
        return function(*[keywords.pop(name) for name in names], **keywords)

    return by_position


def _reader(name: str, arguments: list[Argument]) -> Callable[[Any], dict[str, Any]]:
    fields = [_field(argument) for argument in arguments]
    renamed = {argument.name: argument.wire for argument in arguments}
    struct = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True, rename=renamed)
    decode = msgspec.json.Decoder(struct).decode
    return lambda source: asdict(decode(source))


def _field(argument: Argument) -> Any:
    reading = argument.reading
    if reading.factory is not None:
        return argument.name, reading.type, msgspec.field(default_factory=reading.factory)
    if reading.default is _MISSING:
        return argument.name, reading.type
    return argument.name, reading.type, msgspec.field(default_factory=lambda: reading.default)


def _input_schema(arguments: list[Argument], shape: Shape) -> dict[str, Any]:
    schemas, definitions = msgspec.json.schema_components([argument.reading.type for argument in arguments])
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    required: list[str] = []
    for argument, part in zip(arguments, schemas, strict=True):
        schema["properties"][argument.wire] = part
        if argument.description:
            part.setdefault("description", argument.description)
        if argument.reading.default is MISSING and argument.reading.factory is None:
            required.append(argument.wire)
        elif argument.reading.default is not MISSING:
            try:
                part["default"] = msgspec.to_builtins(argument.reading.default, str_keys=True)
            except (TypeError, ValueError):
                pass
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema
