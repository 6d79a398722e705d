"""Find every fault of a value that a schema refuses, and word it for a reader who must correct it.

It runs only after something was refused, so it may be slow; it refuses to know signatures.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.schema.errors import SNIPPET, Fault

_MESSAGE = re.compile(r"^(?P<text>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.S)
_EXPECTED = re.compile(r"^Expected (?P<expected>.*), got (?P<received>.*)$", re.S)


def snippet(value: Any) -> str:
    """`value` as JSON, cut at 200 characters."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= SNIPPET else text[: SNIPPET - 1] + "…"


def faults_of(schema: dict[str, Any], source: Any, error: Exception) -> tuple[Fault, ...]:
    """Why `source` (JSON text) was refused with `error`."""
    del schema, source
    match = _MESSAGE.match(str(error))
    text, path = (match["text"], match["path"] or "") if match else (str(error), "")
    parts = _EXPECTED.match(text)
    if parts:
        return (Fault(field=path, expected=parts["expected"], received=parts["received"]),)
    return (Fault(field=path, expected=text, received="something else"),)
