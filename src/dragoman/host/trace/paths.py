"""JSONPath (RFC 9535) over JSON values, by a library that is loaded where a query is made.

It knows the library, and no line of a trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from dragoman.errors import UsageError

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery


_TEXTS: Final = re.compile(r"'(?:[^'\\]|\\.)*'")


class Query:
    """A query that has been read."""

    def __init__(self, compiled: JSONPathQuery, text: str) -> None:
        self.compiled = compiled
        self.text = text

    def places(self, value: Any) -> list[tuple[str | int, ...]]:
        """Where the nodes of the query are in a value: names and indexes from its root."""
        return [node.location for node in self.compiled.finditer(value)]

    def nodes(self, value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
        """Place and value of each node."""
        for node in self.compiled.finditer(value):
            yield node.location, node.value

    def one_by_one(self) -> tuple[slice, Query] | None:
        """Which elements of an array the query looks at, and what it asks of an array with one of them alone.

        None where it needs them together: what counts from the end, or takes an element for what another is.
        """
        from jsonpath_rfc9535 import segments, selectors

        parts = self.compiled.segments
        if not parts or len(parts[0].selectors) != 1 or _TEXTS.sub("", str(self.compiled)).count("$") > 1:
            return None
        selector = parts[0].selectors[0]
        if not isinstance(parts[0], segments.JSONPathChildSegment):
            return (slice(None), self) if isinstance(selector, selectors.NameSelector) else None
        if isinstance(selector, selectors.FilterSelector | selectors.WildcardSelector):
            return slice(None), self
        if isinstance(selector, selectors.NameSelector):
            return slice(0), self
        if isinstance(selector, selectors.IndexSelector):
            taken = slice(selector.index, selector.index + 1)
        elif isinstance(selector, selectors.SliceSelector):
            taken = selector.slice
        else:
            return None
        if (taken.start or 0) < 0 or (taken.stop or 0) < 0 or (1 if taken.step is None else taken.step) < 1:
            return None
        return taken, query("$[*]" + "".join(str(part) for part in parts[1:]))


def query(text: str) -> Query:
    """Read a query.

    Raises:
        UsageError: it is none, with what is wrong and where; or the library is not installed.
    """
    try:
        import jsonpath_rfc9535
    except ImportError as exc:
        raise UsageError(
            f"JSONPath needs jsonpath-rfc9535, which cannot be imported ({exc})",
            hint="pip install jsonpath-rfc9535",
        ) from exc
    try:
        return Query(jsonpath_rfc9535.compile(text), text)
    except (jsonpath_rfc9535.JSONPathError, RecursionError) as exc:
        raise UsageError(f"{text!r} is no JSONPath query (RFC 9535): {exc}") from None


def normal(place: tuple[str | int, ...]) -> str:
    """A place as a normalized path (section 2.7)."""
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f"['{_quoted(part)}']" for part in place)


def _quoted(name: str) -> str:
    return "".join(_ESCAPES.get(char) or (char if char >= " " else f"\\u{ord(char):04x}") for char in name)


_ESCAPES = {"'": "\\'", "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
