"""The bytes of one request: params and metadata encoded once, and refused where JSON has no form for them.

It knows no transport and no revision.
"""

from __future__ import annotations

from math import inf
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import UsageError
from dragoman.jsonrpc.message import encode_request
from dragoman.model import Params
from dragoman.schema.shapes import is_object


def encode_call(id_: int, method: str, *, params: Params | dict[str, Any], meta: Raw | UnsetType) -> bytes:
    """One line of JSON for a request whose `_meta` is `meta`.

    Raises:
        UsageError: the params hold what JSON cannot say; it names the place where that is known.
    """
    if isinstance(params, dict):
        params = params if meta is UNSET else {**params, "_meta": meta}
    else:
        params.meta = meta
    try:
        frame = encode_request(id_, method, params)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise UsageError(f"{method}: the params cannot be sent as JSON: {exc}") from None
    # The encoder writes NaN and infinity as null, which would be another value than the one given.
    if b"null" in frame:
        _refuse_nan(msgspec.to_builtins(params, builtin_types=(Raw,)), method)
    return frame


def _refuse_nan(value: Any, place: str) -> None:
    if isinstance(value, float) and not -inf < value < inf:
        raise UsageError(f"{place}: {value!r} has no form in JSON")
    if is_object(value):
        for name, member in value.items():
            _refuse_nan(member, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("list[Any]", value)):
            _refuse_nan(item, f"{place}[{index}]")
