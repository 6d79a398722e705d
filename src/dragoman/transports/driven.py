"""Awaiting work in one's own task while noticing whether it has to wait.

It knows the coroutine protocol and nothing of what the work is.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def driven(work: Coroutine[Any, Any, T], suspended: Callable[[], None]) -> Generator[Any, Any, T]:
    """Await `work` in this very task, and call `suspended` if it does not end at once.

    What ends at once, as most calls do, costs neither a task nor a timer.
    """
    try:
        waiting = work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    suspended()
    while True:
        try:
            try:
                sent = yield waiting
            except GeneratorExit:
                work.close()
                raise
            except BaseException as exc:  # noqa: BLE001  # whatever is thrown in goes to the work, as `await` has it
                waiting = work.throw(exc)
            else:
                waiting = work.send(sent)
        except StopIteration as stop:
            result = stop.value
            return result
