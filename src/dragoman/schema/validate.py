"""Validation of values against JSON Schemas, with bounds on what a schema or a value may cost.

It speaks 2020-12 and draft-07, never fetches anything, and refuses to know whose schema it is.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.schema.errors import Fault, InvalidSchema, UnresolvedReference, UnsupportedDialect
from dragoman.schema.shapes import is_array, is_object
from dragoman.schema.wording import faults, pointer, snippet

MAX_VALUE_DEPTH: Final = 128
"""A value may nest objects and arrays this deep."""
MAX_LISTED: Final = 20_000
"""All faults are listed for values of up to this many members and items; beyond, the first one."""
MAX_FAULTS: Final = 100
MAX_BACKTRACKS: Final = 100_000
"""Steps for a pattern with look-around or back-references; all others run in linear time."""

_DRAFT_2020: Final = "json-schema.org/draft/2020-12/schema"
_DRAFT_07: Final = "json-schema.org/draft-07/schema"
_DIALECTS: Final = {"json-schema.org/draft/2020-12/schema": "2020-12", _DRAFT_07: "draft-07"}


class Validator:
    """A schema, compiled when it is first used.

    The dialect is what `$schema` says, 2020-12 if it says nothing. `format` is an annotation, as
    2020-12 has it, unless `formats=True` is asked for. Every method raises one of the kinds of
    `SchemaError` when the schema cannot be used.
    """

    __slots__ = ("_compiled", "schema")

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self.schema = schema
        self._compiled: dict[bool, Any] = {}

    def is_valid(self, value: Any) -> bool:
        """Whether the value fits; `value` consists of JSON's builtins."""
        engine = self._engine(False)
        if measure(value)[1] > MAX_VALUE_DEPTH:  # the engine descends by recursion and would crash
            return False
        try:
            return bool(engine.is_valid(value))
        except ValueError:  # not JSON, or nested too deep for the engine
            return False

    def errors(self, value: Any, *, formats: bool = False) -> tuple[Fault, ...]:
        """Every fault of the value (at most 100), or an empty tuple."""
        engine = self._engine(formats)
        size, depth = measure(value)
        if depth > MAX_VALUE_DEPTH:
            return (
                Fault(
                    field="",
                    expected=f"a value nested at most {MAX_VALUE_DEPTH} deep",
                    received="a deeper one",
                ),
            )
        try:
            if engine.is_valid(value):
                return ()
            return self._list(engine, value, size=size, depth=depth)
        except ValueError as error:
            if isinstance(error, _validation_error()):
                raise
            return (Fault(field="", expected="a JSON value", received=str(error)),)

    def check(self) -> None:
        """Compile now; raises what is wrong with the schema."""
        self._engine(False)

    def _list(self, engine: Any, value: Any, *, size: int, depth: int) -> tuple[Fault, ...]:
        from dragoman.schema.bounds import is_listable

        if not is_listable(self.schema, depth):
            return (Fault(field="", expected="a value that the schema accepts", received=snippet(value)),)
        if size > MAX_LISTED:
            found = [_first(engine, value)]
        else:
            found = list(engine.iter_errors(value))
        listed = {(fault.field, fault.expected): fault for fault in faults(found, self.schema)}
        return tuple(listed.values())[:MAX_FAULTS]

    def _engine(self, formats: bool) -> Any:
        engine = self._compiled.get(formats)
        if engine is None:
            engine = self._compiled[formats] = _compile(self.schema, formats)
        return engine


def check_schema(schema: Any) -> None:
    """Raise `InvalidSchema`, `UnsupportedDialect` or `UnresolvedReference` if the schema cannot be used."""
    Validator(schema).check()


