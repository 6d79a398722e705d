"""The words for what a JSON Schema refused: `Fault` records from the validator's errors.

Written for a reader who must correct the value, often a model. It refuses to know how validation
is done and what the value was for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from dragoman.schema.errors import SNIPPET, Fault
from dragoman.schema.shapes import is_array, is_object

_NAMES: Final = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def snippet(value: Any) -> str:
    """`value` as JSON, cut at 200 characters."""
    if isinstance(value, str) and len(value) > SNIPPET:
        value = value[:SNIPPET]
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= SNIPPET else text[: SNIPPET - 1] + "…"


def field_path(path: Iterable[str | int]) -> str:
    """A path as a reader writes it: `user.emails[0]`, `headers["x-y"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("-", "_").isidentifier():
            text += f".{step}" if text else step
        else:
            text += f"[{snippet(step)}]"
    return text


def pointer(path: Iterable[str | int]) -> str:
    """A path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _resolved(root: Any, reference: Any) -> Any:
    from dragoman.schema.references import resolve

    return resolve(root, reference)


def describe(schema: Any, root: Any) -> str:
    """What a schema asks for, in a few words."""
    for _ in range(8):  # references to references; a longer chain says nothing useful
        if not is_object(schema) or "$ref" not in schema:
            break
        schema = _resolved(root, schema["$ref"])
    if not is_object(schema):
        return "a value"
    for keyword in ("enum", "const", "type"):
        if keyword in schema:
            return _PHRASES[keyword](schema[keyword])
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return _either(describe(member, root) for member in schema[keyword])
    return "a value"


def faults(errors: Iterable[Any], root: Any) -> Iterator[Fault]:
    """The faults behind the errors of a `jsonschema_rs` validator of the schema `root`."""
    for error in errors:
        keyword = error.kind.name
        if keyword == "required":
            yield _missing(error, root)
        elif keyword in ("additionalProperties", "unevaluatedProperties"):
            yield from _unknown(error, root)
        elif keyword in ("anyOf", "oneOf") and getattr(error.kind, "context", None):
            yield from _unmatched(error, root)
        else:
            yield _plain(error)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` may be a slip of the pen for."""
    limit = len(name) // 3
    scored = [(_distance(name.casefold(), other.casefold()), other) for other in candidates]
    best = min(scored, default=None)
    return best[1] if best is not None and best[0] <= limit else None


def unknown_field(
    path: list[str | int], name: str, *, received: Any, known: Iterable[str] = (), rule: str = ""
) -> Fault:
    """The fault of a member that the schema does not have."""
    close = nearest(name, known)
    guess = f" (did you mean {snippet(close)}?)" if close is not None else ""
    return Fault(
        field=field_path([*path, name]),
        expected=f"no member of this name{guess}",
        received=snippet(received),
        rule=rule,
        unknown=True,
        close=close,
    )


def _plain(error: Any) -> Fault:
    keyword = error.kind.name
    phrase = _PHRASES.get(keyword)
    value = error.kind.value if phrase is not None else None
    return Fault(
        field=field_path(error.instance_path),
        expected=phrase(value)
        if phrase is not None
        else f"a value that satisfies {keyword!r}: {error.message[:SNIPPET]}",
        received=snippet(error.instance),
        allowed=_allowed(keyword, value),
        rule=pointer(error.schema_path),
    )


def _allowed(keyword: str, value: Any) -> tuple[Any, ...] | None:
    if keyword == "enum":
        return tuple(value)
    return (value,) if keyword == "const" else None


def _missing(error: Any, root: Any) -> Fault:
    name = error.kind.value
    parent = _resolved(root, "#" + pointer(error.schema_path[:-1]))
    wanted = parent.get("properties", {}).get(name) if is_object(parent) else None
    return Fault(
        field=field_path([*error.instance_path, name]),
        expected=describe(wanted, root),
        received="nothing",
        rule=pointer(error.schema_path),
    )


def _unknown(error: Any, root: Any) -> Iterator[Fault]:
    parent = _resolved(root, "#" + pointer(error.schema_path[:-1]))
    known: dict[str, Any] = parent.get("properties", {}) if is_object(parent) else {}
    for name in error.kind.value:
        free = [other for other in known if other not in error.instance]
        yield unknown_field(
            error.instance_path,
            name,
            received=error.instance[name],
            known=free,
            rule=pointer(error.schema_path),
        )


def _unmatched(error: Any, root: Any) -> Iterator[Fault]:
    """A union that no member of fits: the faults of the one member that was meant, if that is clear."""
    here = list(error.instance_path)
    branches = [branch for branch in error.kind.context if branch]
    meant = [branch for branch in branches if not any(_is_other(fault, here) for fault in branch)]
    if len(meant) == 1:
        yield from faults(meant[0], root)
        return
    tags = [fault for branch in branches for fault in branch if _is_tag(fault, here)]
    if not meant and tags and len({tuple(fault.instance_path) for fault in tags}) == 1:
        allowed = tuple(dict.fromkeys(value for fault in tags for value in _allowed_by(fault)))
        yield Fault(
            field=field_path(tags[0].instance_path),
            expected=_choice(allowed),
            received=snippet(tags[0].instance),
            allowed=allowed,
            rule=pointer(error.schema_path),
        )
        return
    parent = _resolved(root, "#" + pointer(error.schema_path))
    yield Fault(
        field=field_path(here),
        expected=_either(describe(member, root) for member in parent) if is_array(parent) else "a value",
        received=snippet(error.instance),
        rule=pointer(error.schema_path),
    )


def _is_other(fault: Any, here: list[str | int]) -> bool:
    """Whether this fault says that another member of the union was meant."""
    return (fault.kind.name in ("type", "enum") and list(fault.instance_path) == here) or _is_tag(fault, here)


def _is_tag(fault: Any, here: list[str | int]) -> bool:
    return fault.kind.name == "const" and list(fault.instance_path)[:-1] == here and bool(fault.instance_path)


def _allowed_by(fault: Any) -> tuple[Any, ...]:
    return _allowed(fault.kind.name, fault.kind.value) or ()


def _kinds(types: Any) -> str:
    return _either(_NAMES.get(name, str(name)) for name in ([types] if isinstance(types, str) else types))


def _either(parts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(parts))


def _choice(values: Iterable[Any]) -> str:
    shown = [snippet(value) for value in values]
    return shown[0] if len(shown) == 1 else "one of " + ", ".join(shown)


def _count(number: Any, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _distance(left: str, right: str) -> int:
    """The edit distance, counting a swap of neighbours as one."""
    if abs(len(left) - len(right)) > len(left) or max(len(left), len(right)) > SNIPPET:
        return len(left) + len(right)
    before: list[int] = []
    row = list(range(len(right) + 1))
    for at, a in enumerate(left, 1):
        last, row = row, [at, *row[1:]]
        for to, b in enumerate(right, 1):
            row[to] = min(last[to] + 1, row[to - 1] + 1, last[to - 1] + (a != b))
            if at > 1 and to > 1 and a == right[to - 2] and left[at - 2] == b:
                row[to] = min(row[to], before[to - 2] + 1)
        before = last
    return row[-1]


_PHRASES: Final[dict[str, Callable[[Any], str]]] = {
    "type": _kinds,
    "enum": _choice,
    "const": snippet,
    "minimum": lambda value: f"a number of at least {value}",
    "exclusiveMinimum": lambda value: f"a number greater than {value}",
    "maximum": lambda value: f"a number of at most {value}",
    "exclusiveMaximum": lambda value: f"a number less than {value}",
    "multipleOf": lambda value: f"a multiple of {value}",
    "minLength": lambda value: f"a string of at least {_count(value, 'character')}",
    "maxLength": lambda value: f"a string of at most {_count(value, 'character')}",
    "pattern": lambda value: f"a string that matches {value}",
    "format": lambda value: f"a string in the format {value}",
    "minItems": lambda value: f"an array of at least {_count(value, 'item')}",
    "maxItems": lambda value: f"an array of at most {_count(value, 'item')}",
    "uniqueItems": lambda value: "an array whose items all differ",
    "minProperties": lambda value: f"an object of at least {_count(value, 'member')}",
    "maxProperties": lambda value: f"an object of at most {_count(value, 'member')}",
    "falseSchema": lambda value: "nothing in this place",
}
