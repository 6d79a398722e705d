"""The fields of a form that a server asks to be filled in: what each takes, and a person's text read as that.

Pure: a schema of the protocol in (client/elicitation, "Requested Schema"), values out. It shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from dragoman.model import (
    BooleanSchema,
    ElicitValue,
    NamedEnumSchema,
    NumberSchema,
    PrimitiveSchemaDefinition,
    StringSchema,
    TitledMultiSelectEnumSchema,
    TitledSingleSelectEnumSchema,
    UntitledMultiSelectEnumSchema,
    primitive_schema,
)
from dragoman.schema.shapes import is_array, is_object

Choice: TypeAlias = tuple[str, str]  # the value, and how it is shown

_YES: Final = frozenset({"y", "yes", "true", "on", "1"})
_NO: Final = frozenset({"n", "no", "false", "off", "0"})
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|[^@\s]+@localhost")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class Field(Struct, frozen=True):
    """One field. `read` makes a value of a text and raises ValueError, saying what was expected."""

    name: str
    title: str
    description: str
    expects: str
    required: bool
    default: ElicitValue | UnsetType
    choices: tuple[Choice, ...]
    read: Callable[[str], ElicitValue]

    def show(self, value: ElicitValue) -> str:
        """A value as a person reads it."""
        titles = dict(self.choices)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            return ", ".join(titles.get(item, item) for item in value) or "none"
        return titles.get(value, value) if isinstance(value, str) else f"{value}"


def fields(schema: Mapping[str, Any] | UnsetType) -> list[Field]:
    """The fields of a form, in the order in which the server has them.

    Raises:
        ValueError: a field is of no shape that the protocol allows; the text names it.
    """
    members: Mapping[str, Any] = {} if schema is UNSET else schema
    properties, required = members.get("properties", {}), members.get("required", [])
    if not is_object(properties):
        raise ValueError("`properties` is no object")
    needed = required if is_array(required) else []
    return [_field(name, schema, required=name in needed) for name, schema in properties.items()]


def _field(name: str, schema: Any, *, required: bool) -> Field:
    if not is_object(schema):
        raise ValueError(f"field {name!r} is no object")
    try:
        kind = primitive_schema(schema)
    except (msgspec.ValidationError, TypeError) as exc:
        raise ValueError(f"field {name!r}: {exc}") from None
    choices, read, expects = _kind(kind)
    return Field(
        name=name,
        title=name if kind.title is UNSET else kind.title,
        description="" if kind.description is UNSET else kind.description,
        expects=expects,
        required=required,
        default=kind.default,
        choices=choices,
        read=read,
    )


def _kind(
    kind: PrimitiveSchemaDefinition,
) -> tuple[tuple[Choice, ...], Callable[[str], ElicitValue], str]:
    if isinstance(kind, StringSchema):
        return (), lambda text: _text(text, kind), _text_expected(kind)
    if isinstance(kind, NumberSchema):
        return (), lambda text: _number(text, kind), _number_expected(kind)
    if isinstance(kind, BooleanSchema):
        return (), _boolean, "yes or no"
    choices = _choices(kind)
    if isinstance(kind, UntitledMultiSelectEnumSchema | TitledMultiSelectEnumSchema):
        least = 0 if kind.min_items is UNSET else kind.min_items
        most = len(choices) if kind.max_items is UNSET else kind.max_items
        several = _several_expected(least, most, count=len(choices))
        return choices, lambda text: _several(text, choices, bounds=(least, most)), several
    return choices, lambda text: _one(text, choices), "one of these, by number or name"


def _choices(kind: Any) -> tuple[Choice, ...]:
    if isinstance(kind, TitledMultiSelectEnumSchema):
        return tuple((option.const, option.title) for option in kind.items.any_of)
    if isinstance(kind, TitledSingleSelectEnumSchema):
        return tuple((option.const, option.title) for option in kind.one_of)
    if isinstance(kind, NamedEnumSchema) and kind.enum_names is not UNSET:
        names = [*kind.enum_names, *kind.enum[len(kind.enum_names) :]]
        return tuple(zip(kind.enum, names, strict=False))
    values: list[str] = kind.items.enum if isinstance(kind, UntitledMultiSelectEnumSchema) else kind.enum
    return tuple((value, value) for value in values)


# Text --------------------------------------------------------------------------------------------


def _text(text: str, kind: StringSchema) -> str:
    if kind.min_length is not UNSET and len(text) < kind.min_length:
        raise ValueError(f"expected at least {kind.min_length} characters, received {len(text)}")
    if kind.max_length is not UNSET and len(text) > kind.max_length:
        raise ValueError(f"expected at most {kind.max_length} characters, received {len(text)}")
    if kind.format is not UNSET and not _FORMATS[kind.format][0](text):
        raise ValueError(f"expected {_FORMATS[kind.format][1]}")
    return text


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("YYYY-MM-DD") and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


_FORMATS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "email": (lambda text: _EMAIL.fullmatch(text) is not None, "an e-mail address"),
    "uri": (lambda text: _URI.fullmatch(text) is not None, "a URI, such as https://example.com/"),
    "date": (_is_date, "a date, such as 2026-07-28"),
    "date-time": (_is_time, "a time with its zone, such as 2026-07-28T09:30:00Z"),
}


def _text_expected(kind: StringSchema) -> str:
    what = "text" if kind.format is UNSET else _FORMATS[kind.format][1]
    least, most = kind.min_length, kind.max_length
    if least is UNSET and most is UNSET:
        return what
    if most is UNSET:
        return f"{what}, at least {least} characters"
    return f"{what}, at most {most} characters" if least is UNSET else f"{what}, {least} to {most} characters"


# Numbers and choices -----------------------------------------------------------------------------


def _number(text: str, kind: NumberSchema) -> int | float:
    try:
        number = msgspec.json.decode(text.strip().removeprefix("+"), type=int | float)
    except msgspec.DecodeError:
        raise ValueError(f"expected {_number_expected(kind)}, received {text!r}") from None
    if kind.type == "integer":
        if isinstance(number, float) and not number.is_integer():
            raise ValueError(f"expected {_number_expected(kind)}, received {text!r}")
        number = int(number)
    below = kind.minimum is not UNSET and number < kind.minimum
    if below or (kind.maximum is not UNSET and number > kind.maximum):
        raise ValueError(f"expected {_number_expected(kind)}, received {number}")
    return number


def _number_expected(kind: NumberSchema) -> str:
    what = "a whole number" if kind.type == "integer" else "a number"
    if kind.minimum is UNSET and kind.maximum is UNSET:
        return what
    if kind.maximum is UNSET:
        return f"{what} from {kind.minimum} up"
    return (
        f"{what} up to {kind.maximum}"
        if kind.minimum is UNSET
        else f"{what} from {kind.minimum} to {kind.maximum}"
    )


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in _YES or word in _NO:
        return word in _YES
    raise ValueError(f"expected yes or no, received {text!r}")


def _one(text: str, choices: tuple[Choice, ...]) -> str:
    word = text.strip()
    # As it is written first: the values themselves may be numbers.
    for value, _ in choices:
        if word == value:
            return value
    alike = [value for value, title in choices if word.lower() in (value.lower(), title.lower())]
    if alike:
        return alike[0]
    if word.isdecimal() and 1 <= int(word) <= len(choices):
        return choices[int(word) - 1][0]
    raise ValueError(f"expected a number from 1 to {len(choices)} or a name, received {text!r}")


def _several(text: str, choices: tuple[Choice, ...], *, bounds: tuple[int, int]) -> list[str]:
    words = [word for word in text.split(",") if word.strip()]
    values = list(dict.fromkeys(_one(word, choices) for word in words))
    least, most = bounds
    if not least <= len(values) <= most:
        raise ValueError(
            f"expected {_several_expected(least, most, count=len(choices))}, received {len(values)}"
        )
    return values


def _several_expected(least: int, most: int, *, count: int) -> str:
    if least == most:
        return f"{least} of these, with commas between them"
    if most >= count:
        amount = f"at least {least}" if least else "any"
    else:
        amount = f"{least} to {most}"
    return f"{amount} of these, with commas between them"
