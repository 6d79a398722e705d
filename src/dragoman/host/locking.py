"""A lock that processes share by an open file, where the system has one."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

if sys.platform != "win32":
    import fcntl


@contextmanager
def locked(file: int) -> Generator[None]:
    """Hold the lock of an open file, waiting for it; a negative number locks nothing.

    Windows has no such lock: there, one process alone may write to what it guards.
    """
    if sys.platform == "win32" or file < 0:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)