def shape_fault(schema: Any) -> str | None:
    """What is wrong with a schema by the rules for schemas of 2020-12; None if nothing is.

    None too for a schema that names another draft, and where no validator is installed. References are
    not followed.
    """
    if is_object(schema) and _named(schema) not in ("", _DRAFT_2020):
        return None
    try:
        _rules().meta.validate(
            {**schema, "$schema": f"https://{_DRAFT_2020}"} if is_object(schema) else schema
        )
    except UsageError:
        return None
    except _validation_error() as error:
        place = pointer(error.instance_path)
        return f"{error.message.partition(chr(10))[0]}{f' at {place}' if place else ''}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _named(schema: Any) -> str:
    """The draft that a schema names, without scheme and `#`."""
    said = str(schema.get("$schema", ""))
    return re.sub("^https?://", "", said).rstrip("#/")


def measure(value: Any) -> tuple[int, int]:
    """How many members and items a JSON value has, and how deep it nests (a scalar: 0)."""
    count = 0
    depth = 0
    level: list[Any] = [value]
    while level:
        inner: list[Any] = [item for item in level if isinstance(item, (dict, list, tuple))]
        if not inner or depth > MAX_VALUE_DEPTH:
            break
        depth += 1
        level = [part for item in inner for part in (item.values() if is_object(item) else item)]
        count += len(level)
    return count, depth


def _compile(schema: Any, formats: bool) -> Any:
    if not is_object(schema) and not isinstance(schema, bool):
        raise InvalidSchema(f"a JSON Schema is an object or a boolean, not {snippet(schema)}")
    rules = _rules()
    draft = rules.Draft7Validator if _dialect(schema) == "draft-07" else rules.Draft202012Validator
    if is_object(schema):
        from dragoman.schema.bounds import check_bounds

        check_bounds(schema)
    linear = rules.RegexOptions()
    bounded = rules.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS)
    try:
        return _build(draft, schema, formats=formats, patterns=linear)
    except InvalidSchema as error:
        # Look-around and back-references: legal in ECMA-262, but not for the linear engine.
        if "pattern" not in error.place:
            raise
        return _build(draft, schema, formats=formats, patterns=bounded)


def _build(draft: Any, schema: Any, *, formats: bool, patterns: Any) -> Any:
    try:
        return draft(schema, validate_formats=formats, pattern_options=patterns, offline=True)
    except _validation_error() as error:
        raise _schema_fault(error, schema) from None
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"the schema cannot be used: {error}") from None


def _schema_fault(error: Any, schema: Any) -> InvalidSchema | UnresolvedReference:
    place = pointer(error.instance_path)
    if error.kind.name == "$ref":
        reference, place = _blamed(error.message, schema)
        return UnresolvedReference(reference, place)
    return InvalidSchema(error.message.partition("\n")[0], place)


def _blamed(message: str, schema: Any) -> tuple[str, str]:
    """The reference that the message is about, as it is written in the schema, and its place."""
    waiting: list[tuple[Any, str]] = [(schema, "")]
    found: list[tuple[str, str]] = []
    while waiting:
        node, place = waiting.pop(0)
        pairs = node.items() if is_object(node) else enumerate(node)
        for key, value in pairs:
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                found.append((value, f"{place}/{key}"))
            elif is_object(value) or is_array(value):
                waiting.append((value, f"{place}{pointer([key])}"))
    for reference, place in found:
        if reference.lstrip("#") and reference.lstrip("#") in message:
            return reference, place
    return (message, "") if not found else found[0]


def _dialect(schema: dict[str, Any] | bool) -> str:
    named = schema.get("$schema") if is_object(schema) else None
    if named is None:
        return "2020-12"
    if not isinstance(named, str):
        raise InvalidSchema(f"a dialect is named by a URI, not {snippet(named)}", "/$schema")
    dialect = _DIALECTS.get(named.rstrip("#").partition("://")[2])
    if dialect is None:
        raise UnsupportedDialect(named)
    return dialect


def _first(engine: Any, value: Any) -> Any:
    try:
        engine.validate(value)
    except _validation_error() as error:
        return error
    raise AssertionError("the validator refused a value and then accepted it")


def _validation_error() -> Any:
    return _rules().ValidationError


def _rules() -> Any:
    try:
        import jsonschema_rs
    except ImportError as error:
        raise UsageError(
            "validating against a JSON Schema needs the package jsonschema-rs", hint="install jsonschema-rs"
        ) from error
    return jsonschema_rs
