"""The standard streams of this process, moved out of everybody's reach.

It knows what a descriptor is that is closed, and whose number the next file to be opened would
take. It refuses to know what goes over the streams.
"""

from __future__ import annotations

import contextlib
import os
import sys

from dragoman.errors import UsageError

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def claim() -> tuple[int, int]:
    """Descriptors of what were stdin and stdout. 0 reads nothing from now on, and 1 writes to stderr.

    What is printed from here on, and what was printed but is still buffered, goes to stderr; so does
    what child processes print. Where stderr is closed, all of that goes nowhere.

    Raises:
        UsageError: one of the two is closed.
    """
    # The interpreter has looked when it started; by now the number may be that of any other file.
    if sys.__stdin__ is None or sys.__stdout__ is None:
        raise _closed("input" if sys.__stdin__ is None else "output")
    try:
        reader, writer = _above(_STDIN), _above(_STDOUT)
    except OSError as exc:
        raise _closed("input" if not _is_open(_STDIN) else "output") from exc
    vacant = not _is_open(_STDERR)
    nothing = os.open(os.devnull, os.O_RDWR)
    if vacant:
        # Else the next file to be opened would get what is meant for stderr.
        os.dup2(nothing, _STDERR)
        os.set_inheritable(_STDERR, True)  # `nothing` may be this very number
    os.dup2(nothing if sys.__stderr__ is None else _STDERR, _STDOUT)
    os.dup2(nothing, _STDIN)
    if nothing > _STDERR:
        os.close(nothing)
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()  # whatever was buffered before is text, and goes where text goes now
    return reader, writer


def _above(number: int) -> int:
    """A copy of a descriptor that is none of the first three, of which some may be free."""
    passed: list[int] = []
    try:
        while (copy := os.dup(number)) <= _STDERR:
            passed.append(copy)
    finally:
        for low in passed:
            os.close(low)
    return copy


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _closed(which: str) -> UsageError:
    return UsageError(
        f"standard {which} is closed: it is one half of the way to the client",
        hint="start the server with pipes for both, or serve HTTP",
    )
