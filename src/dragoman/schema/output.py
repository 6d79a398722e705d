"""From what a tool returns to structured content: its JSON, checked against its own schema.

It refuses to know results and content blocks as messages; the server puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from dragoman.model import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
)
from dragoman.schema.annotations import bare, is_instance_type, members, normalise
from dragoman.schema.callables import MISSING
from dragoman.schema.errors import OutputError
from dragoman.schema.foreign import Adapter, adapter_for, decode_hook, encode_hook, is_path, schema_hook
from dragoman.schema.render import Rendering, object_root
from dragoman.schema.shapes import class_of
from dragoman.schema.validate import Validator
from dragoman.schema.wording import field_path, snippet

CONTENT: Final = (TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, CallToolResult)
"""Results of these types say themselves what they are."""

MAX_DEPTH: Final = 256
"""A result may nest this deep."""

_ENCODER: Final = msgspec.json.Encoder(enc_hook=encode_hook)
_OPAQUE: Final = (bytes, bytearray, memoryview, type(None))
_AS_IT_IS: Final = (str, int, bool)
"""Types whose values need no check once their type is right: no NaN, nothing inside."""
_STREAMS: Final = ("Iterator", "Generator", "AsyncIterator", "AsyncGenerator", "AsyncIterable")
_AWAITED: Final = {"Awaitable": 0, "Coroutine": 2}


class Output(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How a tool's results become structured content.

    `wraps`: the content is `{"result": value}`, because structured content is always an object.
    `direct`: the tool builds the `CallToolResult` itself, and `schema` is of its structured content.
    """

    schema: dict[str, Any]
    wraps: bool = False
    direct: bool = False
    adapter: Adapter | None = None
    exact: type | None = None
    fits: Callable[[Any], Any]
    """Decodes JSON as the declared type; raises if it does not fit."""
    validator: Validator

    def encode(self, value: Any) -> bytes:
        """The structured content as JSON text.

        Raises `OutputError`, with the path, for what JSON cannot say (NaN, an infinity, an object
        of an unknown class, a value inside itself) and for what the output schema refuses.
        """
        if self.adapter is not None:
            text = _encode_adapted(self.adapter, value)
            text = b'{"result":' + text + b"}" if self.wraps else text
            self.check_text(text)
            return text
        text = encode_value({"result": value} if self.wraps else value, "result" if self.wraps else "")
        if type(value) is not self.exact:
            self.check_text(text)
        return text

    def structured(self, value: Any) -> Any:
        """The structured content as JSON's builtins; raises as `encode` does."""
        return msgspec.json.decode(self.encode(value))

    def check(self, content: Any) -> None:
        """Raise `OutputError` if this structured content does not fit the schema."""
        self.check_text(encode_value(content))

    def check_text(self, text: bytes) -> None:
        """The same for its JSON text."""
        try:
            self.fits(text)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            # The decoder is stricter than the schema in places (5.0 as an integer): the schema decides.
            faults = self.validator.errors(msgspec.json.decode(text))
            if faults:
                fault = faults[0]
                raise OutputError(
                    f"the result does not fit the output schema: expected {fault.expected}, "
                    f"returned {fault.received}",
                    fault.field,
                ) from error


def read_output(annotation: Any, content_types: tuple[type, ...] = ()) -> Output | None:
    """What a return annotation promises; None when results are not structured.

    An object type (dataclass, `TypedDict`, struct, pydantic model, `dict`) is its own schema;
    everything else is wrapped as `{"result": value}`. Not structured: no annotation, None, `Any`,
    content blocks (also in lists and unions), bytes, paths, and classes that nothing can read.
    `Annotated[CallToolResult, Model]` promises what `Model` says. An `InputRequiredResult` promises
    nothing: it is not what the call comes to in the end.
    """
    annotation = _final(_awaited(annotation))
    declared = _declared(annotation)
    if declared is not None:
        return _output(declared, direct=True)
    if _is_unstructured(annotation, (*CONTENT, *content_types)):
        return None
    return _output(annotation)


def encode_value(value: Any, path: str = "") -> bytes:
    """`value` as JSON text. Raises `OutputError`, naming where under `path`, for what JSON cannot say."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError) as error:
        raise _blame(value) or OutputError(f"the result cannot be encoded: {error}", path) from error
    if b"null" in text:  # NaN and the infinities are written as null
        blamed = _blame(value, numbers_only=True)
        if blamed is not None:
            raise blamed
    return text


def builtins(value: Any) -> Any:
    """`value` as JSON's builtins. Raises `OutputError`, with the path, for what JSON cannot say."""
    return msgspec.json.decode(encode_value(value))


def _awaited(annotation: Any) -> Any:
    """What a plain function that returns an awaitable gives in the end."""
    origin = get_origin(annotation)
    at = _AWAITED.get(getattr(origin, "__name__", ""))
    arguments = get_args(annotation)
    if at is None or getattr(origin, "__module__", "") != "collections.abc" or len(arguments) <= at:
        return annotation
    return arguments[at]


def _final(annotation: Any) -> Any:
    """The annotation without `InputRequiredResult`, by which a tool may ask before it answers."""
    if InputRequiredResult not in members(annotation):
        return annotation
    rest = tuple(item for item in get_args(bare(annotation)) if item is not InputRequiredResult)
    return Union[rest] if rest else MISSING


