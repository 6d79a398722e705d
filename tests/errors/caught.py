"""What is provoked: the class of an error and its text, without what goes before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from dragoman.errors import DragomanError, LocalError, RemoteError, ToolError


class Said(NamedTuple):
    """One message: `kind` is the class that it came with, or `HTTP` for an answer of the server's."""

    kind: str
    text: str


def said(error: BaseException) -> Said:
    """What a user reads of an exception."""
    kind = type(error).__name__
    if isinstance(error, LocalError):
        return Said(kind, error.message)
    if isinstance(error, RemoteError):
        return Said(kind, f"{error.code} {error.message}")
    assert isinstance(error, DragomanError), repr(error)
    return Said("ToolError" if isinstance(error, ToolError) else kind, str(error))


async def of(work: Awaitable[Any]) -> Said:
    """What awaiting it raises."""
    try:
        outcome = await work
    except DragomanError as exc:
        return said(exc)
    raise AssertionError(f"nothing was raised, it came to {outcome!r}")


def at(work: Callable[[], Any]) -> Said:
    """What calling it raises."""
    try:
        outcome = work()
    except DragomanError as exc:
        return said(exc)
    raise AssertionError(f"nothing was raised, it came to {outcome!r}")
