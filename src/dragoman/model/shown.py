"""How records read in a prompt, a log or a failed test: on one line, short, without what is absent.

It knows no record and decides nothing but what is shown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, TypeGuard

from msgspec import UNSET, Struct

_TEXT: Final = 200  # characters of a text that are shown
_SOLID: Final = 60  # and of one without any space in it, as base64 is
_KEPT: Final = 24  # of such a one that is longer
_ITEMS: Final = 20
_DEPTH: Final = 6


def record(value: Struct, *, without: Collection[str] = ()) -> str:
    """`Name(member=..., ...)` with the members that are there, but for those in `without`."""
    members = ((name, getattr(value, name)) for name in value.__struct_fields__ if name not in without)
    inner = ", ".join(f"{name}={shown(member)}" for name, member in members if member is not UNSET)
    return f"{type(value).__name__}({inner})"


def shown(value: Any, *, depth: int = 0) -> str:
    """Any value as Python writes it, with long texts and long or deep lists and objects cut."""
    if isinstance(value, str):
        return _text(value)
    if depth >= _DEPTH and (_is_object(value) or _is_row(value)):
        return "…"
    if _is_object(value):
        items = list(value.items())
        pairs = (f"{shown(key)}: {shown(inner, depth=depth + 1)}" for key, inner in items[:_ITEMS])
        return f"{{{', '.join(pairs)}{_more(items)}}}"
    if _is_row(value):
        inner = ", ".join(shown(item, depth=depth + 1) for item in value[:_ITEMS]) + _more(value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    return repr(value)


def _is_object(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _is_row(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def _text(value: str) -> str:
    solid = " " not in value[: _SOLID + 1]
    if len(value) <= (_SOLID if solid else _TEXT):
        return repr(value)
    kept = _KEPT if solid else _TEXT
    return f"{value[:kept] + '…'!r} ({len(value):,} characters)"


def _more(value: Collection[Any]) -> str:
    left = len(value) - _ITEMS
    return f", … {left:,} more" if left > 0 else ""
