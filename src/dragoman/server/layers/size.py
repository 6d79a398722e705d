"""How large results may be: what a model cannot read is not worth sending."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from dragoman.errors import UsageError
from dragoman.model import CallToolResult, GetPromptResult, ReadResourceResult, Result, TextContent
from dragoman.protocol.call import Call
from dragoman.server.layers.subject import RESPONSE_TOO_LARGE, refused, subject
from dragoman.server.middleware import Handler

_MEASURED = (CallToolResult, ReadResourceResult, GetPromptResult)
_LEAST = 1024


class ResponseLimit:
    """Results of tools, resources and prompts have at most `max_bytes` as JSON; lists are paged instead.

    A tool result of text alone is cut, with a note of how much is missing; `truncate=False` keeps
    from that. Any other result that is too large is not sent: the answer says so, by a tool result
    with `isError` or by error 413. `tools` says otherwise for single tools.

    Raises:
        UsageError: fewer than 1024 bytes.
    """

    def __init__(
        self, max_bytes: int = 1024 * 1024, *, truncate: bool = True, tools: Mapping[str, int] | None = None
    ) -> None:
        self._max = max_bytes
        self._truncate = truncate
        self._tools = dict(tools or {})
        for each in (max_bytes, *self._tools.values()):
            if each < _LEAST:
                raise UsageError(f"ResponseLimit: expected at least {_LEAST} bytes, received {each!r}")

    async def __call__(self, call: Call, proceed: Handler) -> Result:
        """The layer itself."""
        result = await proceed(call)
        if not isinstance(result, _MEASURED):
            return result
        named = subject(call) or call.method.name
        most = self._tools.get(named, self._max) if call.method.name == "tools/call" else self._max
        size = len(msgspec.json.encode(result))
        if size <= most:
            return result
        if self._truncate and isinstance(result, CallToolResult):
            cut = _cut(result, most)
            if cut is not None:
                return cut
        text = f"The result of {named} has {size} bytes, and at most {most} are sent; ask for less at once"
        return refused(call, text, code=RESPONSE_TOO_LARGE, data={"size": size, "limit": most})


def _cut(result: CallToolResult, most: int) -> CallToolResult | None:
    """The beginning of a result of text; None for one that cannot be cut."""
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    if len(texts) < len(result.content) or result.structured_content is not UNSET:
        return None
    whole = "\n".join(texts)
    total = len(whole.encode())
    room = most
    while room > 0:
        # Cut at a character, and the incomplete one at the end goes.
        kept = whole.encode()[:room].decode(errors="ignore")
        note = f"\n[cut here: {len(kept.encode())} of {total} bytes are shown]"
        cut = msgspec.structs.replace(result, content=[TextContent(text=kept + note)])
        over = len(msgspec.json.encode(cut)) - most
        if over <= 0:
            return cut
        room -= max(over // 6, 1)  # JSON writes a byte as six at most
    return None
