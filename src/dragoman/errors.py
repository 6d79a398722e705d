"""The exceptions of the package: what happened here, what the peer said, and what we answer.

This module knows no protocol and no transport. Local faults and remote faults never share
a class or a number: a `LocalError` has no JSON-RPC code, a `RemoteError` has nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET


class DragomanError(Exception):
    """Base of every exception that this package raises on purpose."""


class LocalError(DragomanError):
    """Something failed on this side of the wire.

    `message` says what happened; the rest says where, as far as it is known: `server` (the
    name by which the caller knows it), `stage` (`"spawn"`, `"connect"`, `"probe"`,
    `"initialize"`, `"call"`, `"close"`, `"bind"`, `"trace"`), `exit_status` of a child process
    (negative: the signal that ended it), `stderr_tail` (its last lines) and `hint` (what to try).
    `undelivered` is true where the request surely did not reach the server, so that sending it again is
    no second request.
    """

    def __init__(
        self,
        message: str,
        *,
        server: str | None = None,
        stage: str | None = None,
        exit_status: int | None = None,
        stderr_tail: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.server = server
        self.stage = stage
        self.exit_status = exit_status
        self.stderr_tail = tuple(stderr_tail)
        self.hint = hint
        self.undelivered = False

    @property
    def step(self) -> str | None:
        """`stage`, where that is more than the message says of itself: of a time limit it is not."""
        return self.stage

    def __str__(self) -> str:
        where = " ".join(
            part
            for part in (self.server and f"server {self.server!r}", self.step and f"({self.step})")
            if part
        )
        text = f"{where}: {self.message}" if where else self.message
        if self.exit_status is not None:
            text += f" [{exit_text(self.exit_status)}]"
        if self.hint:
            text += f"\n  try: {self.hint}"
        if self.stderr_tail:
            text += "\n  its last lines on stderr:\n" + "\n".join(f"    {line}" for line in self.stderr_tail)
        return text


class UsageError(LocalError):
    """The caller asked for something that cannot be: a wrong argument, a wrong order of calls."""


class ConnectError(LocalError):
    """No connection came about: the program did not start, the address did not answer.

    `passing` is true where that may be otherwise in a moment: the server is not there, or not yet.
    """

    passing = False


class NegotiationError(ConnectError):
    """Both sides are there, but no protocol revision is common to them, or the handshake broke off."""


class ClosedError(LocalError):
    """The connection is closed, or closed while an answer was awaited."""


class DeadlineError(LocalError, TimeoutError):
    """A time limit of this side ran out; the message says which one, and `stage`: `"connect"`, `"idle"`
    (no answer and no progress) or `"overall"`.
    """

    @property
    def step(self) -> str | None:
        """`stage`, where it is no limit."""
        return None if self.stage in ("idle", "overall") else self.stage


class PeerFault(LocalError):
    """The peer broke the protocol: an answer that is no answer, a page that never ends."""


class HttpError(LocalError):
    """The server answered with an HTTP status, and with no JSON-RPC message for the request.

    `status` and `reason` are those of the answer; `body` is the beginning of its body (at most 300
    characters, secrets of the request taken out), `content_type` its type or None, `location` where a
    redirect points to, `challenge` the value of `WWW-Authenticate`. `session_ended` is true for a
    404 to a request that named a session: it is over, and a new `initialize` opens another one
    (2025-11-25, Streamable HTTP, "Session Management"). `retry_after` are the seconds after which
    the server wants to be asked again, None where it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        reason: str = "",
        body: str = "",
        server: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, server=server, stage="call", hint=hint)
        self.status = status
        self.reason = reason
        self.body = body
        self.content_type: str | None = None
        self.location: str | None = None
        self.challenge: str | None = None
        self.retry_after: float | None = None
        self.session_ended = False


class RemoteError(DragomanError):
    """The peer answered with a JSON-RPC error object: `code`, `message`, and `data` if it sent any."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class Refusal(DragomanError):
    """Raised while handling a request: answer it with this JSON-RPC error.

    The only exception whose text crosses the wire as a protocol error. `data` is anything that
    can be encoded as JSON; while it is `UNSET`, the error object has no `data` member.
    """

    def __init__(self, code: int, message: str, data: Any = UNSET) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolError(DragomanError):
    """Raised by a tool: the call ends with `isError: true` and this text, for the model to act on."""


class ToolFailure(ToolError):
    """A tool that was called answered with an error, for callers who asked to have that raised.

    The message is what the tool said; `result` is the `ToolResult`. A tool that calls another one and lets
    this pass ends with the same text.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class ResourceNotFound(DragomanError):
    """Raised by the function of a resource: nothing is there. Answered with the error of the revision."""


def exit_text(status: int) -> str:
    """An exit status as a person says it: `exit status 3`, or `killed by signal 9`."""
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
