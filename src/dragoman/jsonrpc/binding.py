"""From a function to what it takes: parameters by position or by name, converted to their types.

Reflection happens once, when a function is registered. It refuses to know how the function is
found and what becomes of its result.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NoReturn, get_type_hints

import msgspec
from msgspec import Raw

from dragoman.errors import Refusal, UsageError
from dragoman.jsonrpc.envelope import INVALID_PARAMS, MESSAGES, Id
from dragoman.jsonrpc.faults import kind, shown

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode
_COMPLAINT: Final = re.compile(
    r"(?:Expected )?(?P<expected>.*?)(?:, got (?P<got>.*?))?(?: - at `\$(?P<path>.*)`)?"
)


class Exchange:
    """What a function may do beside returning: ask for one by type, whatever the parameter's name.

    `id` is the id of the request that is being answered, None in a notification.
    """

    __slots__ = ("_notify", "_request", "id", "method")

    def __init__(
        self,
        id: Id,  # noqa: A002 - the member's own name
        method: str,
        *,
        notify: Callable[[str, Any], bool],
        request: Callable[[str, Any], Awaitable[Any]],
    ) -> None:
        self.id = id
        self.method = method
        self._notify = notify
        self._request = request

    def notify(self, method: str, params: Any = msgspec.UNSET) -> bool:
        """Tell the caller something; False where the transport carries nothing but the answer."""
        return self._notify(method, params)

    def request(self, method: str, params: Any = msgspec.UNSET) -> Awaitable[Any]:
        """Ask the caller something, and await the result.

        Raises RemoteError if it answers with an error, ClosedError if it goes away, and UsageError
        where the transport carries nothing but the answer.
        """
        return self._request(method, params)


class _Parameter(msgspec.Struct, frozen=True):
    name: str
    position: bool
    keyword: bool
    required: bool
    expected: str
    decode: Callable[[Raw], Any]

    def convert(self, value: Raw, name: str | None = None) -> Any:
        try:
            return self.decode(value)
        except msgspec.DecodeError as error:
            _refuse_value(name or self.name, value, complaint=str(error))


class Signature:
    """What one function takes."""

    __slots__ = ("_by_name", "_exchanges", "_in_order", "_more_items", "_more_members", "_parameters")

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._exchanges: list[str] = []
        self._parameters: list[_Parameter] = []
        self._more_items: _Parameter | None = None
        self._more_members: _Parameter | None = None
        for parameter, annotation in _reflect(function, name):
            if annotation is Exchange:
                self._exchanges.append(parameter.name)
                continue
            made = _parameter(parameter, annotation, method=name)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                self._more_items = made
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._more_members = made
            else:
                self._parameters.append(made)
        self._in_order = [parameter for parameter in self._parameters if parameter.position]
        self._by_name = {parameter.name: parameter for parameter in self._parameters if parameter.keyword}

    def bind(self, params: Raw, exchange: Exchange) -> tuple[list[Any], dict[str, Any]]:
        """The arguments to call with. Raises Refusal(-32602) that names parameter, expected, received."""
        args, kwargs = self._bind(params)
        for name in self._exchanges:
            kwargs[name] = exchange
        return args, kwargs

    def _bind(self, params: Raw) -> tuple[list[Any], dict[str, Any]]:
        what = kind(params)
        if what == "an array":
            return self._bind_items(_decode_items(params))
        members = {} if what == "nothing" else _decode_members(params)
        kwargs = {name: self._convert_member(name, value) for name, value in members.items()}
        for parameter in self._parameters:
            if parameter.required and parameter.name not in kwargs:
                _refuse(parameter.name, expected=parameter.expected, received="nothing")
        return [], kwargs

    def _bind_items(self, items: Sequence[Raw]) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for index, value in enumerate(items):
            if index < len(self._in_order):
                args.append(self._in_order[index].convert(value))
            elif self._more_items is not None:
                args.append(self._more_items.convert(value, f"{self._more_items.name}[{index}]"))
            else:
                _refuse(
                    None,
                    expected=f"at most {len(self._in_order)} positional parameters",
                    received=f"{len(items)}",
                )
        given = {parameter.name for parameter in self._in_order[: len(items)]}
        for parameter in self._parameters:
            if parameter.required and parameter.name not in given:
                _refuse(parameter.name, expected=parameter.expected, received="nothing")
        return args, {}

    def _convert_member(self, name: str, value: Raw) -> Any:
        parameter = self._by_name.get(name, self._more_members)
        if parameter is None:
            known = ", ".join(self._by_name)
            _refuse(name, expected=f"one of {known}" if known else "no parameters", received=shown(value))
        return parameter.convert(value, name)


def _reflect(function: Callable[..., Any], name: str) -> list[tuple[inspect.Parameter, Any]]:
    try:
        parameters = inspect.signature(function).parameters.values()
        target = function if inspect.isroutine(function) else type(function).__call__
        hints = get_type_hints(target, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise UsageError(f"method {name!r}: its signature cannot be read: {error}") from error
    return [(parameter, hints.get(parameter.name, Any)) for parameter in parameters]


def _parameter(parameter: inspect.Parameter, annotation: Any, *, method: str) -> _Parameter:
    try:
        decode = msgspec.json.Decoder(annotation).decode
    except TypeError as error:
        raise UsageError(f"method {method!r}: parameter {parameter.name!r}: {error}") from error
    plain = parameter.kind in (*_POSITIONAL, *_NAMED)
    return _Parameter(
        parameter.name,
        parameter.kind in _POSITIONAL,
        parameter.kind in _NAMED,
        plain and parameter.default is inspect.Parameter.empty,
        "any value" if annotation is Any else inspect.formatannotation(annotation),
        decode,
    )


def _refuse_value(name: str, value: Raw, *, complaint: str) -> NoReturn:
    # "Expected `int`, got `str` - at `$[0].x`": the decoder's own words, taken apart.
    found = _COMPLAINT.fullmatch(complaint)
    if found is None:
        _refuse(name, expected=complaint, received=shown(value))
    received = (found["got"] or shown(value)).replace("`", "")
    _refuse(f"{name}{found['path'] or ''}", expected=found["expected"].replace("`", ""), received=received)


def _refuse(parameter: str | None, *, expected: str, received: str) -> NoReturn:
    where = f'parameter "{parameter}": ' if parameter is not None else ""
    data = {"parameter": parameter, "expected": expected, "received": received}
    raise Refusal(
        INVALID_PARAMS, f"{MESSAGES[INVALID_PARAMS]}: {where}expected {expected}, received {received}", data
    )
