"""In which event loop something was opened, and what is said where it is used from another one.

It knows nothing of what was opened.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dragoman.errors import UsageError

_HINT: Final = "connect, call and close within one asyncio.run(), or SyncClient, which needs no loop"


def check_loop(loop: asyncio.AbstractEventLoop, *, server: str, stage: str = "call") -> None:
    """Return when `loop` is the one that runs now.

    Raises:
        UsageError: another one does: what waits in `loop` is never woken from here.
    """
    if asyncio.get_running_loop() is not loop:
        state = "is closed" if loop.is_closed() else "is not this one"
        message = f"the event loop in which it was connected {state}"
        raise UsageError(message, server=server, stage=stage, hint=_HINT)


def loop_over(loop: asyncio.AbstractEventLoop, *, server: str) -> bool:
    """Whether the loop has ended, and with it all that was open in it. Raises UsageError as `check_loop`."""
    if loop.is_closed():
        return True
    check_loop(loop, server=server, stage="close")
    return False
