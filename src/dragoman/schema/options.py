"""Options given by keyword: one that does not exist is told, with the one that was meant.

Knows no option of anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.errors import UsageError
from dragoman.schema.wording import nearest


def check_options(
    given: Iterable[str], known: Iterable[str], *, of: str, noun: str = "option", hint: str | None = None
) -> None:
    """Raise UsageError for the first name in `given` that is not `known`: a misspelt option would do nothing.

    `of` is whose options they are, as in `Server()`; `hint` is what else may have been meant.
    """
    names = set(known)
    for name in given:
        if name not in names:
            close = nearest(name, sorted(names))
            told = f"; it has {', '.join(sorted(names))}" if close is None else f": did you mean {close!r}?"
            raise UsageError(f"{of} has no {noun} {name!r}{told}", hint=hint if close is None else None)
