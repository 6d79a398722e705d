"""From a Python function to the JSON Schema of its arguments, and from argument bytes to keywords.

One reflection when a tool is registered; afterwards one typed decode for each call. It refuses to
know what calls the function and what becomes of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from types import FunctionType, GenericAlias
from typing import Any, Final

import msgspec
from msgspec.structs import asdict

from dragoman.errors import UsageError
from dragoman.schema.annotations import anchored, documentation, is_instance_type, read_annotation
from dragoman.schema.callables import MISSING, Parameter, Shape, read_callable, settle
from dragoman.schema.docstring import read_docstring
from dragoman.schema.errors import ArgumentError
from dragoman.schema.foreign import Adapter, adapter_for, decode_hook, encode_hook, schema_hook
from dragoman.schema.output import Output, read_output
from dragoman.schema.render import Rendering, with_default
from dragoman.schema.validate import Validator

Typed = Callable[[Any], msgspec.Struct]
Read = Callable[[Any], dict[str, Any]]

_RAW_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_EXACT_NUMBERS: Final = msgspec.json.Encoder(decimal_format="number")
_REFUSALS: Final = (msgspec.DecodeError, ValueError, RecursionError)  # msgspec's, pydantic's, too deep
_LONGEST_INTEGER: Final = 400  # digits: beyond any float, far below what would cost memory


class Argument(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One argument: `name` in Python, `wire` on the wire.

    `type` is what msgspec decodes; with an `adapter`, pydantic decodes instead.
    """

    name: str
    wire: str
    type: Any
    default: Any = MISSING
    factory: Callable[[], Any] | None = None
    adapter: Adapter | None = None
    documentation: dict[str, Any]

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is None


