"""What a handler may know about the call it answers, and what it may send while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from dragoman.errors import Refusal, UsageError
from dragoman.model import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    Implementation,
    LoggingLevel,
    LoggingMessageParams,
    Number,
    RequestId,
    ResourceContents,
)
from dragoman.protocol.call import Call
from dragoman.server.asking import Asks, record
from dragoman.server.home import PROGRESS_RATE

M = TypeVar("M", Implementation, ClientCapabilities)

_LEVELS: dict[str, int] = {
    level: rank
    for rank, level in enumerate(
        ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    )
}


def _own(said: M) -> M:
    """A copy for one handler: what a client says of itself is read once for many requests."""
    return msgspec.json.decode(msgspec.json.encode(said), type=type(said))


class Sent:
    """What a sending method returns: it was done at once, and may be awaited or not."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        """Nothing is left to wait for."""
        yield from ()


_SENT = Sent()


class Context(Asks):
    """The call that a handler answers.

    A handler gets one by naming the type: a parameter annotated `Context`, wherever it stands.
    Sending methods never block and work from `async` and plain functions alike; with `await` or
    without it makes no difference.
    """

    __slots__ = ("_loop",)

    def __init__(self, call: Call) -> None:
        self._call = call
        self._asked = 0
        self._loop = asyncio.get_running_loop()  # a plain function runs in a thread, where there is none

    # Facts ---------------------------------------------------------------------------------------

    @property
    def request_id(self) -> RequestId:
        """The JSON-RPC id of the request."""
        return self._call.id  # type: ignore[return-value]  # admission lets only strings and integers in

    @property
    def revision(self) -> str:
        """The protocol revision of the request, such as `"2026-07-28"`."""
        return self._call.revision.version

    @property
    def client_info(self) -> Implementation | None:
        """Who says to be calling; self-reported, never a basis for trust."""
        info = self._call.caller.info
        return None if info is UNSET else _own(info)

    @property
    def client_capabilities(self) -> ClientCapabilities:
        """What the client offers."""
        return _own(self._call.caller.capabilities)

    @property
    def principal(self) -> str | None:
        """Who the transport's authorisation says is calling; None where there is none."""
        return self._call.principal

    @property
    def lifespan(self) -> Any:
        """What the server's `lifespan` yielded; None where there is none."""
        return self._call.lifespan

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta`, whole and as it was sent."""
        raw = self._call.params.meta
        return {} if raw is UNSET else msgspec.json.decode(raw, type=dict[str, Any])

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's headers in lower case; empty on other transports."""
        return getattr(self._call.channel, "headers", {})

    @property
    def input_responses(self) -> Mapping[str, Any]:
        """The answers so far by key, as they came, for handlers that return `InputRequiredResult`."""
        return record(self._call).answers

    @property
    def request_state(self) -> str | None:
        """What such a handler put into `request_state` the round before; None in the first."""
        return record(self._call).raw

    # Reading -------------------------------------------------------------------------------------

    async def read_resource(self, uri: str) -> list[ResourceContents]:
        """What a resource of this server holds, as its client would read it.

        Raises:
            ResourceNotFound: there is none.
            DragomanError: it cannot be read.
        """
        if self._call.reader is None:
            raise UsageError("resources are read while a tool, a prompt or a resource is called")
        contents: list[ResourceContents] = await self._call.reader(self._call, self, uri=uri)
        return contents

    # Sending -------------------------------------------------------------------------------------

    def report_progress(
        self, progress: Number, total: Number | None = None, message: str | None = None
    ) -> Sent:
        """Tell how far the work is, if the client asked to be told.

        `progress` has to rise from one report to the next (patterns/progress); a report that does
        not rise is left out. Reports beyond the server's `progress_rate` wait until they may be
        sent, each in the place of the one before; the last one is always sent.
        """
        told = self._call.progress
        if told is None:
            token = self._call.meta.progress_token
            if token is UNSET:
                return _SENT
            home = self._call.home
            rate = PROGRESS_RATE if home is None else home.progress_rate
            from dragoman.server.progress import Progress

            told = self._call.progress = Progress(self._call, token, rate=rate, loop=self._loop)
        told.report(progress, total, message=message)
        return _SENT

    def log(self, level: LoggingLevel, data: object, *, logger: str | None = None) -> Sent:
        """Send a log entry to the client, if it asked for this level or a lower one.

        `data` is anything that can be written as JSON. Nothing that was not asked for is sent: on a
        stateless revision the request names its level, elsewhere `logging/setLevel` does.
        """
        wanted = self._wanted()
        if wanted is None or _LEVELS[level] < _LEVELS[wanted]:
            return _SENT
        params = LoggingMessageParams(level=level, data=data, logger=UNSET if logger is None else logger)
        self._call.channel.notify("notifications/message", params)
        return _SENT

    def _wanted(self) -> str | None:
        call = self._call
        if call.revision.handshake:
            return None if call.link.session is None else call.link.session.log_level
        level = call.caller.log_level
        return None if level is UNSET else level

    def close_sse_stream(self, retry_ms: int = 1000) -> Sent:
        """Close the connection that this call came by, and go on with the call.

        For calls that take long: the client comes back after `retry_ms` milliseconds and has what was
        sent meanwhile. Nothing happens where a client would not come back: on other transports, and
        on revisions that have no polling (2025-11-25, Streamable HTTP: Sending Messages).
        """
        close = getattr(self._call.channel, "close_stream", None)
        if close is not None:
            close(retry_ms)
        return _SENT

    def debug(self, data: object, *, logger: str | None = None) -> Sent:
        """Log at level `debug`."""
        return self.log("debug", data, logger=logger)

    def info(self, data: object, *, logger: str | None = None) -> Sent:
        """Log at level `info`."""
        return self.log("info", data, logger=logger)

    def warning(self, data: object, *, logger: str | None = None) -> Sent:
        """Log at level `warning`."""
        return self.log("warning", data, logger=logger)

    def error(self, data: object, *, logger: str | None = None) -> Sent:
        """Log at level `error`."""
        return self.log("error", data, logger=logger)

    # Needs ---------------------------------------------------------------------------------------

    def require(self, capability: str) -> None:
        """Go on only if the client offers `capability` (`"sampling"`, `"elicitation"`, `"roots"`).

        Raises:
            Refusal: -32021 with `data.requiredCapabilities` (2026-07-28, basic: `_meta`).
        """
        if getattr(self._call.caller.capabilities, capability, UNSET) is UNSET:
            raise Refusal(
                MISSING_REQUIRED_CLIENT_CAPABILITY,
                f"This needs a client with the capability `{capability}`, which it did not declare",
                {"requiredCapabilities": {capability: {}}},
            )
