"""One connection or session, as the server remembers it: who opened it and what we asked over it.

Knows no bytes and no tasks. A stateless request leaves no trace here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.errors import ClosedError, RemoteError
from dragoman.jsonrpc.message import ErrorObject, Id
from dragoman.model import LoggingLevel
from dragoman.revisions.base import Caller, Revision

# Called once with (result, None) or (None, exception).
Settle = Callable[[Any, Exception | None], None]


class Session(msgspec.Struct, eq=False):
    """What `initialize` agreed on."""

    revision: Revision
    caller: Caller
    log_level: LoggingLevel | None = None  # none until the client asks: nothing unasked is sent
    initialized: bool = False


class Link(msgspec.Struct, eq=False):
    """The server's memory of one connection (stdio, in memory) or one HTTP session.

    `notify` sends a notification that belongs to no request; it is None where nothing can carry
    one. `pending` are the requests we sent to the client and still await; `last` is the number of
    the last one, and tells them from those of other processes that serve the same session.
    """

    session: Session | None = None
    principal: str | None = None
    notify: Callable[[str, object], None] | None = None
    pending: dict[Id, Settle] = {}
    subscriptions: set[str] = set()  # resource URIs, by `resources/subscribe`
    last: int = 0

    def ask(self, settle: Settle) -> Id:
        """A fresh id for a request of ours; `settle` is called once with its outcome."""
        self.last += 1
        self.pending[self.last] = settle
        return self.last

    def forget(self, id_: Id) -> bool:
        """Stop awaiting `id`; whether it was awaited."""
        return self.pending.pop(id_, None) is not None

    def answered(self, id_: Id, *, result: Any, error: ErrorObject | None) -> bool:
        """The client answered one of our requests; False when nobody awaits that id."""
        settle = self.pending.pop(id_, None)
        if settle is None:
            return False
        if error is None:
            settle(result, None)
        else:
            data = None if error.data is UNSET else msgspec.json.decode(error.data)
            settle(None, RemoteError(error.code, error.message, data))
        return True

    def close(self, reason: str) -> None:
        """Fail everything we still await."""
        pending, self.pending = self.pending, {}
        for settle in pending.values():
            settle(None, ClosedError(reason))