def _declared(annotation: Any) -> Any:
    """The type beside `CallToolResult` in `Annotated`, if there is one."""
    if not is_instance_type(annotation, (CallToolResult,)):
        return None
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, type) or get_origin(item) is not None:
            return item
    return None


def _is_unstructured(annotation: Any, content: tuple[type, ...]) -> bool:
    if annotation is MISSING:
        return True
    found = members(annotation)
    kinds = [kind for member in found for kind in (member, *_items(member))]
    if is_instance_type(annotation, content) or any(is_instance_type(kind, content) for kind in kinds):
        return True
    return all(_is_opaque(member) or _is_open_list(member) for member in found)


def _is_open_list(member: Any) -> bool:
    """A list of anything: it may hold content blocks, and promises no structure."""
    origin = get_origin(member) or member
    return origin in (list, tuple) and all(item in (Any, object, ...) for item in get_args(member))


def _items(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) in (list, tuple, set, frozenset) or _is_stream(annotation):
        for item in get_args(annotation):
            yield from members(item)


def _is_stream(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    return getattr(origin, "__module__", "") == "collections.abc" and origin.__name__ in _STREAMS


def _is_opaque(member: Any) -> bool:
    if member in (Any, object, None) or _is_stream(member) or is_path(member):
        return True
    return isinstance(member, type) and issubclass(member, _OPAQUE)


def _output(annotation: Any, *, direct: bool = False) -> Output | None:
    adapter = adapter_for(annotation, "the result")
    kind = normalise(annotation)
    try:
        rendering = Rendering(
            [] if adapter is not None else [kind], mode="output", hook=schema_hook("output")
        )
        part = rendering.schemas[0] if adapter is None else rendering.adopt(adapter.schema("output"))
        schema = object_root(part, rendering.definitions)
        wraps = schema is None
        if schema is None:
            schema = {"type": "object", "properties": {"result": part}, "required": ["result"]}
            if rendering.definitions:
                schema["$defs"] = rendering.definitions
        fits = _fits(kind, wraps) if adapter is None else None
    except TypeError:
        return None
    validator = Validator(schema)
    return Output(
        schema=schema,
        wraps=wraps,
        direct=direct,
        adapter=adapter,
        exact=kind if kind in _AS_IT_IS else None,
        fits=fits or _by_schema(validator),
        validator=validator,
    )


def _fits(kind: Any, wraps: bool) -> Callable[[Any], Any]:
    if wraps:
        kind = msgspec.defstruct("Result", [("result", kind)])
    return msgspec.json.Decoder(kind, dec_hook=decode_hook).decode


def _by_schema(validator: Validator) -> Callable[[Any], Any]:
    def fits(text: bytes) -> None:
        if not validator.is_valid(msgspec.json.decode(text)):
            raise ValueError("the schema refuses it")

    return fits


def _encode_adapted(adapter: Adapter, value: Any) -> bytes:
    try:
        text = adapter.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise OutputError(f"the result is not of the declared type: {error}") from error
    if b"null" in text or b"NaN" in text or b"Infinity" in text:
        blamed = _blame(value, numbers_only=True)
        if blamed is not None:
            raise blamed
    return text


def _blame(value: Any, *, numbers_only: bool = False) -> OutputError | None:
    """The first thing in a value that JSON cannot say."""
    for path, fault in _walk(value, [], above=[], numbers_only=numbers_only):
        return OutputError(fault, field_path(path))
    return None


def _walk(
    value: Any, path: list[str | int], *, above: list[int], numbers_only: bool
) -> Iterator[tuple[list[str | int], str]]:
    if isinstance(value, float) and value - value != 0.0:
        yield path, f"{value} is no JSON number"
        return
    if id(value) in above:
        yield path, "the value contains itself"
        return
    if len(above) >= MAX_DEPTH:
        yield path[:8], f"the value is nested more than {MAX_DEPTH} deep"
        return
    parts = _parts(value)
    if parts is None:
        if not numbers_only:
            yield from _leaf(value, path)
        return
    for step, part in parts:
        yield from _walk(part, [*path, step], above=[*above, id(value)], numbers_only=numbers_only)


def _leaf(value: Any, path: list[str | int]) -> Iterator[tuple[list[str | int], str]]:
    try:
        _ENCODER.encode(value)
    except UnicodeEncodeError:
        yield path, f"text with a lone surrogate is no Unicode text: {ascii(value)[:80]}"
    except (TypeError, ValueError, msgspec.EncodeError) as error:
        yield path, str(error)


def _parts(value: Any) -> list[tuple[str | int, Any]] | None:
    """What a value holds, with the steps to it; None for a leaf."""
    kind = class_of(value)
    if issubclass(kind, Mapping):
        return [(key if isinstance(key, str) else snippet(key), part) for key, part in value.items()]
    if issubclass(kind, (list, tuple, set, frozenset)):
        return [(at, part) for at, part in enumerate(iter(value))]
    names: Any = getattr(kind, "__struct_fields__", None)
    if names is None:
        names = getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", None)
    if names is None:
        return None
    return [(name, getattr(value, name, None)) for name in names]
