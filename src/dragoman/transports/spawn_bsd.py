"""The end of a process as an event, by kqueue: macOS and the BSDs, which have no process descriptors.

Written to the documentation of kqueue(2); not run on the machines that this package is tested on.
"""

from __future__ import annotations

import asyncio
import select
import sys
from collections.abc import Callable

if sys.platform == "darwin":

    class Watch:
        """Calls `ended` from the loop when process `pid` ends; it may not have to be reaped yet.

        Raises:
            OSError: there is no such process any more, or no descriptor is left.
        """

        def __init__(self, pid: int, ended: Callable[[], None]) -> None:
            self._loop = asyncio.get_running_loop()
            self._ended = ended
            self._queue: select.kqueue | None = select.kqueue()
            event = select.kevent(
                pid,
                filter=select.KQ_FILTER_PROC,
                flags=select.KQ_EV_ADD | select.KQ_EV_ONESHOT,
                fflags=select.KQ_NOTE_EXIT,
            )
            try:
                self._queue.control([event], 0)
            except OSError:
                self._queue.close()
                raise
            # A kqueue is a descriptor that is readable while it has events.
            self._loop.add_reader(self._queue.fileno(), self._read)

        def _read(self) -> None:
            if self._queue is not None and self._queue.control(None, 1, 0):
                self._ended()

        def close(self) -> None:
            """Watch no more. May be called again."""
            queue, self._queue = self._queue, None
            if queue is not None:
                self._loop.remove_reader(queue.fileno())
                queue.close()