class Signature(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a tool takes and gives, ready for the hot path.

    `input_schema` is a JSON Schema 2020-12 object without `$schema`; `context` names the parameter
    that takes a context object, `injected` those that something else supplies.
    """

    name: str
    function: Callable[..., Any]
    """What to call with the decoded keywords: the function itself, or an adapter for it when some
    of its parameters can only be given by position."""
    description: str
    """The docstring without the parts that describe parameters; may be empty."""
    arguments: tuple[Argument, ...]
    input_schema: dict[str, Any]
    output: Output | None
    context: str | None
    injected: tuple[str, ...]
    typed: Typed
    """The typed decode of the arguments."""
    read: Read | None
    """More than the typed decode, for signatures that ask for more."""
    validator: Validator
    """Of `input_schema`, compiled when it is first used."""

    @property
    def in_order(self) -> bool:
        """Whether the function takes the fields of `typed`, all of them and by position, and nothing else."""
        function = self.function
        if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
            return False
        if self.read is not None or self.context is not None or self.injected:
            return False
        code = function.__code__
        named = code.co_varnames[: code.co_argcount]
        return not code.co_kwonlyargcount and named == tuple(argument.name for argument in self.arguments)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of structured content; None if the tool gives none."""
        return None if self.output is None else self.output.schema

    def decode(self, arguments: bytes | msgspec.Raw) -> dict[str, Any]:
        """Keyword arguments for `function`, without the context and the injected ones.

        `arguments` is the JSON text of one object. Raises `ArgumentError` with every fault.
        """
        read, typed = self.read, self.typed
        try:
            # Nearly every signature takes the first way: on the path of each call, each call of ours counts.
            return asdict(typed(arguments)) if read is None else read(arguments)
        except _REFUSALS as error:
            return self._decode_exactly(arguments, error)

    def _decode_exactly(self, arguments: bytes | msgspec.Raw, error: Exception) -> dict[str, Any]:
        """Once more with `5.0` read as the integer that it is in JSON Schema."""
        rewritten = _with_integers(arguments)
        if rewritten is not None:
            try:
                return asdict(self.typed(rewritten)) if self.read is None else self.read(rewritten)
            except _REFUSALS as second:
                error = second
        from dragoman.schema.explain import explain_refusal

        raise ArgumentError(explain_refusal(self.validator, arguments, error=error), self.name) from None


def reflect(
    function: Callable[..., Any],
    *,
    context_types: tuple[type, ...] = (),
    injected: Callable[[Any], bool] | None = None,
    content_types: tuple[type, ...] = (),
    name: str | None = None,
) -> Signature:
    """Read `function` once: schemas, decoder, and the parameter that takes a context object.

    A parameter is the context if its annotation names one of `context_types`, also inside
    `Optional` and `Annotated`. `injected` is asked with each annotation and each default; a
    parameter it claims is no argument. A result of one of `content_types` (beside the content
    blocks of the model) is not structured. `name` is used in texts instead of the function's.

    Raises `UsageError` for a signature that cannot be called with a JSON object.
    """
    shape = read_callable(function, {cls.__name__: cls for cls in context_types})
    name = name or shape.name
    _check_bound(function, shape)
    context, given, parameters = _sort(name, shape, context_types=context_types, injected=injected)
    text, described = read_docstring(shape.doc)
    arguments = [_argument(name, parameter, described=described) for parameter in parameters]
    _check_names(name, arguments)
    extra = shape.extra if shape.extra is MISSING else read_annotation(shape.extra).type
    taken = frozenset(parameter.name for parameter in shape.parameters)
    try:
        (typed, read), schema = _reading(name, arguments, extra=extra, taken=taken)
        output = read_output(shape.returns, content_types)
    except NameError:
        # A class defined inside a function, with postponed annotations.
        settle([*(argument.type for argument in arguments), extra, shape.returns], function)
        (typed, read), schema = _reading(name, arguments, extra=extra, taken=taken)
        output = read_output(shape.returns, content_types)
    return Signature(
        name=name,
        function=_callable(function, shape),
        description=text,
        arguments=tuple(arguments),
        input_schema=schema,
        output=output,
        context=context,
        injected=given,
        typed=typed,
        read=read,
        validator=Validator(schema),
    )


def _check_bound(function: Callable[..., Any], shape: Shape) -> None:
    """Refuse what stands in the body of a class and asks for its object, which no client can send."""
    first = next(iter(shape.parameters), None)
    home = getattr(function, "__qualname__", "").rpartition(".")[0]
    if first is not None and first.name in ("self", "cls") and home and not home.endswith("<locals>"):
        raise UsageError(
            f"{shape.name}() is a method of a class: nothing would give it its {first.name}",
            hint=f"the method of an object, such as server.add_tool(thing.{shape.name})",
        )


def _sort(
    name: str, shape: Shape, *, context_types: tuple[type, ...], injected: Callable[[Any], bool] | None
) -> tuple[str | None, tuple[str, ...], list[Parameter]]:
    """The context, the injected parameters, and those that are arguments."""
    context: str | None = None
    given: list[str] = []
    parameters: list[Parameter] = []
    for parameter in shape.parameters:
        if is_instance_type(parameter.annotation, context_types):
            if context is not None:
                raise UsageError(
                    f"{name}() takes two contexts, {context} and {parameter.name}: one is enough"
                )
            context = parameter.name
        elif injected is not None and (injected(parameter.annotation) or injected(parameter.default)):
            given.append(parameter.name)
        else:
            parameters.append(parameter)
    return context, tuple(given), parameters


def _argument(function: str, parameter: Parameter, *, described: dict[str, str]) -> Argument:
    reading = read_annotation(parameter.annotation, parameter.default)
    adapter = adapter_for(reading.written, f"{function}({parameter.name})")
    said = documentation(reading.written) if adapter is not None else {}
    if described.get(parameter.name) and "description" not in documentation(reading.written):
        said["description"] = described[parameter.name]
    return Argument(
        name=parameter.name,
        wire=reading.alias or parameter.name,
        type=reading.type,
        default=reading.default,
        factory=reading.factory,
        adapter=adapter,
        documentation=said,
    )


def _check_names(function: str, arguments: list[Argument]) -> None:
    seen: dict[str, str] = {}
    for argument in arguments:
        if argument.wire in seen:
            raise UsageError(
                f"{function}(): both {seen[argument.wire]} and {argument.name} are named {argument.wire!r}"
            )
        seen[argument.wire] = argument.name


def _callable(function: Callable[..., Any], shape: Shape) -> Callable[..., Any]:
    names = tuple(parameter.name for parameter in shape.parameters if parameter.by_position)
    if not names:
        return function

    def by_position(**keywords: Any) -> Any:
        return function(*[keywords.pop(name) for name in names], **keywords)

    return by_position


def _reading(
    name: str, arguments: list[Argument], *, extra: Any, taken: frozenset[str]
) -> tuple[tuple[Typed, Read | None], dict[str, Any]]:
    """The decoder of the arguments and their schema, from the same types."""
    try:
        return _reader(arguments, extra=extra, taken=taken), _input_schema(arguments, extra)
    except TypeError as error:
        raise _unreadable(name, arguments, error=error) from error


def _reader(arguments: list[Argument], *, extra: Any, taken: frozenset[str]) -> tuple[Typed, Read | None]:
    """The typed decode, and what does more where a signature asks for more."""
    struct = msgspec.defstruct(
        "Arguments",
        [_field(argument) for argument in arguments],
        kw_only=True,
        forbid_unknown_fields=True,
        rename={argument.name: argument.wire for argument in arguments},
    )
    decode: Typed = msgspec.json.Decoder(struct, dec_hook=decode_hook).decode
    adapters = {argument.name: argument.adapter for argument in arguments if argument.adapter is not None}
    if extra is MISSING and not adapters:
        return decode, None
    read = _adapted(decode, adapters)
    if extra is MISSING:
        return decode, read
    others: Any = GenericAlias(dict, (str, extra))
    rest: msgspec.json.Decoder[Any] = msgspec.json.Decoder(others, dec_hook=decode_hook)
    wires = frozenset(argument.wire for argument in arguments)
    return decode, _open(read, rest, wires=wires, taken=taken)


def _adapted(decode: Typed, adapters: dict[str, Adapter]) -> Read:
    def read_and_adapt(source: Any) -> dict[str, Any]:
        keywords = asdict(decode(source))
        for name, adapter in adapters.items():
            if isinstance(keywords[name], msgspec.Raw):
                keywords[name] = adapter.decode(keywords[name])
        return keywords

    return read_and_adapt


def _open(
    read: Read, rest: msgspec.json.Decoder[Any], *, wires: frozenset[str], taken: frozenset[str]
) -> Read:
    def read_with_rest(source: Any) -> dict[str, Any]:
        members = _RAW_OBJECT.decode(source)
        known = {wire: members.pop(wire) for wire in wires & members.keys()}
        for name in taken & members.keys():
            # The Python name of a renamed or supplied parameter: it must not reach it from outside.
            raise msgspec.ValidationError(f"Object contains unknown field `{name}`")
        keywords = read(msgspec.json.encode(known))
        keywords.update(rest.decode(msgspec.json.encode(members)))
        return keywords

    return read_with_rest


def _field(argument: Argument) -> Any:
    kind = anchored(argument.type) if argument.adapter is None else Any
    if argument.adapter is not None:
        kind = msgspec.Raw
    if argument.required:
        return argument.name, kind
    factory = argument.factory or (lambda: argument.default)  # the object itself, as in Python
    return argument.name, kind, msgspec.field(default_factory=factory)


def _unreadable(function: str, arguments: list[Argument], *, error: Exception) -> UsageError:
    """The fault of a signature, with the name of the parameter that is to blame."""
    hint = "use a type that msgspec reads, or a pydantic model"
    for argument in arguments:
        if argument.adapter is None:
            try:
                Rendering([argument.type], hook=schema_hook("input"))
            except TypeError as found:
                return UsageError(
                    f"{function}(): {argument.name} has a type that JSON cannot give: {found}", hint=hint
                )
    return UsageError(f"{function}(): the arguments have a type that JSON cannot give: {error}", hint=hint)


def _input_schema(arguments: list[Argument], extra: Any) -> dict[str, Any]:
    plain = [argument.type for argument in arguments if argument.adapter is None]
    if extra is not MISSING:
        plain.append(extra)
    rendering = Rendering(plain, hook=schema_hook("input"))
    schemas = iter(rendering.schemas)
    properties: dict[str, Any] = {}
    for argument in arguments:
        adapter = argument.adapter
        part = next(schemas) if adapter is None else rendering.adopt(adapter.schema("input"))
        part = {**part, **argument.documentation}
        properties[argument.wire] = _publish_default(part, argument)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [argument.wire for argument in arguments if argument.required]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False if extra is MISSING else next(schemas) or True
    if rendering.definitions:
        schema["$defs"] = rendering.definitions
    return schema


def _publish_default(schema: dict[str, Any], argument: Argument) -> dict[str, Any]:
    """The schema with the default, if a caller could send it: `None` for an `int` is not sayable."""
    default = argument.default
    if default is MISSING:
        return schema
    if argument.adapter is not None:
        try:
            default = argument.adapter.plain(default)
            argument.adapter.decode(msgspec.json.encode(default))
        except (TypeError, ValueError):
            return schema
        return with_default(schema, default)
    published = with_default(schema, default, encode=encode_hook)
    if "default" in published:
        try:
            msgspec.convert(published["default"], argument.type, dec_hook=decode_hook)
        except (TypeError, ValueError):
            return schema
    return published


def _with_integers(source: Any) -> bytes | None:
    """The same JSON with every number of integral value written as an integer; None if there is none."""
    found = False

    def read(text: str) -> Any:
        nonlocal found
        number = Decimal(text)
        if number.adjusted() < _LONGEST_INTEGER and number == number.to_integral_value():
            found = True
            return int(number)
        return number

    try:
        value = msgspec.json.Decoder(float_hook=read).decode(source)
        return _EXACT_NUMBERS.encode(value) if found else None
    except (ValueError, ArithmeticError, RecursionError):
        return None
