"""How long tools may take, told once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from dragoman.errors import UsageError
from dragoman.model import CallToolResult, Result, TextContent
from dragoman.protocol.call import Call
from dragoman.server.middleware import Handler


class Timeout:
    """Tool calls end with an error after `seconds`; `tools` says otherwise for single ones, None for never.

    Time that a person takes to answer a question counts where the revision asks inline. A plain
    function in a thread cannot be stopped: its call ends, the function goes on. A single tool's own
    limit is `@server.tool(timeout=...)`.

    Raises:
        UsageError: a time that is not above 0.
    """

    def __init__(self, seconds: float | None, *, tools: Mapping[str, float | None] | None = None) -> None:
        self._seconds = seconds
        self._tools = dict(tools or {})
        for each in (seconds, *self._tools.values()):
            if each is not None and not each > 0:
                raise UsageError(f"Timeout: expected seconds above 0, received {each!r}")

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        if call.method.name != "tools/call":
            return await proceed(call)
        name = call.params.name
        seconds = self._tools.get(name, self._seconds)
        if seconds is None:
            return await proceed(call)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await proceed(call)
        except TimeoutError:
            if not limit.expired():
                raise
            text = f"{name} did not finish within {seconds:g} s"
            return CallToolResult(content=[TextContent(text=text)], is_error=True)
