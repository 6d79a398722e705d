"""Awaiting work that has begun already.

It knows the coroutine protocol and nothing of what the work is.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def resumed(work: Coroutine[Any, Any, T], waiting: Any) -> Generator[Any, Any, T]:
    """Await the rest of `work`, whose first `send` gave `waiting`, in the task that began it."""
    while True:
        try:
            try:
                sent = yield waiting
            except GeneratorExit:
                work.close()
                raise
            except BaseException as exc:  # noqa: BLE001  # whatever is thrown in goes to the work, as with `await`
                waiting = work.throw(exc)
            else:
                waiting = work.send(sent)
        except StopIteration as stop:
            result: T = stop.value
            return result
