"""Narrowing of JSON values for the type checkers: objects and arrays of anything.

It refuses to know what the values mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard, cast


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON array."""
    return isinstance(value, list)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Whether the value becomes a JSON array: a list or a tuple."""
    return isinstance(value, (list, tuple))


def class_of(value: Any) -> Any:
    """The class of a value, for looking up attributes that only some classes have."""
    return cast("Any", type(value))
