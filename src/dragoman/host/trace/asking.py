"""JSONPath over an array that is never in memory as a whole, as far as the query lets it.

Pure but for where the values come from. The array is the trace: of its lines, or of its calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from dragoman.errors import UsageError
from dragoman.host.trace.paths import query

Node: TypeAlias = tuple[tuple[str | int, ...], Any]

_MOST: Final = 256 << 20  # bytes of JSON, for queries that need the whole array


def ask(text: str, values: Iterable[Any]) -> Iterator[Node]:
    """The nodes of a query over the array of the values: place and value of each.

    A query whose first segment takes elements one by one, by `*`, a filter, an index or a slice that counts
    from the front, is answered value by value. What needs all of them at once, such as `$[-1]` or a filter
    that looks at `$`, is answered from memory.

    Raises:
        UsageError: it is no query, or needs more of the trace at once than fits.
    """
    read = query(text)
    split = read.one_by_one()
    if split is None:
        yield from read.nodes(_all(values, text))
        return
    taken, one = split
    start, step = taken.start or 0, taken.step or 1
    for number, value in enumerate(islice(values, start, taken.stop, step)):
        for (_, *inner), node in one.nodes([value]):
            yield (start + number * step, *inner), node


def _all(values: Iterable[Any], text: str) -> list[Any]:
    found: list[Any] = []
    held = 0
    for value in values:
        held += len(msgspec.json.encode(value))
        if held > _MOST:
            raise UsageError(
                f"{text!r} needs the whole trace at once, and that is more than {_MOST >> 20} MiB",
                hint="begin the query with $[?...] or $[*], which is answered line by line",
            )
        found.append(value)
    return found
