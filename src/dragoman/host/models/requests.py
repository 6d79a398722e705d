"""What the bodies of all APIs' requests and answers have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.host.models.base import ToolUse
from dragoman.host.models.schemas import table


def body(own: dict[str, Any], more: Mapping[str, Any] | None) -> dict[str, Any]:
    """A body with a caller's members in it. They win; members that are objects on both sides are joined."""
    for name, value in (more or {}).items():
        first, second = table(own.get(name)), table(value)
        own[name] = value if first is None or second is None else {**first, **second}
    return own


def counts(usage: object) -> Mapping[str, Any]:
    """What a message says of its tokens."""
    return table(usage) or {}


def number(value: Mapping[str, Any], name: str) -> int:
    """A count or a place; 0 where there is none."""
    found = value.get(name)
    return found if isinstance(found, int) and found > 0 else 0


def read_use(id_: str, name: str, *, arguments: object) -> ToolUse:
    """A call whose arguments are JSON text. No text at all is how some say that there are none."""
    if not isinstance(arguments, str):
        return ToolUse(id_, name, {}, fault=f"arguments: expected text; received {type(arguments).__name__}")
    if not arguments.strip():
        return ToolUse(id_, name, {}, raw=arguments)
    try:
        found: object = msgspec.json.decode(arguments)
    except (ValueError, RecursionError) as exc:
        return ToolUse(id_, name, {}, raw=arguments, fault=f"the arguments are no JSON: {exc}")
    given = table(found)
    if given is None:
        fault = f"the arguments are no object but {type(found).__name__}"
        return ToolUse(id_, name, {}, raw=arguments, fault=fault)
    return ToolUse(id_, name, given, raw=arguments)
