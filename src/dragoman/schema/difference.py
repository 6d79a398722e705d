"""How two JSON values differ, in lines that a person reads: the place, what it was, what it is now.

Pure. It refuses to know what the values mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Final

import msgspec

from dragoman.schema.shapes import is_array, is_object

_LONGEST: Final = 200  # characters of a value that are shown
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ: `was` and `now` are JSON texts, None where nothing is there."""

    place: str
    was: str | None
    now: str | None

    def __str__(self) -> str:
        if self.was is None:
            return f"+ {self.place}: {self.now}"
        if self.now is None:
            return f"- {self.place}: {self.was}"
        if "\n" in self.was or "\n" in self.now:
            lines = unified_diff(self.was.splitlines(), self.now.splitlines(), lineterm="", n=1)
            kept = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            return "\n".join([f"~ {self.place}:", *(f"    {line}" for line in kept)])
        return f"~ {self.place}: {self.was} -> {self.now}"


def differences(was: Any, now: Any, *, ignore: Iterable[str] = ()) -> list[Difference]:
    """Where `now` differs from `was`, in the order of the values.

    `ignore` has places (`content[0].text`, `content[*].text`) or names of members (`_meta`), which count
    wherever they are; what is below them is ignored too.
    """
    return list(_walk(was, now, place="", ignored=frozenset(ignore)))


def _walk(was: Any, now: Any, *, place: str, ignored: frozenset[str]) -> Iterator[Difference]:
    if place and _is_ignored(place, ignored):
        return
    if is_object(was) and is_object(now):
        for name in {**was, **now}:
            inner = f"{place}.{name}" if place else name
            yield from _walk(was.get(name, _NOTHING), now.get(name, _NOTHING), place=inner, ignored=ignored)
    elif is_array(was) and is_array(now):
        for index in range(max(len(was), len(now))):
            old = was[index] if index < len(was) else _NOTHING
            new = now[index] if index < len(now) else _NOTHING
            yield from _walk(old, new, place=f"{place}[{index}]", ignored=ignored)
    elif not _same(was, now):
        yield Difference(place or "(all)", _shown(was), _shown(now))


def _is_ignored(place: str, ignored: frozenset[str]) -> bool:
    if not ignored:
        return False
    parts = [part.partition("[") for part in place.split(".")]
    general = ".".join(f"{name}[*]" if bracket else name for name, bracket, _ in parts)
    return bool({place, general, parts[-1][0]} & ignored)


def _same(was: Any, now: Any) -> bool:
    # JSON's true is no 1, and 1 is the same number as 1.0.
    return bool(was == now) and isinstance(was, bool) is isinstance(now, bool)


def _shown(value: Any) -> str | None:
    if value is _NOTHING:
        return None
    if isinstance(value, str) and "\n" in value:
        return value
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
