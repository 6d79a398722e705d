"""How long calls take and what becomes of them, told to whoever wants to know."""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Callable
from typing import Literal

from msgspec import UNSET, Struct

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import Id
from dragoman.model import CallToolResult, InputRequiredResult, Result
from dragoman.protocol.call import Call
from dragoman.server.layers.subject import client, subject
from dragoman.server.middleware import Handler

Outcome = Literal["ok", "tool_error", "input_required", "refused", "failed", "cancelled"]


class Timed(Struct, frozen=True, kw_only=True):
    """One call that is over.

    `subject` is the tool, prompt or resource; `seconds` the time inside this layer; `code` that of an
    error answer, `error` the class of an exception. Arguments and results are no part of it.
    """

    method: str
    subject: str | None
    outcome: Outcome
    seconds: float
    code: int | None
    error: str | None
    request_id: Id
    revision: str
    client: str | None
    principal: str | None


class Timing:
    """Calls `tell` with a `Timed` for every call, once it is over: `Timing(metrics.record)`."""

    def __init__(
        self, tell: Callable[[Timed], object], *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._tell = tell
        self._clock = clock

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        begun = self._clock()
        try:
            result = await proceed(call)
        except BaseException as exc:
            self._tell(_timed(call, self._clock() - begun, raised=exc))
            raise
        self._tell(_timed(call, self._clock() - begun, result=result))
        return result


def _timed(
    call: Call, seconds: float, *, result: Result | None = None, raised: BaseException | None = None
) -> Timed:
    return Timed(
        method=call.method.name,
        subject=subject(call),
        outcome=_outcome(result, raised),
        seconds=seconds,
        code=raised.code if isinstance(raised, Refusal) else None,
        error=None if raised is None or isinstance(raised, Refusal) else type(raised).__name__,
        request_id=call.id,
        revision=call.revision.version,
        client=client(call),
        principal=call.principal,
    )


def _outcome(result: Result | None, raised: BaseException | None) -> Outcome:
    if isinstance(raised, Refusal):
        return "refused"
    if raised is not None:
        return "cancelled" if isinstance(raised, CancelledError) else "failed"
    if isinstance(result, InputRequiredResult):
        return "input_required"
    failed = isinstance(result, CallToolResult) and result.is_error is not UNSET and result.is_error
    return "tool_error" if failed else "ok"
