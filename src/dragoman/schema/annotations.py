"""What an annotation says beside its type: descriptions, constraints, aliases, defaults.

`pydantic.Field` and `annotated_types` are translated to `msgspec.Meta`, so that one decoder serves
them all; they are looked at only when the program has imported them. It refuses to know functions
and values.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from dragoman.errors import UsageError
from dragoman.schema.callables import MISSING
from dragoman.schema.shapes import class_of, is_array, is_object

_CONSTRAINTS: Final = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")
_UNIONS: Final = (Union, types.UnionType)
# Compiled, and kept by `re`, when first used: a server that starts needs none of them.
_FLAGS: Final = r"\(\?[aiLmsux]"
_TOKENS: Final = r"(?s)\\.|[\[\]$.]"
_SPACE: Final = r"\s\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_OUTSIDE: Final = {
    "$": r"\Z",
    ".": r"[^\n\r\u2028\u2029]",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
}
_IN_CLASS: Final = {r"\s": _SPACE}


class Reading(msgspec.Struct, frozen=True):
    """An annotation taken apart."""

    type: Any
    """The type with `msgspec.Meta` as its only metadata."""
    written: Any
    """The type as it was written, for the library that wrote it."""
    alias: str | None
    default: Any
    factory: Callable[[], Any] | None


def read_annotation(annotation: Any, default: Any = MISSING) -> Reading:
    """Take one parameter apart; a `pydantic.Field(...)` as the default counts as metadata.

    Raises `UsageError` for an alias that is not one plain name.
    """
    if annotation is MISSING:
        annotation = Any
    if _is_field(default):
        annotation, default = Annotated[annotation, default], MISSING
    alias: str | None = None
    factory = None
    for item in _outer(annotation):
        if _is_field(item):
            alias = _alias(item) or alias
            factory = item.default_factory or factory
            if not item.is_required() and item.default_factory is None and default is MISSING:
                default = item.default
    return Reading(normalise(annotation), annotation, alias, default, factory if default is MISSING else None)


def normalise(annotation: Any) -> Any:
    """The same type with every known metadata as `msgspec.Meta`, at any depth."""
    return _rewrite(annotation, _metas)


def anchored(annotation: Any) -> Any:
    r"""The same type with patterns that mean to `re` what they mean in JSON Schema.

    There (ECMA-262) `$` is the very end of the text, `\d` and `\w` are ASCII and `\s` is not; to
    `re`, `$` also stands before a newline at the end, and `\d` is a digit of any script.
    """
    return _rewrite(annotation, _anchored_metas)


def _rewrite(annotation: Any, metas: Callable[[tuple[Any, ...]], Iterable[Meta]]) -> Any:
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        found = tuple(metas(metadata))
        inner = _rewrite(annotation.__origin__, metas)
        if inner is annotation.__origin__ and found == metadata:
            return annotation
        return Annotated[(inner, *found)] if found else inner
    arguments = get_args(annotation)
    origin = get_origin(annotation)
    if not arguments or origin is Literal or origin is None:
        return annotation
    rewritten = tuple(item if is_array(item) else _rewrite(item, metas) for item in arguments)
    if all(new is old for new, old in zip(rewritten, arguments, strict=True)):
        return annotation
    return Union[rewritten] if origin in _UNIONS else origin[rewritten]


def _anchored_metas(metadata: tuple[Any, ...]) -> Iterator[Meta]:
    for item in metadata:
        pattern = _ecma(item.pattern) if isinstance(item, Meta) and item.pattern is not None else None
        if pattern is None:
            yield item
        else:
            kept: dict[str, Any] = {name: getattr(item, name) for name in _CONSTRAINTS}
            kept["pattern"] = pattern
            yield Meta(**kept)


def _ecma(pattern: str) -> str | None:
    """The pattern for `re`, or None if it is the same."""
    if re.match(_FLAGS, pattern):
        return None  # written for `re`
    in_class = False

    def translated(match: re.Match[str]) -> str:
        nonlocal in_class
        part = match[0]
        if part in "[]":
            in_class = part == "["
        return (_IN_CLASS if in_class else _OUTSIDE).get(part, part)

    found = re.sub(_TOKENS, translated, pattern)
    return None if found == pattern and "\\" not in pattern else f"(?a){found}"


def plain_pattern(pattern: Any) -> str | None:
    """The text of a pattern that `re` reads without flags; None for one that only its own library reads."""
    text = getattr(pattern, "pattern", pattern)
    try:
        flags = re.compile(text).flags
    except re.error:
        return None
    return text if getattr(pattern, "flags", flags) == flags else None


def bare(annotation: Any) -> Any:
    """The type without `Annotated`."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    return annotation


def members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union (of unions, annotated or not), or the type itself; never `Annotated`."""
    annotation = bare(annotation)
    if get_origin(annotation) in _UNIONS:
        return tuple(inner for item in get_args(annotation) for inner in members(item))
    return (annotation,)


def is_instance_type(annotation: Any, classes: tuple[type, ...]) -> bool:
    """Whether the annotation is one of `classes`, a subclass, a parametrised form, or that or None."""
    if not classes:
        return False
    for member in members(annotation):
        cls = get_origin(member) or member
        if isinstance(cls, type) and issubclass(cls, classes):
            return True
    return False


def _outer(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__metadata__", ())


def _is_field(item: Any) -> bool:
    module = sys.modules.get("pydantic.fields")
    return module is not None and isinstance(item, module.FieldInfo)


def _alias(field: Any) -> str | None:
    alias = field.validation_alias or field.alias
    if alias is None or isinstance(alias, str):
        return alias
    raise UsageError(f"alias {alias!r} is not one name: an argument has exactly one name on the wire")


def documentation(annotation: Any) -> dict[str, Any]:
    """What the outermost metadata says for the reader of a schema: title, description, examples, extras."""
    said: dict[str, Any] = {}
    for meta in _metas(_outer(annotation)):
        pairs = {"title": meta.title, "description": meta.description, "examples": meta.examples}
        said.update((name, value) for name, value in pairs.items() if value is not None)
        said.update(meta.extra_json_schema or {})
    return said


def _metas(metadata: tuple[Any, ...]) -> Iterator[Meta]:
    for item in metadata:
        if isinstance(item, Meta):
            yield item
            continue
        said: dict[str, Any] = {"description": item} if isinstance(item, str) else dict(_said(item))
        if said:
            yield Meta(**said)


def _said(item: Any) -> Iterator[tuple[str, Any]]:
    """What one piece of foreign metadata says, as arguments of `msgspec.Meta`."""
    if _is_field(item):
        yield from _said_by_field(item)
    elif class_of(item).__module__.partition(".")[0] in ("annotated_types", "pydantic"):
        if hasattr(class_of(item), "__iter__"):
            for part in item:
                yield from _said(part)
        else:
            for name in _CONSTRAINTS:
                value = getattr(item, name, None)
                value = plain_pattern(value) if name == "pattern" and value is not None else value
                if value is not None:
                    yield name, value


def _said_by_field(field: Any) -> Iterator[tuple[str, Any]]:
    for part in field.metadata:
        yield from _said(part)
    for name in ("title", "description", "examples"):
        value = getattr(field, name)
        if value is not None:
            yield name, value
    extra = dict(field.json_schema_extra) if is_object(field.json_schema_extra) else {}
    if field.deprecated:
        extra["deprecated"] = True
    if extra:
        yield "extra_json_schema", extra
