"""The parameters of a Python callable, read from its code object without `inspect`.

It follows methods, partials, wrappers and callable objects to the function inside, and resolves
postponed annotations. It refuses to know what an annotation means.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, Final, cast, get_type_hints

from msgspec import Struct

from dragoman.errors import UsageError
from dragoman.schema.shapes import class_of


class _Missing:
    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = _Missing()
"""The default of a parameter that has none."""

_VAR_POSITIONAL = 0x04  # co_flags, as the data model chapter of the language reference names them
_VAR_KEYWORD = 0x08


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter that a caller may give: `by_position` when it cannot be given by name."""

    name: str
    annotation: Any
    default: Any = MISSING
    by_position: bool = False


class Shape(Struct, frozen=True, kw_only=True):
    """What a callable takes and gives; annotations are resolved, `MISSING` where there is none."""

    name: str
    doc: str | None
    parameters: tuple[Parameter, ...]
    extra: Any
    """The annotation of `**kwargs` (`Any` if it has none), or `MISSING` without `**kwargs`."""
    returns: Any


def read_callable(function: Callable[..., Any], known: dict[str, Any] | None = None) -> Shape:
    """The shape of `function`.

    `known` gives names that postponed annotations may use although the module does not define
    them at run time (imports under `TYPE_CHECKING`).

    Raises `UsageError` for `*args`, for what is no Python function inside, and for an annotation
    that does not resolve.
    """
    inner, skipped, bound = _unwrap(function)
    code = inner.__code__
    name = getattr(function, "__name__", None) or inner.__name__
    if code.co_flags & _VAR_POSITIONAL:
        star = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        raise UsageError(
            f"{name}() takes *{star}: arguments arrive by name, so each needs a parameter of its own",
            hint=f"use one parameter of a list type, such as {star}: list[str]",
        )
    hints = _resolve(inner, known or {})
    extra = MISSING
    if code.co_flags & _VAR_KEYWORD:
        extra = hints.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], Any)
    doc = getattr(function, "__doc__", None) if isinstance(function, types.FunctionType) else inner.__doc__
    return Shape(
        name=name,
        doc=doc,
        parameters=tuple(p for p in _parameters(inner, hints)[skipped:] if p.name not in bound),
        extra=extra,
        returns=hints.get("return", MISSING),
    )


def _unwrap(function: Any) -> tuple[types.FunctionType, int, set[str]]:
    """The plain function inside, how many leading parameters are bound, and the names bound."""
    skipped = 0
    bound: set[str] = set()
    inner: Any = function
    while not isinstance(inner, types.FunctionType) or hasattr(inner, "__wrapped__"):
        if isinstance(inner, functools.partial):
            skipped += len(inner.args)
            bound.update(inner.keywords)
            inner = cast("Any", inner.func)
        elif isinstance(inner, types.MethodType):
            skipped += 1
            inner = inner.__func__
        elif hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__  # pyright: ignore[reportFunctionMemberAccess]  # as functools.wraps leaves it
        else:
            inner = _call_method(inner)
            skipped += 1
    return inner, skipped, bound


def _call_method(function: Any) -> types.FunctionType:
    method = None if isinstance(function, type) else getattr(class_of(function), "__call__", None)  # noqa: B004  # the method is what is looked at
    if not isinstance(method, types.FunctionType):
        raise UsageError(f"{function!r} is not a Python function, so its parameters cannot be read")
    return method


def _parameters(function: types.FunctionType, hints: dict[str, Any]) -> list[Parameter]:
    code = function.__code__
    count = code.co_argcount
    names = code.co_varnames[: count + code.co_kwonlyargcount]
    defaults = dict(function.__kwdefaults__ or {})
    given = function.__defaults__ or ()
    defaults.update(zip(names[count - len(given) : count], given, strict=True))
    return [
        Parameter(
            name=name,
            annotation=hints.get(name, MISSING),
            default=defaults.get(name, MISSING),
            by_position=at < code.co_posonlyargcount,
        )
        for at, name in enumerate(names)
    ]


def _resolve(function: types.FunctionType, known: dict[str, Any]) -> dict[str, Any]:
    if not function.__annotations__:
        return {}
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:
        names = {name: value for name, value in known.items() if name not in function.__globals__}
    except TypeError as error:
        raise UsageError(f"an annotation of {function.__name__}() is not a type: {error}") from error
    names.update(_enclosing(function))
    try:
        return get_type_hints(function, localns=names, include_extras=True)
    except NameError as error:
        raise UsageError(
            f"an annotation of {function.__name__}() does not resolve: {error}",
            hint="import the name at run time, not only under TYPE_CHECKING",
        ) from error


def _enclosing(function: types.FunctionType) -> dict[str, Any]:
    """Names visible where a local function was defined: the frames still running it, and its closure."""
    names: dict[str, Any] = {}
    outer = {part.rpartition(".")[2] for part in function.__qualname__.split(".<locals>")[:-1]}
    # The locals of the defining function are nowhere but in its frame.
    frame: types.FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # a documented function  # noqa: SLF001  # the same
    inner_first: list[dict[str, Any]] = []
    while frame is not None and outer:
        if frame.f_globals is function.__globals__ and frame.f_code.co_name in outer:
            inner_first.append(dict(frame.f_locals))
        frame = frame.f_back
    for scope in reversed(inner_first):
        names.update(scope)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # the enclosing function has not assigned it yet
            continue
    return names


def settle(annotations: list[Any], function: Callable[..., Any]) -> None:
    """Resolve, in place, the postponed annotations of classes that were defined inside a function.

    Their names live in frames, where nobody but the caller of `reflect` can look, and only now.
    Raises `UsageError` for one that does not resolve.
    """
    inner, _, _ = _unwrap(function)
    names = _enclosing(inner)
    seen: set[int] = set()
    waiting = list(annotations)
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        waiting.extend(getattr(item, "__args__", ()))
        waiting.extend(part for part in (getattr(item, "__origin__", None),) if part is not None)
        if isinstance(item, type) and "<locals>" in item.__qualname__:
            waiting.extend(_settle_class(item, names))


def _settle_class(cls: type, names: dict[str, Any]) -> list[Any]:
    own: dict[str, Any] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063  # they are changed in place
    try:
        hints = get_type_hints(cls, localns=names, include_extras=True)
    except NameError as error:
        raise UsageError(f"an annotation of {cls.__qualname__} does not resolve: {error}") from error
    own.update((name, hints[name]) for name in own)
    return list(hints.values())
