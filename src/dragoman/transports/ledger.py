"""The requests that are open on a channel that all messages share, and whose answer a message is.

It holds futures by id, matches leniently where the peer is careless, and names and counts what
belongs to nothing. It refuses to know bytes on their way and how long anything lasts.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any, Final

from dragoman.errors import LocalError, PeerFault
from dragoman.jsonrpc.message import INVALID_REQUEST, PARSE_ERROR, Id, Invalid, Response, too_large

log = logging.getLogger("dragoman")

_WARNINGS: Final = 5
_ABANDONED: Final = 1024  # ids of requests that were given up and may still be answered
_HEAD: Final = 4096
_DECIMAL: Final = re.compile("0|-?[1-9][0-9]{0,18}")
_LAST_WARNING: Final = "; further ones are counted and not shown"


class Ledger:
    """Open requests of one connection to the server called `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._abandoned: dict[Id, None] = {}
        self._noise_lines: list[str] = []
        self.pending: dict[Id, asyncio.Future[Response]] = {}
        self.noise = 0  # lines that are no messages
        self.late = 0  # answers to requests that were given up
        self.lenient = 0  # answers whose id is not quite that of the request
        self.unmatched = 0  # answers to nothing

    def facts(self) -> dict[str, Any]:
        """What the server did that it should not: counts, and the first lines of noise."""
        return {
            "noise": self.noise,
            "noise_lines": tuple(self._noise_lines),
            "late": self.late,
            "lenient": self.lenient,
            "unmatched": self.unmatched,
        }

    def give_up(self, id_: Id, future: asyncio.Future[Response]) -> bool:
        """Whoever awaited `future` no longer does; whether the request was open until now."""
        if self.pending.get(id_) is not future:
            if future.done() and not future.cancelled():
                future.exception()  # it ended in the same moment; nobody else looks at how
            return False
        del self.pending[id_]
        return True

    def abandon(self, id_: Id) -> None:
        """Expect a late answer to a request that was given up after it was sent."""
        self._abandoned[id_] = None
        if len(self._abandoned) > _ABANDONED:
            del self._abandoned[next(iter(self._abandoned))]

    def fail(self, error: Callable[[], LocalError]) -> None:
        """No answer comes any more: every open request ends with an error of its own."""
        pending, self.pending = self.pending, {}
        for future in pending.values():
            if not future.done():
                future.set_exception(error())

    def settle(self, message: Response) -> None:
        """An answer came in."""
        future = self.pending.pop(message.id, None)
        if future is not None and not future.done():
            future.set_result(message)
        elif future is not None:
            self.late += 1
        else:
            self._stray(message)

    def _stray(self, message: Response) -> None:
        if message.id in self._abandoned:
            del self._abandoned[message.id]
            self.late += 1
            return
        future = self._owner(message)
        if future is not None:
            self.lenient += 1
            future.set_result(message)
            return
        self.unmatched += 1
        if self.unmatched > _WARNINGS:
            return
        error = message.error
        said = "" if error is None else f": error {error.code}, {error.message[:200]!a}"
        said += _LAST_WARNING if self.unmatched == _WARNINGS else ""
        log.warning("server %r answered a request that is not open (id %r)%s", self._name, message.id, said)

    def _owner(self, message: Response | Invalid) -> asyncio.Future[Response] | None:
        """Whose answer this is: `"7"` may answer 7 where nothing is called `"7"`.

        An error whose sender could not read the id (JSON-RPC 2.0, section 5) is for the only request
        that is open, if there is but one.
        """
        id_ = message.id
        future = self.pending.pop(id_, None)
        if future is None and isinstance(id_, str) and _DECIMAL.fullmatch(id_):
            future = self.pending.pop(int(id_), None)
        elif future is None and len(self.pending) == 1 and _could_not_read(message):
            _, future = self.pending.popitem()
        return None if future is None or future.done() else future

    def unreadable(self, fault: Invalid, head: bytes) -> None:
        """A line that is no message; if it was to be an answer, the request that it is for fails."""
        owner = fault
        if fault.id is None:  # the id may stand in the part before the fault
            owner = too_large(len(head), _HEAD, head=head[:_HEAD])
        if owner.of_response and (future := self._owner(owner)) is not None:
            message = f"the answer could not be read: {fault.detail}"
            future.set_exception(PeerFault(message, server=self._name, stage="call"))
            return
        self.noise += 1
        if self.noise > _WARNINGS:
            return
        text = head[: 4 * 200].decode("utf-8", "replace")[:200]
        self._noise_lines.append(text)
        said = _LAST_WARNING if self.noise == _WARNINGS else ""
        log.warning(
            "server %r wrote a line to stdout that is no message (%s)%s: %s",
            self._name,
            fault.detail,
            said,
            ascii(text),
        )


def _could_not_read(message: Response | Invalid) -> bool:
    error = message.error if isinstance(message, Response) and message.id is None else None
    return error is not None and error.code in (PARSE_ERROR, INVALID_REQUEST)
