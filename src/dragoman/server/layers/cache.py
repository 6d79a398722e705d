"""Results of tools that only read, kept for a while."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Any

import msgspec
from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.model import CallToolResult, Result
from dragoman.protocol.call import Call
from dragoman.server.middleware import Handler

_Entry = tuple[float, CallToolResult]


class Cache:
    """Answers a tool call that was answered before with what was answered then, for `ttl` seconds.

    For tools with the annotation `readOnlyHint`, or those named in `tools`. Calls are the same if
    tool, arguments and principal are; `key` may add what else an answer depends on, such as a header
    that says who calls: without a principal, all callers are one. Errors are not kept, nor answers
    that came of questions to the client or were to be tasks. At most `max_entries` results are
    kept; the one that was used longest ago goes first.

    Raises:
        UsageError: a time or a number that is not above 0.
    """

    def __init__(
        self,
        ttl: float,
        *,
        tools: Collection[str] | None = None,
        key: Callable[[Call], Hashable] | None = None,
        max_entries: int = 1000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not (ttl > 0 and max_entries > 0):
            raise UsageError(
                f"Cache: expected ttl and max_entries above 0, received {ttl!r} and {max_entries!r}"
            )
        self._ttl = ttl
        self._tools = None if tools is None else frozenset(tools)
        self._key = key
        self._max = max_entries
        self._clock = clock
        self._kept: OrderedDict[tuple[Any, ...], _Entry] = OrderedDict()

    def clear(self, tool: str | None = None) -> None:
        """Forget what is kept: of one tool, or all."""
        for key in [key for key in self._kept if tool is None or key[0] == tool]:
            del self._kept[key]

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        if call.method.name != "tools/call" or not self._is_kept(call):
            return await proceed(call)
        key = self._whole_key(call)
        if key is None:
            return await proceed(call)
        found = self._kept.get(key)
        if found is not None:
            if self._clock() < found[0]:
                self._kept.move_to_end(key)
                return found[1]
            del self._kept[key]
        result = await proceed(call)
        if type(result) is CallToolResult and result.is_error is not True and call.scratch is None:
            self._kept[key] = (self._clock() + self._ttl, result)
            self._kept.move_to_end(key)
            if len(self._kept) > self._max:
                self._kept.popitem(last=False)
        return result

    def _is_kept(self, call: Call) -> bool:
        params = call.params
        if any(part is not UNSET for part in (params.task, params.request_state, params.input_responses)):
            return False
        if self._tools is not None:
            return params.name in self._tools
        tool: Any = None if call.home is None else call.home.tool(params.name)
        hints = UNSET if tool is None else tool.entry.annotations
        return hints is not UNSET and hints.read_only_hint is True

    def _whole_key(self, call: Call) -> tuple[Any, ...] | None:
        params = call.params
        try:
            arguments = None if params.arguments is UNSET else msgspec.json.decode(params.arguments)
        except msgspec.DecodeError:
            return None
        more = None if self._key is None else self._key(call)
        written = msgspec.json.encode(arguments or {}, order="deterministic")
        return params.name, written, call.principal, more
