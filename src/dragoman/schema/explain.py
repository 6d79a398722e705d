"""Why arguments were refused: every fault by the schema, and the decoder's own words if there is none.

It runs only after a refusal, so it may be slow. It refuses to know functions.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.schema.errors import Fault, SchemaError
from dragoman.schema.shapes import is_object
from dragoman.schema.validate import Validator
from dragoman.schema.wording import field_path, snippet, unknown_field

# Compiled, and kept by `re`, when first used: a server that starts needs none of them.
_MESSAGE: Final = r"(?s)^(?P<text>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$"
_EXPECTED: Final = r"(?s)^Expected (?P<expected>.*?)(?:, got (?P<received>.*))?$"
_FIELD: Final = r"^Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`$"
_STEP: Final = r"\.(?P<name>[^.\[]+)|\[(?P<index>\d+|\.\.\.)\]"
_ABSENT: Final[Any] = object()


def explain(schema: dict[str, Any] | bool, arguments: Any) -> tuple[Fault, ...]:
    """Every fault of `arguments` (JSON's builtins) by `schema`; empty if there is none.

    Formats are looked at only when nothing else is wrong: a decoder may accept more than the
    format says (a date and time without an offset).
    """
    return _by_schema(Validator(schema), arguments)


def explain_refusal(validator: Validator, source: Any, *, error: Exception) -> tuple[Fault, ...]:
    """Why the JSON text `source` was refused with `error`; never empty."""
    try:
        value = msgspec.json.decode(source)
    except (ValueError, RecursionError) as fault:
        return (Fault(field="", expected="valid JSON in UTF-8", received=str(fault)),)
    try:
        found = _by_schema(validator, value)
    except (SchemaError, UsageError):  # no engine, or a hand-made part of the schema that it refuses
        found = ()
    return found or _by_pydantic(error) or (_by_message(str(error), value),)


def _by_schema(validator: Validator, value: Any) -> tuple[Fault, ...]:
    return validator.errors(value) or validator.errors(value, formats=True)


def _by_pydantic(error: Exception) -> tuple[Fault, ...]:
    errors: Any = getattr(error.__cause__ or error, "errors", None)
    if not callable(errors):
        return ()
    found: Any = errors()
    return tuple(
        Fault(field=field_path(item["loc"]), expected=item["msg"], received=snippet(item.get("input")))
        for item in found
    )


def _by_message(message: str, value: Any) -> Fault:
    """The fault in a message of msgspec, with the value that it is about looked up."""
    match = re.match(_MESSAGE, message)
    text, steps = (match["text"], _steps(match["path"] or "")) if match else (message, [])
    field = re.match(_FIELD, text)
    here = _lookup(value, steps)
    if field is not None and field["what"].startswith("missing"):
        return Fault(field=field_path([*steps, field["name"]]), expected="a value", received="nothing")
    if field is not None:
        inner = here.get(field["name"]) if is_object(here) else None
        return unknown_field(steps, field["name"], received=inner)
    expected = re.match(_EXPECTED, text)
    received = (
        snippet(here) if here is not _ABSENT else (expected and expected["received"]) or "something else"
    )
    return Fault(
        field=field_path(steps),
        expected=expected["expected"].replace("`", "") if expected else f"a value that can be read ({text})",
        received=received,
    )


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for match in re.finditer(_STEP, path):
        index = match["index"]
        if index is None:
            steps.append(match["name"])
        else:
            steps.append(int(index) if index.isdigit() else index)
    return steps


def _lookup(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return _ABSENT
    return value
